/* Changes the shape of an array with pending changes, on any axis and at any position.
 *
 * Whole chunks keep their bytes: only the index changes. New cells hold the fill or given data.
 * Removed cells that are in a chunk at the edge are cleared, so that no old value returns when the
 * array grows again. A change that fails must be rolled back. */
#ifndef CV_ENGINE_RESIZE_H
#define CV_ENGINE_RESIZE_H

#include "engine/items/copy.h"
#include "engine/pending/pending.h"

/* Changes the shape; each axis grows or shrinks at its end. */
cv_status cv_resize(cv_pending *pending, const int64_t *shape, cv_error *err);

/* Inserts `n` items along `axis` at position `at`: items of `src`, or the fill if NULL. */
cv_status cv_insert(cv_pending *pending, int axis, int64_t at, int64_t n,
                    const cv_strided *src, cv_error *err);

/* Removes items [start, stop) of `axis`. */
cv_status cv_remove(cv_pending *pending, int axis, int64_t start, int64_t stop,
                    cv_error *err);

#endif
