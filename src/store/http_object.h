/* One object on a server: where it is, and which version of it is read. */
#ifndef CV_STORE_HTTP_OBJECT_H
#define CV_STORE_HTTP_OBJECT_H

#include "store/http_reply.h"
#include "store/http_session.h"
#include "store/http_url.h"

typedef struct cv_http_object {
    cv_session *session;
    char *url;  /* on the wire */
    char *host; /* as the request names it, and the path: of signed ones */
    char *path;
    bool is_signed;
    char shown[CV_URL_SHOWN];
    cv_identity identity; /* of its first answer, before which nobody else reads */
    cv_mutex lock;        /* over: */
    char *location;       /* where the server redirected to; NULL: nowhere */
} cv_http_object;

/* The object at `url` (see cv_url_parse), of which `member` (or "") is added to the path. */
cv_status cv_http_object_new(cv_session *session, const char *url, const char *member,
                             cv_http_object **out, cv_error *err);
void cv_http_object_free(cv_http_object *object); /* NULL is fine */

/* Its first answer: what comes next is to be of that version, and may be asked for as a server of
 * that name has it. */
void cv_http_object_meet(cv_http_object *object, const cv_reply *reply,
                         const cv_grant *grant);

/* Where to ask now: a copy, owned. *is_elsewhere: the server redirected there. */
char *cv_http_object_place(cv_http_object *object, bool *is_elsewhere);

/* Remembers a place that answered, or (NULL) forgets it. */
void cv_http_object_moved(cv_http_object *object, const char *location);

/* Whether a request that is at `from` may follow to `to`: CATERVA_EIO with the reason. */
cv_status cv_http_object_check_move(const cv_http_object *object, const char *from,
                                    const char *to, cv_error *err);

/* CATERVA_EIO: in words, how an attempt at `url` ended that brought no whole answer. */
cv_status cv_http_object_broken(const cv_http_object *object, const char *url,
                                const cv_wire_end *end, cv_error *err);

/* A request, as its fields need to know it. */
typedef struct cv_http_asked {
    const char *method;
    const char *url;      /* where it goes */
    const char *query;    /* of S3, as it stands in the URL: sorted; or NULL */
    const char *payload;  /* hash of the body; NULL: there is none */
    const char *write_id; /* of S3, what is to be kept with the object; or NULL */
} cv_http_asked;

/* Appends a field with its NUL; and those that every request has: the user's, to the object's
 * own server only, and a signature. */
cv_status cv_http_add_field(cv_buffer *fields, const char *name, const char *value,
                            cv_error *err);
cv_status cv_http_object_fields(cv_http_object *object, const cv_http_asked *asked,
                                cv_buffer *fields, cv_error *err);

#endif
