/* Paths and URLs as text: which is which, how messages show them, and common refusals. */
#ifndef CV_STORE_PATH_H
#define CV_STORE_PATH_H

#include "base/status.h"

/* A path for messages: a long one keeps its end, and the reason behind it still fits. */
typedef struct cv_shown_path {
    char text[136];
} cv_shown_path;

cv_shown_path cv_show_path(const char *path);

/* The schemes of URLs that are read, recognised in any case of letters. */
typedef enum cv_scheme {
    CV_SCHEME_NONE,
    CV_SCHEME_HTTP,
    CV_SCHEME_HTTPS,
    CV_SCHEME_S3
} cv_scheme;

cv_scheme cv_url_scheme(const char *text);
bool cv_is_url(const char *text); /* whether it begins with one of these schemes */

/* A URL (or other text) for messages, without user, password and query; a long one keeps
 * its end. cv_show_path does this for all URLs. */
cv_shown_path cv_show_url(const char *text);

/* The path without trailing slashes, which a file's may not have. Owned. */
cv_status cv_strip_slashes(const char *path, char **out, cv_error *err);

/* CATERVA_ENOTFOUND if nothing is there (CATERVA_EUNSUPPORTED for URLs of unknown schemes),
 * else CATERVA_EIO with the system's reason. */
cv_status cv_fail_open(cv_error *err, int sys_errno, const char *path);

/* CATERVA_EBUSY when the lock is held elsewhere, CATERVA_EIO when it failed. */
cv_status cv_fail_lock(cv_error *err, int sys_errno, const char *path);

/* CATERVA_EREADONLY for a URL, which cannot be written; CV_OK for a path. */
cv_status cv_refuse_url(const char *path, cv_error *err);

#endif
