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

/* Limits the number of requests of a session in flight; further requests wait in a queue. Accessed
 * only by the wire's thread, except `most`, which is set before the first request. */
typedef struct cv_wire_limit {
    int most, n;
    atomic_bool is_multiplexed; /* HTTP/2: requests share a connection. Read by any thread */
    cv_wire *first, *last;
} cv_wire_limit;

typedef struct cv_wire_setup {
    const char *method; /* NULL: GET */
    const char *url;    /* must stay valid until `end` is called */
    cv_buffer fields;   /* "Name: value", each with its NUL; the wire frees them */
    bool has_body; /* `give` supplies a body. True for PUT and POST, also if it is empty */
    uint64_t body_size;
    int connect_ms, stall_ms; /* maximum time to connect; maximum time below 256 bytes/s */
    bool is_slow;             /* times out only after 10 * stall_ms without a byte */
    const char *ca_file;      /* trusted certificates; NULL: those of the system */
} cv_wire_setup;

typedef struct cv_wire_end {
    bool is_whole;  /* the server completed its answer */
    bool is_broken; /* the connection failed: another attempt may succeed */
    bool was_connected;
    bool is_untrusted; /* the server's certificate was refused */
    bool lacks_memory;
    const char *why;      /* the reason if is_whole is false; contains no secrets */
    const char *redirect; /* absolute URL; NULL: none */
    uint64_t first_byte_ns, total_ns; /* from sending to the first byte; of the attempt */
} cv_wire_end;

enum { CV_WIRE_DONE = -1 };

/* What the wire does after it has passed bytes to `body`. With CV_WIRE_PAUSES it passes the same
 * bytes again, possibly followed by more, after cv_wire_resume. */
typedef enum cv_wire_next { CV_WIRE_ENDS, CV_WIRE_GOES_ON, CV_WIRE_PAUSES } cv_wire_next;

struct cv_wire {
    /* Set by the owner. `prepare` fills the setup of the next attempt; if it fails, `gone` is
     * called without an attempt. `header` takes a header line, `body` takes received bytes, `give`
     * copies bytes of the sent body; a result of false or CV_WIRE_ENDS ends the attempt. `end`
     * returns the nanoseconds until the next attempt, or CV_WIRE_DONE. `gone` is the last call,
     * made once, also if the request is cancelled; in it the owner may free the request. */
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

/* Submits the request. If this succeeds, `gone` will be called. CATERVA_EUNSUPPORTED: libcurl is
 * missing or too old; CATERVA_ENOMEM: no thread. */
cv_status cv_wire_submit(cv_wire *wire, cv_error *err);

/* Makes the wire cancel the request soon. Has no effect after `gone`. Thread: any. */
void cv_wire_cancel(cv_wire *wire);

/* For use in `gone`, if no other error is known: fails with CATERVA_ENOMEM if memory was lacking,
 * else with CATERVA_ESTOPPED, because the request was cancelled. */
cv_status cv_wire_fail_gone(const cv_wire *wire, cv_error *err);

/* The wire's thread calls functions of the program between cv_wire_give_turn and cv_wire_take_turn.
 * A fork waits until the thread has left libcurl. The fork must not wait for a function of the
 * program, because that function may wait for the fork. */
void cv_wire_give_turn(void);
void cv_wire_take_turn(void);

/* Makes the wire pass the pending bytes again to every paused request. Thread: any. */
void cv_wire_resume(void);

/* ---- Credentials and signatures (auth.c) ------------------------------------------------- */

/* Owned; NULL: not set. */
typedef struct cv_credentials {
    char *access_key, *secret_key, *session_token;
    char *region;   /* never NULL */
    char *endpoint; /* NULL: that of Amazon */
} cv_credentials;

/* Finds credentials for S3 in the options, the environment and the profile files, as the options
 * require. CATERVA_EINVAL if the options name a source that has no keys. */
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

/* Writes a time in seconds since 1970 in the form of cv_signing.time. */
enum { CV_SIGN_TIME = 17 };
void cv_sign_time(uint64_t seconds, char out[CV_SIGN_TIME]);

/* ---- Sessions (session.c) ---------------------------------------------------------------- */

/* Whether the server supports multi-range requests. One request finds out, and other readers with
 * many ranges wait for the result. If the server software is known to support such requests, no
 * reader waits, until the server refuses one. */
typedef enum cv_multirange_state {
    CV_MULTIRANGE_UNKNOWN,  /* first, because a new session is all zeros */
    CV_MULTIRANGE_EXPECTED, /* known from the software's name: no reader waits */
    CV_MULTIRANGE_ASKED,    /* a request that will find out is in flight */
    CV_MULTIRANGE_KNOWN,
    CV_MULTIRANGE_REFUSED
} cv_multirange_state;

/* A reader that waits for the result. When the result is known, `go` is called, and asks again. */
typedef struct cv_multirange_waiter {
    struct cv_multirange_waiter *next;
    void (*go)(struct cv_multirange_waiter *waiter);
    uint64_t turn;  /* number of results that existed when the reader asked */
    bool is_asking; /* the reader's own request finds out */
} cv_multirange_waiter;

typedef struct cv_multirange {
    cv_mutex lock; /* guards all members */
    cv_multirange_state state;
    cv_multirange_waiter *first, *last;
    uint64_t turn;
    size_t most; /* ranges of a request that the software accepts; SIZE_MAX: no limit */
    cv_os_moment asked; /* time of asking; after a later fork no result will arrive */
} cv_multirange;

/* Returns the state. CV_MULTIRANGE_UNKNOWN: the caller's request must find out, and the caller must
 * then pass the result to cv_multirange_learn. Queues the waiter if the state is
 * CV_MULTIRANGE_UNKNOWN or CV_MULTIRANGE_ASKED. */
cv_multirange_state cv_multirange_ask(cv_multirange *m, cv_multirange_waiter *waiter);

cv_multirange_state cv_multirange_look(cv_multirange *m);

/* Records that the server software accepts `most` ranges. Changes only CV_MULTIRANGE_UNKNOWN. */
void cv_multirange_expect(cv_multirange *m, size_t most);
size_t cv_multirange_most(cv_multirange *m);

/* Records that a multi-range request succeeded. Changes only CV_MULTIRANGE_EXPECTED. */
void cv_multirange_confirm(cv_multirange *m);

/* Sets the state and calls the waiters. If the state is CV_MULTIRANGE_UNKNOWN, one asks again. */
void cv_multirange_learn(cv_multirange *m, cv_multirange_state state);

/* Removes a waiter from the queue. False: the waiter is not queued, or is just being called. */
bool cv_multirange_leave(cv_multirange *m, cv_multirange_waiter *waiter);

/* A moment, and the bytes received until then. */
typedef struct cv_session_mark {
    uint64_t ns;
    int64_t bytes;
} cv_session_mark;

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

/* Returns the nanoseconds to wait before a failed request is retried; negative: give up. *failures:
 * earlier failures of this request; incremented. `asked_s`: seconds that the server asks to wait,
 * or 0. */
int64_t cv_session_backoff(cv_session *session, int *failures, uint32_t asked_s);

/* Appends the number of attempts to the error of the last one. If the server asked to wait longer
 * than is allowed (`asked_s` seconds), appends these seconds, too. */
void cv_session_count_attempts(cv_error *err, int attempts, uint32_t asked_s);

/* cv_session_note_trip records the time of a round trip. cv_session_note_speed records the speed
 * between the beginning and end of a wave, of all bytes that the session received meanwhile. */
void cv_session_note_trip(cv_session *session, uint64_t ns);
cv_session_mark cv_session_now(cv_session *session);
void cv_session_note_speed(cv_session *session, const cv_session_mark *began,
                           const cv_session_mark *ended);

/* Returns the bytes that one connection receives in a round trip. Reading a smaller gap is cheaper
 * than another request. */
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
    char *host; /* for signatures: host and path as in the request */
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

/* Takes from the first reply the version, which later requests pin, and the server software, which
 * may be known to support multi-range requests. */
void cv_remote_object_meet(cv_remote_object *object, const cv_reply *reply,
                           const cv_content_range *content);

/* Fails with the reason for which an attempt at `url` ended without a complete answer: CATERVA_EIO,
 * or CATERVA_ENOMEM if memory was lacking. */
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
 * every request; for the object's own server also the caller's headers and a signature. */
cv_status cv_add_field(cv_buffer *fields, const char *name, const char *value, cv_error *err);
cv_status cv_request_add_fields(cv_remote_object *object, const cv_request_head *head,
                                cv_buffer *fields, cv_error *err);

/* The URL that a request is sent to: that of the object, or the target of a redirect. */
typedef struct cv_route {
    char *url; /* owned; NULL: cv_route_begin is needed */
    bool is_redirected;
    int n_redirects; /* followed by this request */
} cv_route;

/* Sets the route to the URL at which the object was last found. Fails only with CATERVA_ENOMEM. */
cv_status cv_route_begin(cv_route *route, cv_remote_object *object, cv_error *err);

/* Follows a redirect to `to`; NULL: no Location. CATERVA_EIO if it must not be followed. */
cv_status cv_route_follow(cv_route *route, const cv_remote_object *object, const char *to,
                          cv_error *err);

/* Whether the status means that this URL does not, or no longer, give access to the object. */
bool cv_route_is_dead(int status);

/* Returns true if the route began at the target of an earlier redirect, and `status` means that it
 * has expired. Then the next attempt uses the object's own URL. */
bool cv_route_restart(cv_route *route, cv_remote_object *object, int status);

/* Call this when the route led to an answer. Later requests begin at the URL that answered. */
void cv_route_keep(const cv_route *route, cv_remote_object *object);

#endif
