/* libcurl, loaded when the first URL is opened and not before: the library itself needs it
 * neither to be built into a wheel nor to be started, and who reads no URLs need not have
 * it. With http_wire.c and http_flight.c all that knows it. */
#ifndef CV_REMOTE_WIRE_H
#define CV_REMOTE_WIRE_H

#include "base/heap.h"
#include "base/status.h"

#include <stdatomic.h>

#ifdef CATERVA_HAS_CURL

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

/* Its functions, named as there without "curl_". */
typedef struct cv_curl {
    CURLcode (*global_init)(long flags);
    curl_version_info_data *(*version_info)(CURLversion age);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *easy);
    void (*easy_reset)(CURL *easy);
    CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
    CURLcode (*easy_pause)(CURL *easy, int what);
    const char *(*easy_strerror)(CURLcode code);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_setopt)(CURLM *multi, CURLMoption option, ...);
    CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_perform)(CURLM *multi, int *running);
    CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
    CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd *extra, unsigned n, int ms,
                            int *ready);
    CURLMcode (*multi_wakeup)(CURLM *multi);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
} cv_curl;

/* The same for all, ready for use by any thread. CATERVA_EUNSUPPORTED, with the name of what
 * is missing, when it cannot be loaded or is too old. */
cv_status cv_curl_load(const cv_curl **out, cv_error *err);

#endif

/* ---- http_request ----
 * A request as the thread that talks to servers knows it: what is sent, how an attempt ended,
 * and the functions of its user that the thread calls. */

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

/* ---- http_flight ----
 * One attempt of a request inside libcurl: what it is told, what it calls, how it ended. Used by
 * the thread of http_wire.c alone. */

#ifdef CATERVA_HAS_CURL

/* A request inside libcurl; outlives it when it is cancelled. */
typedef struct cv_flight {
    CURL *easy;
    struct curl_slist *fields;
    cv_wire *wire;                /* NULL: cancelled */
    uint64_t body_pos, body_size; /* of what is sent */
    bool is_paused, resumes;
    char reason[CURL_ERROR_SIZE]; /* libcurl's, in detail */
} cv_flight;

/* Sets all options of `easy`, which is new or reset, and those of the body. `may_share`: it waits
 * for a connection that others are making to its server rather than to make one of its own.
 * False: no memory. */
bool cv_flight_set(cv_flight *flight, const cv_curl *curl, const cv_wire_setup *setup,
                   bool may_share);

/* Its texts are libcurl's and the flight's, for as long as the handle is not used again. */
void cv_flight_end(const cv_flight *flight, const cv_curl *curl, CURLcode code,
                   cv_wire_end *end);

bool cv_flight_is_multiplexed(const cv_flight *flight, const cv_curl *curl);

#endif

/* ---- http_wire ----
 * Requests on their way: one thread for the whole process that talks to all servers, through
 * libcurl. What is asked for, and what of the answer is believed, is for the users of a
 * request to say, by functions that this thread calls; they wait for nobody. */

/* Hands it over; `gone` will be called. CATERVA_EUNSUPPORTED without libcurl, CATERVA_ENOMEM
 * without a thread: then it is not. */
cv_status cv_wire_submit(cv_wire *wire, cv_error *err);

/* Ends it soon, from outside: before its user frees it. Harmless when it is gone. */
void cv_wire_cancel(cv_wire *wire);

/* For `gone`, where there is no other reason: there was no memory for an attempt, or it was
 * cancelled. */
cv_status cv_wire_fail_gone(const cv_wire *wire, cv_error *err);

/* Around a function of the program's, which the wire's thread calls while it is in no call of
 * libcurl's: a fork does not wait for the function, which may wait for who forks. */
void cv_wire_give_turn(void);
void cv_wire_take_turn(void);

/* Requests that paused are asked again soon, all of them. Any thread, the wire's, too. */
void cv_wire_resume(void);

#endif
