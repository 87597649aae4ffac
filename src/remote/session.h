/* Whether a server sends several parts of an object at once. Of one that says nothing of itself
 * nobody takes that for granted: one request finds out, and who would ask for many parts waits
 * until it is answered. One whose name says so is believed until it refuses. */
#ifndef CV_REMOTE_SESSION_H
#define CV_REMOTE_SESSION_H

#include "base/os_file.h"
#include "base/thread.h"
#include "remote/auth.h"
#include "remote/remote.h"
#include "remote/wire.h"
#include <caterva_remote.h>

typedef enum cv_several_state {
    CV_SEVERAL_UNKNOWN,
    CV_SEVERAL_EXPECTED, /* its name says so: asked, and not waited for */
    CV_SEVERAL_ASKED,    /* somebody is finding out */
    CV_SEVERAL_KNOWN,
    CV_SEVERAL_REFUSED
} cv_several_state;

/* Who waits for the answer. `go` is called once, by who has it, and asks again. */
typedef struct cv_several_waiter {
    struct cv_several_waiter *next;
    void (*go)(struct cv_several_waiter *waiter);
    uint64_t turn;  /* how many answers there had been when it asked */
    bool is_asking; /* it is the one who finds out */
} cv_several_waiter;

typedef struct cv_several {
    cv_mutex lock; /* over all of it */
    cv_several_state state;
    cv_several_waiter *first, *last;
    uint64_t turn;
    size_t most;        /* parts of an answer, as its name says; SIZE_MAX: nothing */
    cv_os_moment asked; /* a child of fork hears nothing of what its parent asked */
} cv_several;

/* What is known. CV_SEVERAL_UNKNOWN: the caller is the one who finds out, and says what came
 * of it, whatever it is. With that and with CV_SEVERAL_ASKED `waiter` waits. */
cv_several_state cv_several_ask(cv_several *several, cv_several_waiter *waiter);

/* The same, of a caller that does nothing about it. */
cv_several_state cv_several_look(cv_several *several);

/* The server's name says that it sends so many parts at once. What is known of it says more. */
void cv_several_expect(cv_several *several, size_t most);
size_t cv_several_most(cv_several *several);

/* It sent several. That it refused others stays. */
void cv_several_confirm(cv_several *several);

/* Somebody found out; CV_SEVERAL_UNKNOWN: nothing came of it, the next one may try. Those who
 * wait go on, in their order. */
void cv_several_learn(cv_several *several, cv_several_state state);

/* Stops waiting; false: it does not wait, or goes on just now. */
bool cv_several_leave(cv_several *several, cv_several_waiter *waiter);

/* ---- http_session ----
 * What the objects of one opening share: options, the limit of requests, what was measured of
 * the way to the server, and counts. Any thread. */

/* A moment, and the bytes that had come until then. */
typedef struct cv_session_mark {
    uint64_t ns;
    int64_t bytes;
} cv_session_mark;

struct cv_session {
    atomic_int users;
    caterva_remote_options options; /* complete; its texts are in `texts` */
    char **texts;                   /* owned, n_texts */
    int n_texts;
    cv_credentials credentials; /* of an s3:// URL */
    bool is_s3;
    cv_wire_limit limit;
    atomic_bool has_connected; /* the server was reached before */
    cv_several several;        /* whether the server sends several parts at once */
    atomic_int_least64_t requests, bytes, round_trips, joined, retried, cached;
    cv_mutex lock; /* over these: */
    double round_trip_ns, bytes_per_ns;
    cv_session_mark measured; /* when the speed was */
};

/* Checks and copies the options (NULL: defaults); `is_s3`: finds credentials, too. One user. */
cv_status cv_session_new(const caterva_remote_options *options, bool is_s3, cv_session **out,
                         cv_error *err);

/* How many nanoseconds a request waits that failed for a while, *failures times before, and
 * now again; the server asked for so many seconds, or 0. Negative: it is not to be tried
 * again. */
int64_t cv_session_pause(cv_session *session, int *failures, uint32_t asked_s);

/* Adds to the error of the last attempt how many there were, and after how many seconds the server
 * asks to be tried again if that is too long to wait for (0: it does not). */
void cv_session_count_attempts(cv_error *err, int attempts, uint32_t asked_s);

/* One measured round trip; and that a wave was under way from then to then: what came meanwhile,
 * by all connections, says how fast the way is. */
void cv_session_note_trip(cv_session *session, uint64_t ns);
cv_session_mark cv_session_now(cv_session *session);
void cv_session_note_speed(cv_session *session, const cv_session_mark *began,
                           const cv_session_mark *ended);

/* Bytes that come while a request of a full pipeline waits: to read over less than that is
 * quicker than another request. */
uint64_t cv_session_gap(cv_session *session);

/* Bytes under way that keep the way full, at most 64 MiB; 0: not known. */
size_t cv_session_wave(cv_session *session);

/* Bytes that may be read over `needed` ones where that saves a round trip. */
uint64_t cv_session_spare(cv_session *session, uint64_t needed);

#endif
