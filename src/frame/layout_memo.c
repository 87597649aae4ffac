/* Room: frame. A note is as good as the cache while the generation of its position
 * stays: who gives the position to another chunk changes that. */
#include "frame/layout_memo.h"

#include "frame/layout_cache.h"

/* Of larger layouts only the last one is kept, so that a worker holds 2 MiB at most;
 * a layout of 4096 blocks fits. */
enum { MOST_BYTES = 64 << 10 };

void cv_layout_memo_free(cv_layout_memo *memo)
{
    for (int i = 0; i < CV_LAYOUT_MEMO; i++) cv_layout_release(memo->notes[i].layout);
    cv_layout_release(memo->last);
    cv_buffer_free(&memo->room.buffer);
    *memo = (cv_layout_memo){.last = NULL};
}

static bool is_it(const cv_layout_note *note, const cv_frame *frame, const cv_chunk_ref *ref,
                  uint32_t name)
{
    const cv_layout *layout = note->layout;
    return layout && note->frame == frame->id && layout->pos == ref->pos &&
           layout->object == ref->object && layout->name == name &&
           note->generation == cv_layout_generation(frame->layouts, ref->object, ref->pos);
}

static cv_status get(cv_frame *frame, const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                     cv_layout_memo *memo, const cv_layout **out, cv_error *err)
{
    uint64_t hash = (ref->pos ^ (uint64_t)ref->object << 32) * UINT64_C(0x9e3779b97f4a7c15);
    cv_layout_note *note = &memo->notes[hash >> 32 & (CV_LAYOUT_MEMO - 1)];
    if (is_it(note, frame, ref, cv_layout_checked_name(snapshot, ref))) {
        *out = note->layout;
        return CV_OK;
    }
    cv_layout *layout;
    /* Before the layout is looked for: it may be newer than its note, not older. */
    uint32_t generation = cv_layout_generation(frame->layouts, ref->object, ref->pos);
    CV_TRY(cv_layout_get(frame->layouts, snapshot, ref, &layout, err));
    cv_layout **place = &memo->last;
    if (cv_layout_bytes(layout) <= MOST_BYTES) {
        place = &note->layout;
        note->frame = frame->id;
        note->generation = generation;
    }
    cv_layout_release(*place);
    *place = layout;
    *out = layout;
    return CV_OK;
}

cv_status cv_layout_borrow(cv_frame *frame, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_layout_memo *memo,
                           const cv_layout **out, cv_error *err)
{
    if (cv_layout_is_small(&snapshot->grid))
        return cv_layout_read_small(frame->store, snapshot, ref, &memo->room, out, err);
    return get(frame, snapshot, ref, memo, out, err);
}
