/* A small file that remembers an upload in parts, so that another call, or another process,
 * can go on with it: three lines of text.
 *
 *     caterva upload 1
 *     FILE URL PART WRITE-ID   which file goes where, as sums, in parts of so many bytes, and
 *                              whose object that is
 *     UPLOAD-ID                as the server calls it */
#ifndef CV_REMOTE_UPLOAD_H
#define CV_REMOTE_UPLOAD_H

#include "base/sha256.h"
#include "remote/reply.h"
#include "remote/send.h"
#include "store/store.h"
#include <caterva_remote.h>

typedef struct cv_publication {
    cv_store *source; /* its frame object: bytes [0, size) */
    uint64_t size;
    uint64_t vouching; /* so many last bytes have checksums of all others; 0: not known */
    const char *url, *read_url; /* read_url: where to look at it, or NULL: the same */
    bool replaces;
    const char *if_match;   /* the ETag of what is replaced; NULL: what is there now */
    uint64_t part_size;     /* larger objects of S3 are sent in parts of at least so many */
    const char *state_path; /* of an upload in parts that can be resumed; NULL: none can */
    const caterva_remote_options *remote;
    /* Is the source what it was? Asked when all of it has been sent, before it counts. */
    cv_status (*check)(void *context, cv_error *err);
    void *context;
} cv_publication;

/* Sends it, tells the watch of `size` bytes, and fills the counts of *out. If the same bytes are
 * at the URL already, by their number and those that vouch for the others, it sends nothing and
 * sets was_there. CATERVA_EEXIST: something else is there. */
cv_status cv_http_publish(const cv_publication *publication, cv_watch *watch,
                          caterva_publish_result *out, cv_error *err);

/* Aborts the upload that the state file remembers, and removes that. Needs no source. */
cv_status cv_http_abandon(const cv_publication *publication, cv_watch *watch, cv_error *err);

#endif
