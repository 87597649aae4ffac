/* Room: cli/sources. A source whose first two axes are exchanged. A box needs as much memory again. */
#include "sources/source.h"
#include "sources/strides.h"

#include <stdlib.h>

typedef struct transposed_source {
    source base;
    source *inner;
} transposed_source;

static void swap(int64_t *values)
{
    int64_t first = values[0];
    values[0] = values[1];
    values[1] = first;
}

static cli_exit read_box(source *self, const box *b, void *dst)
{
    transposed_source *s = (transposed_source *)self;
    box inner = *b;
    strided_copy copy = {.ndim = s->base.shape.ndim, .item_size = s->base.shape.item_size};
    swap(inner.start);
    swap(inner.stop);
    strides_of_box(b, copy.ndim, copy.item_size, copy.dst_strides);
    strides_of_box(&inner, copy.ndim, copy.item_size, copy.src_strides);
    swap(copy.src_strides);
    int64_t size = copy.item_size;
    for (int d = 0; d < copy.ndim; d++) size *= copy.counts[d] = b->stop[d] - b->start[d];
    uint8_t *items = cli_alloc((size_t)size);
    if (!items) return CLI_IO;
    cli_exit code = s->inner->read(s->inner, &inner, items);
    if (code == CLI_OK) strided_copy_run(&copy, items, dst);
    free(items);
    return code;
}

static void close_inner(source *self) { source_close(((transposed_source *)self)->inner); }

cli_exit source_transpose(source *inner, source **out)
{
    transposed_source *s = cli_alloc(sizeof *s);
    if (!s) {
        source_close(inner);
        return CLI_IO;
    }
    *s = (transposed_source){.base = *inner, .inner = inner};
    s->base.dtype = NULL; /* the inner source owns it */
    s->base.read_selected = NULL;
    s->base.takes_lists = false;
    s->base.read = read_box;
    s->base.close = close_inner;
    swap(s->base.shape.shape);
    swap(s->base.align);
    swap(s->base.stretch);
    *out = &s->base;
    return CLI_OK;
}
