/* Who asks for an object of S3, and where: from options, the environment, and files of
 * profiles. */
#ifndef CV_STORE_HTTP_CREDENTIALS_H
#define CV_STORE_HTTP_CREDENTIALS_H

#include "base/status.h"

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
