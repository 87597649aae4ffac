/* Room: engine/jobs. What chunks are and what space they take; headers are read,
 * nothing is decoded. */
#include "engine/read/measure.h"

#include "frame/layout.h"
#include "frame/lookup.h"
#include "frame/txn.h"
#include <caterva_upkeep.h>

static caterva_chunk_kind kind_of_special(cv_special special)
{
    switch (special) {
    case CV_SPECIAL_ZEROS: return CATERVA_CHUNK_ZEROS;
    case CV_SPECIAL_NAN: return CATERVA_CHUNK_NAN;
    case CV_SPECIAL_VALUE: return CATERVA_CHUNK_VALUE;
    case CV_SPECIAL_UNINIT: return CATERVA_CHUNK_UNINIT;
    default: return CATERVA_CHUNK_STORED;
    }
}

static caterva_chunk_kind kind_of_ref(cv_ref_kind kind)
{
    switch (kind) {
    case CV_REF_ZEROS: return CATERVA_CHUNK_ZEROS;
    case CV_REF_NAN: return CATERVA_CHUNK_NAN;
    case CV_REF_UNINIT: return CATERVA_CHUNK_UNINIT;
    default: return CATERVA_CHUNK_STORED;
    }
}

/* *table_size: bytes of the chunk's block table; 0: it has none. */
static cv_status describe(cv_frame *frame, cv_snapshot *snapshot, int64_t chunk,
                          caterva_chunk_info *out, int64_t *table_size, cv_error *err)
{
    const cv_index *index;
    CV_TRY(cv_snapshot_index(snapshot, frame->store, &index, err));
    cv_chunk_ref ref;
    CV_TRY(cv_chunk_ref_find(snapshot, index, chunk, &ref, err));

    *out =
        (caterva_chunk_info){.chunk = chunk, .position = -1, .kind = kind_of_ref(ref.kind)};
    *table_size = 0;
    cv_grid_chunk_index(&snapshot->grid, chunk, out->index);
    if (ref.kind != CV_REF_STORED) return CV_OK;

    cv_layout *layout;
    CV_TRY(cv_layout_get(frame->layouts, snapshot, &ref, &layout, err));
    out->kind = kind_of_special(layout->header.special);
    out->position = ref.object == CV_FRAME_OBJECT ? (int64_t)ref.pos : ref.object;
    out->stored_bytes = layout->header.cbytes;
    out->memcpyed = layout->header.memcpyed;
    if (ref.name != 0) *table_size = (int64_t)layout->table_size;
    cv_layout_release(layout);
    return CV_OK;
}

cv_status cv_describe_chunk(cv_frame *frame, cv_snapshot *snapshot, int64_t chunk,
                            caterva_chunk_info *out, cv_error *err)
{
    int64_t table_size;
    return describe(frame, snapshot, chunk, out, &table_size, err);
}

/* The header's copy serves repair: not dead. A sealed state has one. */
static cv_status add_header_copy(cv_frame *frame, const cv_snapshot *snapshot,
                                 int64_t *live_bytes, cv_error *err)
{
    cv_buffer bytes = {0};
    if (snapshot->seal == CV_SEAL_WHOLE) {
        *live_bytes += (int64_t)cv_tail_copy_size(snapshot);
        return CV_OK;
    }
    cv_header_copy copy;
    bool found;
    cv_status status = cv_tail_read_copy(snapshot, frame->store, &bytes, &copy, &found, err);
    if (status == CV_OK && found) *live_bytes += (int64_t)copy.size;
    cv_buffer_free(&bytes);
    return status;
}

/* Nor are layouts that stand together: they serve readers from afar. */
static cv_status add_layouts(cv_frame *frame, cv_snapshot *snapshot, int64_t *live_bytes,
                             cv_error *err)
{
    cv_layout_area area;
    CV_TRY(cv_layout_area_find(snapshot, frame->store, &area, err));
    *live_bytes += (int64_t)area.size;
    return CV_OK;
}

cv_status cv_measure(cv_frame *frame, cv_snapshot *snapshot, cv_watch *watch,
                     caterva_space *out, cv_error *err)
{
    const cv_frame_header *h = &snapshot->header;
    *out = (caterva_space){.live_bytes =
                               (int64_t)(h->header_size + snapshot->index_size +
                                         snapshot->footer.size + snapshot->trailer.size)};
    const cv_grid *grid = &snapshot->grid;
    const cv_index *index;
    int64_t same = 0; /* a special entry that is good; none yet */
    cv_watch_expect(watch, grid->n_chunks * grid->chunk_bytes);
    CV_TRY(cv_snapshot_index(snapshot, frame->store, &index, err));
    CV_TRY(cv_snapshot_check_room(snapshot, frame->store, cv_index_count_stored(index), err));
    for (int64_t i = 0; i < grid->n_chunks; i++) {
        caterva_chunk_info chunk;
        int64_t table_size, next = cv_index_next(index, i, same);
        out->special_chunks += next - i;
        CV_TRY(cv_watch_tick(watch, (next - i + (i > 0)) * grid->chunk_bytes, err));
        i = next;
        if (i == grid->n_chunks) break;
        CV_TRY(describe(frame, snapshot, i, &chunk, &table_size, err));
        if (cv_offset_is_special(cv_index_get(index, i))) same = cv_index_get(index, i);
        bool stored = chunk.kind == CATERVA_CHUNK_STORED;
        out->stored_chunks += stored;
        out->special_chunks += !stored;
        out->unverified_chunks += chunk.stored_bytes > 0 && table_size == 0;
        out->live_bytes += chunk.stored_bytes + table_size;
    }
    CV_TRY(add_header_copy(frame, snapshot, &out->live_bytes, err));
    CV_TRY(add_layouts(frame, snapshot, &out->live_bytes, err));
    int64_t total = (int64_t)h->frame_size + (h->sparse ? h->cbytes : 0);
    out->dead_bytes = total > out->live_bytes ? total - out->live_bytes : 0;
    return CV_OK;
}
