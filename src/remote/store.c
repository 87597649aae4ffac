/* Room: remote. The store behind a URL: one object, a byte range of one, or a directory with an
 * object for each chunk. The store reads from kept excerpts (contents.c), then by waves (wave.c),
 * and handles the suspicion that the object changed on the server. The opening finds out whether a
 * URL names an object or a directory. */
#include "remote/transfer.h"

#include "array/array.h"
#include "base/crc.h"
#include "store/sframe.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

/* ---- Objects of chunks ------------------------------------------------------------------- */

/* The first request for a chunk's object fetches its beginning, which is kept for a while, because
 * the chunk's header and blocks are read next. For a single chunk it fetches 1 MiB, which is mostly
 * the whole chunk. Chunks fetched together share 4 MiB, with at least 8 KiB for each. */
enum { FIRST_BYTES = 1 << 20, LEAST_BYTES = 8 * 1024, TOGETHER = 4 << 20 };
enum { MOST_CHUNKS = 4096, CHUNK_BYTES = 32 << 20, BUCKETS = 1024 };

typedef struct chunk {
    cv_object id;
    cv_remote_object *object;
    cv_excerpt first;
    int users;
    bool is_forgotten;
    struct chunk *next;
    struct chunk *peer; /* next in its bucket */
} chunk;

typedef struct chunk_objects {
    cv_session *session;
    char *url;
    atomic_bool is_anew; /* bypasses the caches of servers */
    cv_mutex lock;       /* guards all chunks, except the bytes of those in use */
    chunk *chunks;       /* newest first */
    chunk *buckets[BUCKETS];
} chunk_objects;

static cv_status new_chunks(cv_session *session, const char *url, chunk_objects **out,
                            cv_error *err)
{
    chunk_objects *c = cv_calloc(1, sizeof *c);
    char *copy = cv_strdup(url);
    if (!c || !copy) {
        cv_free(c);
        cv_free(copy);
        return cv_fail_memory(err, sizeof *c, "a directory");
    }
    cv_session_retain(session);
    c->session = session;
    c->url = copy;
    atomic_init(&c->is_anew, false);
    cv_mutex_init(&c->lock);
    *out = c;
    return CV_OK;
}

static void free_chunk(chunk *k)
{
    cv_remote_object_free(k->object);
    cv_free(k->first.bytes);
    cv_free(k);
}

static void free_chunks(chunk_objects *c)
{
    if (!c) return;
    while (c->chunks) {
        chunk *k = c->chunks;
        c->chunks = k->next;
        free_chunk(k);
    }
    cv_session_release(c->session);
    cv_mutex_destroy(&c->lock);
    cv_free(c->url);
    cv_free(c);
}

/* Returns the kept chunk, or NULL. Requires the lock. */
static chunk *find_chunk(const chunk_objects *c, cv_object id)
{
    chunk *k = c->buckets[id % BUCKETS];
    while (k && (k->id != id || k->is_forgotten)) k = k->peer;
    return k;
}

static cv_status new_chunk(const chunk_objects *c, cv_object id, chunk **out, cv_error *err)
{
    char member[32];
    chunk *k = cv_calloc(1, sizeof *k);
    if (!k) return cv_fail_memory(err, sizeof *k, "a chunk");
    (void)snprintf(member, sizeof member, "/%s", cv_sframe_chunk_name(id).text);
    k->id = id;
    cv_status status = cv_remote_object_new(c->session, c->url, member, &k->object, err);
    if (status == CV_OK)
        *out = k;
    else
        free_chunk(k);
    return status;
}

static cv_status fetch_chunk(const chunk_objects *c, cv_object id, cv_watch *watch,
                             chunk **out, cv_error *err)
{
    bool no_ranges;
    chunk *k = NULL;
    const cv_range_request request = {.first = 0, .end = FIRST_BYTES};
    CV_TRY(new_chunk(c, id, &k, err));
    cv_status status = cv_excerpt_read(k->object, &request, atomic_load(&c->is_anew), watch,
                                       &k->first, &no_ranges, err);
    if (status == CATERVA_EUNSUPPORTED && no_ranges) { /* the chunk itself is supported */
        status = CATERVA_EIO;
        if (err) err->code = status;
    }
    if (status == CV_OK)
        *out = k;
    else
        free_chunk(k);
    return status;
}

static void drop_chunk(chunk_objects *c, chunk *k)
{
    chunk **link = &c->buckets[k->id % BUCKETS];
    while (*link != k) link = &(*link)->peer;
    *link = k->peer;
    free_chunk(k);
}

/* Drops unused chunks: forgotten ones, and the oldest beyond the limits. Requires the lock. */
static void drop_old_chunks(chunk_objects *c)
{
    size_t n = 0, size = 0;
    for (chunk **link = &c->chunks; *link;) {
        chunk *k = *link;
        size += k->first.size;
        bool fits = ++n <= MOST_CHUNKS && size <= CHUNK_BYTES && !k->is_forgotten;
        if (fits || k->users > 0) {
            link = &k->next;
            continue;
        }
        *link = k->next;
        drop_chunk(c, k);
    }
}

/* Keeps `k`, or frees it if this chunk has been kept meanwhile. Returns the kept chunk, marked as
 * in use. Requires the lock. */
static chunk *keep_chunk(chunk_objects *c, chunk *k)
{
    chunk *found = find_chunk(c, k->id);
    if (found) {
        free_chunk(k);
    } else {
        found = k;
        k->next = c->chunks;
        k->peer = c->buckets[k->id % BUCKETS];
        c->chunks = c->buckets[k->id % BUCKETS] = k;
    }
    found->users++;
    return found;
}

static cv_status use_chunk(chunk_objects *c, cv_object id, cv_watch *watch, chunk **out,
                           cv_error *err)
{
    cv_mutex_lock(&c->lock);
    *out = find_chunk(c, id);
    if (*out) (*out)->users++;
    cv_mutex_unlock(&c->lock);
    if (*out) return CV_OK;
    chunk *k = NULL;
    CV_TRY(fetch_chunk(c, id, watch, &k, err));
    cv_mutex_lock(&c->lock);
    *out = keep_chunk(c, k);
    drop_old_chunks(c);
    cv_mutex_unlock(&c->lock);
    return CV_OK;
}

/* Forgets the kept bytes. From now on, requests for chunks bypass all caches. */
static void forget_chunks(chunk_objects *c)
{
    atomic_store(&c->is_anew, true);
    cv_mutex_lock(&c->lock);
    for (chunk *k = c->chunks; k; k = k->next) k->is_forgotten = true;
    drop_old_chunks(c);
    cv_mutex_unlock(&c->lock);
}

static void leave_chunk(chunk_objects *c, chunk *k)
{
    cv_mutex_lock(&c->lock);
    k->users--;
    cv_mutex_unlock(&c->lock);
}

/* Makes *n chunks, one for each id that has no kept chunk. Equal ids must be adjacent. */
static cv_status make_missing(chunk_objects *c, const cv_object *ids, size_t n_ids,
                              chunk **list, size_t *n, cv_error *err)
{
    *n = 0;
    for (size_t i = 0; i < n_ids; i++) {
        cv_mutex_lock(&c->lock);
        bool is_kept = find_chunk(c, ids[i]) != NULL;
        cv_mutex_unlock(&c->lock);
        if (is_kept || (*n > 0 && list[*n - 1]->id == ids[i])) continue;
        CV_TRY(new_chunk(c, ids[i], &list[*n], err));
        ++*n;
    }
    return CV_OK;
}

static cv_status fetch_chunks(chunk_objects *c, chunk **list, size_t n,
                              cv_excerpt_order *orders, cv_watch *watch, cv_error *err)
{
    uint64_t each = n > 0 ? TOGETHER / n : 0;
    if (each > FIRST_BYTES) each = FIRST_BYTES;
    if (each < LEAST_BYTES) each = LEAST_BYTES;
    const bool is_anew = atomic_load(&c->is_anew);
    for (size_t i = 0; i < n; i++)
        orders[i] =
            (cv_excerpt_order){.object = list[i]->object, .size = each, .is_anew = is_anew};
    CV_TRY(cv_excerpts_read(orders, n, watch, err));
    for (size_t i = 0; i < n; i++) list[i]->first = orders[i].excerpt;
    return CV_OK;
}

/* Keeps the chunks that arrived. A read that needs a missing chunk requests it again. */
static void keep_chunks(chunk_objects *c, chunk **list, const cv_excerpt_order *orders,
                        size_t n, bool have_come)
{
    cv_mutex_lock(&c->lock);
    for (size_t i = 0; i < n; i++) {
        if (have_come && orders[i].status == CV_OK)
            keep_chunk(c, list[i])->users--;
        else
            free_chunk(list[i]);
    }
    drop_old_chunks(c);
    cv_mutex_unlock(&c->lock);
}

static cv_status meet_chunks(chunk_objects *c, const cv_object *ids, size_t n,
                             cv_watch *watch, cv_error *err)
{
    size_t n_missing = 0;
    chunk **list = cv_calloc(n + 1, sizeof *list);
    cv_excerpt_order *orders = cv_calloc(n + 1, sizeof *orders);
    cv_status status = list && orders
                           ? make_missing(c, ids, n, list, &n_missing, err)
                           : cv_fail_memory(err, n * sizeof *orders, "a list of chunks");
    if (status == CV_OK) status = fetch_chunks(c, list, n_missing, orders, watch, err);
    if (list && orders) keep_chunks(c, list, orders, n_missing, status == CV_OK);
    cv_free(list);
    cv_free(orders);
    return status;
}

static cv_status size_of_chunk(chunk_objects *c, cv_object id, cv_watch *watch,
                               uint64_t *size, cv_error *err)
{
    chunk *k;
    CV_TRY(use_chunk(c, id, watch, &k, err));
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a chunk in use is not dropped */
    *size = k->object->version.size;
    leave_chunk(c, k);
    return CV_OK;
}

static cv_status check_chunk_range(const chunk *k, const cv_store_range *r, cv_error *err)
{
    uint64_t size = k->object->version.size;
    if (r->pos <= size && r->size <= size - r->pos) return CV_OK;
    return cv_fail_past_end(err, k->object->name.text, r->pos, r->size, size);
}

typedef struct chunk_reading {
    cv_subset subset;           /* first member; ranges that must be fetched */
    cv_remote_object **objects; /* the object of each range in `subset` */
    chunk_objects *chunks;
    chunk **in_use; /* the chunk of each range read; NULL: none yet */
} chunk_reading;

static cv_status take_chunk_range(chunk_reading *r, size_t i, const cv_store_range *range,
                                  cv_error *err)
{
    cv_watch *watch = r->subset.arrivals.watch;
    CV_TRY(use_chunk(r->chunks, range->object, watch, &r->in_use[i], err));
    chunk *k = r->in_use[i];
    CV_TRY(check_chunk_range(k, range, err));
    if (range->pos + range->size > k->first.size) {
        r->objects[r->subset.n] = k->object;
        cv_subset_add(&r->subset, range, i);
        return CV_OK;
    }
    if (range->size > 0) memcpy(range->dst, k->first.bytes + range->pos, range->size);
    return cv_subset_arrived(&r->subset, i, err);
}

static cv_status read_chunk_ranges(chunk_reading *r, const cv_store_range *ranges, size_t n,
                                   cv_error *err)
{
    for (size_t i = 0; i < n; i++) {
        cv_status status = take_chunk_range(r, i, &ranges[i], err);
        if (status != CV_OK) cv_subset_failed(&r->subset, i);
        CV_TRY(status);
    }
    const cv_arrivals own = cv_subset_arrivals(&r->subset);
    const cv_wave_target target = {.objects = r->objects,
                                   .is_anew = atomic_load(&r->chunks->is_anew)};
    return cv_cached_wave_read(&target, NULL, r->subset.ranges, r->subset.n, &own, err);
}

static cv_status read_chunks(chunk_objects *c, const cv_store_range *ranges, size_t n,
                             const cv_arrivals *arrivals, cv_error *err)
{
    chunk_reading r = {.chunks = c,
                       .in_use = cv_calloc(n, sizeof *r.in_use),
                       .objects = cv_calloc(n, sizeof *r.objects)};
    cv_status status = cv_subset_init(&r.subset, n, arrivals, err);
    if (status == CV_OK)
        status = r.in_use && r.objects ? read_chunk_ranges(&r, ranges, n, err)
                                       : cv_fail_memory(err, n * sizeof *ranges, "ranges");
    for (size_t i = 0; i < n && r.in_use; i++)
        if (r.in_use[i]) leave_chunk(c, r.in_use[i]);
    cv_subset_free(&r.subset);
    cv_free(r.in_use);
    cv_free(r.objects);
    return status;
}

/* ---- The store --------------------------------------------------------------------------- */

/* Maximum bytes that `bring` fetches; it ignores larger requests. */
enum { MOST_BROUGHT = 64 << 20 };

/* Maximum size of chunks read whole: at 100 Mbit/s this takes 80 ms, about a round trip. */
enum { MOST_WHOLE = 1 << 20 };

typedef struct remote_store {
    cv_store base;
    char *url; /* as the caller gave it */
    uint64_t given_offset;
    cv_remote_file *file;
    chunk_objects *chunks;  /* NULL unless it is a directory */
    uint64_t offset, size;  /* the bytes of the file that form this store */
    bool is_part;           /* made by cv_remote_part */
    atomic_bool is_anew;    /* kept excerpts are not lent */
    atomic_bool is_doubted; /* a stale read is suspected: reads bypass all caches */
    atomic_bool has_changed;
} remote_store;

/* ---- Reading -------------------------------------------------------------------------- */

static cv_status remote_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err)
{
    remote_store *s = (remote_store *)store;
    if (object != CV_FRAME_OBJECT && s->chunks)
        return size_of_chunk(s->chunks, object, store->watch, size, err);
    CV_TRY(cv_store_check_frame(store, object, err));
    *size = s->size;
    return CV_OK;
}

static cv_status check_range(const remote_store *s, uint64_t pos, size_t size, cv_error *err)
{
    if (pos <= s->size && size <= s->size - pos) return CV_OK;
    return cv_fail_past_end(err, s->file->object->name.text, pos, size, s->size);
}

static const uint8_t *remote_view(cv_store *store, cv_object object, uint64_t pos,
                                  size_t size)
{
    remote_store *s = (remote_store *)store;
    bool is_inside = pos <= s->size && size <= s->size - pos;
    if (object != CV_FRAME_OBJECT || !is_inside || atomic_load(&s->is_anew)) return NULL;
    return cv_remote_file_find(s->file, s->offset + pos, size);
}

static void remote_read_anew(cv_store *store)
{
    atomic_store(&((remote_store *)store)->is_anew, true);
}

static cv_status ignore_arrival(void *context, size_t range, cv_error *err)
{
    (void)context, (void)range, (void)err;
    return CV_OK;
}

/* Returns the cache, or NULL if neither a strong ETag nor a seal tells versions apart. */
static cv_range_cache *cache_of(remote_store *s)
{
    cv_remote_file *f = s->file;
    size_t size;
    if (!f->cache || cv_etag_is_strong(f->object->version.etag)) return f->cache;
    return s->base.is_vouched && cv_remote_file_end(f, &size) ? f->cache : NULL;
}

static bool is_past_caches(remote_store *s)
{
    return atomic_load(&s->is_anew) || atomic_load(&s->is_doubted);
}

static cv_wave_target target_of(remote_store *s)
{
    return (cv_wave_target){
        .object = s->file->object, .offset = s->offset, .is_anew = is_past_caches(s)};
}

/* Fetches and keeps CV_HEAD_BYTES, because readers of a frame read the bytes behind next. */
static cv_status read_head(remote_store *s, void *dst, size_t size, cv_error *err)
{
    bool no_ranges;
    uint64_t end = s->size < CV_HEAD_BYTES ? s->size : CV_HEAD_BYTES;
    const cv_range_request request = {.first = s->offset, .end = s->offset + end};
    CV_TRY(
        cv_remote_file_fetch(s->file, cache_of(s), &request, s->base.watch, &no_ranges, err));
    memcpy(dst, cv_remote_file_find(s->file, s->offset, size), size);
    return CV_OK;
}

static cv_status remote_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                             size_t size, cv_error *err)
{
    remote_store *s = (remote_store *)store;
    const cv_store_range range = {object, pos, size, dst};
    const cv_arrivals arrivals = {.arrived = ignore_arrival, .watch = store->watch};
    if (object != CV_FRAME_OBJECT && s->chunks)
        return read_chunks(s->chunks, &range, 1, &arrivals, err);
    CV_TRY(cv_store_check_frame(store, object, err));
    CV_TRY(check_range(s, pos, size, err));
    if (size == 0) return CV_OK;
    const uint8_t *bytes = remote_view(store, object, pos, size);
    if (bytes) {
        memcpy(dst, bytes, size);
        return CV_OK;
    }
    if (pos == 0 && size <= CV_HEAD_BYTES && !is_past_caches(s))
        return read_head(s, dst, size, err);
    const cv_wave_target target = target_of(s);
    return cv_cached_wave_read(&target, cache_of(s), &range, 1, &arrivals, err);
}

/* ---- Waves ----------------------------------------------------------------------------- */

static cv_status take_kept(remote_store *s, const cv_store_range *ranges, size_t n,
                           cv_subset *rest, cv_error *err)
{
    const cv_arrivals *a = &rest->arrivals;
    for (size_t i = 0; i < n; i++) {
        const cv_store_range *r = &ranges[i];
        cv_status status = check_range(s, r->pos, r->size, err);
        if (status != CV_OK) cv_subset_failed(rest, i);
        CV_TRY(status);
        const uint8_t *bytes = remote_view(&s->base, r->object, r->pos, r->size);
        if (!bytes && r->size > 0) {
            cv_subset_add(rest, r, i);
            continue;
        }
        uint8_t *dst = r->dst;
        if (bytes && !dst)
            /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): without dst there is lend */
            CV_TRY(a->lend(a->context, i, SIZE_MAX, &dst, err));
        if (bytes) memcpy(dst, bytes, r->size);
        CV_TRY(cv_subset_arrived(rest, i, err));
    }
    return CV_OK;
}

static bool are_all(const cv_store_range *ranges, size_t n, bool of_frame)
{
    size_t i = 0;
    while (i < n && (ranges[i].object == CV_FRAME_OBJECT) == of_frame) i++;
    return i == n;
}

static void end_rest(cv_reading *reading, bool gives_up)
{
    cv_subset *rest = (cv_subset *)reading; /* its first member */
    cv_store_end_wave(rest->reading, gives_up);
    cv_subset_free(rest);
    cv_free(rest);
}

static cv_status remote_begin_wave(cv_store *store, const cv_store_range *ranges, size_t n,
                                   const cv_arrivals *arrivals, cv_gathering *all,
                                   cv_reading **out, cv_error *err)
{
    remote_store *s = (remote_store *)store;
    cv_subset *rest = cv_calloc(1, sizeof *rest);
    if (!rest) return cv_fail_memory(err, sizeof *rest, "a list of ranges");
    rest->base.end = end_rest;
    cv_status status = cv_subset_init(rest, n, arrivals, err);
    if (status == CV_OK) status = take_kept(s, ranges, n, rest, err);
    if (status == CV_OK) {
        const cv_arrivals own = cv_subset_arrivals(rest);
        const cv_wave_target target = target_of(s);
        status = cv_cached_wave_begin(&target, cache_of(s), rest->ranges, rest->n, &own, all,
                                      &rest->reading, err);
    }
    if (status == CV_OK)
        *out = &rest->base;
    else
        end_rest(&rest->base, true);
    return status;
}

static cv_status remote_read_many(cv_store *store, const cv_store_range *ranges, size_t n,
                                  const cv_arrivals *arrivals, cv_error *err)
{
    remote_store *s = (remote_store *)store;
    cv_gathering all;
    cv_reading *reading = NULL;
    if (s->chunks && are_all(ranges, n, false))
        return read_chunks(s->chunks, ranges, n, arrivals, err);
    if (!are_all(ranges, n, true)) return cv_store_read_each(store, ranges, n, arrivals, err);
    cv_gathering_init(&all);
    cv_status status = remote_begin_wave(store, ranges, n, arrivals, &all, &reading, err);
    if (status == CV_OK) status = cv_gathering_finish(&all, reading, arrivals->watch, err);
    cv_gathering_destroy(&all);
    return status;
}

/* Returns false if a cache copies arriving bytes, because ranges then need memory from the
 * beginning. Also false if requests share a connection (HTTP/2): a paused one may block others. */
static bool remote_borrows(cv_store *store)
{
    remote_store *s = (remote_store *)store;
    return !cache_of(s) && !atomic_load(&s->file->object->session->limit.is_multiplexed);
}

static void remote_resume(cv_store *store)
{
    (void)store;
    cv_wire_resume();
}

static size_t remote_wave_bytes(cv_store *store)
{
    remote_store *s = (remote_store *)store;
    return cv_session_wave(s->file->object->session) / (cache_of(s) ? 2 : 1);
}

static uint64_t remote_spare(cv_store *store, uint64_t needed)
{
    remote_store *s = (remote_store *)store;
    return cv_session_spare(s->file->object->session, needed);
}

static cv_status remote_meet(cv_store *store, const cv_object *objects, size_t n,
                             cv_error *err)
{
    remote_store *s = (remote_store *)store;
    return s->chunks ? meet_chunks(s->chunks, objects, n, store->watch, err) : CV_OK;
}

static cv_status remote_bring(cv_store *store, uint64_t pos, uint64_t size, cv_error *err)
{
    remote_store *s = (remote_store *)store;
    bool no_ranges;
    if (size == 0 || size > MOST_BROUGHT || is_past_caches(s)) return CV_OK;
    CV_TRY(check_range(s, pos, (size_t)size, err));
    if (cv_remote_file_find(s->file, s->offset + pos, (size_t)size)) return CV_OK;
    const cv_range_request request = {.first = s->offset + pos,
                                      .end = s->offset + pos + size};
    return cv_remote_file_fetch(s->file, cache_of(s), &request, store->watch, &no_ranges,
                                err);
}

/* ---- Suspicion of a stale read ---------------------------------------------------------- */

static cv_status fail_changed(const remote_store *s, cv_error *err)
{
    return cv_fail(err, CATERVA_EIO, -1, "%s: it changed on the server since it was opened",
                   s->file->object->name.text);
}

/* Fetches the kept bytes again, since they may have been damaged in transit. If they differ now,
 * the object counts as changed, until a read passes all checks (remote_settle). */
static cv_status remote_doubt(cv_store *store, bool begins, cv_error *err)
{
    remote_store *s = (remote_store *)store;
    /* an ETag or a seal tells bytes of another version apart */
    bool knows_version =
        s->base.is_vouched || cv_etag_is_strong(s->file->object->version.etag);
    bool is_same, goes_on = begins || knows_version;
    const cv_recheck recheck = {s->offset, s->offset + s->size, goes_on, store->watch};
    CV_TRY(cv_remote_file_compare(s->file, &recheck, &is_same, err));
    if (!is_same) atomic_store(&s->has_changed, true);
    if (!goes_on && atomic_load(&s->has_changed)) return fail_changed(s, err);
    atomic_store(&s->is_doubted, true);
    if (s->chunks) forget_chunks(s->chunks);
    if (s->file->cache) cv_range_cache_forget(s->file->cache);
    return CV_OK;
}

static cv_status remote_settle(cv_store *store, bool is_right, cv_error *err)
{
    remote_store *s = (remote_store *)store;
    if (is_right) atomic_store(&s->has_changed, false);
    return atomic_load(&s->has_changed) ? fail_changed(s, err) : CV_OK;
}

/* ---- Making stores ----------------------------------------------------------------------- */

static void remote_stamp(cv_store *store, cv_stamp *out)
{
    const cv_version *identity = &((remote_store *)store)->file->object->version;
    *out = (cv_stamp){
        .object = cv_crc32c(0, identity->etag, strlen(identity->etag)),
        .time = cv_crc32c(0, identity->modified, strlen(identity->modified)),
        .size = identity->size,
    };
}

static void remote_close(cv_store *store)
{
    remote_store *s = (remote_store *)store;
    free_chunks(s->chunks);
    cv_remote_file_release(s->file);
    cv_free(s->url);
    cv_free(s);
}

static const cv_store_ops remote_ops = {
    .name = "URL",
    .stamp = remote_stamp,
    .size = remote_size,
    .read = remote_read,
    .read_many = remote_read_many,
    .begin_wave = remote_begin_wave,
    .borrows = remote_borrows,
    .resume = remote_resume,
    .wave_bytes = remote_wave_bytes,
    .spare = remote_spare,
    .meet = remote_meet,
    .view = remote_view,
    .bring = remote_bring,
    .read_anew = remote_read_anew,
    .doubt = remote_doubt,
    .settle = remote_settle,
    .close = remote_close,
};

/* Makes a store of `file` from byte `offset` on or, with `chunks`, of a directory. Takes ownership
 * of `file` and `chunks`, also on failure. */
static cv_status new_store(cv_remote_file *file, chunk_objects *chunks, const char *url,
                           uint64_t offset, cv_store **out, cv_error *err)
{
    remote_store *s = cv_calloc(1, sizeof *s);
    char *copy = cv_strdup(url);
    if (!s || !copy) {
        cv_free(s);
        cv_free(copy);
        free_chunks(chunks);
        cv_remote_file_release(file);
        return cv_fail_memory(err, sizeof *s, "a URL");
    }
    int over_percent = file->object->session->options.over_read_percent;
    /* join_gap 1: waves join ranges by their cost. */
    s->base = (cv_store){.ops = &remote_ops,
                         .has_chunk_objects = chunks != NULL,
                         .published = true,
                         .is_far = true,
                         .is_pinned = true,
                         .join_gap = 1,
                         .most_whole = over_percent > 0 ? MOST_WHOLE : 0,
                         .opened = cv_os_now()};
    s->url = copy;
    s->file = file;
    s->chunks = chunks;
    s->offset = s->given_offset = offset;
    s->size = file->object->version.size - offset;
    atomic_init(&s->is_anew, false);
    atomic_init(&s->is_doubted, false);
    atomic_init(&s->has_changed, false);
    *out = &s->base;
    return CV_OK;
}

cv_session *cv_remote_session(const cv_store *store)
{
    if (store->ops != &remote_ops) return NULL;
    return ((const remote_store *)store)->file->object->session;
}

cv_status cv_remote_part(cv_store *store, uint64_t offset, uint64_t size, cv_store **out,
                         cv_error *err)
{
    remote_store *s = (remote_store *)store;
    if (size == UINT64_MAX) size = s->size - offset;
    CV_TRY(check_range(s, offset, (size_t)size, err));
    uint64_t tail = size < CV_TAIL_BYTES ? size : CV_TAIL_BYTES;
    CV_TRY(remote_bring(store, offset + size - tail, tail, err));
    atomic_fetch_add(&s->file->users, 1);
    CV_TRY(new_store(s->file, NULL, s->url, 0, out, err));
    ((remote_store *)*out)->offset = s->offset + offset;
    ((remote_store *)*out)->size = size;
    atomic_store(&((remote_store *)*out)->is_doubted, is_past_caches(s));
    ((remote_store *)*out)->is_part = true;
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

/* ---- Opening ----------------------------------------------------------------------------- */

static cv_status open_object(cv_session *session, const char *url, uint64_t offset,
                             cv_watch *watch, cv_store **out, cv_error *err)
{
    cv_remote_file *file = NULL;
    CV_TRY(cv_remote_file_open(session, url, "", offset, watch, &file, err));
    return new_store(file, NULL, url, offset, out, err);
}

static cv_status open_directory(cv_session *session, const char *url, cv_watch *watch,
                                cv_store **out, cv_error *err)
{
    cv_remote_file *file = NULL;
    chunk_objects *chunks = NULL;
    CV_TRY(cv_remote_file_open(session, url, "/" CV_SFRAME_FRAME, 0, watch, &file, err));
    cv_status status = new_chunks(session, url, &chunks, err);
    if (status == CV_OK) return new_store(file, chunks, url, 0, out, err);
    cv_remote_file_release(file);
    return status;
}

/* Opens an object or a directory. A URL that ends with a slash names a directory. Another URL is
 * opened as a directory if it has no object and `offset` is 0. */
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
    const remote_store *s = (const remote_store *)store;
    *out = NULL;
    if (store->ops != &remote_ops || s->is_part) return CV_OK;
    cv_session *session = s->file->object->session;
    return s->chunks ? open_directory(session, s->url, watch, out, err)
                     : open_object(session, s->url, s->given_offset, watch, out, err);
}
