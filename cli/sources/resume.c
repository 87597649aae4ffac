/* Room: cli/sources. Sinks whose array outlives an interruption: it is committed every few seconds,
 * together with the number of boxes that it has. */
#include "sources/resume.h"

#include "sources/described.h"
#include "sources/trees.h"
#include "terminal/output.h"

#include <caterva_value.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* FNV-1a of the options that decide what is written. */
static uint64_t hash_options(const cli_args *args)
{
    const char *const texts[] = {args->from,   args->shape,   args->dtype,     args->chunks,
                                 args->blocks, args->codec,   args->filters,   args->fill,
                                 args->select, args->sel,     args->metalayer, args->astype,
                                 args->casting, args->view_dtype};
    uint64_t sum = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)args->level ^
                   (uint64_t)args->offset << 8 ^ (uint64_t)args->sparse << 60;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (const char *at = texts[i] ? texts[i] : "\1";; at++) {
            sum = (sum ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
            if (!*at) break;
        }
    return sum;
}

cli_exit resume_identify(const cli_args *args, const char *path, resume_id *out)
{
    struct stat st;
    char *file;
    const char *key;
    CLI_TRY(tree_part_split(path, &file, &key));
    cli_exit code = stat(file, &st) == 0 ? CLI_OK : cli_fail_sys("cannot open %s", file);
    free(file);
    if (code != CLI_OK) return code;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return cli_fail(CLI_USAGE, "--resume requires a file as input, but %s is none", path);
    snprintf(out->text, sizeof out->text, "%lld %lld.%09ld %lld %" PRIx64,
             (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
             (long long)args->memory, hash_options(args));
    return CLI_OK;
}

char *resume_path(const char *out, const char *extension)
{
    size_t size = strlen(out), room = size + strlen(extension) + 10;
    while (size > 1 && out[size - 1] == '/') size--;
    char *path = cli_alloc(room);
    if (path) snprintf(path, room, "%.*s.partial%s", (int)size, out, extension);
    return path;
}

cli_exit resume_fail(const char *path)
{
    return cli_fail(CLI_IO,
                    "%s was begun with another state of the input, or with other options; "
                    "delete it to begin again",
                    path);
}

/* ---- The state -------------------------------------------------------------------------- */

typedef struct resumed_sink {
    sink base;
    sink *inner; /* the sink of the array */
    caterva_array *array;
    const char *path;
    const resume_id *id;
} resumed_sink;

static cli_exit set_state(caterva_array *array, const char *path, const resume_id *id,
                          int64_t boxes)
{
    char text[140];
    void *packed;
    size_t size;
    caterva_error err;
    caterva_value value = CATERVA_VALUE_INIT;
    value.kind = CATERVA_VALUE_TEXT;
    value.bytes = text;
    value.size =
        (size_t)snprintf(text, sizeof text, "%lld %s", (long long)boxes, id->text);
    caterva_status status = caterva_value_pack(&value, 1, &packed, &size, &err);
    if (status == CATERVA_OK) {
        status = caterva_attr_set(array, RESUME_NAME, packed, size, &err);
        caterva_free(packed);
    }
    if (status == CATERVA_OK) status = caterva_commit(array, &err);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(path, &err);
}

/* Sets *boxes to the boxes that the array has, or to -1 if it is complete. */
static cli_exit get_state(caterva_array *array, const char *path, const resume_id *id,
                          int64_t *boxes)
{
    void *packed;
    size_t size, at = 0;
    char text[140] = "", *end;
    caterva_error err;
    caterva_value value = CATERVA_VALUE_INIT;
    *boxes = -1;
    caterva_status status = caterva_attr_get(array, RESUME_NAME, &packed, &size, &err);
    if (status == CATERVA_ENOTFOUND) return CLI_OK;
    if (status != CATERVA_OK) return cli_fail_array(path, &err);
    if (caterva_value_next(packed, size, &at, &value, NULL) == CATERVA_OK &&
        value.kind == CATERVA_VALUE_TEXT && value.size < sizeof text)
        memcpy(text, value.bytes, value.size);
    caterva_free(packed);
    *boxes = strtoll(text, &end, 10);
    return *boxes >= 0 && *end == ' ' && strcmp(end + 1, id->text) == 0 ? CLI_OK
                                                                        : resume_fail(path);
}

/* ---- The sink --------------------------------------------------------------------------- */

static cli_exit write_box(sink *self, const box *b, const void *src)
{
    sink *inner = ((resumed_sink *)self)->inner;
    return inner->write(inner, b, src);
}

static cli_exit commit_boxes(sink *self, int64_t boxes)
{
    resumed_sink *s = (resumed_sink *)self;
    return set_state(s->array, s->path, s->id, boxes);
}

static cli_exit finish_resumed(sink *self)
{
    resumed_sink *s = (resumed_sink *)self;
    caterva_error err;
    cli_exit code = CLI_OK;
    if (caterva_attr_delete(s->array, RESUME_NAME, &err) != CATERVA_OK) {
        code = cli_fail_array(s->path, &err);
        s->inner->abandon(s->inner);
    } else {
        code = s->inner->finish(s->inner);
    }
    free(s);
    return code;
}

static void abandon_resumed(sink *self)
{
    resumed_sink *s = (resumed_sink *)self;
    s->inner->abandon(s->inner);
    free(s);
}

/* Opens the array, or makes it with no boxes. */
static cli_exit open_array(const cli_args *args, const char *path, const source *from,
                           const origin *like, const resume_id *id, caterva_array **array,
                           int64_t *boxes)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.threads = (int)args->threads;
    options.compact_percent = 20; /* commits of parts of chunks leave dead space */
    caterva_status status = caterva_open(path, &options, array, &err);
    if (status == CATERVA_OK) return get_state(*array, path, id, boxes);
    if (status != CATERVA_ENOTFOUND) return cli_fail_array(path, &err);
    *boxes = 0;
    CLI_TRY(sink_make_array(args, path, false, from, like, array));
    return set_state(*array, path, id, 0);
}

cli_exit sink_of_resumed_array(const cli_args *args, const char *path, const source *from,
                               const origin *like, const resume_id *id, sink **out)
{
    selection whole;
    int64_t boxes = 0;
    caterva_array *array = NULL;
    *out = NULL;
    resumed_sink *s = cli_alloc(sizeof *s);
    if (!s) return CLI_IO;
    cli_exit code = open_array(args, path, from, like, id, &array, &boxes);
    if (code == CLI_OK && boxes >= 0) {
        selection_whole(from->shape.ndim, from->shape.shape, &whole);
        sink *inner;
        code = sink_of_array(array, path, &whole, &inner); /* owns the array */
        if (code == CLI_OK) {
            *s = (resumed_sink){*inner, inner, array, path, id};
            s->base.boxes_done = boxes;
            s->base.write = write_box;
            s->base.commit = commit_boxes;
            s->base.finish = finish_resumed;
            s->base.abandon = abandon_resumed;
            *out = &s->base;
            return CLI_OK;
        }
        array = NULL;
    }
    caterva_discard(array);
    free(s);
    return code;
}
