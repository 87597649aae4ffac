/* Signatures of requests to S3: AWS Signature Version 4. Pure functions. */
#ifndef CV_STORE_HTTP_SIGN_H
#define CV_STORE_HTTP_SIGN_H

#include "base/heap.h"

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

#endif
