/* Room: frame. Opens, creates and closes frames, and returns snapshots. */
#include "frame/frame.h"

#include "base/heap.h"
#include "frame/layout.h"
#include "frame/snapshot.h"

#include <string.h>

/* Makes a frame, which owns store and snapshot. Releases both on failure. */
static cv_status new_frame(cv_store *store, cv_snapshot *snapshot,
                           caterva_durability durability, cv_frame **out, cv_error *err)
{
    cv_frame *frame = cv_calloc(1, sizeof *frame);
    static atomic_uint_least64_t last_id;
    uint64_t id = atomic_fetch_add(&last_id, 1) + 1;
    cv_layout_cache *layouts = cv_layout_cache_new(store, id, snapshot->grid.n_blocks);
    if (!frame || !layouts) {
        cv_free(frame);
        cv_layout_cache_free(layouts);
        cv_snapshot_release(snapshot);
        cv_store_close(store);
        return cv_fail_memory(err, sizeof *frame, "a frame");
    }
    frame->id = id;
    frame->store = store;
    frame->current = snapshot;
    frame->layouts = layouts;
    frame->durability = durability;
    cv_mutex_init(&frame->lock);
    *out = frame;
    return CV_OK;
}

cv_status cv_frame_open(cv_store *store, caterva_durability durability, bool unchecked,
                        cv_frame **out, cv_error *err)
{
    cv_snapshot *snapshot;
    cv_status status = cv_snapshot_load(store, unchecked, &snapshot, err);
    if (status != CV_OK) {
        cv_store_close(store);
        return status;
    }
    return new_frame(store, snapshot, durability, out, err);
}

cv_status cv_frame_open_any(cv_store *store, cv_frame **out, cv_error *err)
{
    cv_snapshot *snapshot;
    cv_status status = cv_snapshot_load_any(store, &snapshot, err);
    if (status != CV_OK) {
        cv_store_close(store);
        return status;
    }
    return new_frame(store, snapshot, CATERVA_DURABILITY_FULL, out, err);
}

cv_status cv_frame_open_state(cv_store *store, cv_snapshot *state,
                              caterva_durability durability, cv_frame **out, cv_error *err)
{
    return new_frame(store, state, durability, out, err);
}

/* Makes the state before the first commit. The parser checks the frame's size against the trailer,
 * so the header gets the sizes of a commit without chunks. */
static cv_status first_snapshot(const cv_frame_seed *seed, cv_snapshot *snapshot,
                                cv_error *err)
{
    CV_TRY(cv_trailer_write(seed->attributes, seed->n_attributes, &snapshot->trailer_bytes,
                            err));
    cv_frame_header header = seed->header;
    header.has_attributes = seed->n_attributes > 0;
    header.cbytes = 0;
    for (int pass = 0; pass < 2; pass++) { /* the first pass determines header_size */
        snapshot->header_bytes.size = 0;
        CV_TRY(cv_frame_header_write(&header, &snapshot->header_bytes, err));
        header.frame_size = header.header_size + snapshot->trailer_bytes.size;
    }
    CV_TRY(cv_snapshot_parse(snapshot, err));
    snapshot->index = (cv_index){.n = snapshot->grid.n_chunks, .same = seed->initial_offset};
    atomic_store(&snapshot->index_ready, true);
    return cv_trailer_parse(snapshot->trailer_bytes.data, snapshot->trailer_bytes.size,
                            header.header_size, &snapshot->trailer, err);
}

cv_status cv_frame_create(cv_store *store, const cv_frame_seed *seed,
                          caterva_durability durability, cv_frame **out, cv_error *err)
{
    cv_snapshot *snapshot = cv_snapshot_new();
    cv_status status = snapshot ? first_snapshot(seed, snapshot, err)
                                : cv_fail_memory(err, sizeof *snapshot, "a snapshot");
    if (status != CV_OK) {
        cv_snapshot_release(snapshot);
        cv_store_close(store);
        return status;
    }
    return new_frame(store, snapshot, durability, out, err);
}

void cv_frame_close(cv_frame *frame)
{
    if (!frame) return;
    cv_layout_cache_free(frame->layouts);
    cv_snapshot_release(frame->current);
    cv_store_close(frame->store);
    cv_mutex_destroy(&frame->lock);
    cv_free(frame);
}

cv_snapshot *cv_frame_snapshot(cv_frame *frame)
{
    cv_mutex_lock(&frame->lock);
    cv_snapshot *snapshot = frame->current;
    cv_snapshot_retain(snapshot);
    cv_mutex_unlock(&frame->lock);
    return snapshot;
}

/* ---- The codec's parameters ------------------------------------------------ */

/* Returns the kind of a dtype such as "<f8", and its number; 'V' for any longer description. */
static char dtype_kind(const char *dtype, size_t size, int64_t *number)
{
    *number = 0;
    if (size < 3) return 'V';
    for (size_t i = 2; i < size; i++) {
        if (dtype[i] < '0' || dtype[i] > '9' || *number > INT32_MAX) return 'V';
        *number = 10 * *number + (dtype[i] - '0');
    }
    return dtype[1];
}

/* Sets item_kind and items_swapped. Leaves them unset for items without a dtype, of dtype "|V8" or
 * C-Blosc2's default "|S8", or of another size than the dtype. */
static void describe_items(const cv_array_meta *meta, cv_codec_spec *spec)
{
    const char other = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<';
    if (!meta->dtype || meta->dtype_format != 0 || meta->dtype_size == 0) return;
    int64_t size;
    char kind = dtype_kind(meta->dtype, meta->dtype_size, &size);
    bool opaque = (kind == 'V' || kind == 'S') && meta->dtype[0] == '|';
    if (opaque || (kind != 'V' && kind != 'U' && size != spec->item_size)) return;
    spec->item_kind = kind;
    spec->items_swapped = meta->dtype[0] == other;
}

cv_status cv_frame_codec_spec(const cv_snapshot *snapshot, cv_buffer *geometry,
                              cv_codec_spec *out, cv_error *err)
{
    const cv_frame_header *h = &snapshot->header;
    *out = (cv_codec_spec){
        .codec = h->codec,
        .codec_meta = h->codec_meta,
        .level = h->level > 9 ? 9 : h->level,
        .split_mode = h->split_mode,
        .use_dict = h->use_dict,
        .item_size = snapshot->grid.item_size,
        .block_bytes = (int32_t)snapshot->grid.block_bytes,
        .chunk_bytes = (int32_t)snapshot->grid.chunk_bytes,
    };
    out->automatic = h->codec == CATERVA_CODEC_ZSTD && !h->use_dict && h->filters[0] == 0 &&
                     h->filters_meta[0] == CV_META_AUTOMATIC;
    memcpy(out->filters, h->filters, sizeof out->filters);
    memcpy(out->filters_meta, h->filters_meta, sizeof out->filters_meta);
    out->ndim = snapshot->grid.ndim;
    memcpy(out->block_shape, snapshot->grid.block_shape, sizeof out->block_shape);
    describe_items(&snapshot->meta, out);

    /* n-d plug-ins read "b2nd" only, so the older metalayer is written in the new form. */
    cv_array_meta meta = snapshot->meta;
    meta.legacy = false;
    if (!meta.dtype) {
        meta.dtype = "";
        meta.dtype_size = 0;
    }
    CV_TRY(cv_array_meta_write(&meta, geometry, err));
    out->geometry = geometry->data;
    out->geometry_size = (int32_t)geometry->size;
    return CV_OK;
}
