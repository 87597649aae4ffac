/* Communication with servers: the wire that carries requests, credentials and signatures, sessions,
 * and objects on a server. Independent of what the bytes mean. Private to the room; implemented by
 * wire.c, auth.c, session.c and object.c. */
#ifndef CV_REMOTE_SERVER_H
#define CV_REMOTE_SERVER_H

#include "base/os_file.h"
#include "base/thread.h"
#include "remote/http.h"
#include "remote/remote.h"

/* ---- The wire (wire.c) ------------------------------------------------------------------ */

typedef struct cv_wire cv_wire;

/* Bounds how many requests of a session are in flight; the others wait in a queue. Accessed only by
 * the wire's thread, except `most`, which is set before the first request. */
typedef struct cv_wire_limit {
    int most, n;
    atomic_bool is_multiplexed; /* HTTP/2: many requests share a connection; any thread */
    cv_wire *first, *last;
} cv_wire_limit;

/* What an attempt sends. */
typedef struct cv_wire_setup {
    const char *method; /* NULL: GET */
    const char *url;    /* valid until `end` */
    cv_buffer fields;   /* "Name: value", each with its NUL; the wire frees them */
    bool has_body;      /* always for PUT and POST, even if empty; `give` supplies it */
    uint64_t body_size;
    int connect_ms, stall_ms; /* timeouts of connecting, and of receiving nothing */
    bool is_slow;             /* times out only after 10 * stall_ms without a byte */
    const char *ca_file;      /* trusted certificates; NULL: those of the system */
} cv_wire_setup;

/* How an attempt ended. */
typedef struct cv_wire_end {
    bool is_whole;  /* the server completed its answer */
    bool is_broken; /* the connection failed: another attempt may succeed */
    bool was_connected;
    bool is_untrusted; /* the server's certificate was refused */
    bool lacks_memory;
    const char *why;                  /* reason, if it is not whole; contains no secrets */
    const char *redirect;             /* absolute URL; NULL: none */
    uint64_t first_byte_ns, total_ns; /* since sending; since the beginning of the attempt */
} cv_wire_end;

enum { CV_WIRE_DONE = -1 };

/* What follows after received bytes. An attempt that pauses has taken none of them: they are passed
 * again, possibly with further bytes, after cv_wire_resume. */
typedef enum cv_wire_next { CV_WIRE_ENDS, CV_WIRE_GOES_ON, CV_WIRE_PAUSES } cv_wire_next;

struct cv_wire {
    /* Set by the owner. `prepare` fills the setup of the next attempt; if it fails, there is no
     * attempt and `end` is not called. `header` takes a header line, `body` takes received bytes,
     * `give` copies bytes of the sent body; false ends the attempt, as CV_WIRE_ENDS does. `end`
     * returns the nanoseconds until the next attempt, or CV_WIRE_DONE. `gone` is the last call,
     * made exactly once, also after cancelling: then the owner may free the request. */
    cv_status (*prepare)(cv_wire *wire, cv_wire_setup *setup);
    bool (*header)(cv_wire *wire, const char *line, size_t size);
    cv_wire_next (*body)(cv_wire *wire, const uint8_t *bytes, size_t size);
    bool (*give)(cv_wire *wire, uint64_t pos, uint8_t *to, size_t size);
    int64_t (*end)(cv_wire *wire, const cv_wire_end *end);
    void (*gone)(cv_wire *wire);
    cv_wire_limit *limit;
    /* Private to wire.c: */
    cv_wire *next;
    struct cv_flight *flight;
    uint64_t due;
    atomic_bool is_cancelled;
    bool is_under_way;
    bool lacks_memory; /* the last attempt could not begin */
};

/* Submits the request. Unless this fails, `gone` will be called. CATERVA_EUNSUPPORTED: libcurl is
 * missing or too old; CATERVA_ENOMEM: no thread. */
cv_status cv_wire_submit(cv_wire *wire, cv_error *err);

/* Cancels the request; it ends soon. Harmless once it is gone. Thread: any, until it is freed. */
void cv_wire_cancel(cv_wire *wire);

/* For `gone`, if no other error is known: fails for lack of memory or as cancelled. */
cv_status cv_wire_fail_gone(const cv_wire *wire, cv_error *err);

/* The wire's thread calls functions of the program between these two. A fork waits until the thread
 * has left libcurl, but must not wait for such a function, which may wait for the fork. */
void cv_wire_give_turn(void);
void cv_wire_take_turn(void);

/* Makes the wire pass all paused requests their bytes again. Thread: any. */
void cv_wire_resume(void);

/* ---- Credentials and signatures (auth.c) ------------------------------------------------- */

/* Owned; NULL: not set. */
typedef struct cv_credentials {
    char *access_key, *secret_key, *session_token;
    char *region;   /* never NULL */
    char *endpoint; /* NULL: that of Amazon */
} cv_credentials;

/* Finds credentials for S3 in the options, the environment and the profile files, as the options
 * require. CATERVA_EINVAL if they name a source that has none. */
cv_status cv_credentials_find(const caterva_remote_options *options, cv_credentials *out,
                              cv_error *err);
void cv_credentials_free(cv_credentials *credentials); /* overwrites the secrets */

/* Returns the value of `key` in [section] of a profile file, borrowed, *size bytes; NULL: none. */
const char *cv_profile_value(const char *bytes, size_t text_size, const char *section,
                             const char *key, size_t *size);

/* A signed header field: its name in lower case, its value without blanks around it. */
typedef struct cv_signed_field {
    const char *name, *value;
} cv_signed_field;

/* A request to sign with AWS Signature Version 4. */
typedef struct cv_signing {
    const char *method, *path, *query; /* as sent: encoded, the query sorted */
    const cv_signed_field *fields;     /* sorted by name */
    int n_fields;
    const char *payload; /* SHA-256 of the body in hex, or UNSIGNED-PAYLOAD */
    const char *time;    /* "20130524T000000Z" */
    const char *region, *service;
    const char *access_key, *secret_key;
} cv_signing;

/* Appends the value of the Authorization field, with a NUL. Fails only with CATERVA_ENOMEM. */
cv_status cv_sign(const cv_signing *signing, cv_buffer *out, cv_error *err);

/* Seconds since 1970 in the form of cv_signing.time. */
enum { CV_SIGN_TIME = 17 };
void cv_sign_time(uint64_t seconds, char out[CV_SIGN_TIME]);

/* ---- Sessions (session.c) ---------------------------------------------------------------- */

/* Whether the server supports multi-range requests. One request finds out, and readers with many
 * ranges wait for its result. If the server software is known to support them, they are used
 * without waiting, until the server refuses one. */
typedef enum cv_multirange_state {
    CV_MULTIRANGE_UNKNOWN,  /* first, because a new session is all zeros */
    CV_MULTIRANGE_EXPECTED, /* known from the software's name: used without waiting */
    CV_MULTIRANGE_ASKED,    /* a request is in flight that finds out */
    CV_MULTIRANGE_KNOWN,
    CV_MULTIRANGE_REFUSED
} cv_multirange_state;

/* A reader that waits for the result. `go` is called once, and asks again. */
typedef struct cv_multirange_waiter {
    struct cv_multirange_waiter *next;
    void (*go)(struct cv_multirange_waiter *waiter);
    uint64_t turn;  /* number of results before it asked */
    bool is_asking; /* its own request finds out */
} cv_multirange_waiter;

typedef struct cv_multirange {
    cv_mutex lock; /* guards all members */
    cv_multirange_state state;
    cv_multirange_waiter *first, *last;
    uint64_t turn;
    size_t most; /* ranges of a request that the software accepts; SIZE_MAX: no limit */
    cv_os_moment asked; /* if the process forked since, the result will not arrive */
} cv_multirange;

/* Returns the state. CV_MULTIRANGE_UNKNOWN: the caller's request must find out, and the caller must
 * report its result with cv_multirange_learn. In this state and in CV_MULTIRANGE_ASKED the waiter
 * is added to the queue. */
cv_multirange_state cv_multirange_ask(cv_multirange *m, cv_multirange_waiter *waiter);

/* Returns the state without changing it. */
cv_multirange_state cv_multirange_look(cv_multirange *m);

/* The software is known to accept `most` ranges. Applies only to CV_MULTIRANGE_UNKNOWN. */
void cv_multirange_expect(cv_multirange *m, size_t most);
size_t cv_multirange_most(cv_multirange *m);

/* A multi-range request succeeded. CV_MULTIRANGE_REFUSED stays. */
void cv_multirange_confirm(cv_multirange *m);

/* Sets the result and calls the waiters. CV_MULTIRANGE_UNKNOWN: another request may find out. */
void cv_multirange_learn(cv_multirange *m, cv_multirange_state state);

/* Removes a waiter from the queue. False: it is not queued, or is just being called. */
bool cv_multirange_leave(cv_multirange *m, cv_multirange_waiter *waiter);

/* A moment, and the bytes received until then. */
typedef struct cv_session_mark {
    uint64_t ns;
    int64_t bytes;
} cv_session_mark;

/* See remote.h for the beginning and end of a session. */
struct cv_session {
    atomic_int users;
    caterva_remote_options options; /* with defaults; strings are owned by `texts` */
    char **texts;                   /* owned, n_texts */
    int n_texts;
    cv_credentials credentials; /* only of s3:// URLs */
    bool is_s3;
    cv_wire_limit limit;
    atomic_bool has_connected; /* the server has been reached before */
    cv_multirange multirange;
    atomic_int_least64_t requests, bytes, round_trips, joined, retried, cached;
    cv_mutex lock; /* guards the rest */
    double round_trip_ns, bytes_per_ns;
    cv_session_mark measured; /* end of the last measurement of the speed */
};

/* Returns the nanoseconds until a retry of a request that failed *failures times before, and now
 * again; `asked_s`: the seconds that the server asks to wait, or 0. Negative: give up. */
int64_t cv_session_backoff(cv_session *session, int *failures, uint32_t asked_s);

/* Appends to the error of the last attempt the number of attempts and, if the server asks for a
 * longer wait than is allowed, its seconds (`asked_s`). */
void cv_session_count_attempts(cv_error *err, int attempts, uint32_t asked_s);

/* Record measurements: a round trip, and a wave between two marks. The speed is that of all bytes
 * received meanwhile, over all connections. */
void cv_session_note_trip(cv_session *session, uint64_t ns);
cv_session_mark cv_session_now(cv_session *session);
void cv_session_note_speed(cv_session *session, const cv_session_mark *began,
                           const cv_session_mark *ended);

/* Returns the bytes received while a request waits its turn on a busy connection. A smaller gap is
 * cheaper to read than another request. */
uint64_t cv_session_gap(cv_session *session);

/* Returns the bytes in flight that keep all connections busy, at most 64 MiB; 0: not known yet. */
size_t cv_session_wave(cv_session *session);

/* Returns the bytes beyond `needed` that may be read to save a round trip. */
uint64_t cv_session_spare(cv_session *session, uint64_t needed);

/* ---- Objects (object.c) ------------------------------------------------------------------ */

/* An object on a server: its URL, and the version that is read. */
typedef struct cv_remote_object {
    cv_session *session;
    char *url;  /* as it is sent */
    char *host; /* for signatures: the host as in the request, and the path */
    char *path;
    bool is_signed;
    cv_shown_path name; /* the URL, for messages */
    cv_version version; /* set by the first reply, before any other request */
    cv_mutex lock;      /* guards: */
    char *location;     /* target of a redirect; NULL: none */
} cv_remote_object;

/* Makes the object at `url` (see cv_url_parse), with `member` (or "") appended to the path. */
cv_status cv_remote_object_new(cv_session *session, const char *url, const char *member,
                               cv_remote_object **out, cv_error *err);
void cv_remote_object_free(cv_remote_object *object); /* NULL is fine */

/* Takes version and server software from the first reply; later requests pin the version. */
void cv_remote_object_meet(cv_remote_object *object, const cv_reply *reply,
                           const cv_content_range *content);

/* CATERVA_EIO: describes an attempt at `url` that ended without a complete answer. */
cv_status cv_remote_object_broken(const cv_remote_object *object, const char *url,
                                  const cv_wire_end *end, cv_error *err);

/* What the header fields of a request depend on. */
typedef struct cv_request_head {
    const char *method;
    const char *url;      /* where the request is sent */
    const char *query;    /* S3: sorted, as in the URL; NULL: none */
    const char *payload;  /* SHA-256 of the body in hex; NULL: no body */
    const char *write_id; /* S3: stored with the object; NULL: none */
} cv_request_head;

/* cv_add_field appends a header field with its NUL. cv_request_add_fields appends the fields of
 * every request, and the caller's headers and a signature if it goes to the object's own server. */
cv_status cv_add_field(cv_buffer *fields, const char *name, const char *value, cv_error *err);
cv_status cv_request_add_fields(cv_remote_object *object, const cv_request_head *head,
                                cv_buffer *fields, cv_error *err);

/* The URL that a request is sent to: that of the object, or the target of a redirect. */
typedef struct cv_route {
    char *url; /* owned; NULL: not begun */
    bool is_redirected;
    int n_redirects; /* followed by this request */
} cv_route;

/* Begins where the object was last found. Fails only with CATERVA_ENOMEM. */
cv_status cv_route_begin(cv_route *route, cv_remote_object *object, cv_error *err);

/* Follows a redirect to `to` (or NULL). CATERVA_EIO if it must not be followed. */
cv_status cv_route_follow(cv_route *route, const cv_remote_object *object, const char *to,
                          cv_error *err);

/* Whether the status means that the object is not at this URL, or no longer accessible. */
bool cv_route_is_dead(int status);

/* Returns true if a redirect followed by an earlier request has expired. The redirect is forgotten,
 * and the next attempt uses the object's own URL. */
bool cv_route_restart(cv_route *route, cv_remote_object *object, int status);

/* The route led to an answer: later requests begin at its end. */
void cv_route_keep(const cv_route *route, cv_remote_object *object);

#endif
