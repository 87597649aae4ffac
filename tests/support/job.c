/* Test support: parses the lines that tell a helper program what to do. */
#include "job.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 1 << 20 };

/* Splits the line into words. They point into the line, which must live as long as the job. */
static void split_line(char *line, job *j)
{
    j->n_words = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *word = strtok(line, "\t"); word != NULL; word = strtok(NULL, "\t")) {
        CHECK(j->n_words < MAX_WORDS, "too many words in a job");
        j->words[j->n_words++] = word;
    }
}

void serve_jobs(void (*run)(const job *j))
{
    char *line = check_alloc(MAX_LINE);
    job j;
    while (fgets(line, MAX_LINE, stdin) != NULL) {
        split_line(line, &j);
        run(&j);
    }
    free(line);
}

const char *find_word(const job *j, const char *key)
{
    size_t n = strlen(key);
    for (int i = 0; i < j->n_words; i++) {
        if (strncmp(j->words[i], key, n) == 0 && j->words[i][n] == '=')
            return j->words[i] + n + 1;
    }
    return NULL;
}

int64_t find_number(const job *j, const char *key)
{
    const char *word = find_word(j, key);
    return word != NULL ? strtoll(word, NULL, 0) : 0;
}

const char *need_word(const job *j, const char *key)
{
    const char *word = find_word(j, key);
    CHECK(word != NULL, "a job lacks %s", key);
    return word;
}

/* Parses up to 16 numbers separated by commas; returns their number. */
int parse_list(const char *text, int64_t *out)
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

size_t parse_hex(const char *text, uint8_t *out)
{
    size_t n = strlen(text) / 2;
    CHECK(n <= MAX_HEX, "%zu bytes of hexadecimal are too many", n);
    for (size_t i = 0; i < n; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
        out[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return n;
}

void measure_bounds(const caterva_info *info, bounds *b)
{
    b->size = (size_t)info->item_size;
    for (int i = 0; i < info->ndim; i++) b->size *= (size_t)(b->stop[i] - b->start[i]);
}

bounds whole_array(const caterva_info *info)
{
    bounds b = {.size = 0};
    memcpy(b.stop, info->shape, sizeof(b.stop));
    measure_bounds(info, &b);
    return b;
}

/* Parses the next box of `*text` and advances it; 0 at the end. */
int next_box(const char **text, const caterva_info *info, bounds *b)
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

/* ---- Creation -------------------------------------------------------------- */

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

caterva_durability parse_durability(const job *j)
{
    return find_word(j, "durability") == NULL
               ? CATERVA_DURABILITY_NONE
               : (caterva_durability)find_number(j, "durability");
}

static void parse_storage(const job *j, caterva_create_options *o)
{
    const char *kind = find_word(j, "kind");
    const char *layout = find_word(j, "layout");
    o->metalayer = kind != NULL && strcmp(kind, "caterva") == 0 ? CATERVA_METALAYER_CATERVA
                                                                : CATERVA_METALAYER_B2ND;
    o->layout = layout != NULL && strcmp(layout, "sparse") == 0 ? CATERVA_LAYOUT_SPARSE
                                                                : CATERVA_LAYOUT_CONTIGUOUS;
    o->threads = (int)find_number(j, "threads");
    o->durability = parse_durability(j);
    o->dirty_budget = find_number(j, "dirty_budget");
}

/* Parses numbers and level as they are in a frame: codec 0 is blosclz, filter 0 no filter, level 0
 * no compression. Level -1 is the default. */
static void parse_codec(const job *j, caterva_create_options *o)
{
    int level = (int)find_number(j, "level");
    o->codec = (int)find_number(j, "codec");
    if (o->codec == 0) o->codec = CATERVA_CODEC_BLOSCLZ;
    o->codec_meta = (int)find_number(j, "codec_meta");
    o->level = level == 0 ? CATERVA_NONE : level < 0 ? 0 : level;
    o->use_dict = (int)find_number(j, "use_dict");
    parse_list32(find_word(j, "filters"), o->filters);
    parse_list32(find_word(j, "filters_meta"), o->filters_meta);
    if (o->filters[0] == 0) o->filters[0] = CATERVA_FILTER_NONE;
}

caterva_create_options parse_options(const job *j, spec *s)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    memset(s, 0, sizeof(*s));
    o.ndim = parse_list(find_word(j, "shape"), s->shape);
    o.shape = s->shape;
    o.chunk_shape = parse_list32(find_word(j, "chunks"), s->chunks) > 0 ? s->chunks : NULL;
    o.block_shape = parse_list32(find_word(j, "blocks"), s->blocks) > 0 ? s->blocks : NULL;
    o.dtype = find_word(j, "dtype");
    o.item_size = (int32_t)find_number(j, "item_size");
    if (find_word(j, "codec")) parse_codec(j, &o);
    if (find_word(j, "fill"))
        o.fill = (caterva_fill)(CATERVA_FILL_ZEROS + (int)find_number(j, "fill"));
    if (find_word(j, "fill_value") != NULL &&
        parse_hex(find_word(j, "fill_value"), s->fill) > 0)
        o.fill_value = s->fill;
    parse_metalayer(j, s, &o);
    parse_storage(j, &o);
    return o;
}
