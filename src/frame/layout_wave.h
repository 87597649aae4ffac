/* Layouts of many chunks, which are read together. */
#ifndef CV_FRAME_LAYOUT_WAVE_H
#define CV_FRAME_LAYOUT_WAVE_H

#include "frame/frame.h"
#include "frame/layout.h"

/* A stored chunk whose layout is wanted. */
typedef struct cv_layout_wish {
    cv_chunk_ref ref;
    uint64_t end;      /* where it and its table are said to end: a guess; 0: none */
    cv_layout *layout; /* what comes of it: a reference */
    /* The wave's own: what of the chunk is read. */
    cv_chunk_head head;
    uint64_t table_pos;
    const uint8_t *table; /* NULL: not at hand */
} cv_layout_wish;

/* Gets n layouts, from the cache or in two waves at most: the first bytes of all chunks,
 * with the tables that stand where they are guessed; then the other tables. Layouts are
 * checked and kept as by cv_layout_get; those of small chunks have the chunk and are not
 * kept. Without success there are none. */
cv_status cv_layout_wave(cv_frame *frame, const cv_snapshot *snapshot, cv_layout_wish *wishes,
                         size_t n, cv_watch *watch, cv_error *err);

/* The same, but one that is damaged or cannot be read has no layout, and the others have
 * theirs. CATERVA_ENOMEM, CATERVA_ESTOPPED: then there are none. */
cv_status cv_layout_wave_of_good(cv_frame *frame, const cv_snapshot *snapshot,
                                 cv_layout_wish *wishes, size_t n, cv_watch *watch,
                                 cv_error *err);

/* The layout of a chunk of which `size` bytes from its beginning have come, probably all;
 * checked and kept as the others are. What they do not reach, which is rare, is read. Without
 * success there is none. */
cv_status cv_layout_of_bytes(cv_frame *frame, const cv_snapshot *snapshot,
                             cv_layout_wish *wish, const uint8_t *bytes, size_t size,
                             cv_error *err);

/* Bytes that a wave reads of each chunk, about. */
size_t cv_layout_wave_bytes(const cv_grid *grid);

void cv_layout_wave_release(cv_layout_wish *wishes, size_t n);

/* Puts the chunk before what was said of a range of it that could not be read. */
void cv_name_chunk(int64_t chunk, cv_error *err);

#endif
