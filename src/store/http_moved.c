/* Room: store. Redirections. Whether one may be followed at all is for http_object.c to say. */
#include "store/http_moved.h"

#include "base/heap.h"

#include <string.h>

enum { MOST_REDIRECTS = 5 };

cv_status cv_whereabouts_follow(cv_whereabouts *w, const cv_http_object *object,
                                const char *to, cv_error *err)
{
    if (w->redirects++ >= MOST_REDIRECTS || !to)
        return cv_fail(err, CATERVA_EIO, -1,
                       to ? "%s: the server redirects again and again"
                          : "%s: the server redirects, and does not say where",
                       object->shown);
    CV_TRY(cv_http_object_check_move(object, w->url, to, err));
    char *copy = cv_strdup(to);
    if (!copy) return cv_fail_memory(err, strlen(to), "a URL");
    cv_free(w->url);
    w->url = copy;
    w->is_elsewhere = true;
    return CV_OK;
}

bool cv_whereabouts_are_over(int status)
{
    return status == 401 || status == 403 || status == 404 || status == 410;
}

bool cv_whereabouts_forget(cv_whereabouts *w, cv_http_object *object, int status)
{
    if (!w->is_elsewhere || !cv_whereabouts_are_over(status)) return false;
    if (strcmp(w->url, object->url) == 0 || w->redirects > 0) return false;
    w->redirects++;
    cv_http_object_moved(object, NULL);
    cv_free(w->url);
    w->url = NULL;
    return true;
}

void cv_whereabouts_keep(const cv_whereabouts *w, cv_http_object *object)
{
    if (w->redirects > 0 && w->is_elsewhere) cv_http_object_moved(object, w->url);
}
