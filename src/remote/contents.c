/* Room: remote. Contents of one object: excerpts fetched by single requests, waves that read
 * through the cache of ranges in a folder, and the excerpts that stores keep in memory and lend.
 * object.c pins the version that is read; store.c decides whether it may have changed. */
#include "remote/transfer.h"

#include "base/arith.h"
#include "base/sha256.h"

#include <string.h>

/* ---- Excerpts ---------------------------------------------------------------------------- */

typedef struct excerpt_request {
    cv_fetch fetch; /* first */
    cv_excerpt *out;
    cv_gathered *all;  /* waits for this request, or for many together */
    cv_status *status; /* of this request, if it is one of many; else NULL */
} excerpt_request;

static cv_status excerpt_begin(cv_fetch *fetch, const cv_content_range *content,
                               cv_error *err)
{
    cv_excerpt *out = ((excerpt_request *)fetch)->out;
    out->bytes = cv_malloc((size_t)content->size);
    if (!out->bytes) return cv_fail_memory(err, (size_t)content->size, "bytes of a URL");
    out->pos = content->first;
    out->size = (size_t)content->size;
    return CV_OK;
}

static cv_status excerpt_take(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes,
                              size_t size, cv_error *err)
{
    cv_excerpt *out = ((excerpt_request *)fetch)->out;
    (void)err;
    memcpy(out->bytes + (pos - out->pos), bytes, size);
    return CV_OK;
}

static void excerpt_gone(cv_fetch *fetch)
{
    const excerpt_request *r = (excerpt_request *)fetch;
    if (r->status) *r->status = fetch->status;
    cv_gathered_gone(r->all, 1, r->status ? CV_OK : fetch->status, &fetch->error, SIZE_MAX);
}

static cv_status wait_for_excerpts(cv_gathered *gathered, excerpt_request *list, size_t n,
                                   cv_watch *watch, cv_error *err)
{
    bool goes_on = true;
    cv_status status = CV_OK;
    while (goes_on && status == CV_OK)
        status = cv_gathering_wait(gathered->all, watch, &goes_on, err);
    for (size_t i = 0; status != CV_OK && i < n; i++) cv_fetch_cancel(&list[i].fetch);
    cv_gathered_leave(gathered);
    return status;
}

static const cv_receiver excerpt_receiver = {
    .begin = excerpt_begin, .take = excerpt_take, .gone = excerpt_gone};

static cv_status begin_request(excerpt_request *r, cv_remote_object *object,
                               const cv_range_request *range, bool is_anew, cv_error *err)
{
    r->fetch.request = (cv_fetch_request){object, *range, is_anew, 1};
    r->fetch.delivery.receiver = &excerpt_receiver;
    return cv_fetch_begin(&r->fetch, err);
}

cv_status cv_excerpt_read(cv_remote_object *object, const cv_range_request *request,
                          bool is_anew, cv_watch *watch, cv_excerpt *out, bool *has_no_ranges,
                          cv_error *err)
{
    const cv_arrivals none = {.watch = watch};
    cv_gathering all;
    cv_gathered gathered;
    excerpt_request r = {.out = out, .all = &gathered};
    *out = (cv_excerpt){0};
    cv_gathering_init(&all);
    cv_status status = cv_gathered_join(&gathered, &all, &none, 0, 1, err);
    if (status == CV_OK) {
        cv_error error = {0};
        atomic_fetch_add(&object->session->round_trips, 1);
        status = begin_request(&r, object, request, is_anew, &error);
        if (status != CV_OK) cv_gathered_gone(&gathered, 1, status, &error, SIZE_MAX);
        status = wait_for_excerpts(&gathered, &r, status == CV_OK ? 1 : 0, watch, err);
    }
    *has_no_ranges = r.fetch.outcome == CV_FETCH_NO_RANGES;
    cv_gathering_destroy(&all);
    if (status != CV_OK) cv_free(out->bytes);
    if (status != CV_OK) *out = (cv_excerpt){0};
    return status;
}

static void begin_orders(cv_excerpt_order *orders, excerpt_request *list, size_t n,
                         cv_gathered *gathered)
{
    for (size_t i = 0; i < n; i++) {
        const cv_range_request range = {.first = 0, .end = orders[i].size};
        list[i].out = &orders[i].excerpt;
        list[i].all = gathered;
        list[i].status = &orders[i].status;
        cv_status status =
            begin_request(&list[i], orders[i].object, &range, orders[i].is_anew, NULL);
        if (status == CV_OK) continue;
        orders[i].status = status;
        cv_gathered_gone(gathered, 1, CV_OK, NULL, SIZE_MAX);
    }
}

cv_status cv_excerpts_read(cv_excerpt_order *orders, size_t n, cv_watch *watch, cv_error *err)
{
    const cv_arrivals none = {.watch = watch};
    cv_gathering all;
    cv_gathered gathered;
    if (n == 0) return CV_OK;
    excerpt_request *list = cv_calloc(n, sizeof *list);
    if (!list) return cv_fail_memory(err, n * sizeof *list, "requests");
    cv_gathering_init(&all);
    cv_status status = cv_gathered_join(&gathered, &all, &none, 0, n, err);
    if (status == CV_OK) {
        atomic_fetch_add(&orders[0].object->session->round_trips, 1);
        begin_orders(orders, list, n, &gathered);
        status = wait_for_excerpts(&gathered, list, n, watch, err);
    }
    cv_gathering_destroy(&all);
    cv_free(list);
    for (size_t i = 0; i < n; i++) {
        cv_excerpt_order *o = &orders[i];
        if (status == CV_OK && o->status == CV_OK) continue;
        cv_free(o->excerpt.bytes);
        o->excerpt = (cv_excerpt){0};
    }
    return status;
}

/* ---- Keys of the cache ------------------------------------------------------------------- */

static void add_text(cv_sha256 *hash, const char *text, size_t size)
{
    uint8_t length[8];
    cv_store_le64(length, size);
    cv_sha256_add(hash, length, sizeof length);
    cv_sha256_add(hash, text, size);
}

/* Adds the URL, but not the signature of a presigned URL, because signatures differ each time. */
static void add_url(cv_sha256 *hash, const char *url)
{
    size_t size = strcspn(url, "?");
    add_text(hash, url, size);
    for (const char *p = url + size; *p; p += size) {
        size = 1 + strcspn(p + 1, "&");
        if (strncmp(p + 1, "X-Amz-", 6) != 0) add_text(hash, p + 1, size - 1);
    }
}

static void make_key(const cv_remote_object *o, const uint8_t *end, size_t end_size,
                     uint8_t key[CV_PACK_KEY])
{
    cv_sha256 hash;
    uint8_t size[8];
    const char *etag = cv_etag_is_strong(o->version.etag) ? o->version.etag : "";
    cv_sha256_begin(&hash);
    add_url(&hash, o->url);
    add_text(&hash, etag, strlen(etag));
    cv_store_le64(size, o->version.size);
    cv_sha256_add(&hash, size, sizeof size);
    if (end) cv_sha256_add(&hash, end, end_size);
    cv_sha256_end(&hash, key);
}

/* Opens the cache of this object version in the folder of the options; NULL without a folder. The
 * object's last bytes (or NULL) are part of the key. */
static cv_range_cache *open_range_cache(const cv_remote_object *object, const uint8_t *end,
                                        size_t end_size)
{
    uint8_t key[CV_PACK_KEY];
    const caterva_remote_options *o = &object->session->options;
    if (!o->cache_folder) return NULL;
    make_key(object, end, end_size, key);
    return cv_range_cache_open(o->cache_folder, (uint64_t)o->cache_bytes, key);
}

/* ---- Waves through the cache ------------------------------------------------------------- */

cv_status cv_subset_init(cv_subset *s, size_t n, const cv_arrivals *arrivals, cv_error *err)
{
    s->arrivals = *arrivals;
    s->ranges = cv_calloc(n, sizeof *s->ranges);
    s->numbers = cv_calloc(n, sizeof *s->numbers);
    if (s->ranges && s->numbers) return CV_OK;
    return cv_fail_memory(err, n * sizeof *s->ranges, "a list of ranges");
}

void cv_subset_free(cv_subset *s)
{
    cv_free(s->ranges);
    cv_free(s->numbers);
}

void cv_subset_add(cv_subset *s, const cv_store_range *range, size_t number)
{
    s->ranges[s->n] = *range;
    s->numbers[s->n++] = number;
}

cv_status cv_subset_arrived(const cv_subset *s, size_t number, cv_error *err)
{
    return s->arrivals.arrived(s->arrivals.context, number, err);
}

void cv_subset_failed(const cv_subset *s, size_t number)
{
    if (s->arrivals.failed) s->arrivals.failed(s->arrivals.context, number);
}

static cv_status range_arrived(void *context, size_t range, cv_error *err)
{
    const cv_subset *s = context;
    return cv_subset_arrived(s, s->numbers[range], err);
}

static void range_failed(void *context, size_t range)
{
    const cv_subset *s = context;
    cv_subset_failed(s, s->numbers[range]);
}

static cv_status lend_range(void *context, size_t range, size_t stuck, uint8_t **dst,
                            cv_error *err)
{
    const cv_subset *s = context;
    return s->arrivals.lend(s->arrivals.context, s->numbers[range], stuck, dst, err);
}

cv_arrivals cv_subset_arrivals(cv_subset *s)
{
    cv_arrivals own = s->arrivals;
    own.arrived = range_arrived;
    own.failed = range_failed;
    if (own.lend) own.lend = lend_range;
    own.context = s;
    return own;
}

/* Ranges that the cache does not have. Their bytes are copied as they arrive, because the reader
 * may reuse its memory at once, and are added to the cache at the end. */
typedef struct missing {
    cv_subset subset; /* first */
    cv_wave_target target;
    cv_range_cache *cache;
    uint8_t *bytes; /* NULL: no memory, nothing is cached */
    size_t *at;     /* position of each range in `bytes` */
    bool *is_here;
} missing;

static cv_status missing_arrived(void *context, size_t range, cv_error *err)
{
    missing *m = context;
    const cv_store_range *r = &m->subset.ranges[range];
    if (m->bytes) memcpy(m->bytes + m->at[range], r->dst, r->size);
    m->is_here[range] = true;
    return range_arrived(context, range, err);
}

static cv_status take_cached(missing *m, const cv_store_range *ranges, size_t n,
                             cv_error *err)
{
    const cv_wave_target *target = &m->target;
    cv_session *s = target->object->session;
    if (!target->is_anew) cv_range_cache_look(m->cache);
    for (size_t i = 0; i < n; i++) {
        const cv_store_range *r = &ranges[i];
        uint64_t pos = target->offset + r->pos;
        if (target->is_anew || !cv_range_cache_get(m->cache, pos, r->dst, r->size)) {
            cv_subset_add(&m->subset, r, i);
            continue;
        }
        atomic_fetch_add(&s->cached, (int64_t)r->size);
        CV_TRY(cv_subset_arrived(&m->subset, i, err));
    }
    return CV_OK;
}

/* Allocates memory for the bytes. If the allocation fails, the bytes are not cached. */
static cv_status prepare_missing(missing *m, cv_error *err)
{
    const cv_subset *s = &m->subset;
    size_t size = 0;
    m->at = cv_calloc(s->n, sizeof *m->at);
    m->is_here = cv_calloc(s->n, sizeof *m->is_here);
    if (!m->at || !m->is_here)
        return cv_fail_memory(err, s->n * sizeof *m->at, "a list of ranges");
    for (size_t i = 0; i < s->n; i++) {
        m->at[i] = size;
        size += s->ranges[i].size;
    }
    m->bytes = cv_malloc(size);
    return CV_OK;
}

/* Adds to the cache the ranges before the first one that did not arrive. */
static void keep(const missing *m)
{
    const cv_subset *s = &m->subset;
    uint64_t *positions = cv_calloc(s->n, sizeof *positions);
    size_t *sizes = cv_calloc(s->n, sizeof *sizes), n = 0;
    for (; positions && sizes && n < s->n && m->is_here[n]; n++) {
        positions[n] = m->target.offset + s->ranges[n].pos;
        sizes[n] = s->ranges[n].size;
    }
    if (n > 0) cv_range_cache_put(m->cache, positions, sizes, n, m->bytes);
    cv_free(positions);
    cv_free(sizes);
}

static void end_missing(cv_reading *reading, bool gives_up)
{
    missing *m = (missing *)reading; /* its first member */
    cv_store_end_wave(m->subset.reading, gives_up);
    if (m->bytes) keep(m);
    cv_subset_free(&m->subset);
    cv_free(m->bytes);
    cv_free(m->at);
    cv_free(m->is_here);
    cv_free(m);
}

cv_status cv_cached_wave_begin(const cv_wave_target *target, cv_range_cache *cache,
                               const cv_store_range *ranges, size_t n,
                               const cv_arrivals *arrivals, cv_gathering *all,
                               cv_reading **out, cv_error *err)
{
    if (!cache || n == 0)
        return cv_remote_wave_begin(target, ranges, n, arrivals, all, out, err);
    *out = NULL;
    missing *m = cv_calloc(1, sizeof *m);
    if (!m) return cv_fail_memory(err, sizeof *m, "a list of ranges");
    m->subset.base.end = end_missing;
    m->target = *target;
    m->cache = cache;
    cv_subset *s = &m->subset;
    cv_status status = cv_subset_init(s, n, arrivals, err);
    if (status == CV_OK) status = take_cached(m, ranges, n, err);
    if (status == CV_OK && s->n > 0) status = prepare_missing(m, err);
    if (status == CV_OK && s->n > 0) {
        cv_arrivals own = cv_subset_arrivals(s);
        own.arrived = missing_arrived;
        status = cv_remote_wave_begin(target, s->ranges, s->n, &own, all, &s->reading, err);
    }
    if (status == CV_OK)
        *out = &s->base;
    else
        end_missing(&s->base, true);
    return status;
}

cv_status cv_cached_wave_read(const cv_wave_target *target, cv_range_cache *cache,
                              const cv_store_range *ranges, size_t n,
                              const cv_arrivals *arrivals, cv_error *err)
{
    cv_gathering all;
    cv_reading *reading;
    cv_gathering_init(&all);
    cv_status status =
        cv_cached_wave_begin(target, cache, ranges, n, arrivals, &all, &reading, err);
    if (status == CV_OK) status = cv_gathering_finish(&all, reading, arrivals->watch, err);
    cv_gathering_destroy(&all);
    return status;
}

/* ---- Files ------------------------------------------------------------------------------- */

void cv_remote_file_release(cv_remote_file *f)
{
    if (!f || atomic_fetch_sub(&f->users, 1) > 1) return;
    for (cv_kept_excerpt *k = atomic_load(&f->kept); k;) {
        cv_kept_excerpt *next = k->next;
        cv_free(k->excerpt.bytes);
        cv_free(k);
        k = next;
    }
    cv_range_cache_close(f->cache);
    cv_remote_object_free(f->object);
    cv_free(f);
}

/* Takes ownership of the bytes, also on failure. */
static cv_status keep_excerpt(cv_remote_file *f, cv_excerpt *excerpt, cv_error *err)
{
    cv_kept_excerpt *k = cv_malloc(sizeof *k);
    if (!k) {
        cv_free(excerpt->bytes);
        return cv_fail_memory(err, sizeof *k, "bytes of a URL");
    }
    k->excerpt = *excerpt;
    k->next = atomic_load(&f->kept);
    while (!atomic_compare_exchange_weak(&f->kept, &k->next, k)) continue;
    return CV_OK;
}

const uint8_t *cv_remote_file_find(const cv_remote_file *f, uint64_t pos, size_t size)
{
    for (const cv_kept_excerpt *k = atomic_load(&f->kept); k; k = k->next) {
        const cv_excerpt *p = &k->excerpt;
        if (pos >= p->pos && pos - p->pos <= p->size && size <= p->size - (pos - p->pos))
            return p->bytes + (pos - p->pos);
    }
    return NULL;
}

static bool find_cached(cv_remote_file *f, cv_range_cache *cache,
                        const cv_range_request *request, cv_excerpt *out)
{
    size_t size = (size_t)(request->end - request->first);
    uint8_t *bytes = cv_malloc(size);
    cv_range_cache_look(cache);
    if (!bytes || !cv_range_cache_get(cache, request->first, bytes, size)) {
        cv_free(bytes);
        return false;
    }
    *out = (cv_excerpt){.pos = request->first, .size = size, .bytes = bytes};
    atomic_fetch_add(&f->object->session->cached, (int64_t)size);
    return true;
}

cv_status cv_remote_file_fetch(cv_remote_file *f, cv_range_cache *cache,
                               const cv_range_request *request, cv_watch *watch,
                               bool *has_no_ranges, cv_error *err)
{
    cv_excerpt e;
    bool is_cached = cache && !request->is_suffix && request->end <= f->object->version.size;
    *has_no_ranges = false;
    if (is_cached && find_cached(f, cache, request, &e)) return keep_excerpt(f, &e, err);
    CV_TRY(cv_excerpt_read(f->object, request, false, watch, &e, has_no_ranges, err));
    if (is_cached) cv_range_cache_put(cache, &e.pos, &e.size, 1, e.bytes);
    return keep_excerpt(f, &e, err);
}

/* Fetches the object's end or, if `offset` is not 0, the bytes from there on. If the server does
 * not support suffix ranges, fetches the beginning; the reply states the object's size. */
static cv_status fetch_first(cv_remote_file *f, uint64_t offset, cv_watch *watch,
                             cv_error *err)
{
    bool no_ranges;
    const cv_range_request tail = {.is_suffix = true, .end = CV_TAIL_BYTES};
    const cv_range_request head = {.first = 0, .end = CV_HEAD_BYTES};
    const cv_range_request inside = {.first = offset, .end = offset + CV_TAIL_BYTES};
    if (offset > 0) return cv_remote_file_fetch(f, NULL, &inside, watch, &no_ranges, err);
    cv_status status = cv_remote_file_fetch(f, NULL, &tail, watch, &no_ranges, err);
    return status != CV_OK && no_ranges
               ? cv_remote_file_fetch(f, NULL, &head, watch, &no_ranges, err)
               : status;
}

const uint8_t *cv_remote_file_end(const cv_remote_file *f, size_t *size)
{
    uint64_t all = f->object->version.size;
    *size = all < CV_TAIL_BYTES ? (size_t)all : CV_TAIL_BYTES;
    return cv_remote_file_find(f, all - *size, *size);
}

static cv_status compare(cv_remote_file *f, const cv_excerpt *then, const cv_recheck *recheck,
                         bool *is_same, cv_error *err)
{
    const cv_range_request range = {.first = then->pos, .end = then->pos + then->size};
    cv_excerpt now;
    bool no_ranges;
    CV_TRY(cv_excerpt_read(f->object, &range, true, recheck->watch, &now, &no_ranges, err));
    bool has_all = now.pos <= range.first && now.pos + now.size >= range.end;
    if (has_all &&
        memcmp(now.bytes + (range.first - now.pos), then->bytes, then->size) == 0) {
        cv_free(now.bytes);
        return CV_OK;
    }
    *is_same = false;
    if (has_all && recheck->replaces) return keep_excerpt(f, &now, err);
    cv_free(now.bytes);
    return CV_OK;
}

/* Compares the newest excerpts first: if the opening did not fetch the frame's end, one of them is
 * that end. An excerpt that a newer one replaced is no longer lent, and is not compared. */
cv_status cv_remote_file_compare(cv_remote_file *f, const cv_recheck *recheck, bool *is_same,
                                 cv_error *err)
{
    *is_same = true;
    for (const cv_kept_excerpt *k = atomic_load(&f->kept); k; k = k->next) {
        const cv_excerpt *p = &k->excerpt;
        uint64_t end = p->pos + p->size;
        bool is_asked =
            (p->pos < recheck->end && end > recheck->begin) || end == f->object->version.size;
        if (!*is_same && !recheck->replaces) break;
        if (is_asked && cv_remote_file_find(f, p->pos, p->size) == p->bytes)
            CV_TRY(compare(f, p, recheck, is_same, err));
    }
    return CV_OK;
}

cv_status cv_remote_file_open(cv_session *session, const char *url, const char *member,
                              uint64_t offset, cv_watch *watch, cv_remote_file **out,
                              cv_error *err)
{
    cv_remote_file *f = cv_calloc(1, sizeof *f);
    if (!f) return cv_fail_memory(err, sizeof *f, "a URL");
    atomic_init(&f->users, 1);
    atomic_init(&f->kept, NULL);
    cv_status status = cv_remote_object_new(session, url, member, &f->object, err);
    if (status == CV_OK) status = fetch_first(f, offset, watch, err);
    if (status != CV_OK) {
        cv_remote_file_release(f);
        return status;
    }
    size_t end_size;
    const uint8_t *end = cv_remote_file_end(f, &end_size);
    f->cache = open_range_cache(f->object, end, end_size);
    *out = f;
    return CV_OK;
}
