/* Room: cli/sources. Raw and npy files as sources. A file is read at any position, in C or Fortran
 * order, with memory for one run of items; a pipe is read only in order. Sizes are checked against
 * the shape before the first item is read. */
#include "formats/descr.h"
#include "formats/npy.h"
#include "formats/numbers.h"
#include "sources/probe.h"
#include "sources/source.h"
#include "sources/strides.h"
#include "terminal/progress.h"
#include "terminal/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file_source {
    source base;
    int fd;
    const char *path; /* for messages */
    bool fortran_order;
    int64_t position; /* byte position of the first item */
    int64_t left;     /* bytes of unread items; pipes only */
    uint8_t *run;     /* scratch, Fortran order only */
    size_t run_size;
    int64_t box_size, box_done;    /* bytes of the current box */
    uint8_t head[PROBE_PIPE_SIZE]; /* bytes that probe_open read from a pipe */
    size_t head_size, head_used;
    cli_exit misfit; /* status if bytes and shape disagree: CLI_USAGE for raw items, whose
                      * shape is an argument; CLI_CORRUPT for an npy file */
} file_source;

/* ---- Bytes -------------------------------------------------------------- */

static cli_exit ends_early(const file_source *s)
{
    return cli_fail(CLI_CORRUPT, "%s ends before its last item", s->path);
}

static cli_exit read_forward(file_source *s, void *dst, size_t size)
{
    size_t got, kept = s->head_size - s->head_used;
    if (kept > size) kept = size;
    memcpy(dst, s->head + s->head_used, kept);
    s->head_used += kept;
    CLI_TRY(stream_read(s->fd, s->path, (uint8_t *)dst + kept, size - kept, &got));
    return got == size - kept ? CLI_OK : ends_early(s);
}

static cli_exit read_at(file_source *s, void *dst, size_t size, int64_t position)
{
    uint8_t *at = dst;
    while (size > 0) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        ssize_t n = pread(s->fd, at, stream_piece(size), position);
        if (n < 0 && errno == EINTR && !cli_interrupted()) continue;
        if (n < 0) return cli_fail_sys("cannot read %s", s->path);
        if (n == 0) return ends_early(s);
        at += n;
        position += n;
        size -= (size_t)n;
        progress_tell(NULL, s->box_done += n, s->box_size);
    }
    return CLI_OK;
}

/* ---- Boxes -------------------------------------------------------------- */

/* A box with its axes in the order of the file, the slowest one first. */
typedef struct file_box {
    int ndim;
    int64_t start[CATERVA_MAX_DIMS], count[CATERVA_MAX_DIMS];
    int64_t file_strides[CATERVA_MAX_DIMS]; /* bytes */
    int64_t dst_strides[CATERVA_MAX_DIMS];  /* bytes */
    int run_axis;                           /* contiguous in the file from this axis on */
    int64_t run_size;                       /* bytes */
} file_box;

/* Converts a box to the order of the file. In Fortran order, axis i of the file is axis ndim - 1 - i
 * of the array. */
static void describe_box(const file_source *s, const box *b, file_box *out)
{
    const array_shape *shape = &s->base.shape;
    int64_t dst_strides[CATERVA_MAX_DIMS];
    strides_of_box(b, shape->ndim, shape->item_size, dst_strides);
    out->ndim = shape->ndim;
    int64_t stride = shape->item_size;
    out->run_axis = 0;
    out->run_size = shape->item_size;
    bool contiguous = true;
    for (int i = shape->ndim - 1; i >= 0; i--) {
        int d = s->fortran_order ? shape->ndim - 1 - i : i;
        out->start[i] = b->start[d];
        out->count[i] = b->stop[d] - b->start[d];
        out->file_strides[i] = stride;
        out->dst_strides[i] = dst_strides[d];
        stride *= shape->shape[d];
        if (!contiguous) continue;
        out->run_size *= out->count[i];
        out->run_axis = i;
        contiguous = out->count[i] == shape->shape[d];
    }
}

/* Reads one run of the file. In C order its items are contiguous in `dst` and are read directly. In
 * Fortran order they are read to scratch memory and copied to `dst`. */
static cli_exit read_run(file_source *s, const file_box *fb, int64_t position, uint8_t *dst)
{
    size_t size = (size_t)fb->run_size;
    if (!s->fortran_order) return read_at(s, dst, size, position);
    if (size > s->run_size) {
        free(s->run);
        s->run_size = 0;
        s->run = cli_alloc(size);
        if (!s->run) return CLI_IO;
        s->run_size = size;
    }
    CLI_TRY(read_at(s, s->run, size, position));
    strided_copy copy = {.ndim = fb->ndim - fb->run_axis,
                         .item_size = s->base.shape.item_size};
    int64_t stride = copy.item_size;
    for (int i = copy.ndim - 1; i >= 0; i--) {
        int d = fb->run_axis + i;
        copy.counts[i] = fb->count[d];
        copy.dst_strides[i] = fb->dst_strides[d];
        copy.src_strides[i] = stride;
        stride *= fb->count[d];
    }
    strided_copy_run(&copy, s->run, dst);
    return CLI_OK;
}

static cli_exit read_box(source *self, const box *b, void *dst)
{
    file_source *s = (file_source *)self;
    file_box fb;
    describe_box(s, b, &fb);
    s->box_size = box_items(b, fb.ndim) * s->base.shape.item_size;
    s->box_done = 0;
    int64_t position = s->position;
    for (int d = 0; d < fb.ndim; d++) position += fb.start[d] * fb.file_strides[d];

    int64_t index[CATERVA_MAX_DIMS] = {0};
    uint8_t *at = dst;
    int d = 0;
    while (d >= 0) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        CLI_TRY(read_run(s, &fb, position, at));
        for (d = fb.run_axis - 1; d >= 0; d--) {
            position += fb.file_strides[d];
            at += fb.dst_strides[d];
            if (++index[d] < fb.count[d]) break;
            position -= fb.count[d] * fb.file_strides[d];
            at -= fb.count[d] * fb.dst_strides[d];
            index[d] = 0;
        }
    }
    return CLI_OK;
}

static cli_exit read_next(source *self, const box *b, void *dst)
{
    file_source *s = (file_source *)self;
    int64_t size = box_items(b, self->shape.ndim) * self->shape.item_size;
    CLI_TRY(read_forward(s, dst, (size_t)size));
    s->left -= size;
    uint8_t extra;
    if (s->left == 0 && (s->head_used < s->head_size || read(s->fd, &extra, 1) == 1))
        return cli_fail(s->misfit, "%s has more bytes than the shape needs", s->path);
    return CLI_OK;
}

static void close_file(source *self)
{
    file_source *s = (file_source *)self;
    if (s->fd > STDIN_FILENO) close(s->fd);
    free(s->run);
}

/* ---- Opening ------------------------------------------------------------ */

static cli_exit data_size(const file_source *s, int64_t *size)
{
    const array_shape *shape = &s->base.shape;
    bool fits = true, empty = false;
    *size = shape->item_size;
    for (int d = 0; d < shape->ndim; d++) {
        empty = empty || shape->shape[d] == 0;
        fits = fits && !__builtin_mul_overflow(*size, shape->shape[d], size);
    }
    if (empty) *size = 0;
    if (empty || fits) return CLI_OK;
    return cli_fail(s->misfit, "%s: the shape is too large", s->path);
}

/* Checks the size of a file against its shape; a pipe is checked while it is read. */
static cli_exit check_size(file_source *s)
{
    struct stat st;
    char text[SHAPE_TEXT_SIZE];
    CLI_TRY(data_size(s, &s->left));
    if (fstat(s->fd, &st) != 0) return cli_fail_sys("cannot read %s", s->path);
    if (!S_ISREG(st.st_mode)) {
        s->base.in_order = true;
        s->base.read = read_next;
        if (!s->fortran_order) return CLI_OK;
        return cli_fail(CLI_UNSUPPORTED,
                        "%s is in Fortran order, which cannot be read from a pipe: save it "
                        "to a file first",
                        s->path);
    }
    int64_t has = st.st_size > s->position ? st.st_size - s->position : 0;
    if (has == s->left) return CLI_OK;
    return cli_fail(
        has < s->left ? CLI_CORRUPT : s->misfit,
        "%s has %lld bytes of items, but the shape %s of %lld-byte items needs %lld", s->path,
        (long long)has, shape_text(s->base.shape.ndim, s->base.shape.shape, text),
        (long long)s->base.shape.item_size, (long long)s->left);
}

static cli_exit take_dtype(file_source *s, const char *where, const char *text)
{
    caterva_dtype *dtype;
    CLI_TRY(descr_parse(s->misfit, where, text, &dtype));
    s->base.shape.item_size = dtype->item_size;
    caterva_dtype_free(dtype);
    if (s->base.shape.item_size < 1)
        return cli_fail(CLI_UNSUPPORTED, "%s: items of '%s' have no bytes", s->path, text);
    return descr_for_array(s->misfit, where, text, &s->base.dtype);
}

static cli_exit describe_raw(file_source *s, const raw_items *items)
{
    s->base.shape.ndim = items->ndim;
    memcpy(s->base.shape.shape, items->shape, sizeof items->shape);
    CLI_TRY(take_dtype(s, "--dtype", items->dtype));
    s->position = items->offset;
    CLI_TRY(check_size(s));
    if (!s->base.in_order) return CLI_OK;
    int64_t skipped;
    CLI_TRY(stream_discard(s->fd, s->path, items->offset, &skipped));
    return skipped == items->offset ? CLI_OK : ends_early(s);
}

static cli_exit read_header_bytes(void *context, void *dst, size_t size)
{
    return read_forward(context, dst, size);
}

static cli_exit describe_npy(file_source *s)
{
    npy_header header;
    CLI_TRY(npy_read_header(s->path, read_header_bytes, s, &header));
    s->fortran_order = header.fortran_order && header.ndim > 1;
    s->base.first_axis_fastest = s->fortran_order;
    s->position = header.data_position;
    s->base.shape.ndim = header.ndim;
    memcpy(s->base.shape.shape, header.shape, sizeof header.shape);
    cli_exit code = CLI_OK;
    if (header.ndim > CATERVA_MAX_DIMS)
        code = cli_fail(CLI_UNSUPPORTED, "%s has %d axes, but the maximum is %d", s->path,
                        header.ndim, CATERVA_MAX_DIMS);
    else if (header.has_objects)
        code = cli_fail(CLI_UNSUPPORTED,
                        "%s holds Python objects ('%s'), which have no fixed size", s->path,
                        header.dtype);
    if (code == CLI_OK) code = take_dtype(s, s->path, header.dtype);
    free(header.dtype);
    return code == CLI_OK ? check_size(s) : code;
}

cli_exit source_raw_size(const cli_args *args, const char *path, int64_t *size)
{
    struct stat st;
    bool standard = strcmp(path, "-") == 0;
    if ((standard ? fstat(STDIN_FILENO, &st) : stat(path, &st)) != 0)
        return cli_fail_sys("cannot open %s", path);
    int64_t has = st.st_size > args->offset ? st.st_size - args->offset : 0;
    *size = S_ISREG(st.st_mode) ? has : -1;
    return CLI_OK;
}

/* Makes the source. Opens the path if `opened` has no descriptor. */
static cli_exit make_source(const char *path, probe *opened, cli_exit misfit,
                            file_source **out)
{
    bool standard = strcmp(path, "-") == 0;
    if (standard) opened->fd = STDIN_FILENO;
    if (opened->fd < 0) opened->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (opened->fd < 0) return cli_fail_sys("cannot open %s", path);
    file_source *s = cli_alloc(sizeof *s);
    if (!s) return CLI_IO;
    *s = (file_source){.path = standard ? "standard input" : path, .misfit = misfit};
    s->base.read = read_box;
    s->base.close = close_file;
    transfer_neutral(s->base.align, s->base.stretch);
    s->fd = opened->fd;
    memcpy(s->head, opened->head, sizeof s->head);
    s->head_size = opened->head_size;
    opened->fd = -1;
    *out = s;
    return CLI_OK;
}

static cli_exit hand_out(file_source *s, cli_exit code, source **out)
{
    if (code == CLI_OK)
        *out = &s->base;
    else
        source_close(&s->base);
    return code;
}

cli_exit source_of_npy(const char *path, probe *opened, source **out)
{
    file_source *s = NULL;
    CLI_TRY(make_source(path, opened, CLI_CORRUPT, &s));
    return hand_out(s, describe_npy(s), out);
}

cli_exit source_of_raw(const char *path, probe *opened, const raw_items *items, source **out)
{
    file_source *s = NULL;
    CLI_TRY(make_source(path, opened, CLI_USAGE, &s));
    return hand_out(s, describe_raw(s, items), out);
}
