/* Changes of shape, on any axis and at any position, into what is pending.
 *
 * Whole chunks keep their bytes: only the index changes. Cells that come into view hold the
 * fill (or given data); cells that leave it inside an edge chunk are cleared, so that
 * nothing old returns when the array grows again. After a failure roll back. */
#ifndef CV_ENGINE_RESIZE_H
#define CV_ENGINE_RESIZE_H

#include "engine/items/copy.h"
#include "engine/pending/pending.h"

/* To a new shape, each axis grown or shrunk at its end. */
cv_status cv_resize(cv_pending *pending, const int64_t *shape, cv_error *err);

/* Inserts `n` items along `axis` at position `at`, from `src` or (NULL) as the fill. */
cv_status cv_insert(cv_pending *pending, int axis, int64_t at, int64_t n,
                    const cv_strided *src, cv_error *err);

/* Without items [start, stop) of `axis`. */
cv_status cv_remove(cv_pending *pending, int axis, int64_t start, int64_t stop,
                    cv_error *err);

#endif
