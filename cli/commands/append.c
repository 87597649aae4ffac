/* Room: cli/commands. `caterva append`: grows an array along one axis and writes there,
 * committed once at the end. An input whose length is known grows the array first
 * and then goes the way of every transfer; a raw pipe grows it slab by slab. With
 * --every and --follow, append_paced.c does both. */
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
    if (ndim == 0)
        return cli_fail(CLI_USAGE, "%s has no axis along which it could grow", g->path);
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
    return cli_fail(CLI_USAGE, "%s: one item of axis %d has more bytes than 64 bits count",
                    g->path, g->axis);
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

/* ---- Inputs that say their length --------------------------------------- */

/* How many items of the axis the input is; without the axis it is one. */
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
                    "%s has the shape %s, the input %s: all axes but axis %d must agree",
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
        return cli_fail(CLI_USAGE, "%s cannot take %lld items more", g->path, (long long)n);
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
            CLI_USAGE, "one item of axis %d has %s, half of --memory is %s: give more",
            g->axis, number_bytes(g->stride, item), number_bytes(args->memory / 2, half));
    if (*n > g->chunk) *n -= *n % g->chunk;
    return CLI_OK;
}

cli_exit append_slab(growth *g, const char *name, const void *items, size_t size)
{
    int64_t n = (int64_t)size / g->stride;
    if ((int64_t)size % g->stride != 0)
        return cli_fail(CLI_CORRUPT,
                        "%s ends inside an item of axis %d, which has %lld bytes: nothing is "
                        "appended (--follow keeps the whole items)",
                        name, g->axis, (long long)g->stride);
    caterva_error err;
    caterva_buffer src = CATERVA_BUFFER_INIT;
    src.data = (void *)items; /* only read */
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
    CLI_TRY(stream_skip(fd, name, args->offset, &skipped));
    size_t capacity = (size_t)(length * g->stride), want, got;
    uint8_t *items = cli_alloc(capacity);
    if (!items) return CLI_IO;
    cli_exit code;
    progress bar; /* how long the pipe is nobody knows */
    int64_t done = 0;
    progress_start(&bar, args, 0);
    do { /* the first slab ends where a chunk does */
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
                        "raw items from a pipe go along axis 0; axis %d needs a length: "
                        "a file, or npy",
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

/* ---- Any input ---------------------------------------------------------- */

/* The shape of a raw file follows from its size. */
static cli_exit shape_of_raw(const growth *g, const char *path, int64_t size,
                             array_shape *shape)
{
    if (size % g->stride != 0)
        return cli_fail(CLI_CORRUPT,
                        "%s has %lld bytes of items, an item of axis %d has %lld: "
                        "that is no whole number",
                        path, (long long)size, g->axis, (long long)g->stride);
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
                        "--follow takes a stream of raw items; for others there is "
                        "--every");
    if (in->format == FORMAT_RAW) {
        CLI_TRY(input_check_cast(args, in));
        CLI_TRY(source_raw_size(args, in->path, &size));
        if (g->stride == 0)
            return cli_fail(CLI_USAGE,
                            "items of axis %d of %s have no bytes: raw input "
                            "cannot say how many there are",
                            g->axis, g->path);
        if (size < 0 || args->follow) return append_pipe(args, g, in->path);
        CLI_TRY(shape_of_raw(g, in->path, size, &raw));
    }
    CLI_TRY(input_open(args, &raw, g->dtype, in));
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
    .summary = "grow along an axis and write there",
    .details =
        "Makes FILE longer along --axis (0 when left out; -1 is the last) and writes IN\n"
        "(npy, raw or b2nd; '-' for standard input) there. IN must have FILE's dtype, or\n"
        "--casting casts it, and, but for that axis, its shape; without that axis it is\n"
        "one item of it. How many items raw input has its size tells. Committed at the\n"
        "end: until then, and after a failure, FILE is as it was. --every commits more\n"
        "often, and --follow takes a stream of raw items from a pipe, committed as they\n"
        "come; when it ends inside an item, the whole items before it are committed.",
    .options = CLI_OPT_AXIS | CLI_OPT_FOLLOW | CLI_OPT_WAIT | CLI_OPT_FROM | CLI_OPT_ASTYPE |
               CLI_OPT_OFFSET | CLI_OPT_THREADS | CLI_OPT_MEMORY | CLI_OPT_COMPACT_AT |
               CLI_OPT_NO_PROGRESS | CLI_OPT_REMOTE,
    .min_args = 2,
    .max_args = 2,
    .run = run_append,
};
