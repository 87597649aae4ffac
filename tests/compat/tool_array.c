/* Helper of the compatibility tests: does with arrays what a line on stdin
 * says, and answers with one line of JSON. One process serves many lines, so a
 * large matrix runs fast, also under sanitizers.
 *
 * A line is tab-separated key=value words, `op` among them:
 *   op=read    url [offset] [frame: the file's bytes as a frame, 1 borrowed,
 *              2 copied] [threads] [boxes] out: the whole array, then each box
 *   op=create  url or frame_out; shape, chunks, blocks, dtype, item_size, codec,
 *              codec_meta, level, use_dict, filters, filters_meta, kind, layout,
 *              fill, fill_value, meta; then as write, unless there is no data
 *   op=write   url, data: the boxes' bytes one behind the other, [boxes: else
 *              the whole array], [commit_each]
 * Lists are a,b,c; a box is 0:5,2:3 ("." with 0 dimensions), boxes are split by
 * `;`, bytes are hexadecimal. */
#include "caterva.h"

#include "support/check.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 40, MAX_LINE = 1 << 20, MAX_HEX = 1 << 16 };

typedef struct job {
    char *words[MAX_WORDS];
    int n_words;
} job;

typedef struct bounds {
    int64_t start[CATERVA_MAX_DIMS];
    int64_t stop[CATERVA_MAX_DIMS];
    size_t size; /* bytes */
} bounds;

/* ---- Words ---------------------------------------------------------------- */

static void split_line(char *line, job *j)
{
    j->n_words = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *word = strtok(line, "\t"); word != NULL; word = strtok(NULL, "\t")) {
        CHECK(j->n_words < MAX_WORDS, "too many words in a job");
        j->words[j->n_words++] = word;
    }
}

static const char *find_word(const job *j, const char *key)
{
    size_t n = strlen(key);
    for (int i = 0; i < j->n_words; i++) {
        if (strncmp(j->words[i], key, n) == 0 && j->words[i][n] == '=')
            return j->words[i] + n + 1;
    }
    return NULL;
}

static int64_t find_number(const job *j, const char *key)
{
    const char *word = find_word(j, key);
    return word != NULL ? strtoll(word, NULL, 0) : 0;
}

static const char *need_word(const job *j, const char *key)
{
    const char *word = find_word(j, key);
    CHECK(word != NULL, "a job lacks %s", key);
    return word;
}

/* Up to 16 numbers split by commas; returns how many. */
static int parse_list(const char *text, int64_t *out)
{
    int n = 0;
    while (text != NULL && *text != '\0') {
        char *end;
        CHECK(n < CATERVA_MAX_DIMS, "list too long: %s", text);
        out[n++] = strtoll(text, &end, 0);
        text = *end == ',' ? end + 1 : NULL;
    }
    return n;
}

static int parse_list32(const char *text, int *out)
{
    int64_t wide[CATERVA_MAX_DIMS];
    int n = parse_list(text, wide);
    for (int i = 0; i < n; i++) out[i] = (int)wide[i];
    return n;
}

static size_t parse_hex(const char *text, uint8_t *out)
{
    size_t n = strlen(text) / 2;
    CHECK(n <= MAX_HEX, "%zu bytes of hexadecimal are too many", n);
    for (size_t i = 0; i < n; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
        out[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return n;
}

static void measure_bounds(const caterva_info *info, bounds *b)
{
    b->size = (size_t)info->item_size;
    for (int i = 0; i < info->ndim; i++) b->size *= (size_t)(b->stop[i] - b->start[i]);
}

static bounds whole_array(const caterva_info *info)
{
    bounds b = {.size = 0};
    memcpy(b.stop, info->shape, sizeof(b.stop));
    measure_bounds(info, &b);
    return b;
}

/* Reads the next box of `*text` and moves behind it; 0 at the end. */
static int next_box(const char **text, const caterva_info *info, bounds *b)
{
    const char *at = *text;
    if (at == NULL || *at == '\0') return 0;
    for (int i = 0; i < info->ndim; i++) {
        char *end;
        b->start[i] = strtoll(at, &end, 10);
        b->stop[i] = strtoll(end + 1, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    measure_bounds(info, b);
    at += *at == '.';
    *text = *at == ';' ? at + 1 : NULL;
    return 1;
}

/* ---- Answers -------------------------------------------------------------- */

static void put_text(FILE *to, const char *text)
{
    if (text == NULL) {
        fputs("null", to);
        return;
    }
    fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(to, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, to);
    }
    fputc('"', to);
}

static void put_key_text(FILE *to, const char *key, const char *text)
{
    fprintf(to, ",\"%s\":", key);
    put_text(to, text);
}

static void put_list(FILE *to, const char *key, int n, const int64_t *wide,
                     const int32_t *narrow)
{
    fprintf(to, ",\"%s\":[", key);
    for (int i = 0; i < n; i++)
        fprintf(to, "%s%lld", i > 0 ? "," : "",
                (long long)(wide != NULL ? wide[i] : narrow[i]));
    fputc(']', to);
}

static void put_named_hex(FILE *to, int nth, const char *name, const void *bytes, size_t size)
{
    const uint8_t *byte = bytes;
    fputs(nth > 0 ? "," : "", to);
    put_text(to, name);
    fputs(":\"", to);
    for (size_t i = 0; i < size; i++) fprintf(to, "%02x", byte[i]);
    fputc('"', to);
}

static void put_info(FILE *to, const caterva_info *info)
{
    put_list(to, "shape", info->ndim, info->shape, NULL);
    put_list(to, "chunks", info->ndim, NULL, info->chunk_shape);
    put_list(to, "blocks", info->ndim, NULL, info->block_shape);
    put_list(to, "filters", CATERVA_MAX_FILTERS, NULL, info->filters);
    put_list(to, "filters_meta", CATERVA_MAX_FILTERS, NULL, info->filters_meta);
    put_key_text(to, "dtype", info->dtype);
    put_key_text(to, "dtype_stored", info->dtype_stored);
    fprintf(to, ",\"disagrees\":%d,\"item_size\":%d,\"codec\":%d,\"codec_meta\":%d",
            info->dtype_disagrees, (int)info->item_size, info->codec, info->codec_meta);
    fprintf(to, ",\"level\":%d,\"use_dict\":%d,\"n_chunks\":%lld", info->level,
            info->use_dict, (long long)info->n_chunks);
    put_key_text(to, "kind", info->metalayer == CATERVA_METALAYER_B2ND ? "b2nd" : "caterva");
    put_key_text(to, "layout", info->layout == CATERVA_SPARSE ? "sparse" : "contiguous");
}

static caterva_status put_attributes(FILE *to, caterva_array *a, caterva_error *err)
{
    caterva_status status = CATERVA_OK;
    fputs(",\"attributes\":{", to);
    for (int i = 0; caterva_attr_name(a, i) != NULL && status == CATERVA_OK; i++) {
        const char *name = caterva_attr_name(a, i);
        void *value = NULL;
        size_t size = 0;
        status = caterva_attr_get(a, name, &value, &size, err);
        if (status == CATERVA_OK) put_named_hex(to, i, name, value, size);
        caterva_free(value);
    }
    fputc('}', to);
    return status;
}

static caterva_status put_metalayers(FILE *to, caterva_array *a, caterva_error *err)
{
    caterva_status status = CATERVA_OK;
    fputs(",\"metalayers\":{", to);
    for (int i = 0; caterva_meta_name(a, i) != NULL && status == CATERVA_OK; i++) {
        const char *name = caterva_meta_name(a, i);
        const void *content = NULL;
        size_t size = 0;
        status = caterva_meta_get(a, name, &content, &size, err);
        if (status == CATERVA_OK) put_named_hex(to, i, name, content, size);
    }
    fputc('}', to);
    return status;
}

/* ---- Jobs ----------------------------------------------------------------- */

static caterva_status copy_box_out(caterva_array *a, const bounds *b, FILE *out,
                                   caterva_error *err)
{
    void *bytes = check_alloc(b->size);
    caterva_status status = caterva_read(a, b->start, b->stop, bytes, b->size, err);
    if (status == CATERVA_OK)
        CHECK(fwrite(bytes, 1, b->size, out) == b->size, "cannot write the answer");
    free(bytes);
    return status;
}

static caterva_status copy_boxes_out(caterva_array *a, const job *j, caterva_error *err)
{
    const caterva_info *info = caterva_describe(a);
    const char *boxes = find_word(j, "boxes");
    bounds b = whole_array(info);
    FILE *out = fopen(need_word(j, "out"), "wb");
    CHECK(out != NULL, "cannot open %s", need_word(j, "out"));
    caterva_status status = copy_box_out(a, &b, out, err);
    while (status == CATERVA_OK && next_box(&boxes, info, &b))
        status = copy_box_out(a, &b, out, err);
    fclose(out);
    return status;
}

static caterva_status put_damage(FILE *to, caterva_array *a, caterva_error *err)
{
    caterva_verify_options options = CATERVA_VERIFY_INIT;
    caterva_verify_result result;
    caterva_status status = caterva_verify(a, &options, &result, err);
    if (status == CATERVA_OK) fprintf(to, ",\"damages\":%lld", (long long)result.damages);
    return status;
}

static caterva_status answer_about(caterva_array *a, const job *j, FILE *to,
                                   caterva_error *err)
{
    put_info(to, caterva_describe(a));
    caterva_status status = copy_boxes_out(a, j, err);
    if (status == CATERVA_OK) status = put_attributes(to, a, err);
    if (status == CATERVA_OK) status = put_metalayers(to, a, err);
    if (status == CATERVA_OK) status = put_damage(to, a, err);
    return status;
}

static caterva_status run_read(const job *j, FILE *to, caterva_error *err)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *a = NULL;
    caterva_status status;
    uint8_t *bytes = NULL;
    size_t size = 0;
    int frame = (int)find_number(j, "frame");
    options.offset = (uint64_t)find_number(j, "offset");
    options.threads = (int)find_number(j, "threads");
    if (frame > 0) {
        bytes = scratch_load(need_word(j, "url"), &size);
        CHECK(bytes != NULL, "no file %s", need_word(j, "url"));
        status = caterva_open_frame(bytes, size, frame == 2, &options, &a, err);
    } else {
        status = caterva_open(need_word(j, "url"), &options, &a, err);
    }
    if (status == CATERVA_OK) status = answer_about(a, j, to, err);
    caterva_discard(a);
    free(bytes);
    return status;
}

static caterva_status write_boxes(caterva_array *a, const job *j, caterva_error *err)
{
    const caterva_info *info = caterva_describe(a);
    const char *boxes = find_word(j, "boxes");
    bounds b = whole_array(info);
    size_t size = 0;
    size_t at = 0;
    caterva_status status = CATERVA_OK;
    uint8_t *bytes = scratch_load(need_word(j, "data"), &size);
    CHECK(bytes != NULL, "no file %s", need_word(j, "data"));
    int more = boxes == NULL || next_box(&boxes, info, &b);
    while (more && status == CATERVA_OK) {
        CHECK(b.size <= size - at, "%s is too short", need_word(j, "data"));
        status = caterva_write(a, b.start, b.stop, bytes + at, b.size, err);
        if (status == CATERVA_OK && find_number(j, "commit_each"))
            status = caterva_commit(a, err);
        info = caterva_describe(a);
        at += b.size;
        more = next_box(&boxes, info, &b);
    }
    free(bytes);
    return status;
}

static caterva_status save_frame(caterva_array *a, const char *path, caterva_error *err)
{
    void *frame = NULL;
    size_t size = 0;
    caterva_status status = caterva_to_frame(a, &frame, &size, err);
    if (status == CATERVA_OK) scratch_save(path, frame, size);
    caterva_free(frame);
    return status;
}

/* Writes what the job brings and closes; a failure keeps the first status. */
static caterva_status write_and_close(caterva_array *a, const job *j, caterva_error *err)
{
    caterva_status status = CATERVA_OK;
    if (find_word(j, "data") != NULL) status = write_boxes(a, j, err);
    if (status == CATERVA_OK && find_word(j, "frame_out") != NULL)
        status = save_frame(a, find_word(j, "frame_out"), err);
    if (status != CATERVA_OK) {
        caterva_discard(a);
        return status;
    }
    return caterva_close(a, err);
}

/* What creation options point to. */
typedef struct spec {
    int64_t shape[CATERVA_MAX_DIMS];
    int chunks[CATERVA_MAX_DIMS];
    int blocks[CATERVA_MAX_DIMS];
    uint8_t fill[MAX_HEX];
    uint8_t content[MAX_HEX];
    char name[64];
    caterva_metalayer metalayer;
} spec;

static void parse_metalayer(const job *j, spec *s, caterva_create_options *o)
{
    const char *word = find_word(j, "meta"); /* name:bytes */
    if (word == NULL) return;
    size_t n = strcspn(word, ":");
    CHECK(n < sizeof(s->name), "metalayer name too long: %s", word);
    memcpy(s->name, word, n);
    s->metalayer.name = s->name;
    s->metalayer.size = parse_hex(word + n + 1, s->content);
    s->metalayer.content = s->content;
    o->metalayers = &s->metalayer;
    o->n_metalayers = 1;
}

static void parse_storage(const job *j, caterva_create_options *o)
{
    const char *kind = find_word(j, "kind");
    const char *layout = find_word(j, "layout");
    o->metalayer = kind != NULL && strcmp(kind, "caterva") == 0 ? CATERVA_METALAYER_CATERVA
                                                                : CATERVA_METALAYER_B2ND;
    o->layout =
        layout != NULL && strcmp(layout, "sparse") == 0 ? CATERVA_SPARSE : CATERVA_CONTIGUOUS;
    o->threads = (int)find_number(j, "threads");
    o->durability = CATERVA_DURABLE_NONE;
}

static caterva_create_options parse_options(const job *j, spec *s)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    memset(s, 0, sizeof(*s));
    o.ndim = parse_list(find_word(j, "shape"), s->shape);
    o.shape = s->shape;
    o.chunk_shape = parse_list32(find_word(j, "chunks"), s->chunks) > 0 ? s->chunks : NULL;
    o.block_shape = parse_list32(find_word(j, "blocks"), s->blocks) > 0 ? s->blocks : NULL;
    o.dtype = find_word(j, "dtype");
    o.item_size = (int32_t)find_number(j, "item_size");
    o.codec_set = find_word(j, "codec") != NULL;
    o.codec = (int)find_number(j, "codec");
    o.codec_meta = (int)find_number(j, "codec_meta");
    o.level = (int)find_number(j, "level");
    o.use_dict = (int)find_number(j, "use_dict");
    parse_list32(find_word(j, "filters"), o.filters);
    parse_list32(find_word(j, "filters_meta"), o.filters_meta);
    o.fill = (caterva_fill)find_number(j, "fill");
    if (find_word(j, "fill_value") != NULL &&
        parse_hex(find_word(j, "fill_value"), s->fill) > 0)
        o.fill_value = s->fill;
    parse_metalayer(j, s, &o);
    parse_storage(j, &o);
    return o;
}

static caterva_status run_create(const job *j, caterva_error *err)
{
    static spec s; /* large */
    caterva_create_options options = parse_options(j, &s);
    caterva_array *a = NULL;
    const char *url = find_word(j, "url");
    caterva_status status = caterva_create(url != NULL ? url : "mem:", &options, &a, err);
    return status == CATERVA_OK ? write_and_close(a, j, err) : status;
}

static caterva_status run_write(const job *j, caterva_error *err)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *a = NULL;
    options.mode = CATERVA_WRITE;
    options.durability = CATERVA_DURABLE_NONE;
    caterva_status status = caterva_open(need_word(j, "url"), &options, &a, err);
    return status == CATERVA_OK ? write_and_close(a, j, err) : status;
}

static void run_job(const job *j)
{
    char *text = NULL;
    size_t size = 0;
    caterva_error err = {.message = ""};
    caterva_status status;
    FILE *to = open_memstream(&text, &size);
    CHECK(to != NULL, "no memory stream");
    const char *op = need_word(j, "op");
    if (strcmp(op, "read") == 0)
        status = run_read(j, to, &err);
    else if (strcmp(op, "create") == 0)
        status = run_create(j, &err);
    else
        status = run_write(j, &err);
    fclose(to);
    printf("{\"status\":\"%s\"", caterva_status_name(status));
    put_key_text(stdout, "message", err.message);
    printf("%s}\n", status == CATERVA_OK ? text : "");
    fflush(stdout);
    free(text);
}

int main(void)
{
    char *line = check_alloc(MAX_LINE);
    job j;
    while (fgets(line, MAX_LINE, stdin) != NULL) {
        split_line(line, &j);
        run_job(&j);
    }
    free(line);
    return 0;
}
