/* Room: array. A frame inside a frame: embed.b2e is an array of bytes, and a leaf in it is
 * a store that reads them through it. Nothing is decoded but the blocks that hold what is
 * read; they are kept in the cache that handles share. */
#include "array/embedded.h"

#include "array/library.h"
#include "base/heap.h"
#include "engine/read/read.h"
#include "store/fallbacks.h"
#include "tree/names.h"

/* ---- The bytes -------------------------------------------------------------------- */

static cv_status read_bytes(void *context, uint64_t pos, void *dst, size_t size,
                            cv_error *err)
{
    int64_t start = (int64_t)pos, stop = start + (int64_t)size;
    cv_source source = cv_array_source(context); /* of a handle that only reads */
    cv_plan plan;
    CV_TRY(cv_plan_box(&source.snapshot->grid, &start, &stop, &plan, err));
    return cv_read_box(&source, &plan, dst, err);
}

/* One thread: who reads the leaf may be one of the pool's. */
cv_status cv_embedded_open(const cv_tree *tree, cv_embed_bytes *out, cv_error *err)
{
    cv_store *store;
    cv_frame *frame;
    caterva_array *array;
    CV_TRY(cv_tree_embed_store(tree, &store, err));
    CV_TRY(cv_frame_open_any(store, &frame, err));
    if (frame->current->grid.item_size != 1 || frame->current->grid.ndim != 1) {
        cv_frame_close(frame);
        return cv_fail(err, CATERVA_ECORRUPT, -1, "%s in %s does not hold bytes",
                       CV_TREE_EMBED, tree->shown.text);
    }
    CV_TRY(cv_array_new(frame, false, 1, &array, err));
    cv_status status = cv_array_set_cache(array, 0, err);
    if (status != CV_OK) {
        cv_array_free(array);
        return status;
    }
    *out = (cv_embed_bytes){.context = array, .read = read_bytes};
    return CV_OK;
}

void cv_embedded_close(cv_embed_bytes *bytes)
{
    cv_array_free(bytes->context);
    *bytes = (cv_embed_bytes){0};
}

/* ---- One leaf in them --------------------------------------------------------------- */

typedef struct embedded_store {
    cv_store base;
    cv_embed_bytes bytes;
    uint64_t offset, size;
} embedded_store;

static cv_status embedded_size(cv_store *store, cv_object object, uint64_t *size,
                               cv_error *err)
{
    CV_TRY(cv_store_check_frame(store, object, err));
    *size = ((const embedded_store *)store)->size;
    return CV_OK;
}

static cv_status embedded_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                               size_t size, cv_error *err)
{
    const embedded_store *e = (const embedded_store *)store;
    CV_TRY(cv_store_check_frame(store, object, err));
    if (pos > e->size || size > e->size - pos)
        return cv_fail_past_end(err, "the leaf in embed.b2e", pos, size, e->size);
    if (size == 0) return CV_OK;
    return e->bytes.read(e->bytes.context, e->offset + pos, dst, size, err);
}

static void embedded_close(cv_store *store)
{
    cv_embedded_close(&((embedded_store *)store)->bytes);
    cv_free(store);
}

static const cv_store_ops embedded_ops = {
    .name = "leaf in embed.b2e",
    .size = embedded_size,
    .read = embedded_read,
    .write = cv_store_no_write,
    .truncate = cv_store_no_truncate,
    .sync = cv_store_no_sync,
    .replace = cv_store_no_replace,
    .remove = cv_store_no_remove,
    .publish = cv_store_no_publish,
    .close = embedded_close,
};

cv_status cv_embedded_store(const cv_tree *tree, const cv_leaf *leaf, cv_store **out,
                            cv_error *err)
{
    embedded_store *e = cv_calloc(1, sizeof *e);
    if (!e) return cv_fail_memory(err, sizeof *e, "a leaf");
    e->base = (cv_store){.ops = &embedded_ops, .published = true};
    e->offset = leaf->offset;
    e->size = leaf->size;
    cv_status status = cv_embedded_open(tree, &e->bytes, err);
    if (status != CV_OK) {
        cv_free(e);
        return status;
    }
    *out = &e->base;
    return CV_OK;
}
