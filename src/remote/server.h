/* Talking to servers: the wire that carries requests, credentials and signatures, sessions, and
 * objects on a server. What bytes mean is not known here. Private to the room; implemented by
 * wire.c, auth.c, session.c and object.c. */
#ifndef CV_REMOTE_SERVER_H
#define CV_REMOTE_SERVER_H

#include "base/os_file.h"
#include "base/thread.h"
#include "remote/http.h"
#include "remote/remote.h"

/* ---- The wire (wire.c) ------------------------------------------------------------------
 * One thread for the whole process carries all requests, through libcurl. The owner of a request
 * supplies functions that this thread calls; they must not block. */

typedef struct cv_wire cv_wire;

/* Bounds how many requests of a session are in flight; the others wait in a queue. Accessed by
 * the wire's thread only, except `most`, which is set before the first request. */
typedef struct cv_wire_limit {
    int most, n;
    atomic_bool is_multiplexed; /* HTTP/2: many requests share a connection; any thread */
    cv_wire *first, *last;
} cv_wire_limit;

/* What is sent. */
typedef struct cv_wire_setup {
    const char *method; /* NULL: GET */
    const char *url;    /* valid until the end */
    cv_buffer fields;   /* "Name: value", each with its NUL; freed by the wire */
    bool has_body;      /* always for PUT and POST, even if empty; `give` supplies it */
    uint64_t body_size;
    int connect_ms, stall_ms; /* longest waits: for a connection, for any byte */
    bool is_slow; /* a byte now and then is enough, and ten times stall_ms without one */
    const char *ca_file; /* certificates that vouch for the server; NULL: the system's */
} cv_wire_setup;

/* How an attempt ended. */
typedef struct cv_wire_end {
    bool is_whole;  /* the server finished its answer */
    bool is_broken; /* the connection failed: another attempt may succeed */
    bool was_connected;
    bool is_untrusted; /* its certificate was refused */
    bool lacks_memory;
    const char *why;                  /* if it is not whole; without secrets */
    const char *redirect;             /* absolute; NULL: none */
    uint64_t first_byte_ns, total_ns; /* since the request was sent; since it began */
} cv_wire_end;

enum { CV_WIRE_DONE = -1 };

/* What becomes of an attempt after received bytes. One that pauses has taken none of them: they
 * are passed again, maybe with others behind them, after cv_wire_resume. */
typedef enum cv_wire_next { CV_WIRE_ENDS, CV_WIRE_GOES_ON, CV_WIRE_PAUSES } cv_wire_next;

struct cv_wire {
    /* Set by the owner. `prepare` fills the setup of the next attempt; if it fails, the attempt is
     * not made and `end` not called. `header` gets a line, `body` received bytes, `give` copies
     * bytes of the sent body; false ends the attempt, as CV_WIRE_ENDS does. `end` returns after
     * how many nanoseconds to try again, or CV_WIRE_DONE. `gone` is the last call, made exactly
     * once, even if the request was cancelled: the owner may free it from there on. */
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

/* Submits the request; `gone` will be called unless this fails: CATERVA_EUNSUPPORTED if libcurl
 * is missing or too old, CATERVA_ENOMEM without a thread. */
cv_status cv_wire_submit(cv_wire *wire, cv_error *err);

/* Ends it soon. Any thread, before the owner frees it. Harmless once it is gone. */
void cv_wire_cancel(cv_wire *wire);

/* For `gone`, if there is no other reason: no memory for an attempt, or cancelled. */
cv_status cv_wire_fail_gone(const cv_wire *wire, cv_error *err);

/* The wire's thread calls functions of the program between these two. A fork waits for libcurl,
 * but must not wait for such a function, which may itself wait for the forking thread. */
void cv_wire_give_turn(void);
void cv_wire_take_turn(void);

/* Passes their bytes once more to all requests that paused, soon. Any thread. */
void cv_wire_resume(void);

/* ---- Credentials and signatures (auth.c) ------------------------------------------------- */

/* Owned; NULL: none. */
typedef struct cv_credentials {
    char *access_key, *secret_key, *session_token;
    char *region;   /* never NULL */
    char *endpoint; /* NULL: Amazon's */
} cv_credentials;

/* Finds credentials for S3 in the options, the environment and the profile files, as the options
 * say. CATERVA_EINVAL if they name a source that has none. */
cv_status cv_credentials_find(const caterva_remote_options *options, cv_credentials *out,
                              cv_error *err);
void cv_credentials_free(cv_credentials *credentials); /* overwrites the secrets */

/* The value of `key` in [section] of a profile file, borrowed, *size bytes; NULL: none. */
const char *cv_profile_value(const char *bytes, size_t text_size, const char *section,
                             const char *key, size_t *size);

/* A signed header field: its name in lower case, its value without blanks around it. */
typedef struct cv_signed_field {
    const char *name, *value;
} cv_signed_field;

/* A request to be signed by AWS Signature Version 4. */
typedef struct cv_signing {
    const char *method, *path, *query; /* as sent: encoded, the query sorted */
    const cv_signed_field *fields;     /* sorted by name */
    int n_fields;
    const char *payload; /* SHA-256 of the body in hex, or UNSIGNED-PAYLOAD */
    const char *time;    /* "20130524T000000Z" */
    const char *region, *service;
    const char *access_key, *secret_key;
} cv_signing;

/* Appends the value of the Authorization field, with a NUL. Pure; CATERVA_ENOMEM. */
cv_status cv_sign(const cv_signing *signing, cv_buffer *out, cv_error *err);

/* Seconds since 1970 in the form of cv_signing.time. */
enum { CV_SIGN_TIME = 17 };
void cv_sign_time(uint64_t seconds, char out[CV_SIGN_TIME]);

/* ---- Sessions (session.c) ---------------------------------------------------------------- */

/* Whether the server answers multi-range requests. One request finds out, and readers that would
 * send many ranges wait for its answer, unless the name of the server's software says that it
 * does: then it is trusted until it refuses. */
typedef enum cv_multirange_state {
    CV_MULTIRANGE_UNKNOWN,  /* first: a new session is all zeros */
    CV_MULTIRANGE_EXPECTED, /* by the software's name: used without waiting */
    CV_MULTIRANGE_ASKED,    /* a request is finding out */
    CV_MULTIRANGE_KNOWN,
    CV_MULTIRANGE_REFUSED
} cv_multirange_state;

/* A reader that waits for the answer. `go` is called once, and asks again. */
typedef struct cv_multirange_waiter {
    struct cv_multirange_waiter *next;
    void (*go)(struct cv_multirange_waiter *waiter);
    uint64_t turn;  /* how many answers there had been when it asked */
    bool is_asking; /* its request finds out */
} cv_multirange_waiter;

typedef struct cv_multirange {
    cv_mutex lock; /* guards all of it */
    cv_multirange_state state;
    cv_multirange_waiter *first, *last;
    uint64_t turn;
    size_t most; /* ranges of a request that the software accepts; SIZE_MAX: any */
    cv_os_moment
        asked; /* a child of fork never receives the answer to its parent's request */
} cv_multirange;

/* Returns what is known. CV_MULTIRANGE_UNKNOWN: the caller's request finds out, and the caller
 * must report the result by cv_multirange_learn. With that and with CV_MULTIRANGE_ASKED the
 * waiter is added to the queue. */
cv_multirange_state cv_multirange_ask(cv_multirange *m, cv_multirange_waiter *waiter);

/* Returns what is known, and changes nothing. */
cv_multirange_state cv_multirange_look(cv_multirange *m);

/* By its name the software accepts this many ranges. Ignored if anything is known already. */
void cv_multirange_expect(cv_multirange *m, size_t most);
size_t cv_multirange_most(cv_multirange *m);

/* A multi-range request succeeded. Does not change CV_MULTIRANGE_REFUSED. */
void cv_multirange_confirm(cv_multirange *m);

/* The result of asking; CV_MULTIRANGE_UNKNOWN: none, another request may ask. Waiters go on, in
 * their order. */
void cv_multirange_learn(cv_multirange *m, cv_multirange_state state);

/* Stops waiting; false if it does not wait, or is going on at the moment. */
bool cv_multirange_leave(cv_multirange *m, cv_multirange_waiter *waiter);

/* A moment, and the bytes that had been received until then. */
typedef struct cv_session_mark {
    uint64_t ns;
    int64_t bytes;
} cv_session_mark;

/* See remote.h for how a session begins and ends. */
struct cv_session {
    atomic_int users;
    caterva_remote_options options; /* complete; its texts are in `texts` */
    char **texts;                   /* owned, n_texts */
    int n_texts;
    cv_credentials credentials; /* of an s3:// URL */
    bool is_s3;
    cv_wire_limit limit;
    atomic_bool has_connected; /* the server was reached before */
    cv_multirange multirange;
    atomic_int_least64_t requests, bytes, round_trips, joined, retried, cached;
    cv_mutex lock; /* guards what follows */
    double round_trip_ns, bytes_per_ns;
    cv_session_mark measured; /* when the speed was measured last */
};

/* Nanoseconds to wait before a request that failed *failures times before, and now once more, is
 * tried again; the server asked for `asked_s` seconds, or 0. Negative: give up. */
int64_t cv_session_backoff(cv_session *session, int *failures, uint32_t asked_s);

/* Adds to the error of the last attempt how many there were and, if that is too long to wait,
 * after how many seconds the server asks to be tried again (0: it does not). */
void cv_session_count_attempts(cv_error *err, int attempts, uint32_t asked_s);

/* Feeds measurements: a round trip; and a wave that was under way between two marks. What all
 * connections received meanwhile gives the speed. */
void cv_session_note_trip(cv_session *session, uint64_t ns);
cv_session_mark cv_session_now(cv_session *session);
void cv_session_note_speed(cv_session *session, const cv_session_mark *began,
                           const cv_session_mark *ended);

/* Bytes received while a request waits its turn on a busy connection: reading over a smaller gap
 * is quicker than another request. */
uint64_t cv_session_gap(cv_session *session);

/* Bytes in flight that keep all connections busy, at most 64 MiB; 0: not known yet. */
size_t cv_session_wave(cv_session *session);

/* Bytes beyond `needed` that may be read if that saves a round trip. */
uint64_t cv_session_spare(cv_session *session, uint64_t needed);

/* ---- Objects (object.c) ------------------------------------------------------------------ */

/* An object on a server: where it is, and which version of it is read. */
typedef struct cv_remote_object {
    cv_session *session;
    char *url;  /* as sent */
    char *host; /* as the request names it, and the path: of signed ones */
    char *path;
    bool is_signed;
    cv_shown_path name; /* of the URL, for messages */
    cv_version version; /* set by the first reply, before any other request */
    cv_mutex lock;      /* guards: */
    char *location;     /* where the server redirected to; NULL: nowhere */
} cv_remote_object;

/* The object at `url` (see cv_url_parse), with `member` (or "") appended to the path. */
cv_status cv_remote_object_new(cv_session *session, const char *url, const char *member,
                               cv_remote_object **out, cv_error *err);
void cv_remote_object_free(cv_remote_object *object); /* NULL is fine */

/* Takes version and software of the server from the first reply; later requests pin them. */
void cv_remote_object_meet(cv_remote_object *object, const cv_reply *reply,
                           const cv_content_range *content);

/* CATERVA_EIO: describes an attempt at `url` that ended without a whole answer. */
cv_status cv_remote_object_broken(const cv_remote_object *object, const char *url,
                                  const cv_wire_end *end, cv_error *err);

/* What the header fields of a request depend on. */
typedef struct cv_request_head {
    const char *method;
    const char *url;      /* where it is sent */
    const char *query;    /* S3: as in the URL, sorted; NULL: none */
    const char *payload;  /* SHA-256 of the body in hex; NULL: no body */
    const char *write_id; /* S3: stored with the object; NULL: none */
} cv_request_head;

/* Appends a header field with its NUL; and the fields of every request: the caller's and a
 * signature, but only if it goes to the object's own server. */
cv_status cv_add_field(cv_buffer *fields, const char *name, const char *value, cv_error *err);
cv_status cv_request_add_fields(cv_remote_object *object, const cv_request_head *head,
                                cv_buffer *fields, cv_error *err);

/* Where a request is sent: to the object's own URL, or to where servers redirected. */
typedef struct cv_route {
    char *url; /* owned; NULL: not begun */
    bool is_redirected;
    int n_redirects; /* followed by this request */
} cv_route;

/* Begins at the place where the object was found last. CATERVA_ENOMEM. */
cv_status cv_route_begin(cv_route *route, cv_remote_object *object, cv_error *err);

/* Follows a redirect to `to` (or NULL). CATERVA_EIO if it must not be followed. */
cv_status cv_route_follow(cv_route *route, const cv_remote_object *object, const char *to,
                          cv_error *err);

/* Whether this status means that the object is not here, or no longer accessible. */
bool cv_route_is_dead(int status);

/* True if a redirect that an earlier request followed has expired. It is forgotten, and the next
 * attempt begins at the object's own URL. */
bool cv_route_restart(cv_route *route, cv_remote_object *object, int status);

/* The route led to an answer: later requests begin at its end. */
void cv_route_keep(const cv_route *route, cv_remote_object *object);

#endif
