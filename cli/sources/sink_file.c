/* Room: cli/sources. Raw and npy files as sinks. A file takes boxes in any order, and standard
 * output in C order; the bytes are the same. The file appears at `finish`. */
#include "formats/npy.h"
#include "sources/foreign_sink.h"
#include "sources/strides.h"
#include "terminal/output.h"

#include <stdlib.h>

typedef struct file_sink {
    sink base;
    output out;
    array_shape shape;
    int64_t position; /* byte position of the first item */
} file_sink;

static cli_exit write_forward(sink *self, const box *b, const void *src)
{
    file_sink *s = (file_sink *)self;
    return output_write(&s->out, src,
                        (size_t)(box_items(b, s->shape.ndim) * s->shape.item_size));
}

/* Returns the size of the contiguous runs of a box in the file. The box has all of each axis after
 * *axis. */
static int64_t run_of_box(const file_sink *s, const box *b, int *axis)
{
    int64_t run = s->shape.item_size;
    int d = s->shape.ndim;
    bool whole = true;
    while (d > 0 && whole) {
        d--;
        run *= b->stop[d] - b->start[d];
        whole = b->stop[d] - b->start[d] == s->shape.shape[d];
    }
    *axis = d;
    return run;
}

static cli_exit write_anywhere(sink *self, const box *b, const void *src)
{
    file_sink *s = (file_sink *)self;
    box everything = {0};
    int64_t strides[CATERVA_MAX_DIMS], index[CATERVA_MAX_DIMS] = {0};
    int64_t position = s->position;
    int run_axis;
    int64_t run = run_of_box(s, b, &run_axis);
    for (int d = 0; d < s->shape.ndim; d++) everything.stop[d] = s->shape.shape[d];
    strides_of_box(&everything, s->shape.ndim, s->shape.item_size, strides);
    for (int d = 0; d < s->shape.ndim; d++) position += b->start[d] * strides[d];

    const uint8_t *at = src;
    int d = 0;
    while (d >= 0) {
        CLI_TRY(output_write_at(&s->out, at, (size_t)run, position));
        at += run;
        for (d = run_axis - 1; d >= 0; d--) {
            position += strides[d];
            if (++index[d] < b->stop[d] - b->start[d]) break;
            position -= index[d] * strides[d];
            index[d] = 0;
        }
    }
    return CLI_OK;
}

static cli_exit finish_file(sink *self)
{
    file_sink *s = (file_sink *)self;
    cli_exit code = output_finish(&s->out);
    free(s);
    return code;
}

static void abandon_file(sink *self)
{
    file_sink *s = (file_sink *)self;
    output_abandon(&s->out);
    free(s);
}

static cli_exit write_header(file_sink *s, const char *dtype)
{
    char *header;
    size_t size;
    CLI_TRY(npy_make_header(dtype, s->shape.ndim, s->shape.shape, &header, &size));
    cli_exit code = s->out.seekable ? output_write_at(&s->out, header, size, 0)
                                    : output_write(&s->out, header, size);
    free(header);
    s->position = (int64_t)size;
    return code;
}

cli_exit sink_of_file(const cli_args *args, const char *path, data_format format,
                      const source *from, sink **out)
{
    file_sink *s = cli_alloc(sizeof *s);
    if (!s) return CLI_IO;
    *s = (file_sink){.shape = from->shape};
    cli_exit code = output_open(&s->out, path, args->force);
    if (code != CLI_OK) {
        free(s);
        return code;
    }
    s->base.in_order = !s->out.seekable;
    s->base.write = s->out.seekable ? write_anywhere : write_forward;
    s->base.finish = finish_file;
    s->base.abandon = abandon_file;
    transfer_neutral(s->base.align, s->base.stretch);
    if (format == FORMAT_NPY) code = write_header(s, from->dtype);
    *out = &s->base;
    if (code != CLI_OK) abandon_file(&s->base);
    return code;
}

cli_exit sink_open(const cli_args *args, const char *path, data_format format,
                   const source *from, const origin *like, sink **out)
{
    switch (format) {
    case FORMAT_ARRAY:
    case FORMAT_ZARR:
        return sink_of_new_array(args, path, format == FORMAT_ZARR, from, like, out);
    case FORMAT_NPY:
    case FORMAT_RAW: return sink_of_file(args, path, format, from, out);
    case FORMAT_TEXT:
    case FORMAT_CSV: return sink_of_text(args, path, format == FORMAT_CSV, from, out);
    case FORMAT_FOREIGN: return sink_of_foreign(args, path, from, like, out);
    case FORMAT_NONE: break;
    }
    return cli_fail(CLI_USAGE, "cannot determine the format from the name %s; use --to",
                    path);
}
