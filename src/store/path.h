/* Paths and URLs as text: how to tell them apart, how messages show them, and common errors. */
#ifndef CV_STORE_PATH_H
#define CV_STORE_PATH_H

#include "base/status.h"

/* A path for messages. A long path keeps its end, so that the reason fits behind it. */
typedef struct cv_shown_path {
    char text[136];
} cv_shown_path;

cv_shown_path cv_show_path(const char *path);

/* The schemes of readable URLs, in upper or lower case. */
typedef enum cv_scheme {
    CV_SCHEME_NONE,
    CV_SCHEME_HTTP,
    CV_SCHEME_HTTPS,
    CV_SCHEME_S3
} cv_scheme;

cv_scheme cv_url_scheme(const char *text);
bool cv_is_url(const char *text); /* whether it begins with such a scheme */

/* Returns a URL (or other text) for messages, without user, password and query. A long text keeps
 * its end. cv_show_path does this for all URLs. */
cv_shown_path cv_show_url(const char *text);

/* Sets *out to the path without trailing slashes, which no file has. Release with cv_free. */
cv_status cv_strip_slashes(const char *path, char **out, cv_error *err);

/* Returns the error of a failed open: CATERVA_EUNSUPPORTED for a URL of an unknown scheme,
 * CATERVA_ENOTFOUND if the file does not exist, else CATERVA_EIO with the system's reason. */
cv_status cv_fail_open(cv_error *err, int sys_errno, const char *path);

/* Returns CATERVA_EBUSY if another opening holds the lock, CATERVA_EIO if locking failed. */
cv_status cv_fail_lock(cv_error *err, int sys_errno, const char *path);

/* Returns CATERVA_EREADONLY for a URL, CV_OK for a path. */
cv_status cv_refuse_url(const char *path, cv_error *err);

#endif
