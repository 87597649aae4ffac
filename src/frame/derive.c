/* Room: frame. From one state to the next: the header and trailer that a change
 * of shape, attributes or metalayers asks for. Chunks are not looked at.
 *
 * Attributes and metalayers change rarely and get a new state. The shape changes
 * with every append: it changes in place, in a state that the transaction has
 * for itself. */
#include "frame/derive.h"

#include "base/arith.h"

#include <assert.h>
#include <string.h>

/* C-Blosc2 keeps a tail behind content that shrank; ours must not lose it. */
static cv_status replace_content(cv_frame_header *header, const char *name,
                                 const cv_buffer *content, cv_error *err)
{
    for (int i = 0; i < header->n_metalayers; i++) {
        cv_metalayer *layer = &header->metalayers[i];
        if (strcmp(layer->name, name) != 0) continue;
        if (layer->size != content->size)
            return cv_fail(
                err, CATERVA_EINVAL, -1,
                "metalayer \"%s\" has %u bytes and keeps its length: %zu do not fit", name,
                layer->size, content->size);
        layer->data = content->data;
        return CV_OK;
    }
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "no metalayer \"%.100s\"", name);
}

static cv_status change_metalayer(const cv_metalayer *layer, cv_frame_header *header,
                                  cv_error *err)
{
    cv_buffer content = {.data = (uint8_t *)layer->data, .size = layer->size};
    return replace_content(header, layer->name, &content, err);
}

static cv_status derive(const cv_snapshot *from, const cv_change *change, cv_snapshot *to,
                        cv_error *err)
{
    cv_frame_header header = from->header;
    const cv_trailer *t = &from->trailer;
    int n = change->set_attributes ? change->n_attributes : t->n_attributes;
    CV_TRY(cv_trailer_write(change->set_attributes ? change->attributes : t->attributes, n,
                            &to->trailer_bytes, err));
    header.has_attributes = n > 0;
    if (change->metalayer) CV_TRY(change_metalayer(change->metalayer, &header, err));

    /* Room enough, until the commit knows; C-Blosc2 leaves frames that it emptied
     * with the chunk area of before. */
    uint64_t chunks_end = header.header_size + (uint64_t)header.cbytes;
    if (!header.sparse && header.frame_size < chunks_end) header.frame_size = chunks_end;
    header.frame_size += to->trailer_bytes.size;
    CV_TRY(cv_frame_header_write(&header, &to->header_bytes, err));
    assert(header.header_size == from->header.header_size); /* there is one encoding only */
    CV_TRY(cv_snapshot_parse(to, err));
    return cv_trailer_parse(to->trailer_bytes.data, to->trailer_bytes.size,
                            header.header_size, &to->trailer, err);
}

cv_status cv_snapshot_derive(const cv_snapshot *from, const cv_change *change,
                             cv_snapshot **out, cv_error *err)
{
    cv_snapshot *to = cv_snapshot_new();
    if (!to) return cv_fail_memory(err, sizeof *to, "a snapshot");
    to->unchecked = from->unchecked;
    cv_status status = derive(from, change, to, err);
    if (status != CV_OK) {
        cv_snapshot_release(to);
        return status;
    }
    *out = to;
    return CV_OK;
}

/* ---- The shape ---------------------------------------------------------- */

/* Where the state's header has the array's own metalayer. */
static const cv_metalayer *own_layer(const cv_snapshot *s)
{
    return cv_metalayers_find(s->header.metalayers, s->header.n_metalayers,
                              s->meta.legacy ? "caterva" : "b2nd");
}

static cv_status encode_shape(const cv_snapshot *s, const int64_t *shape, cv_buffer *meta,
                              cv_error *err)
{
    cv_array_meta changed = s->meta;
    memcpy(changed.shape, shape, (size_t)changed.ndim * sizeof shape[0]);
    CV_TRY(cv_array_meta_write(&changed, meta, err));
    assert(meta->size <= own_layer(s)->size); /* numbers have one width only */
    return CV_OK;
}

cv_status cv_new_shape_make(const cv_snapshot *state, const int64_t *shape, cv_new_shape *out,
                            cv_error *err)
{
    const cv_array_meta *m = &state->meta;
    *out = (cv_new_shape){.nbytes = 0};
    CV_TRY(cv_grid_init(&out->grid, m->ndim, shape, m->chunk_shape, m->block_shape,
                        state->grid.item_size, err));
    out->nbytes = out->grid.n_chunks * out->grid.chunk_bytes; /* the grid bounds both */
    cv_status status = encode_shape(state, shape, &out->meta, err);
    if (status != CV_OK) cv_buffer_free(&out->meta);
    return status;
}

/* Behind a shorter encoding stays the tail that another writer left. */
void cv_new_shape_apply(const cv_new_shape *change, cv_snapshot *state)
{
    size_t pos = (size_t)(own_layer(state)->data - state->header_bytes.data);
    memcpy(state->header_bytes.data + pos, change->meta.data, change->meta.size);
    memcpy(state->meta.shape, change->grid.shape,
           (size_t)state->meta.ndim * sizeof state->meta.shape[0]);
    state->grid = change->grid;
    state->header.nbytes = change->nbytes;
    state->header.chunk_size = (int32_t)change->grid.chunk_bytes;
    state->header.block_size = (int32_t)change->grid.block_bytes;
}
