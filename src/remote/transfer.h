/* Moving bytes: requests that fetch ranges, waves of them, the cache of ranges in a folder, the
 * excerpts that are kept of an object, and uploads. Private to the room; implemented by fetch.c,
 * wave.c, range_cache.c, contents.c and upload.c. */
#ifndef CV_REMOTE_TRANSFER_H
#define CV_REMOTE_TRANSFER_H

#include "base/sha256.h"
#include "remote/server.h"
#include "store/reading.h"

/* ---- Fetching (fetch.c) ------------------------------------------------------------------ */

typedef struct cv_fetch cv_fetch;

/* Receives what a fetch brings. Called by the wire's thread; must not block. A status other than
 * CV_OK ends the fetch. */
typedef struct cv_receiver {
    /* One range: the first accepted reply says which bytes will come, of a small object perhaps
     * all. NULL: only the requested bytes are wanted. */
    cv_status (*begin)(cv_fetch *fetch, const cv_content_range *content, cv_error *err);
    /* With a flow: how many of the bytes have memory. The rest waits for cv_wire_resume. */
    cv_status (*admit)(cv_fetch *fetch, uint64_t pos, size_t size, size_t *admitted,
                       cv_error *err);
    /* Bytes in their order, each once. Of several ranges they are those of ranges.current, and
     * count when `commit` says so; `discard`: some of them will come again. */
    cv_status (*take)(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes, size_t size,
                      cv_error *err);
    void (*commit)(cv_fetch *fetch, uint64_t pos, uint64_t size);
    void (*discard)(cv_fetch *fetch);
    void (*gone)(cv_fetch *fetch); /* the last call */
} cv_receiver;

/* Requests that share a receiver's memory. The wire's thread only. */
typedef struct cv_flow {
    int n_flying, n_paused; /* the latter are among the former */
} cv_flow;

typedef enum cv_flow_state { CV_FLOW_OUT, CV_FLOW_FLYING, CV_FLOW_PAUSED } cv_flow_state;

/* What is requested. */
typedef struct cv_fetch_request {
    cv_remote_object *object;
    cv_range_request
        range;    /* of several ranges: their envelope; its version is the object's */
    bool is_anew; /* past all caches of servers */
    int n_ranges; /* the reader's, for reports */
} cv_fetch_request;

/* Several ranges, at least two, of an object whose version is known; else `list` is NULL. */
typedef struct cv_fetch_ranges {
    cv_byte_range *list;
    size_t n;
    size_t current; /* the one that the receiver is called for */
    bool has_any;   /* a body part has come */
} cv_fetch_ranges;

/* One range: bytes [next, end) are still wanted. */
typedef struct cv_fetch_wanted {
    uint64_t next, end;
    bool is_known; /* since the first accepted reply */
} cv_fetch_wanted;

typedef struct cv_fetch_delivery {
    const cv_receiver *receiver;
    cv_flow *flow; /* NULL: there is memory for everything */
    cv_flow_state state;
} cv_fetch_delivery;

typedef struct cv_fetch_retry {
    int n_attempts, n_failures;
    cv_route route;
} cv_fetch_retry;

/* The answer to the current attempt. */
typedef struct cv_fetch_answer {
    cv_range_request request;                      /* what this attempt requests */
    uint64_t n_requested, most_received, received; /* bytes of its body */
    cv_buffer head; /* header fields, or the error document of a refusal */
    cv_verdict verdict;
    uint64_t pos, end;  /* one range: where the next byte of the body belongs, and its end */
    cv_multipart *body; /* several ranges; owned */
    size_t n_used;      /* of bytes that are presented again after a pause */
} cv_fetch_answer;

typedef enum cv_fetch_outcome {
    CV_FETCH_DONE,      /* `status` says how */
    CV_FETCH_NO_RANGES, /* failed: the server sends large objects whole only */
    CV_FETCH_SPLIT,     /* status CV_OK: incomplete ranges are to be requested one by one, */
    CV_FETCH_REFUSED    /* and the server does not answer multi-range requests */
} cv_fetch_outcome;

/* Before cv_fetch_begin the owner sets request (without version), delivery.receiver and .flow, and
 * ranges.list and .n; all else is zero. For `gone` there are the outcome, status and error. */
struct cv_fetch {
    cv_wire wire;
    cv_fetch_request request;
    cv_fetch_ranges ranges;
    cv_fetch_wanted wanted;
    cv_fetch_delivery delivery;
    cv_fetch_retry retry;
    cv_fetch_answer answer;
    cv_reply reply; /* the last one */
    cv_fetch_outcome outcome;
    cv_status status;
    cv_error error;
};

/* Begins it; `gone` will be called unless this fails. After a split it may begin once more. */
cv_status cv_fetch_begin(cv_fetch *fetch, cv_error *err);
void cv_fetch_cancel(cv_fetch *fetch);

/* ---- Waves (wave.c) ---------------------------------------------------------------------- */

/* What a wave reads: ranges of one object, in which position 0 is at `offset`, or each range from
 * an object of its own, none larger than 1 TiB. */
typedef struct cv_wave_target {
    cv_remote_object *object;
    cv_remote_object *const *objects; /* of each range; NULL: `object` */
    uint64_t offset;
    bool is_anew; /* past all caches of servers */
} cv_wave_target;

/* As cv_store_ops.begin_wave, for ranges that lie in the object and are not empty. */
cv_status cv_remote_wave_begin(const cv_wave_target *target, const cv_store_range *ranges,
                               size_t n, const cv_arrivals *arrivals, cv_gathering *all,
                               cv_reading **out, cv_error *err);

/* ---- Ranges in a folder (range_cache.c) -------------------------------------------------- */

/* Bytes of one object version that were read before, by this process or others, in a folder that
 * they share. Any thread. Nothing fails: what is not there is read from the server. */
typedef struct cv_range_cache cv_range_cache;

enum { CV_PACK_KEY = 32, CV_PACK_MOST = 4 << 20 };

/* NULL if the folder cannot be used. The key stands for bytes that can never change. `bound`: the
 * bytes that the folder may hold. */
cv_range_cache *cv_range_cache_open(const char *folder, uint64_t bound,
                                    const uint8_t key[CV_PACK_KEY]);
void cv_range_cache_close(cv_range_cache *cache); /* NULL is fine */

/* Looks for what other processes have added; called before a series of cv_range_cache_get. */
void cv_range_cache_look(cv_range_cache *cache);

/* Copies bytes [pos, pos + size) to dst. False: not all are there, and dst is undefined. */
bool cv_range_cache_get(cv_range_cache *cache, uint64_t pos, void *dst, size_t size);

/* Adds n ranges, whose bytes follow each other. */
void cv_range_cache_put(cv_range_cache *cache, const uint64_t *positions, const size_t *sizes,
                        size_t n, const uint8_t *bytes);

/* Removes all bytes of this key from the folder: they turned out to be wrong. */
void cv_range_cache_forget(cv_range_cache *cache);

/* ---- Contents of an object (contents.c) -------------------------------------------------- */

/* The bytes that one request brought. */
typedef struct cv_excerpt {
    uint64_t pos;
    size_t size;
    uint8_t *bytes; /* owned */
} cv_excerpt;

/* Fetches an excerpt, also as the first request for an object: of a small one the server may send
 * everything. *has_no_ranges: it sent all of a large one. `is_anew`: past caches of servers. */
cv_status cv_excerpt_read(cv_remote_object *object, const cv_range_request *request,
                          bool is_anew, cv_watch *watch, cv_excerpt *out, bool *has_no_ranges,
                          cv_error *err);

/* The first bytes of an object that is not known yet, ordered together with others. */
typedef struct cv_excerpt_order {
    cv_remote_object *object;
    uint64_t size; /* at most */
    bool is_anew;
    cv_excerpt excerpt; /* what came */
    cv_status status;
} cv_excerpt_order;

/* Fetches all of them at once. Each has its own status, without a message. On failure
 * (CATERVA_ENOMEM, CATERVA_ESTOPPED) nothing has come. */
cv_status cv_excerpts_read(cv_excerpt_order *orders, size_t n, cv_watch *watch,
                           cv_error *err);

/* Those of a reader's ranges that are not at hand, passed on to another read. */
typedef struct cv_subset {
    cv_reading base;      /* for an owner that is one: first */
    cv_reading *reading;  /* the other read; or NULL */
    cv_arrivals arrivals; /* the reader's */
    cv_store_range *ranges;
    size_t *numbers; /* among the reader's ranges */
    size_t n;
} cv_subset;

/* An empty subset of `n` ranges. Free it also on failure. */
cv_status cv_subset_init(cv_subset *subset, size_t n, const cv_arrivals *arrivals,
                         cv_error *err);
void cv_subset_free(cv_subset *subset);
void cv_subset_add(cv_subset *subset, const cv_store_range *range, size_t number);

/* Reports to the reader that range `number` of its ranges has arrived or failed. */
cv_status cv_subset_arrived(const cv_subset *subset, size_t number, cv_error *err);
void cv_subset_failed(const cv_subset *subset, size_t number);

/* Arrivals for the other read, which report under the reader's numbers. */
cv_arrivals cv_subset_arrivals(cv_subset *subset);

/* A wave through a cache (NULL: none): only what it does not hold is requested, and then added to
 * it. With target.is_anew it is not asked. `read` returns when the wave is over. */
cv_status cv_cached_wave_begin(const cv_wave_target *target, cv_range_cache *cache,
                               const cv_store_range *ranges, size_t n,
                               const cv_arrivals *arrivals, cv_gathering *all,
                               cv_reading **out, cv_error *err);
cv_status cv_cached_wave_read(const cv_wave_target *target, cv_range_cache *cache,
                              const cv_store_range *ranges, size_t n,
                              const cv_arrivals *arrivals, cv_error *err);

/* Bytes of the end that come with the opening, and of the beginning if that is wanted. */
enum { CV_TAIL_BYTES = 64 * 1024, CV_HEAD_BYTES = 8 * 1024 };

typedef struct cv_kept_excerpt {
    cv_excerpt excerpt;
    struct cv_kept_excerpt *next;
} cv_kept_excerpt;

/* An object that stores share, with the excerpts that are kept and lent: what a reader of a frame
 * needs first. They stay in place until the file is released. Any thread, except for release. */
typedef struct cv_remote_file {
    atomic_int users;
    cv_remote_object *object;
    cv_range_cache *cache; /* NULL: none */
    _Atomic(cv_kept_excerpt *) kept;
} cv_remote_file;

/* `member` is the path of an object in a directory, else "". The opening brings the object's end
 * or, with an offset, the bytes that begin there. */
cv_status cv_remote_file_open(cv_session *session, const char *url, const char *member,
                              uint64_t offset, cv_watch *watch, cv_remote_file **out,
                              cv_error *err);
void cv_remote_file_release(cv_remote_file *file); /* NULL is fine */

/* Bytes of the object that are kept, or NULL; its last CV_TAIL_BYTES, which hold the seal. */
const uint8_t *cv_remote_file_find(const cv_remote_file *file, uint64_t pos, size_t size);
const uint8_t *cv_remote_file_end(const cv_remote_file *file, size_t *size);

/* Fetches an excerpt, from the cache (NULL: none) or the server, and keeps it. */
cv_status cv_remote_file_fetch(cv_remote_file *file, cv_range_cache *cache,
                               const cv_range_request *request, cv_watch *watch,
                               bool *has_no_ranges, cv_error *err);

/* A second look at bytes [begin, end) of the object and at its end. */
typedef struct cv_recheck {
    uint64_t begin, end;
    bool replaces; /* bytes that differ are lent from now on */
    cv_watch *watch;
} cv_recheck;

/* Fetches what is kept of them once more, past all caches, and compares. */
cv_status cv_remote_file_compare(cv_remote_file *file, const cv_recheck *recheck,
                                 bool *is_same, cv_error *err);

/* ---- Requests that change something (upload.c) -------------------------------------------- */

typedef struct cv_send cv_send;

/* The requests of one upload. */
typedef struct cv_sends {
    cv_mutex lock; /* guards: */
    cv_cond changed;
    cv_send *first; /* under way */
    size_t n;
    atomic_int_least64_t given; /* bytes of bodies, each counted once */
    int64_t reported;           /* of them, to the watch */
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
    /* Set by the owner, and valid until the send is gone; all else zero. */
    cv_remote_object *object;
    const char *method;
    const char *query;     /* S3, sorted; NULL: none */
    const char *condition; /* "If-Match: ..."; NULL: none */
    const char *write_id;  /* or NULL */
    const char *proof;     /* an element that the answer to a success contains; NULL: any */
    cv_send_body body;
    bool has_body;
    bool asks_first; /* Expect: whether the server wants the body at all */
    bool is_slow;    /* the server works on it, and sends a blank now and then */
    /* The result. With CV_OK the server has answered, with whatever reply.status. */
    cv_status status;
    cv_error error;
    cv_reply reply;
    cv_buffer answer; /* the body of the reply */
    int n_attempts;
    bool may_be_done; /* by an attempt whose answer was lost */
    bool is_gone;
    /* Private to upload.c: */
    cv_sends *sends;
    cv_send *next;
    void (*gone)(cv_send *send); /* the last call, by the wire's thread */
    char *url;
    char payload[CV_SHA256_HEX];
    cv_buffer head;
    uint64_t most_given; /* bytes of the body, by all attempts */
    uint64_t given;      /* by this one */
    bool is_sent;        /* all of it */
    int n_failures;
};

void cv_sends_init(cv_sends *sends);
void cv_sends_destroy(cv_sends *sends); /* when none is under way */

/* Sends a request and waits for its end, or until the watch stops it. A signed body is read once
 * before that. An answer that is not a success is an error, with a message of its own. */
cv_status cv_send_do(cv_send *send, cv_sends *sends, cv_watch *watch, cv_error *err);
void cv_send_free(cv_send *send);

enum { CV_UPLOAD_ID_SIZE = 1024 };

/* An S3 multipart upload. object, sends, source, sizes and write_id are set by the owner. */
typedef struct cv_upload {
    cv_remote_object *object;
    cv_sends *sends;
    cv_store *source;
    uint64_t size, part_size;
    const char *write_id;
    char upload_id[CV_UPLOAD_ID_SIZE];
    char encoded_id[3 * CV_UPLOAD_ID_SIZE]; /* as in a query; "": not begun */
    int n, n_kept;                          /* upload parts; those that were sent before */
    struct cv_upload_part *list;
} cv_upload;

/* The size of upload parts, at least `wanted`, with which S3 takes an object of `size` bytes. */
uint64_t cv_upload_part_size(uint64_t size, uint64_t wanted);

cv_status cv_upload_init(cv_upload *upload, cv_error *err);
void cv_upload_free(cv_upload *upload);

/* Begins an upload, after which its upload_id is set; mostly also when it is stopped meanwhile. */
cv_status cv_upload_begin(cv_upload *upload, cv_watch *watch, cv_error *err);

/* Resumes an upload: finds the parts that the server has. *is_known false: it no longer knows the
 * upload. */
cv_status cv_upload_resume(cv_upload *upload, const char *upload_id, cv_watch *watch,
                           bool *is_known, cv_error *err);

/* Sends the parts that the server does not have. On return no request is under way. */
cv_status cv_upload_send(cv_upload *upload, cv_watch *watch, cv_error *err);

/* Makes an object of the parts, if `condition` (or NULL) holds. *may_be_done: it may have been
 * made although this failed. */
cv_status cv_upload_finish(cv_upload *upload, const char *condition, cv_watch *watch,
                           bool *may_be_done, cv_error *err);

/* Has the server forget the upload to `url`. `is_hasty`: returns within a moment, and leaves the
 * request under way if that takes longer. */
void cv_upload_abort(cv_upload *upload, const char *url, bool is_hasty);

#endif
