/* A request as the thread that talks to servers knows it: what is sent, how an attempt ended,
 * and the functions of its user that the thread calls. */
#ifndef CV_STORE_HTTP_REQUEST_H
#define CV_STORE_HTTP_REQUEST_H

#include "base/heap.h"

#include <stdatomic.h>

typedef struct cv_wire cv_wire;

/* So many requests of a kind may be under way at once; more wait for their turn. Touched by
 * the thread only, but for `most`, set before the first. */
typedef struct cv_wire_limit {
    int most, n;
    atomic_bool is_multiplexed; /* the server takes many requests through one connection;
                                 * asked by any thread */
    cv_wire *first, *last;
} cv_wire_limit;

/* What is sent. */
typedef struct cv_wire_setup {
    const char *method; /* NULL: GET */
    const char *url;    /* valid until the end */
    cv_buffer fields;   /* "Name: value", each with its NUL; freed by the wire */
    bool has_body;      /* of PUT and POST, an empty one, too: `give` has its bytes */
    uint64_t body_size;
    int connect_ms, stall_ms; /* longest waits: for a connection, for any byte */
    bool is_slow; /* a byte now and then is enough, and ten times as long without one */
    const char *ca_file; /* who vouches for the server; NULL: whom the system trusts */
} cv_wire_setup;

/* How an attempt ended. */
typedef struct cv_wire_end {
    bool is_whole;  /* the server finished its answer */
    bool is_broken; /* the connection failed: another attempt may succeed */
    bool was_connected;
    bool is_untrusted;    /* its certificate was refused */
    bool lacks_memory;    /* libcurl did not get what it needed */
    const char *why;      /* where it is not whole; no secrets */
    const char *redirect; /* where a redirecting answer leads, absolute; or NULL */
    uint64_t first_byte_ns, total_ns; /* since the request was sent; since it began */
} cv_wire_end;

enum { CV_WIRE_DONE = -1 };

/* What becomes of an attempt when bytes have come. One that pauses has taken none of them, and
 * is given them again, maybe with others behind them, after cv_wire_resume. */
typedef enum cv_wire_next { CV_WIRE_ENDS, CV_WIRE_GOES_ON, CV_WIRE_PAUSES } cv_wire_next;

struct cv_wire {
    /* Given. `prepare` fills the setup for the next attempt; without success there is none,
     * and `end` is not called. `header` gets a line, `body` bytes, `give` puts bytes of
     * the body that is sent to their place; false ends the attempt, as CV_WIRE_ENDS does.
     * `end` says after how many nanoseconds another attempt is to follow, or CV_WIRE_DONE.
     * `gone` comes last, once, also when it was cancelled: then the wire knows it no more. */
    cv_status (*prepare)(cv_wire *wire, cv_wire_setup *setup);
    bool (*header)(cv_wire *wire, const char *line, size_t size);
    cv_wire_next (*body)(cv_wire *wire, const uint8_t *bytes, size_t size);
    bool (*give)(cv_wire *wire, uint64_t pos, uint8_t *to, size_t size);
    int64_t (*end)(cv_wire *wire, const cv_wire_end *end);
    void (*gone)(cv_wire *wire);
    cv_wire_limit *limit;
    /* The wire's own. */
    cv_wire *next;
    struct cv_flight *flight;
    uint64_t due;
    atomic_bool is_cancelled;
    bool is_under_way;
    bool lacks_memory; /* the last attempt could not begin */
};

#endif
