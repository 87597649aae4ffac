/* Stored bytes of many chunks, read together before anybody needs them: layouts in one wave
 * or two, then blocks and whole chunks in another. Who needs them finds here what there is,
 * and reads the rest as ever. */
#ifndef CV_FRAME_STAGED_H
#define CV_FRAME_STAGED_H

#include "frame/fetch.h"
#include "frame/layout_cache.h"
#include "frame/layout_wave.h"

typedef struct cv_staged cv_staged;

/* Nothing yet. `frame` and `snapshot` outlive it. Free with cv_staged_free. */
cv_status cv_staged_new(cv_frame *frame, const cv_snapshot *snapshot, cv_staged **out,
                        cv_error *err);
void cv_staged_free(cv_staged *staged); /* NULL is fine */

/* Adds a stored chunk behind those with lower numbers, then blocks of the one added last,
 * or that all its bytes are wanted. `end` as in cv_layout_wish. */
cv_status cv_staged_add(cv_staged *staged, const cv_chunk_ref *ref, uint64_t end,
                        cv_error *err);
cv_status cv_staged_add_block(cv_staged *staged, int64_t block, cv_error *err);
void cv_staged_add_all(cv_staged *staged);

/* Reads layouts, then up to `most` bytes. A chunk that is damaged or cannot be read is not
 * there afterwards: who needs it hears why. CATERVA_ENOMEM, CATERVA_ESTOPPED. */
cv_status cv_staged_fetch(cv_staged *staged, size_t most, cv_watch *watch, cv_error *err);

/* What there is of a chunk, borrowed, or NULL; of no stage nothing. Any thread. */
const cv_layout *cv_staged_layout(const cv_staged *staged, const cv_chunk_ref *ref);
const uint8_t *cv_staged_chunk(const cv_staged *staged, const cv_chunk_ref *ref);

/* Describes wanted[0..n), if all of them are there. */
bool cv_staged_place(const cv_staged *staged, const cv_chunk_ref *ref, cv_wanted *wanted,
                     int64_t n);

/* As cv_layout_get, of a chunk that is there without reading. */
cv_status cv_staged_get_layout(const cv_staged *staged, cv_frame *frame,
                               const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                               cv_layout **out, cv_error *err);

#endif
