/* The face of this room: stores behind URLs. Such a store is an object of a web server or of S3,
 * a part of one, or a directory with one object for each chunk. It is read only, far, and
 * pinned: every read returns bytes of the version that was found at the opening. */
#ifndef CV_REMOTE_REMOTE_H
#define CV_REMOTE_REMOTE_H

#include "store/store.h"
#include <caterva_remote.h>

/* What the stores of one opening share: options, credentials, the limit of connections, what
 * was measured of the network, and counts. Counted; any thread. */
typedef struct cv_session cv_session;

/* Begins a session for `url`. The options (NULL: defaults) are checked and copied. Release the
 * session when everything is opened; stores keep it as long as they need it. */
cv_status cv_session_begin(const char *url, const caterva_remote_options *options,
                           cv_session **out, cv_error *err);
void cv_session_retain(cv_session *session);
void cv_session_release(cv_session *session); /* NULL is fine */

/* Opens the object at `url` from byte `offset` on. One request also brings its last bytes or,
 * with an offset, the bytes that begin there. If no such object exists, opens the directory
 * of that name. */
cv_status cv_remote_open(cv_session *session, const char *url, uint64_t offset,
                         cv_watch *watch, cv_store **out, cv_error *err);

/* Opens once more, as it is now, what the store was opened from. *out is NULL if the store is
 * not one of this room, or is a part. */
cv_status cv_remote_reopen(cv_store *store, cv_watch *watch, cv_store **out, cv_error *err);

/* Bytes [offset, offset + size) of a store that is no directory (UINT64_MAX: up to its end), as
 * a store of the same version whose last bytes are at hand. */
cv_status cv_remote_part(cv_store *store, uint64_t offset, uint64_t size, cv_store **out,
                         cv_error *err);

/* The session that the store was opened in, borrowed; NULL if it is not one of this room. */
cv_session *cv_remote_session(const cv_store *store);

#endif
