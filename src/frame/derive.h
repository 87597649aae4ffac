/* From one state to the next: what a change of shape, attributes or metalayers makes of
 * header and trailer. */
#ifndef CV_FRAME_DERIVE_H
#define CV_FRAME_DERIVE_H

#include "frame/snapshot.h"

/* What a new state changes of an old one. */
typedef struct cv_change {
    bool set_attributes;            /* then the list below replaces the old one */
    const cv_metalayer *attributes; /* encoded values */
    int n_attributes;
    const cv_metalayer *metalayer; /* replaces the one of this name, same size; or NULL */
} cv_change;

/* A state that is not committed: `from` with a change. Header and trailer are
 * encoded and parsed like those of a file; it has no index of its own. */
cv_status cv_snapshot_derive(const cv_snapshot *from, const cv_change *change,
                             cv_snapshot **out, cv_error *err);

/* A new shape for a state of one owner, checked and encoded: applying it cannot
 * fail. Free `meta` when done. */
typedef struct cv_new_shape {
    cv_grid grid;
    int64_t nbytes;
    cv_buffer meta; /* the array's own metalayer */
} cv_new_shape;

cv_status cv_new_shape_make(const cv_snapshot *state, const int64_t *shape, cv_new_shape *out,
                            cv_error *err);
void cv_new_shape_apply(const cv_new_shape *change, cv_snapshot *state);

#endif
