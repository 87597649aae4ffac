/* Room: engine/write. Blocks that will be written in part are put straight into their
 * dirty memory, by writes of boxes and of selections alike. */
#include "engine/write/patch.h"

#include "engine/read/places.h"

cv_status cv_patch_fill(cv_pending *pending, const cv_dirty_chunk *dirty, cv_worker *worker,
                        int64_t *n, cv_error *err)
{
    if (*n == 0) return CV_OK;
    cv_source source = cv_source_of_pending(pending);
    cv_places places = {.blocks = dirty->blocks};
    cv_walk walk;
    cv_walk_init(&walk, &source, (cv_request){NULL, NULL}, &cv_to_places, &places);
    return cv_walk_listed(&walk, dirty->chunk, worker, n, err);
}
