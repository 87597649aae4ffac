/* Signatures of requests to S3: AWS Signature Version 4. Pure functions. */
#ifndef CV_REMOTE_AUTH_H
#define CV_REMOTE_AUTH_H

#include "base/heap.h"
#include "base/status.h"
#include <caterva_remote.h>

/* A field that is signed: its name in lower case, its value without blanks around it. */
typedef struct cv_signed_field {
    const char *name, *value;
} cv_signed_field;

typedef struct cv_signing {
    const char *method, *path, *query; /* as on the wire: encoded, the query sorted */
    const cv_signed_field *fields;     /* sorted by name */
    int n_fields;
    const char *payload; /* SHA-256 of the body in hex, or UNSIGNED-PAYLOAD */
    const char *time;    /* "20130524T000000Z" */
    const char *region, *service;
    const char *access_key, *secret_key;
} cv_signing;

/* Appends the value of the Authorization field, with a NUL. CATERVA_ENOMEM. */
cv_status cv_sign(const cv_signing *signing, cv_buffer *out, cv_error *err);

/* Seconds since 1970 in that form. */
enum { CV_SIGN_TIME = 17 };
void cv_sign_time(uint64_t seconds, char out[CV_SIGN_TIME]);

/* ---- http_credentials ----
 * Who asks for an object of S3, and where: from options, the environment, and files of
 * profiles. */

/* Owned; NULL where there is none. */
typedef struct cv_credentials {
    char *access_key, *secret_key, *session_token;
    char *region;   /* never NULL */
    char *endpoint; /* NULL: Amazon's */
} cv_credentials;

/* As the options say. CATERVA_EINVAL when they name a source that has none. */
cv_status cv_credentials_find(const caterva_remote_options *options, cv_credentials *out,
                              cv_error *err);
void cv_credentials_free(cv_credentials *credentials); /* overwrites the secrets */

/* The value of `key` in [section] of a file of profiles; NULL: there is none. Borrowed,
 * *size bytes. */
const char *cv_profile_value(const char *bytes, size_t text_size, const char *section,
                             const char *key, size_t *size);

#endif
