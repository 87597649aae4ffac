/* The face of this room: stores behind URLs. A store is an object of a web server or of S3, a byte
 * range of such an object, or a directory with one object for each chunk. These stores are
 * read-only, far (see store.h) and pinned: every read returns bytes of the object version that was
 * found when the store was opened. */
#ifndef CV_REMOTE_REMOTE_H
#define CV_REMOTE_REMOTE_H

#include "store/store.h"
#include <caterva_remote.h>

/* State shared by the stores of one opening: options, credentials, the limit of connections,
 * measurements of the network, and counters. Reference counted. Thread: any. */
typedef struct cv_session cv_session;

/* Begins a session for `url`. Checks and copies the options (NULL: defaults). The caller releases
 * the session when it has opened its stores; each store keeps a reference of its own. */
cv_status cv_session_begin(const char *url, const caterva_remote_options *options,
                           cv_session **out, cv_error *err);
void cv_session_retain(cv_session *session);
void cv_session_release(cv_session *session); /* NULL is fine */

/* Opens the object at `url`; the store begins at byte `offset` of the object. One request opens the
 * object and fetches its last bytes or, if `offset` is not 0, the bytes from `offset` on. If no
 * object exists at `url`, opens it as a directory. */
cv_status cv_remote_open(cv_session *session, const char *url, uint64_t offset,
                         cv_watch *watch, cv_store **out, cv_error *err);

/* Opens the object again that `store` was opened from, in its current version. Sets *out to NULL if
 * the store belongs to another room or was made by cv_remote_part. */
cv_status cv_remote_reopen(cv_store *store, cv_watch *watch, cv_store **out, cv_error *err);

/* Opens bytes [offset, offset + size) of `store`, not a directory, as a store of the same version.
 * Size UINT64_MAX: up to the end of `store`. Keeps the last bytes of the new store in memory. */
cv_status cv_remote_part(cv_store *store, uint64_t offset, uint64_t size, cv_store **out,
                         cv_error *err);

/* Returns the session that the store was opened in, borrowed; NULL for stores of other rooms. */
cv_session *cv_remote_session(const cv_store *store);

#endif
