/* Where attributes are to stand: a key of its own for each while they fit, else a map for
 * the rest (attributes.h). */
#ifndef CV_FRAME_PLACE_ATTRIBUTES_H
#define CV_FRAME_PLACE_ATTRIBUTES_H

#include "frame/attributes.h"

typedef struct cv_placed {
    cv_metalayer *layers; /* for the trailer, in its order */
    int n;
    cv_buffer *encoded; /* one for each layer; empty where its bytes stood already */
    cv_watch *watch; /* set before: hears of the bytes of values that are encoded; or NULL */
} cv_placed;

/* Places `n` attributes, whose order is kept, and the library's own one before number
 * `own_at`; NULL without one. What has a key of its own keeps it while it can. CATERVA_EINVAL
 * when what must stand in the map is no MessagePack value, or the map grows too large.
 * Borrows the data of attributes and `own`; release with cv_placed_free. */
cv_status cv_attributes_place(const cv_attribute *list, int n, const cv_metalayer *own,
                              int own_at, cv_placed *out, cv_error *err);
void cv_placed_free(cv_placed *placed);

#endif
