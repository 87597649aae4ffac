/* The layouts that one worker came by last. To find one in the cache takes a lock and
 * changes its count of references, which threads that read the same few chunks would
 * pass to each other all the time. */
#ifndef CV_FRAME_LAYOUT_MEMO_H
#define CV_FRAME_LAYOUT_MEMO_H

#include "frame/frame.h"
#include "frame/layout.h"

enum { CV_LAYOUT_MEMO = 32 };

typedef struct cv_layout_note {
    cv_layout *layout; /* or NULL; a reference is held */
    uint64_t frame;    /* its id */
    uint32_t generation;
} cv_layout_note;

/* All zeros to begin with. Of one thread at a time. */
typedef struct cv_layout_memo {
    cv_layout_note notes[CV_LAYOUT_MEMO];
    cv_layout *last;    /* one that is too large for a note; a reference is held */
    cv_small_room room; /* the small chunk at hand: cv_layout_read_small */
} cv_layout_memo;

void cv_layout_memo_free(cv_layout_memo *memo);

/* As cv_layout_get, or cv_layout_read_small where the chunk is that. Good until the
 * next call with this memo, which has the reference. */
cv_status cv_layout_borrow(cv_frame *frame, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_layout_memo *memo,
                           const cv_layout **out, cv_error *err);

#endif
