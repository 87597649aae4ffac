/* Room: frame. From one state to the next: the header and trailer that a change
 * of shape, attributes or metalayers asks for. Chunks are not looked at. */
#include "base/arith.h"
#include "frame/snapshot.h"

#include <string.h>

/* The array's own metalayer with the new shape, into `bytes`. */
static cv_status write_shape(const cv_snapshot *from, const int64_t *shape, cv_buffer *bytes,
                             cv_error *err)
{
    cv_array_meta meta = from->meta;
    memcpy(meta.shape, shape, (size_t)meta.ndim * sizeof shape[0]);
    return cv_array_meta_write(&meta, bytes, err);
}

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

static cv_status change_shape(const cv_snapshot *from, const int64_t *shape,
                              cv_frame_header *header, cv_buffer *bytes, cv_error *err)
{
    const cv_array_meta *m = &from->meta;
    cv_grid grid;
    CV_TRY(cv_grid_init(&grid, m->ndim, shape, m->chunk_shape, m->block_shape,
                        from->grid.item_size, err));
    if (!cv_mul_i64(grid.n_chunks, grid.chunk_bytes, &header->nbytes))
        return cv_fail(err, CATERVA_EINVAL, -1, "the shape's size does not fit 64 bits");
    header->chunk_size = (int32_t)grid.chunk_bytes;
    header->block_size = (int32_t)grid.block_bytes;
    CV_TRY(write_shape(from, shape, bytes, err));
    const char *name = m->legacy ? "caterva" : "b2nd";
    const cv_metalayer *old =
        cv_metalayers_find(header->metalayers, header->n_metalayers, name);
    if (old && bytes->size < old->size) /* a tail that another writer left */
        CV_TRY(
            cv_buffer_append(bytes, old->data + bytes->size, old->size - bytes->size, err));
    return replace_content(header, name, bytes, err);
}

static cv_status change_metalayer(const cv_metalayer *layer, cv_frame_header *header,
                                  cv_error *err)
{
    cv_buffer content = {.data = (uint8_t *)layer->data, .size = layer->size};
    return replace_content(header, layer->name, &content, err);
}

static cv_status derive(const cv_snapshot *from, const cv_change *change, cv_snapshot *to,
                        cv_buffer *bytes, cv_error *err)
{
    cv_frame_header header = from->header;
    const cv_trailer *t = &from->trailer;
    int n = change->set_attributes ? change->n_attributes : t->n_attributes;
    CV_TRY(cv_trailer_write(change->set_attributes ? change->attributes : t->attributes, n,
                            &to->trailer_bytes, err));
    header.has_attributes = n > 0;
    if (change->shape) CV_TRY(change_shape(from, change->shape, &header, bytes, err));
    if (change->metalayer) CV_TRY(change_metalayer(change->metalayer, &header, err));

    header.frame_size += to->trailer_bytes.size; /* room enough, until the commit knows */
    CV_TRY(cv_frame_header_write(&header, &to->header_bytes, err));
    if (header.header_size != from->header.header_size)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "the header of %u bytes would become %u: its encoding is not ours",
                       from->header.header_size, header.header_size);
    CV_TRY(cv_snapshot_parse(to, err));
    return cv_trailer_parse(to->trailer_bytes.data, to->trailer_bytes.size,
                            header.header_size, &to->trailer, err);
}

cv_status cv_snapshot_derive(const cv_snapshot *from, const cv_change *change,
                             cv_snapshot **out, cv_error *err)
{
    cv_snapshot *to = cv_snapshot_new();
    if (!to) return cv_fail_memory(err, sizeof *to, "a snapshot");
    cv_buffer bytes = {0};
    cv_status status = derive(from, change, to, &bytes, err);
    cv_buffer_free(&bytes);
    if (status != CV_OK) {
        cv_snapshot_release(to);
        return status;
    }
    *out = to;
    return CV_OK;
}
