/* Where a request goes: to the object's own place, or to where servers redirect. */
#ifndef CV_STORE_HTTP_MOVED_H
#define CV_STORE_HTTP_MOVED_H

#include "store/http_object.h"

typedef struct cv_whereabouts {
    char *url; /* owned; NULL: not looked up */
    bool is_elsewhere;
    int redirects; /* followed */
} cv_whereabouts;

/* To where the server redirects, which may be NULL: CATERVA_EIO with the reason not to. */
cv_status cv_whereabouts_follow(cv_whereabouts *where, const cv_http_object *object,
                                const char *to, cv_error *err);

/* An answer of this status says that the object is not where it was asked for, or not for us any
 * more. */
bool cv_whereabouts_are_over(int status);

/* True: the place that was redirected to may have been for a while only. It is forgotten, and the
 * next attempt asks the origin, which knows a new one. */
bool cv_whereabouts_forget(cv_whereabouts *where, cv_http_object *object, int status);

/* The place has answered: the next requests go there at once. */
void cv_whereabouts_keep(const cv_whereabouts *where, cv_http_object *object);

#endif
