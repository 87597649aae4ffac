/* Room: cli/commands. `caterva append`: grows an array along one axis and writes the new items,
 * with one commit at the end. If the input's length is known, the array grows once and a transfer
 * writes the items. For a raw pipe, the array grows slab by slab. append_paced.c implements --every
 * and --follow. */
#include "commands/append.h"
#include "formats/numbers.h"
#include "sources/described.h"
#include "sources/input.h"
#include "sources/sink.h"
#include "terminal/progress.h"
#include "terminal/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cli_exit find_axis(const cli_args *args, growth *g)
{
    int ndim = g->shape.ndim;
    int64_t axis = args->axis < 0 ? args->axis + ndim : args->axis;
    if (ndim == 0) return cli_fail(CLI_USAGE, "%s has no axis to grow along", g->path);
    if (axis < 0 || axis >= ndim)
        return cli_fail(CLI_USAGE, "--axis %lld is out of range for %s, which has %d %s",
                        (long long)args->axis, g->path, ndim, ndim == 1 ? "axis" : "axes");
    g->axis = (int)axis;
    return CLI_OK;
}

static cli_exit measure(growth *g)
{
    bool fits = true, empty = false;
    g->outer = 1;
    g->stride = g->shape.item_size;
    for (int d = 0; d < g->shape.ndim; d++) {
        int64_t extent = d == g->axis ? 1 : g->shape.shape[d];
        empty = empty || extent == 0;
        fits = fits && !__builtin_mul_overflow(g->stride, extent, &g->stride);
        if (d < g->axis && fits) g->outer *= extent;
    }
    if (empty) g->stride = 0;
    if (fits || empty) return CLI_OK;
    return cli_fail(CLI_USAGE, "%s: the size of one item of axis %d exceeds 64 bits", g->path,
                    g->axis);
}

static cli_exit describe_growth(const cli_args *args, growth *g)
{
    const caterva_info *info = info_of(g->array);
    g->shape.ndim = info->ndim;
    g->shape.item_size = info->item_size;
    memcpy(g->shape.shape, info->shape, sizeof g->shape.shape);
    CLI_TRY(find_axis(args, g));
    g->chunk = info->chunk_shape[g->axis] > 0 ? info->chunk_shape[g->axis] : 1;
    g->dtype = cli_copy_text(info->dtype);
    return g->dtype ? measure(g) : CLI_IO;
}

/* ---- Inputs with a known length --------------------------------------------------------- */

/* Sets *n to the input's length along the axis, or to 1 if the input lacks this axis. */
static cli_exit count_items(const growth *g, const array_shape *in, int64_t *n, bool *is_one)
{
    char have[SHAPE_TEXT_SIZE], got[SHAPE_TEXT_SIZE];
    *is_one = in->ndim == g->shape.ndim - 1;
    *n = *is_one ? 1 : in->shape[g->axis];
    bool fits = *is_one || in->ndim == g->shape.ndim;
    for (int d = 0; fits && d < in->ndim; d++) {
        int other = *is_one && d >= g->axis ? d + 1 : d;
        fits = other == g->axis || in->shape[d] == g->shape.shape[other];
    }
    if (fits) return CLI_OK;
    return cli_fail(CLI_USAGE,
                    "%s has the shape %s, but the input has %s; only axis %d may differ",
                    g->path, shape_text(g->shape.ndim, g->shape.shape, have),
                    shape_text(in->ndim, in->shape, got), g->axis);
}

static void select_new(const growth *g, int64_t n, bool is_one, selection *sel)
{
    selection_whole(g->shape.ndim, g->shape.shape, sel);
    sel->axis[g->axis].start = g->shape.shape[g->axis];
    sel->axis[g->axis].count = n;
    if (is_one) selection_drop(sel, g->axis, g->shape.shape[g->axis]);
}

static cli_exit grow(growth *g, int64_t n)
{
    int64_t shape[CATERVA_MAX_DIMS];
    memcpy(shape, g->shape.shape, sizeof shape);
    if (__builtin_add_overflow(shape[g->axis], n, &shape[g->axis]))
        return cli_fail(CLI_USAGE, "%s cannot grow by %lld items: the extent exceeds 64 bits",
                        g->path, (long long)n);
    caterva_error err;
    if (caterva_resize(g->array, shape, &err) == CATERVA_OK) return CLI_OK;
    return cli_fail_array(g->path, &err);
}

static cli_exit finish(growth *g, cli_exit code)
{
    caterva_array *array = g->array;
    g->array = NULL;
    return cli_finish_array(array, g->path, code);
}

static cli_exit append_input(const cli_args *args, growth *g, source *from)
{
    int64_t n;
    bool is_one;
    selection sel;
    sink *to;
    append_pace pace;
    bool paced;
    CLI_TRY(count_items(g, &from->shape, &n, &is_one));
    CLI_TRY(append_pace_of(args, &pace, &paced));
    if (paced) return finish(g, append_source(args, g, from, n, &pace));
    CLI_TRY(grow(g, n));
    select_new(g, n, is_one, &sel);
    caterva_array *array = g->array;
    g->array = NULL;
    CLI_TRY(sink_of_array(array, g->path, &sel, &to));
    return transfer(args, from, to);
}

/* ---- A raw pipe --------------------------------------------------------- */

cli_exit append_slab_length(const cli_args *args, const growth *g, int64_t *n)
{
    char item[NUMBER_TEXT_SIZE], half[NUMBER_TEXT_SIZE];
    *n = args->memory / 2 / g->stride;
    if (*n == 0)
        return cli_fail(
            CLI_USAGE,
            "one item of axis %d has %s, but half of --memory is %s; raise --memory", g->axis,
            number_bytes(g->stride, item), number_bytes(args->memory / 2, half));
    if (*n > g->chunk) *n -= *n % g->chunk;
    return CLI_OK;
}

cli_exit append_slab(growth *g, const char *name, const void *items, size_t size)
{
    int64_t n = (int64_t)size / g->stride;
    if ((int64_t)size % g->stride != 0)
        return cli_fail(CLI_CORRUPT,
                        "%s ends inside an item of axis %d, which has %lld bytes; nothing is "
                        "appended (--follow keeps the whole items)",
                        name, g->axis, (long long)g->stride);
    caterva_error err;
    caterva_buffer src = CATERVA_BUFFER_INIT;
    src.data = (void *)items; /* the library only reads it */
    src.size = size;
    if (caterva_append(g->array, g->axis, n, &src, &err) != CATERVA_OK)
        return cli_fail_array(g->path, &err);
    g->shape.shape[g->axis] += n;
    return CLI_OK;
}

static cli_exit append_slabs(const cli_args *args, growth *g, int fd, const char *name)
{
    int64_t length, skipped;
    CLI_TRY(append_slab_length(args, g, &length));
    CLI_TRY(stream_discard(fd, name, args->offset, &skipped));
    size_t capacity = (size_t)(length * g->stride), want, got;
    uint8_t *items = cli_alloc(capacity);
    if (!items) return CLI_IO;
    cli_exit code;
    progress bar; /* without a total: the length of the pipe is unknown */
    int64_t done = 0;
    progress_start(&bar, args, 0);
    do { /* the first slab ends at a chunk boundary */
        int64_t phase = length % g->chunk ? 0 : g->shape.shape[g->axis] % g->chunk;
        want = (size_t)((length - phase) * g->stride);
        progress_phase(&bar, done, (int64_t)want);
        code = stream_read(fd, name, items, want, &got);
        progress_phase(&bar, done += (int64_t)got, 0);
        if (code == CLI_OK) code = append_slab(g, name, items, got);
        if (code == CLI_OK && cli_interrupted()) code = CLI_INTERRUPTED;
    } while (code == CLI_OK && got == want);
    progress_end(&bar);
    free(items);
    return code;
}

static cli_exit append_pipe(const cli_args *args, growth *g, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    if (g->outer != 1)
        return cli_fail(CLI_UNSUPPORTED,
                        "a pipe of raw items can be appended along axis 0 only; axis "
                        "%d needs a file or npy",
                        g->axis);
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return cli_fail_sys("cannot open %s", path);
    append_pace pace;
    bool paced;
    cli_exit code = append_pace_of(args, &pace, &paced);
    if (code == CLI_OK)
        code =
            paced ? append_stream(args, g, fd, name, &pace) : append_slabs(args, g, fd, name);
    if (!standard) close(fd);
    return finish(g, code);
}

/* ---- A row of text ------------------------------------------------------ */

/* Makes a single row of text 1-d if the array is 1-d, or if the row has the length of a column and
 * the 2-d array grows along axis 1. */
static void fit_row(const growth *g, array_shape *in)
{
    bool is_row = in->ndim == 2 && in->shape[0] == 1;
    bool is_column = g->shape.ndim == 2 && g->axis == 1 && in->shape[1] == g->shape.shape[0];
    if (!is_row || (g->shape.ndim != 1 && !is_column)) return;
    in->ndim = 1;
    in->shape[0] = in->shape[1];
}

/* ---- Any input ---------------------------------------------------------- */

/* Computes the shape of a raw file from its size. */
static cli_exit shape_of_raw(const growth *g, const char *path, int64_t size,
                             array_shape *shape)
{
    if (size % g->stride != 0)
        return cli_fail(CLI_CORRUPT,
                        "%s has %lld bytes of items, which is not a multiple of the "
                        "%lld bytes of an item of axis %d",
                        path, (long long)size, (long long)g->stride, g->axis);
    *shape = g->shape;
    shape->shape[g->axis] = size / g->stride;
    return CLI_OK;
}

static cli_exit append(const cli_args *args, growth *g, input *in)
{
    array_shape raw = {0};
    int64_t size = 0;
    CLI_TRY(input_find(args, args->positional[1], in));
    if (args->follow && in->format != FORMAT_RAW)
        return cli_fail(CLI_USAGE,
                        "--follow requires raw input; use --every for other formats");
    if (in->format == FORMAT_RAW) {
        CLI_TRY(input_check_cast(args, in));
        CLI_TRY(source_raw_size(args, in->path, &size));
        if (g->stride == 0)
            return cli_fail(CLI_USAGE,
                            "items of axis %d of %s have no bytes, so the number of "
                            "items in raw input cannot be computed",
                            g->axis, g->path);
        if (size < 0 || args->follow) return append_pipe(args, g, in->path);
        CLI_TRY(shape_of_raw(g, in->path, size, &raw));
    }
    CLI_TRY(input_open(args, &raw, g->dtype, in));
    if (in->format == FORMAT_CSV || in->format == FORMAT_TEXT) fit_row(g, &in->from->shape);
    CLI_TRY(input_fit_dtype(args, in, g->path, g->dtype));
    return append_input(args, g, in->from);
}

static cli_exit run_append(const cli_args *args)
{
    growth g = {.path = args->positional[0]};
    input in = {0};
    CLI_TRY(cli_open_array(args, g.path, CATERVA_MODE_WRITE, &g.array));
    cli_exit code = describe_growth(args, &g);
    if (code == CLI_OK) code = append(args, &g, &in);
    input_close(&in);
    caterva_discard(g.array);
    free(g.dtype);
    return code;
}

const cli_command cli_command_append = {
    .name = "append",
    .synopsis = "FILE IN",
    .summary = "append items along an axis",
    .details =
        "Appends IN (npy, raw, b2nd, CSV or text; '-' for standard input) to FILE along\n"
        "--axis (default 0; -1 is the last). IN must have FILE's dtype (without --casting "
        "or\n"
        "--astype nothing is converted), and FILE's shape except for that axis. If IN lacks\n"
        "that axis, it is one item. Raw input has as many items as its size allows, and CSV\n"
        "and text are read as FILE's dtype. The change is committed at the end; until then,\n"
        "and after a failure, FILE is unchanged. --every commits more often. --follow reads\n"
        "a stream of raw items from a pipe and commits them as they arrive; if it ends\n"
        "inside an item, the whole items before it are committed.",
    .options = CLI_OPT_AXIS | CLI_OPT_FOLLOW | CLI_OPT_WAIT | CLI_OPT_FROM |
               CLI_OPT_CAST_INPUT | CLI_OPT_OFFSET | CLI_OPT_THREADS | CLI_OPT_MEMORY |
               CLI_OPT_COMPACT_AT | CLI_OPT_NO_PROGRESS | CLI_OPT_REMOTE,
    .min_args = 2,
    .max_args = 2,
    .run = run_append,
};
