/* Transfer of bytes: requests that fetch ranges, waves of requests, the cache of ranges in a
 * folder, excerpts kept of an object, and uploads. Private to the room; implemented by fetch.c,
 * wave.c, range_cache.c, contents.c and upload.c. */
#ifndef CV_REMOTE_TRANSFER_H
#define CV_REMOTE_TRANSFER_H

#include "base/sha256.h"
#include "remote/server.h"
#include "store/reading.h"

/* ---- Fetching (fetch.c) ------------------------------------------------------------------ */

typedef struct cv_fetch cv_fetch;

/* Receives bytes on the wire's thread; must not block. A status other than CV_OK ends the fetch. */
typedef struct cv_receiver {
    /* Single range: called with the range of the bytes that follow, as the first accepted reply
     * states it; may be a small object's whole range. NULL: takes only the requested bytes. */
    cv_status (*begin)(cv_fetch *fetch, const cv_content_range *content, cv_error *err);
    /* Only with a flow: sets *admitted to how many of these bytes the receiver has memory for. The
     * fetch pauses before the other bytes, until cv_wire_resume. */
    cv_status (*admit)(cv_fetch *fetch, uint64_t pos, size_t size, size_t *admitted,
                       cv_error *err);
    /* Takes bytes in order, each once. Multi-range: the bytes belong to the range ranges.current
     * and are valid only after `commit`. After `discard`, uncommitted bytes arrive again. */
    cv_status (*take)(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes, size_t size,
                      cv_error *err);
    void (*commit)(cv_fetch *fetch, uint64_t pos, uint64_t size);
    void (*discard)(cv_fetch *fetch);
    void (*gone)(cv_fetch *fetch); /* the last call */
} cv_receiver;

/* Requests that share the memory of a receiver. Accessed only by the wire's thread. */
typedef struct cv_flow {
    int n_flying, n_paused; /* paused requests also count as flying */
} cv_flow;

typedef enum cv_flow_state { CV_FLOW_OUT, CV_FLOW_FLYING, CV_FLOW_PAUSED } cv_flow_state;

typedef struct cv_fetch_request {
    cv_remote_object *object;
    cv_range_request range; /* several ranges: all bytes from the first to the last */
    bool is_anew;           /* bypasses the caches of servers */
    int n_ranges;           /* number of the reader's ranges, for reports */
} cv_fetch_request;

/* At least two ranges of an object whose version is known; `list` NULL: a single range. */
typedef struct cv_fetch_ranges {
    cv_byte_range *list;
    size_t n;
    size_t current; /* number of the range that `take` receives */
    bool has_any;   /* a body part has arrived */
} cv_fetch_ranges;

/* Single range: bytes [next, end) are still wanted. */
typedef struct cv_fetch_wanted {
    uint64_t next, end;
    bool is_known; /* set by the first accepted reply */
} cv_fetch_wanted;

typedef struct cv_fetch_delivery {
    const cv_receiver *receiver;
    cv_flow *flow; /* NULL: the receiver has memory for everything */
    cv_flow_state state;
} cv_fetch_delivery;

typedef struct cv_fetch_retry {
    int n_attempts, n_failures;
    cv_route route;
} cv_fetch_retry;

/* State of the current attempt's answer. */
typedef struct cv_fetch_answer {
    cv_range_request request;                      /* of this attempt */
    uint64_t n_requested, most_received, received; /* bytes of the body; most: then it ends */
    cv_buffer head; /* header fields, or the error document of a refusal */
    cv_verdict verdict;
    uint64_t pos, end;  /* single range: position of the body's next byte, and its end */
    cv_multipart *body; /* several ranges; owned */
    size_t n_used;      /* bytes already used of those presented again after a pause */
} cv_fetch_answer;

typedef enum cv_fetch_outcome {
    CV_FETCH_DONE,      /* see `status` */
    CV_FETCH_NO_RANGES, /* failed: the server sends large objects only as a whole */
    CV_FETCH_SPLIT,     /* status CV_OK, but incomplete ranges must be requested one by one */
    CV_FETCH_REFUSED /* as CV_FETCH_SPLIT: the server does not support multi-range requests */
} cv_fetch_outcome;

/* Before cv_fetch_begin the owner sets request (without its version), delivery.receiver and .flow,
 * ranges.list and .n; all else is zero. In `gone` the owner reads outcome, status and error. */
struct cv_fetch {
    cv_wire wire;
    cv_fetch_request request;
    cv_fetch_ranges ranges;
    cv_fetch_wanted wanted;
    cv_fetch_delivery delivery;
    cv_fetch_retry retry;
    cv_fetch_answer answer;
    cv_reply reply; /* the last reply */
    cv_fetch_outcome outcome;
    cv_status status;
    cv_error error;
};

/* Begins the fetch. On success `gone` will be called. After CV_FETCH_SPLIT it may begin again. */
cv_status cv_fetch_begin(cv_fetch *fetch, cv_error *err);
void cv_fetch_cancel(cv_fetch *fetch);

/* ---- Waves (wave.c) ---------------------------------------------------------------------- */

/* What a wave reads: all ranges from one object, with positions relative to `offset`; or each range
 * from an object of its own, of at most 1 TiB. */
typedef struct cv_wave_target {
    cv_remote_object *object;
    cv_remote_object *const *objects; /* one for each range; NULL: `object` */
    uint64_t offset;
    bool is_anew; /* bypasses the caches of servers */
} cv_wave_target;

/* As cv_store_ops.begin_wave. The ranges must lie in the object and must not be empty. */
cv_status cv_remote_wave_begin(const cv_wave_target *target, const cv_store_range *ranges,
                               size_t n, const cv_arrivals *arrivals, cv_gathering *all,
                               cv_reading **out, cv_error *err);

/* ---- Ranges in a folder (range_cache.c) -------------------------------------------------- */

/* Bytes of one object version that were read before, by any process, in a shared folder. Functions
 * return no errors: bytes that the cache lacks are read from the server. Thread: any. */
typedef struct cv_range_cache cv_range_cache;

enum { CV_PACK_KEY = 32, CV_PACK_MOST = 4 << 20 };

/* Returns NULL if the folder cannot be used. The key identifies bytes that never change. `bound`:
 * maximum bytes of the whole folder. */
cv_range_cache *cv_range_cache_open(const char *folder, uint64_t bound,
                                    const uint8_t key[CV_PACK_KEY]);
void cv_range_cache_close(cv_range_cache *cache); /* NULL is fine */

/* Lists ranges that other processes have added. Call it before a series of cv_range_cache_get. */
void cv_range_cache_look(cv_range_cache *cache);

/* Copies bytes [pos, pos + size) to dst. False: bytes are missing, and dst is undefined. */
bool cv_range_cache_get(cv_range_cache *cache, uint64_t pos, void *dst, size_t size);

/* Adds n ranges, whose bytes are stored one after another. */
void cv_range_cache_put(cv_range_cache *cache, const uint64_t *positions, const size_t *sizes,
                        size_t n, const uint8_t *bytes);

/* Deletes all bytes of this key from the folder, because they may be wrong. */
void cv_range_cache_forget(cv_range_cache *cache);

/* ---- Contents of an object (contents.c) -------------------------------------------------- */

/* The bytes fetched by one request. */
typedef struct cv_excerpt {
    uint64_t pos;
    size_t size;
    uint8_t *bytes; /* owned */
} cv_excerpt;

/* Fetches an excerpt; this may be the first request for the object. The server may send all bytes
 * of a small object instead. *has_no_ranges: the call failed, because the server would also send
 * all bytes of a large object. `is_anew`: bypasses server caches. */
cv_status cv_excerpt_read(cv_remote_object *object, const cv_range_request *request,
                          bool is_anew, cv_watch *watch, cv_excerpt *out, bool *has_no_ranges,
                          cv_error *err);

/* A request for the first bytes of an object of unknown version, sent together with others. */
typedef struct cv_excerpt_order {
    cv_remote_object *object;
    uint64_t size; /* maximum bytes */
    bool is_anew;
    cv_excerpt excerpt; /* the result */
    cv_status status;
} cv_excerpt_order;

/* Fetches all orders at once. Each has its own status, without a message. On failure
 * (CATERVA_ENOMEM, CATERVA_ESTOPPED) no order has an excerpt. */
cv_status cv_excerpts_read(cv_excerpt_order *orders, size_t n, cv_watch *watch,
                           cv_error *err);

/* The ranges of a read that a second read must fetch. */
typedef struct cv_subset {
    cv_reading base;      /* the first member, because an owner may be a cv_reading */
    cv_reading *reading;  /* the second read; or NULL */
    cv_arrivals arrivals; /* the reader's */
    cv_store_range *ranges;
    size_t *numbers; /* number of each range in the reader's list */
    size_t n;
} cv_subset;

/* Initializes an empty subset with room for `n` ranges. Call cv_subset_free also on failure. */
cv_status cv_subset_init(cv_subset *subset, size_t n, const cv_arrivals *arrivals,
                         cv_error *err);
void cv_subset_free(cv_subset *subset);
void cv_subset_add(cv_subset *subset, const cv_store_range *range, size_t number);

/* Reports to the reader that its range `number` has arrived or failed. */
cv_status cv_subset_arrived(const cv_subset *subset, size_t number, cv_error *err);
void cv_subset_failed(const cv_subset *subset, size_t number);

/* Returns arrivals for the second read. They call the reader's functions with its range numbers. */
cv_arrivals cv_subset_arrivals(cv_subset *subset);

/* Read a wave through a cache (NULL: none): request the bytes that it lacks, and add these to it.
 * With target.is_anew the cache is not read. cv_cached_wave_read waits for the end of the wave. */
cv_status cv_cached_wave_begin(const cv_wave_target *target, cv_range_cache *cache,
                               const cv_store_range *ranges, size_t n,
                               const cv_arrivals *arrivals, cv_gathering *all,
                               cv_reading **out, cv_error *err);
cv_status cv_cached_wave_read(const cv_wave_target *target, cv_range_cache *cache,
                              const cv_store_range *ranges, size_t n,
                              const cv_arrivals *arrivals, cv_error *err);

/* Bytes fetched from an object's end by the opening, and from its beginning by the first read. */
enum { CV_TAIL_BYTES = 64 * 1024, CV_HEAD_BYTES = 8 * 1024 };

typedef struct cv_kept_excerpt {
    cv_excerpt excerpt;
    struct cv_kept_excerpt *next;
} cv_kept_excerpt;

/* An object shared by stores, with excerpts kept in memory and lent: the bytes that a reader of a
 * frame needs first. Lent pointers are valid until release. Thread: any, except for release. */
typedef struct cv_remote_file {
    atomic_int users;
    cv_remote_object *object;
    cv_range_cache *cache; /* NULL: none */
    _Atomic(cv_kept_excerpt *) kept;
} cv_remote_file;

/* Opens an object. `member`: its path in a directory, or "". The opening fetches the object's end
 * or, if `offset` is not 0, the bytes from there on. */
cv_status cv_remote_file_open(cv_session *session, const char *url, const char *member,
                              uint64_t offset, cv_watch *watch, cv_remote_file **out,
                              cv_error *err);
void cv_remote_file_release(cv_remote_file *file); /* NULL is fine */

/* cv_remote_file_find returns bytes of the object, or NULL if they are not kept. cv_remote_file_end
 * does the same for the last CV_TAIL_BYTES, which contain the seal. */
const uint8_t *cv_remote_file_find(const cv_remote_file *file, uint64_t pos, size_t size);
const uint8_t *cv_remote_file_end(const cv_remote_file *file, size_t *size);

/* Fetches an excerpt from the cache (NULL: none) or the server, and keeps it. */
cv_status cv_remote_file_fetch(cv_remote_file *file, cv_range_cache *cache,
                               const cv_range_request *request, cv_watch *watch,
                               bool *has_no_ranges, cv_error *err);

/* A check of whether bytes [begin, end) of the object, or its end, have changed. */
typedef struct cv_recheck {
    uint64_t begin, end;
    bool replaces; /* if bytes differ, the new ones are lent from now on */
    cv_watch *watch;
} cv_recheck;

/* Fetches the kept excerpts of these bytes again, bypassing all caches, and compares. */
cv_status cv_remote_file_compare(cv_remote_file *file, const cv_recheck *recheck,
                                 bool *is_same, cv_error *err);

/* ---- Requests that write (upload.c) ----------------------------------------------------- */

typedef struct cv_send cv_send;

/* The requests of one upload. */
typedef struct cv_sends {
    cv_mutex lock; /* guards: */
    cv_cond changed;
    cv_send *first; /* in flight */
    size_t n;
    atomic_int_least64_t given; /* body bytes sent, each counted once */
    int64_t reported;           /* part of `given` reported to the watch */
} cv_sends;

/* The bytes that are sent: from a store, or in memory. */
typedef struct cv_send_body {
    cv_store *source; /* its frame object is sent from `pos` on; NULL: `bytes` are sent */
    uint64_t pos;
    const uint8_t *bytes;
    uint64_t size;
} cv_send_body;

struct cv_send {
    cv_wire wire;
    /* Set by the owner and valid until the send is gone; the rest is zero: */
    cv_remote_object *object;
    const char *method;
    const char *query;     /* S3, sorted; NULL: none */
    const char *condition; /* "If-Match: ..."; NULL: none */
    const char *write_id;  /* or NULL */
    const char *proof;     /* XML element that a successful answer must contain; NULL: none */
    cv_send_body body;
    bool has_body;
    bool asks_first; /* Expect: 100-continue, so that a server can refuse the body */
    bool is_slow;    /* the server needs long, and sends a blank from time to time */
    /* The result. With CV_OK the server has answered, with any reply.status. */
    cv_status status;
    cv_error error;
    cv_reply reply;
    cv_buffer answer; /* the body of the reply */
    int n_attempts;
    bool may_be_done; /* an attempt whose answer was lost may have succeeded */
    bool is_gone;
    /* Private to upload.c: */
    cv_sends *sends;
    cv_send *next;
    void (*gone)(cv_send *send); /* the last call, by the wire's thread */
    char *url;
    char payload[CV_SHA256_HEX];
    cv_buffer head;
    uint64_t most_given; /* maximum body bytes given by any attempt */
    uint64_t given;      /* body bytes given by this attempt */
    bool is_sent;        /* the whole body was given */
    int n_failures;
};

void cv_sends_init(cv_sends *sends);
void cv_sends_destroy(cv_sends *sends); /* when none is in flight */

/* Sends a request and waits until it ends or the watch stops it. A signed body is read twice, first
 * for its hash. An answer other than success is an error with its own message. */
cv_status cv_send_do(cv_send *send, cv_sends *sends, cv_watch *watch, cv_error *err);
void cv_send_free(cv_send *send);

enum { CV_UPLOAD_ID_SIZE = 1024 };

/* An S3 multipart upload. The owner sets object, sends, source, size, part_size and write_id. */
typedef struct cv_upload {
    cv_remote_object *object;
    cv_sends *sends;
    cv_store *source;
    uint64_t size, part_size;
    const char *write_id;
    char upload_id[CV_UPLOAD_ID_SIZE];
    char encoded_id[3 * CV_UPLOAD_ID_SIZE]; /* percent-encoded; "": not begun */
    int n, n_kept;                          /* upload parts; parts already on the server */
    struct cv_upload_part *list;
} cv_upload;

/* Returns the size of upload parts, at least `wanted`, with which S3 accepts `size` bytes. */
uint64_t cv_upload_part_size(uint64_t size, uint64_t wanted);

cv_status cv_upload_init(cv_upload *upload, cv_error *err);
void cv_upload_free(cv_upload *upload);

/* Begins an upload and sets upload_id, usually also if the watch stops the call meanwhile. */
cv_status cv_upload_begin(cv_upload *upload, cv_watch *watch, cv_error *err);

/* Resumes an upload: finds the parts on the server. *is_known false: no such upload exists. */
cv_status cv_upload_resume(cv_upload *upload, const char *upload_id, cv_watch *watch,
                           bool *is_known, cv_error *err);

/* Sends the parts that the server lacks. On return no request is in flight. */
cv_status cv_upload_send(cv_upload *upload, cv_watch *watch, cv_error *err);

/* Combines the parts into an object if `condition` (or NULL) holds. *may_be_done: the object may
 * exist although the call failed. */
cv_status cv_upload_finish(cv_upload *upload, const char *condition, cv_watch *watch,
                           bool *may_be_done, cv_error *err);

/* Aborts the upload to `url` on the server. `is_hasty`: returns after at most 50 ms, even if the
 * request is still in flight. */
void cv_upload_abort(cv_upload *upload, const char *url, bool is_hasty);

#endif
