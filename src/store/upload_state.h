/* A small file that remembers an upload in parts, so that another call, or another process,
 * can go on with it: three lines of text.
 *
 *     caterva upload 1
 *     FILE URL PART WRITE-ID   which file goes where, as sums, in parts of so many bytes, and
 *                              whose object that is
 *     UPLOAD-ID                as the server calls it */
#ifndef CV_STORE_UPLOAD_STATE_H
#define CV_STORE_UPLOAD_STATE_H

#include "base/sha256.h"
#include "store/http_reply.h"

enum { CV_UPLOAD_ID_SIZE = 1024, CV_PART_SIZE_TEXT = 24 };

typedef struct cv_upload_state {
    char file[CV_SHA256_HEX], url[CV_SHA256_HEX]; /* their sums */
    char part_size[CV_PART_SIZE_TEXT];            /* decimal */
    char write_id[CV_WRITE_ID_SIZE];
    char upload_id[CV_UPLOAD_ID_SIZE];
} cv_upload_state;

/* Reads the file. *is_there false: there is none. CATERVA_EINVAL: it is something else. */
cv_status cv_upload_state_read(const char *path, cv_upload_state *out, bool *is_there,
                               cv_error *err);

/* Makes the file, which is not there. */
cv_status cv_upload_state_write(const char *path, const cv_upload_state *state,
                                cv_error *err);

void cv_upload_state_remove(const char *path);

#endif
