/* Paths and URLs as text: which is which, how sentences show them, and the refusals that name
 * one. Nothing here looks at what stands at a path. */
#ifndef CV_STORE_PATH_H
#define CV_STORE_PATH_H

#include "base/status.h"

/* A path as sentences show it: a long one keeps its end, so that the reason
 * behind it still fits the message. */
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

/* A URL as sentences show it: without user, password and query, which may be secrets; a long
 * one keeps its end. Also for text that is not a URL. cv_show_path does this for all URLs. */
cv_shown_path cv_show_url(const char *text);

/* The path without trailing slashes, which a file's may not have. Owned. */
cv_status cv_strip_slashes(const char *path, char **out, cv_error *err);

/* A path that could not be opened: CATERVA_ENOTFOUND when there is nothing
 * (CATERVA_EUNSUPPORTED for a URL of a scheme that is not read),
 * else CATERVA_EIO with the system's reason. */
cv_status cv_fail_open(cv_error *err, int sys_errno, const char *path);

/* CATERVA_EBUSY when the lock is held elsewhere, CATERVA_EIO when it failed. */
cv_status cv_fail_lock(cv_error *err, int sys_errno, const char *path);

/* CATERVA_EREADONLY for a URL of any scheme, where something was to be made or changed; CV_OK
 * for a path. */
cv_status cv_refuse_url(const char *path, cv_error *err);

#endif
