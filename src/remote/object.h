/* One object on a server: where it is, and which version of it is read. */
#ifndef CV_REMOTE_OBJECT_H
#define CV_REMOTE_OBJECT_H

#include "remote/reply.h"
#include "remote/session.h"
#include "remote/url.h"

typedef struct cv_http_object {
    cv_session *session;
    char *url;  /* on the wire */
    char *host; /* as the request names it, and the path: of signed ones */
    char *path;
    bool is_signed;
    cv_shown_path name; /* of the URL, for sentences */
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

/* ---- http_moved ----
 * Where a request goes: to the object's own place, or to where servers redirect. */

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
