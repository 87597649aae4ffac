/* Room: remote. INTRO of remote/remote */
#include "remote/remote.h"

#include "array/array.h"
#include "base/crc.h"
#include "base/heap.h"
#include "remote/contents.h"
#include "store/path.h"
#include "store/reading.h"
#include "store/refusals.h"
#include "store/sframe.h"

#include <caterva_remote.h>
#include <string.h>

/* ---- Http ----
 *
 * Objects behind URLs, read in ranges. What is kept of them is for http_file.c,
 * how a range is fetched for http_read.c, how they are opened for http_open.c. */

/* What such a store was opened by; the text is the store's. False: it is no such, or a part. */
typedef struct cv_http_given {
    const char *url;
    uint64_t offset;
    bool is_directory;
} cv_http_given;

/* More than this is not brought at once. */
enum { MOST_KEPT = 64 << 20 };

/* At 100 Mbit/s so many bytes take 80 ms, about as long as another round trip. */
enum { MOST_WHOLE = 1 << 20 };

typedef struct http_store {
    cv_store base;
    char *url; /* as it was given */
    uint64_t given_offset;
    cv_http_file *file;
    cv_http_chunks *chunks; /* of a directory */
    uint64_t offset, size;  /* of the file: what this store is */
    bool is_part;           /* which is not all from the given offset on */
    atomic_bool is_anew;    /* nothing that was kept is lent */
    atomic_bool is_doubted; /* it is fetched past all caches */
    atomic_bool has_changed;
} http_store;

/* ---- Reading -------------------------------------------------------------------------- */

static cv_status http_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err)
{
    http_store *h = (http_store *)store;
    if (object != CV_FRAME_OBJECT && h->chunks)
        return cv_http_chunks_size(h->chunks, object, store->watch, size, err);
    CV_TRY(cv_store_check_frame(store, object, err));
    *size = h->size;
    return CV_OK;
}

static cv_status check_range(const http_store *h, uint64_t pos, size_t size, cv_error *err)
{
    if (pos <= h->size && size <= h->size - pos) return CV_OK;
    return cv_fail_past_end(err, h->file->object->name.text, pos, size, h->size);
}

static const uint8_t *http_view(cv_store *store, cv_object object, uint64_t pos, size_t size)
{
    http_store *h = (http_store *)store;
    bool is_inside = pos <= h->size && size <= h->size - pos;
    if (object != CV_FRAME_OBJECT || !is_inside || atomic_load(&h->is_anew)) return NULL;
    return cv_http_file_find(h->file, h->offset + pos, size);
}

static void http_read_anew(cv_store *store)
{
    atomic_store(&((http_store *)store)->is_anew, true);
}

/* What was asked for one by one is told by its return. */
static cv_status ignore(void *context, size_t range, cv_error *err)
{
    (void)context, (void)range, (void)err;
    return CV_OK;
}

/* Bytes are kept by what tells versions apart: an ETag, or a seal at the end. */
static cv_range_cache *cache_of(http_store *h)
{
    cv_http_file *f = h->file;
    size_t size;
    if (!f->cache || cv_etag_is_strong(f->object->identity.etag)) return f->cache;
    return h->base.is_vouched && cv_http_file_end(f, &size) ? f->cache : NULL;
}

static bool is_past_caches(http_store *h)
{
    return atomic_load(&h->is_anew) || atomic_load(&h->is_doubted);
}

static cv_http_window window_of(http_store *h)
{
    return (cv_http_window){
        .object = h->file->object, .offset = h->offset, .is_anew = is_past_caches(h)};
}

/* Who reads the beginning reads on there. */
static cv_status read_head(http_store *h, void *dst, size_t size, cv_error *err)
{
    bool no_ranges;
    uint64_t end = h->size < CV_HTTP_HEAD ? h->size : CV_HTTP_HEAD;
    const cv_ask ask = {.first = h->offset, .end = h->offset + end};
    CV_TRY(cv_http_file_fetch(h->file, cache_of(h), &ask, h->base.watch, &no_ranges, err));
    memcpy(dst, cv_http_file_find(h->file, h->offset, size), size);
    return CV_OK;
}

static cv_status http_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                           size_t size, cv_error *err)
{
    http_store *h = (http_store *)store;
    const cv_store_range range = {object, pos, size, dst};
    const cv_arrivals arrivals = {.arrived = ignore, .watch = store->watch};
    if (object != CV_FRAME_OBJECT && h->chunks)
        return cv_http_chunks_read(h->chunks, &range, 1, &arrivals, err);
    CV_TRY(cv_store_check_frame(store, object, err));
    CV_TRY(check_range(h, pos, size, err));
    if (size == 0) return CV_OK;
    const uint8_t *bytes = http_view(store, object, pos, size);
    if (bytes) {
        memcpy(dst, bytes, size);
        return CV_OK;
    }
    if (pos == 0 && size <= CV_HTTP_HEAD && !is_past_caches(h))
        return read_head(h, dst, size, err);
    const cv_http_window window = window_of(h);
    return cv_http_cached_read(&window, cache_of(h), &range, 1, &arrivals, err);
}

/* ---- Waves ----------------------------------------------------------------------------- */

/* Ranges that are not at hand, and which ones they are of those asked for. */
typedef struct wanted {
    cv_reading base;
    cv_reading *reading; /* of those under way */
    cv_arrivals arrivals;
    cv_store_range *ranges;
    size_t *numbers;
    size_t n;
} wanted;

static cv_status wanted_arrived(void *context, size_t range, cv_error *err)
{
    const wanted *w = context;
    return w->arrivals.arrived(w->arrivals.context, w->numbers[range], err);
}

static cv_status wanted_lend(void *context, size_t range, size_t stuck, uint8_t **dst,
                             cv_error *err)
{
    const wanted *w = context;
    return w->arrivals.lend(w->arrivals.context, w->numbers[range], stuck, dst, err);
}

static void wanted_failed(void *context, size_t range)
{
    const wanted *w = context;
    if (w->arrivals.failed) w->arrivals.failed(w->arrivals.context, w->numbers[range]);
}

/* What is at hand arrives at once. */
static cv_status take_kept(http_store *h, const cv_store_range *ranges, size_t n, wanted *w,
                           cv_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const cv_store_range *r = &ranges[i];
        cv_status status = check_range(h, r->pos, r->size, err);
        const uint8_t *bytes =
            status == CV_OK ? http_view(&h->base, r->object, r->pos, r->size) : NULL;
        if (status != CV_OK && w->arrivals.failed) w->arrivals.failed(w->arrivals.context, i);
        CV_TRY(status);
        if (!bytes && r->size > 0) {
            w->ranges[w->n] = *r;
            w->numbers[w->n++] = i;
            continue;
        }
        uint8_t *dst = r->dst;
        if (bytes && !dst)
            /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): without dst there is lend */
            CV_TRY(w->arrivals.lend(w->arrivals.context, i, SIZE_MAX, &dst, err));
        if (bytes) memcpy(dst, bytes, r->size);
        CV_TRY(w->arrivals.arrived(w->arrivals.context, i, err));
    }
    return CV_OK;
}

/* Of the frame, or else of chunks. */
static bool are_all(const cv_store_range *ranges, size_t n, bool of_frame)
{
    size_t i = 0;
    while (i < n && (ranges[i].object == CV_FRAME_OBJECT) == of_frame) i++;
    return i == n;
}

static void free_wanted(wanted *w)
{
    if (!w) return;
    cv_free(w->ranges);
    cv_free(w->numbers);
    cv_free(w);
}

static void end_wanted(cv_reading *reading, bool gives_up)
{
    wanted *w = (wanted *)reading; /* its first member */
    cv_store_end_wave(w->reading, gives_up);
    free_wanted(w);
}

static cv_status new_wanted(size_t n, const cv_arrivals *arrivals, wanted **out,
                            cv_error *err)
{
    wanted *w = cv_calloc(1, sizeof *w);
    if (w)
        *w = (wanted){.base = {end_wanted},
                      .arrivals = *arrivals,
                      .ranges = cv_calloc(n, sizeof *w->ranges),
                      .numbers = cv_calloc(n, sizeof *w->numbers)};
    *out = w;
    if (w && w->ranges && w->numbers) return CV_OK;
    free_wanted(w);
    return cv_fail_memory(err, n * sizeof(cv_store_range), "a list of ranges");
}

static cv_status http_begin_wave(cv_store *store, const cv_store_range *ranges, size_t n,
                                 const cv_arrivals *arrivals, cv_gathering *all,
                                 cv_reading **out, cv_error *err)
{
    http_store *h = (http_store *)store;
    wanted *w;
    CV_TRY(new_wanted(n, arrivals, &w, err));
    cv_arrivals own = *arrivals;
    own.arrived = wanted_arrived;
    own.failed = wanted_failed;
    if (own.lend) own.lend = wanted_lend;
    own.context = w;
    const cv_http_window window = window_of(h);
    cv_status status = take_kept(h, ranges, n, w, err);
    if (status == CV_OK)
        status = cv_http_cached_begin(&window, cache_of(h), w->ranges, w->n, &own, all,
                                      &w->reading, err);
    if (status == CV_OK)
        *out = &w->base;
    else
        free_wanted(w);
    return status;
}

static cv_status http_read_many(cv_store *store, const cv_store_range *ranges, size_t n,
                                const cv_arrivals *arrivals, cv_error *err)
{
    http_store *h = (http_store *)store;
    cv_gathering all;
    cv_reading *reading = NULL;
    if (h->chunks && are_all(ranges, n, false))
        return cv_http_chunks_read(h->chunks, ranges, n, arrivals, err);
    if (!are_all(ranges, n, true)) return cv_store_read_each(store, ranges, n, arrivals, err);
    cv_gathering_init(&all);
    cv_status status = http_begin_wave(store, ranges, n, arrivals, &all, &reading, err);
    if (status == CV_OK) status = cv_gathering_finish(&all, reading, arrivals->watch, err);
    cv_gathering_destroy(&all);
    return status;
}

/* What is kept in a folder is copied when it comes. Where many requests share a connection, one
 * that pauses may hold up the others. */
static bool http_borrows(cv_store *store)
{
    http_store *h = (http_store *)store;
    return !cache_of(h) && !atomic_load(&h->file->object->session->limit.is_multiplexed);
}

static void http_resume(cv_store *store)
{
    (void)store;
    cv_wire_resume();
}

static size_t http_wave_bytes(cv_store *store)
{
    http_store *h = (http_store *)store;
    return cv_session_wave(h->file->object->session) / (cache_of(h) ? 2 : 1);
}

static uint64_t http_spare(cv_store *store, uint64_t needed)
{
    http_store *h = (http_store *)store;
    return cv_session_spare(h->file->object->session, needed);
}

static cv_status http_meet(cv_store *store, const cv_object *objects, size_t n, cv_error *err)
{
    http_store *h = (http_store *)store;
    return h->chunks ? cv_http_chunks_meet(h->chunks, objects, n, store->watch, err) : CV_OK;
}

static cv_status http_bring(cv_store *store, uint64_t pos, uint64_t size, cv_error *err)
{
    http_store *h = (http_store *)store;
    bool no_ranges;
    if (size == 0 || size > MOST_KEPT || is_past_caches(h)) return CV_OK;
    CV_TRY(check_range(h, pos, (size_t)size, err));
    if (cv_http_file_find(h->file, h->offset + pos, (size_t)size)) return CV_OK;
    const cv_ask ask = {.first = h->offset + pos, .end = h->offset + pos + size};
    return cv_http_file_fetch(h->file, cache_of(h), &ask, store->watch, &no_ranges, err);
}

/* ---- Doubt ------------------------------------------------------------------------------- */

static cv_status fail_changed(const http_store *h, cv_error *err)
{
    return cv_fail(err, CATERVA_EIO, -1, "%s: it changed on the server since it was opened",
                   h->file->object->name.text);
}

/* Whether bytes of another version are told from those of the one that was opened: by the
 * server, which confirms the ETag, or by the seal. */
static bool is_told_apart(const http_store *h)
{
    return h->base.is_vouched || cv_etag_is_strong(h->file->object->identity.etag);
}

/* What was kept may have been damaged on its way as well: it is fetched once more, and where
 * it is another now, that is a change unless what comes next passes all checks. */
static cv_status http_doubt(cv_store *store, bool begins, cv_error *err)
{
    http_store *h = (http_store *)store;
    bool is_same, goes_on = begins || is_told_apart(h);
    const cv_http_again again = {h->offset, h->offset + h->size, goes_on, store->watch};
    CV_TRY(cv_http_file_compare(h->file, &again, &is_same, err));
    if (!is_same) atomic_store(&h->has_changed, true);
    if (!goes_on && atomic_load(&h->has_changed)) return fail_changed(h, err);
    atomic_store(&h->is_doubted, true);
    if (h->chunks) cv_http_chunks_forget(h->chunks);
    if (h->file->cache) cv_range_cache_forget(h->file->cache);
    return CV_OK;
}

static cv_status http_settle(cv_store *store, bool is_right, cv_error *err)
{
    http_store *h = (http_store *)store;
    if (is_right) atomic_store(&h->has_changed, false);
    return atomic_load(&h->has_changed) ? fail_changed(h, err) : CV_OK;
}

/* ---- Closing ----------------------------------------------------------------------------- */

static void http_stamp(cv_store *store, cv_stamp *out)
{
    const cv_identity *identity = &((http_store *)store)->file->object->identity;
    *out = (cv_stamp){
        .object = cv_crc32c(0, identity->etag, strlen(identity->etag)),
        .time = cv_crc32c(0, identity->modified, strlen(identity->modified)),
        .size = identity->size,
    };
}

static void http_close(cv_store *store)
{
    http_store *h = (http_store *)store;
    cv_http_chunks_free(h->chunks);
    cv_http_file_release(h->file);
    cv_free(h->url);
    cv_free(h);
}

static const cv_store_ops http_ops = {
    .name = "URL",
    .stamp = http_stamp,
    .size = http_size,
    .read = http_read,
    .read_many = http_read_many,
    .begin_wave = http_begin_wave,
    .borrows = http_borrows,
    .resume = http_resume,
    .wave_bytes = http_wave_bytes,
    .spare = http_spare,
    .meet = http_meet,
    .view = http_view,
    .bring = http_bring,
    .read_anew = http_read_anew,
    .doubt = http_doubt,
    .settle = http_settle,
    .write = cv_store_no_write,
    .truncate = cv_store_no_truncate,
    .sync = cv_store_no_sync,
    .replace = cv_store_no_replace,
    .remove = cv_store_no_remove,
    .publish = cv_store_no_publish,
    .close = http_close,
};

/* ---- The store ---------------------------------------------------------------------------- */

/* A store of the file from byte `offset` on, or, with chunks, of the directory. Takes over
 * both, also on failure. */
static cv_status cv_store_http_new(cv_http_file *file, cv_http_chunks *chunks, const char *url,
                            uint64_t offset, cv_store **out, cv_error *err)
{
    http_store *h = cv_calloc(1, sizeof *h);
    char *copy = cv_strdup(url);
    if (!h || !copy) {
        cv_free(h);
        cv_free(copy);
        cv_http_chunks_free(chunks);
        cv_http_file_release(file);
        return cv_fail_memory(err, sizeof *h, "a URL");
    }
    int over_percent = file->object->session->options.over_read_percent;
    /* Ranges are joined by their cost, and not before. */
    h->base = (cv_store){.ops = &http_ops,
                         .has_chunk_objects = chunks != NULL,
                         .published = true,
                         .is_far = true,
                         .is_pinned = true,
                         .join_gap = 1,
                         .most_whole = over_percent > 0 ? MOST_WHOLE : 0,
                         .opened = cv_os_now()};
    h->url = copy;
    h->file = file;
    h->chunks = chunks;
    h->offset = h->given_offset = offset;
    h->size = file->object->identity.size - offset;
    atomic_init(&h->is_anew, false);
    atomic_init(&h->is_doubted, false);
    atomic_init(&h->has_changed, false);
    *out = &h->base;
    return CV_OK;
}

cv_session *cv_remote_session(const cv_store *store)
{
    if (store->ops != &http_ops) return NULL;
    return ((const http_store *)store)->file->object->session;
}

static bool cv_store_http_given(const cv_store *store, cv_http_given *out)
{
    const http_store *h = (const http_store *)store;
    if (store->ops != &http_ops || h->is_part) return false;
    *out = (cv_http_given){h->url, h->given_offset, h->chunks != NULL};
    return true;
}

/* Its end comes with it, as that of a whole object does. */
cv_status cv_remote_part(cv_store *store, uint64_t offset, uint64_t size, cv_store **out,
                             cv_error *err)
{
    http_store *h = (http_store *)store;
    if (size == UINT64_MAX) size = h->size - offset;
    CV_TRY(check_range(h, offset, (size_t)size, err));
    uint64_t tail = size < CV_HTTP_TAIL ? size : CV_HTTP_TAIL;
    CV_TRY(http_bring(store, offset + size - tail, tail, err));
    atomic_fetch_add(&h->file->users, 1);
    CV_TRY(cv_store_http_new(h->file, NULL, h->url, 0, out, err));
    ((http_store *)*out)->offset = h->offset + offset;
    ((http_store *)*out)->size = size;
    atomic_store(&((http_store *)*out)->is_doubted, is_past_caches(h));
    ((http_store *)*out)->is_part = true;
    return CV_OK;
}

caterva_status caterva_transfers_get(caterva_array *array, caterva_transfers *out,
                                     caterva_error *err)
{
    caterva_transfers full = CATERVA_TRANSFERS_INIT;
    CV_TRY(cv_array_check(array, err));
    CV_TRY(cv_output_check(out, sizeof *out, "transfers", err));
    cv_session *s = cv_remote_session(array->frame->store);
    if (!s) return cv_fail(err, CATERVA_EINVAL, -1, "the array is not read from a URL");
    full.requests = atomic_load(&s->requests);
    full.bytes = atomic_load(&s->bytes);
    full.round_trips = atomic_load(&s->round_trips);
    full.joined = atomic_load(&s->joined);
    full.retried = atomic_load(&s->retried);
    full.cached = atomic_load(&s->cached);
    cv_output_fill(out, &full, sizeof full);
    return CV_OK;
}

/* ---- Http open ----
 *
 * Which object or directory a URL names, found by asking for it. */

static cv_status open_object(cv_session *session, const char *url, uint64_t offset,
                             cv_watch *watch, cv_store **out, cv_error *err)
{
    cv_http_file *file = NULL;
    CV_TRY(cv_http_file_open(session, url, "", offset, watch, &file, err));
    return cv_store_http_new(file, NULL, url, offset, out, err);
}

static cv_status open_directory(cv_session *session, const char *url, cv_watch *watch,
                                cv_store **out, cv_error *err)
{
    cv_http_file *file = NULL;
    cv_http_chunks *chunks = NULL;
    CV_TRY(cv_http_file_open(session, url, "/" CV_SFRAME_FRAME, 0, watch, &file, err));
    cv_status status = cv_http_chunks_new(session, url, &chunks, err);
    if (status == CV_OK) return cv_store_http_new(file, chunks, url, 0, out, err);
    cv_http_file_release(file);
    return status;
}

cv_status cv_session_begin(const char *url, const caterva_remote_options *options,
                              cv_session **out, cv_error *err)
{
    return cv_session_new(options, cv_url_scheme(url) == CV_SCHEME_S3, out, err);
}

/* A name that ends with a slash is a directory's; one that leads to nothing may be. */
cv_status cv_remote_open(cv_session *session, const char *url, uint64_t offset,
                             cv_watch *watch, cv_store **out, cv_error *err)
{
    char *stripped;
    bool has_slash;
    cv_error reason = {0};
    CV_TRY(cv_url_strip(url, &stripped, &has_slash, err));
    cv_status status = CATERVA_ENOTFOUND;
    if (!has_slash) status = open_object(session, url, offset, watch, out, &reason);
    bool is_other = status == CATERVA_ENOTFOUND && offset == 0;
    if (is_other) {
        cv_error ignored = {0};
        status =
            open_directory(session, stripped, watch, out, has_slash ? &reason : &ignored);
    }
    cv_free(stripped);
    if (status != CV_OK && err) *err = reason;
    return status == CV_OK ? CV_OK : reason.code;
}

cv_status cv_remote_reopen(cv_store *store, cv_watch *watch, cv_store **out, cv_error *err)
{
    cv_http_given given;
    *out = NULL;
    if (!cv_store_http_given(store, &given)) return CV_OK;
    cv_session *session = cv_remote_session(store);
    return given.is_directory
               ? open_directory(session, given.url, watch, out, err)
               : open_object(session, given.url, given.offset, watch, out, err);
}
