/* Requests that change something on a server, made whatever it takes: attempts, waits, and
 * what the server said last. Several may be under way; one thread waits for them. */
#ifndef CV_REMOTE_SEND_H
#define CV_REMOTE_SEND_H

#include "base/sha256.h"
#include "remote/object.h"
#include "store/store.h"

typedef struct cv_send cv_send;

/* Those of one undertaking. */
typedef struct cv_sends {
    cv_mutex lock; /* over: */
    cv_cond changed;
    cv_send *first; /* under way */
    size_t n;
    atomic_int_least64_t given; /* bytes of bodies, each counted once */
    int64_t told;               /* of them, to the watch */
} cv_sends;

/* Bytes that are sent: of a store, or in memory. */
typedef struct cv_send_body {
    cv_store *source; /* its frame object; NULL: `bytes` */
    uint64_t pos;
    const uint8_t *bytes;
    uint64_t size;
} cv_send_body;

struct cv_send {
    cv_wire wire;
    /* Given, and valid until the send is gone. */
    cv_http_object *object;
    const char *method;
    const char *query;     /* of S3, sorted; NULL: none */
    const char *condition; /* "If-Match: ..."; NULL: none */
    const char *write_id;  /* or NULL */
    const char *proof;     /* what the answer to a success has in it; NULL: nothing */
    cv_send_body body;
    bool has_body;
    bool asks_first; /* whether the server wants the body at all */
    bool is_slow;    /* the server works on it, and sends a blank now and then */
    /* What came of it. With CV_OK the server has answered, with `reply.status`, as it may. */
    cv_status status;
    cv_error error;
    cv_reply reply;
    cv_buffer answer; /* the body of that */
    int attempts;
    bool may_be_done; /* by an attempt whose answer was lost, or no answer */
    bool is_gone;
    /* Its own. */
    cv_sends *sends;
    cv_send *next;
    void (*gone)(cv_send *send); /* the last call, by the wire's thread */
    char *url;
    char payload[CV_SHA256_HEX];
    cv_buffer head;
    uint64_t most_given; /* of the body, by all attempts */
    uint64_t given;      /* by this one */
    bool is_sent;        /* all of it */
    int failures;
};

void cv_sends_init(cv_sends *sends);
void cv_sends_destroy(cv_sends *sends); /* when none is under way */

/* Begins it; all given is set, the rest zero. Reads the body once before that where it is
 * signed. When this fails, it is gone. */
cv_status cv_send_begin(cv_send *send, cv_sends *sends, cv_watch *watch, cv_error *err);

/* Begins one that belongs to no others; `gone` is set, and called unless this fails. */
cv_status cv_send_begin_alone(cv_send *send, cv_error *err);

/* Waits until at most so many are under way, and tells the watch what was sent meanwhile.
 * CATERVA_ESTOPPED says the watch: the sends are under way then as before. */
cv_status cv_sends_wait(cv_sends *sends, size_t most, cv_watch *watch, cv_error *err);

/* Gives up those under way and returns when they are gone. */
void cv_sends_cancel(cv_sends *sends);

/* Begins it and waits for its end, also by being stopped. */
cv_status cv_send_do(cv_send *send, cv_sends *sends, cv_watch *watch, cv_error *err);

/* The same, but when it is stopped the answer has half a second to come, for what it makes at
 * the server: cv_send_is_good tells whether it came, whatever the status. */
cv_status cv_send_settle(cv_send *send, cv_sends *sends, cv_watch *watch, cv_error *err);

void cv_send_free(cv_send *send); /* what came of it */

/* Whether the answer is a success. */
bool cv_send_is_good(const cv_send *send);

/* A sentence of what the server answered that is none. */
cv_status cv_send_refused(const cv_send *send, cv_error *err);

#endif
