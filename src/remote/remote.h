/* The face of this room: stores behind URLs. A store is an object of a web server or of S3, a part
 * of one, or a directory with one object for each chunk. It is read only, far, and pinned: every
 * read returns bytes of the version found when it was opened. */
#ifndef CV_REMOTE_REMOTE_H
#define CV_REMOTE_REMOTE_H

#include "store/store.h"
#include <caterva_remote.h>

/* State shared by the stores of one opening: options, credentials, the limit of connections,
 * measurements of the network, and counters. Reference counted. Thread: any. */
typedef struct cv_session cv_session;

/* Begins a session for `url`. Checks and copies the options (NULL: defaults). Release the session
 * once everything is opened; stores keep a reference of their own. */
cv_status cv_session_begin(const char *url, const caterva_remote_options *options,
                           cv_session **out, cv_error *err);
void cv_session_retain(cv_session *session);
void cv_session_release(cv_session *session); /* NULL is fine */

/* Opens the object at `url` from byte `offset` on. One request also fetches its last bytes or, with
 * an offset, the bytes that begin there. If there is no such object, opens a directory. */
cv_status cv_remote_open(cv_session *session, const char *url, uint64_t offset,
                         cv_watch *watch, cv_store **out, cv_error *err);

/* Opens the current version of the URL that the store was opened from. *out is NULL if the store is
 * not one of this room, or is a part. */
cv_status cv_remote_reopen(cv_store *store, cv_watch *watch, cv_store **out, cv_error *err);

/* Opens bytes [offset, offset + size) of a store that is not a directory (UINT64_MAX: to its end)
 * as a store of the same version, and keeps its last bytes in memory. */
cv_status cv_remote_part(cv_store *store, uint64_t offset, uint64_t size, cv_store **out,
                         cv_error *err);

/* Returns the session that the store was opened in, borrowed; NULL for stores of other rooms. */
cv_session *cv_remote_session(const cv_store *store);

#endif
