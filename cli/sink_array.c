/* Room: cli. Arrays as sinks: a new one, or the selected items of one that exists.
 * Nothing is seen by others before finish commits; abandon drops the handle, which
 * leaves no new file and an old one as it was. */
#include "sink.h"
#include "strided.h"

#include <stdlib.h>

typedef struct array_sink {
    sink base;
    caterva_array *array;
    const char *path;
    selection sel;
    int64_t item_size;
    uint8_t *scratch; /* the bounds of a box when its items lie apart */
    size_t scratch_size;
} array_sink;

static cli_exit write_box(array_sink *s, const box *b, const void *src)
{
    size_t size = (size_t)(box_items(b, s->sel.ndim) * s->item_size);
    caterva_error err;
    if (caterva_write(s->array, b->start, b->stop, src, size, &err) != CATERVA_OK)
        return cli_fail_array(s->path, &err);
    return CLI_OK;
}

static cli_exit read_scratch(array_sink *s, const box *b)
{
    size_t size = (size_t)(box_items(b, s->sel.ndim) * s->item_size);
    if (size > s->scratch_size) {
        free(s->scratch);
        s->scratch_size = 0;
        s->scratch = cli_alloc(size);
        if (!s->scratch) return CLI_IO;
        s->scratch_size = size;
    }
    caterva_error err;
    if (caterva_read(s->array, b->start, b->stop, s->scratch, size, &err) != CATERVA_OK)
        return cli_fail_array(s->path, &err);
    return CLI_OK;
}

/* With steps the items lie apart: read what surrounds them, patch, write back. */
static cli_exit write_selection(sink *self, const box *b, const void *src)
{
    array_sink *s = (array_sink *)self;
    box bounds;
    selection_bounds(&s->sel, b, &bounds);
    if (selection_is_box(&s->sel)) return write_box(s, &bounds, src);

    int64_t unused[CATERVA_MAX_DIMS];
    strided_copy copy = {.ndim = selection_shape(&s->sel, unused), .item_size = s->item_size};
    for (int d = 0; d < copy.ndim; d++) copy.counts[d] = b->stop[d] - b->start[d];
    strides_of_box(b, copy.ndim, copy.item_size, copy.src_strides);
    int64_t first =
        strides_of_selection(&s->sel, b, &bounds, copy.item_size, copy.dst_strides);
    CLI_TRY(read_scratch(s, &bounds));
    strided_copy_run(&copy, src, s->scratch + first);
    return write_box(s, &bounds, s->scratch);
}

static void release(array_sink *s)
{
    free(s->scratch);
    free(s);
}

static cli_exit finish_array(sink *self)
{
    array_sink *s = (array_sink *)self;
    caterva_error err;
    cli_exit code = CLI_OK;
    if (caterva_close(s->array, &err) != CATERVA_OK) code = cli_fail_array(s->path, &err);
    release(s);
    return code;
}

static void abandon_array(sink *self)
{
    array_sink *s = (array_sink *)self;
    caterva_discard(s->array);
    release(s);
}

cli_exit sink_of_array(caterva_array *array, const char *path, const selection *sel,
                       sink **out)
{
    const caterva_info *info = caterva_describe(array);
    array_sink *s = cli_alloc(sizeof *s);
    if (!s) {
        caterva_discard(array);
        return CLI_IO;
    }
    *s = (array_sink){.array = array, .path = path, .sel = *sel};
    s->item_size = info->item_size;
    s->base.write = write_selection;
    s->base.finish = finish_array;
    s->base.abandon = abandon_array;
    transfer_neutral(s->base.align, s->base.stretch);
    int r = 0;
    for (int d = 0; d < info->ndim; d++) {
        const selection_axis *a = &sel->axis[d];
        if (a->dropped) continue;
        if (a->step == 1 && info->chunk_shape[d] > 0) {
            s->base.align[r] = info->chunk_shape[d];
            s->base.phase[r] = a->start % info->chunk_shape[d];
        }
        s->base.stretch[r++] = a->step < 0 ? -a->step : a->step;
    }
    *out = &s->base;
    return CLI_OK;
}

static cli_exit copy_attributes(caterva_array *from, caterva_array *to, const char *path)
{
    const char *name;
    caterva_error err;
    for (int i = 0; (name = caterva_attr_name(from, i)); i++) {
        void *value;
        size_t size;
        if (caterva_attr_get(from, name, &value, &size, &err) != CATERVA_OK)
            return cli_fail_array(name, &err);
        caterva_status status = caterva_attr_set(to, name, value, size, &err);
        caterva_free(value);
        if (status != CATERVA_OK) return cli_fail_array(path, &err);
    }
    return CLI_OK;
}

cli_exit sink_of_new_array(const cli_args *args, const char *path, const source *from,
                           caterva_array *like, sink **out)
{
    creation c;
    caterva_array *array = NULL;
    cli_exit code = creation_init(&c, args, &from->shape, from->dtype, like);
    if (code == CLI_OK) code = creation_make(&c, path, &array);
    creation_free(&c);
    if (code != CLI_OK) return code;
    selection whole;
    if (like) code = copy_attributes(like, array, path);
    if (code == CLI_OK)
        code = selection_parse(NULL, from->shape.ndim, from->shape.shape, &whole);
    if (code == CLI_OK) return sink_of_array(array, path, &whole, out);
    caterva_discard(array);
    return code;
}
