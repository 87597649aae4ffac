/* Snapshots from what is stored. */
#ifndef CV_FRAME_SNAPSHOT_LOAD_H
#define CV_FRAME_SNAPSHOT_LOAD_H

#include "frame/kinds.h"
#include "frame/snapshot.h"

/* Reads and checks the state that `store` holds: header, metalayer, grid,
 * trailer, and, unless `unchecked`, that the seal vouches for them. The index is
 * left for first need. */
cv_status cv_snapshot_load(cv_store *store, bool unchecked, cv_snapshot **out, cv_error *err);

/* The same of a frame that need be no array: of plain items, whatever its metalayers say
 * that they stand for. */
cv_status cv_snapshot_load_any(cv_store *store, cv_snapshot **out, cv_error *err);

/* What the header says that the frame holds, as cv_kind_name. */
cv_status cv_snapshot_load_kind(cv_store *store, char name[CV_KIND_NAME], cv_error *err);

/* The same in parts, for who repairs: the state of the header that `store` begins
 * with, or of one that was found elsewhere, and then its trailer and the place of
 * its index. find_index does without the trailer: the state has no attributes. */
cv_status cv_snapshot_load_header(cv_store *store, cv_snapshot **out, cv_error *err);
cv_status cv_snapshot_from_header(const uint8_t *header, size_t size, cv_snapshot **out,
                                  cv_error *err);
cv_status cv_snapshot_load_tail(cv_snapshot *snapshot, cv_store *store, cv_error *err);
cv_status cv_snapshot_find_index(cv_snapshot *snapshot, cv_store *store, cv_error *err);

#endif
