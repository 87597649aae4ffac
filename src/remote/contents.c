/* Room: remote. INTRO of remote/contents */
#include "remote/contents.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/sha256.h"
#include "remote/fetch.h"
#include "store/reading.h"
#include "store/refusals.h"
#include "store/sframe.h"

#include <caterva_remote.h>
#include <stdio.h>
#include <string.h>

/* ---- Http piece ----
 *
 * Beginnings and ends of objects, which are kept as they come: the first that is
 * known of an object. */

/* The first bytes of an object, of which nothing is known yet, on order. */
typedef struct cv_http_order {
    cv_http_object *object;
    uint64_t size;       /* at most so many */
    bool is_anew;        /* past caches on the way */
    cv_http_piece piece; /* what came */
    cv_status status;
} cv_http_order;

/* ---- One ------------------------------------------------------------------------------- */

typedef struct piece_request {
    cv_fetch fetch; /* first */
    cv_http_piece *out;
    cv_gathered *pieces; /* this one, or many */
    cv_status *status;   /* where that of one of many goes; else NULL */
} piece_request;

static cv_status piece_granted(cv_fetch *fetch, const cv_grant *grant, cv_error *err)
{
    cv_http_piece *out = ((piece_request *)fetch)->out;
    out->bytes = cv_malloc((size_t)grant->size);
    if (!out->bytes) return cv_fail_memory(err, (size_t)grant->size, "bytes of a URL");
    out->pos = grant->first;
    out->size = (size_t)grant->size;
    return CV_OK;
}

static cv_status piece_take(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes, size_t size,
                            cv_error *err)
{
    cv_http_piece *out = ((piece_request *)fetch)->out;
    (void)err;
    memcpy(out->bytes + (pos - out->pos), bytes, size);
    return CV_OK;
}

/* Of one of many the others go on. */
static void piece_gone(cv_fetch *fetch)
{
    const piece_request *r = (piece_request *)fetch;
    if (r->status) *r->status = fetch->status;
    cv_gathered_gone(r->pieces, 1, r->status ? CV_OK : fetch->status, &fetch->error,
                     SIZE_MAX);
}

/* Until all are gone. */
static cv_status wait_for_pieces(cv_gathered *pieces, piece_request *list, size_t n,
                                 cv_watch *watch, cv_error *err)
{
    bool goes_on = true;
    cv_status status = CV_OK;
    while (goes_on && status == CV_OK)
        status = cv_gathering_wait(pieces->all, watch, &goes_on, err);
    for (size_t i = 0; status != CV_OK && i < n; i++) cv_fetch_cancel(&list[i].fetch);
    cv_gathered_leave(pieces);
    return status;
}

static void order_piece(piece_request *r, cv_http_object *object, const cv_ask *ask,
                        bool is_anew)
{
    *r->out = (cv_http_piece){0};
    r->fetch.object = object;
    r->fetch.ask = *ask;
    r->fetch.is_anew = is_anew;
    r->fetch.n_ranges = 1;
    r->fetch.granted = piece_granted;
    r->fetch.take = piece_take;
    r->fetch.gone = piece_gone;
}

cv_status cv_http_read_piece(cv_http_object *object, const cv_ask *ask, bool is_anew,
                             cv_watch *watch, cv_http_piece *out, bool *has_no_ranges,
                             cv_error *err)
{
    const cv_arrivals nobody = {.watch = watch};
    cv_gathering all;
    cv_gathered pieces;
    piece_request r = {.out = out, .pieces = &pieces};
    order_piece(&r, object, ask, is_anew);
    cv_gathering_init(&all);
    cv_status status = cv_gathered_join(&pieces, &all, &nobody, 0, 1, err);
    if (status == CV_OK) {
        cv_error error = {0};
        atomic_fetch_add(&object->session->round_trips, 1);
        status = cv_fetch_begin(&r.fetch, &error);
        if (status != CV_OK) cv_gathered_gone(&pieces, 1, status, &error, SIZE_MAX);
        status = wait_for_pieces(&pieces, &r, status == CV_OK ? 1 : 0, watch, err);
    }
    *has_no_ranges = r.fetch.has_no_ranges;
    cv_gathering_destroy(&all);
    if (status != CV_OK) cv_free(out->bytes);
    if (status != CV_OK) *out = (cv_http_piece){0};
    return status;
}

/* ---- First pieces of many ---------------------------------------------------------------- */

/* What could not be begun has that for its status. */
static void begin_orders(cv_http_order *orders, piece_request *list, size_t n,
                         cv_gathered *pieces)
{
    for (size_t i = 0; i < n; i++) {
        const cv_ask ask = {.first = 0, .end = orders[i].size};
        list[i].out = &orders[i].piece;
        list[i].pieces = pieces;
        list[i].status = &orders[i].status;
        order_piece(&list[i], orders[i].object, &ask, orders[i].is_anew);
        cv_status status = cv_fetch_begin(&list[i].fetch, NULL);
        if (status == CV_OK) continue;
        orders[i].status = status;
        cv_gathered_gone(pieces, 1, CV_OK, NULL, SIZE_MAX);
    }
}

/* Fetches all of them at once; each has its own status, and the sentence is lost.
 * CATERVA_ENOMEM, CATERVA_ESTOPPED: then nothing has come. */
static cv_status cv_http_read_orders(cv_http_order *orders, size_t n, cv_watch *watch, cv_error *err)
{
    const cv_arrivals nobody = {.watch = watch};
    cv_gathering all;
    cv_gathered pieces;
    if (n == 0) return CV_OK;
    piece_request *list = cv_calloc(n, sizeof *list);
    if (!list) return cv_fail_memory(err, n * sizeof *list, "requests");
    cv_gathering_init(&all);
    cv_status status = cv_gathered_join(&pieces, &all, &nobody, 0, n, err);
    if (status == CV_OK) {
        atomic_fetch_add(&orders[0].object->session->round_trips, 1);
        begin_orders(orders, list, n, &pieces);
        status = wait_for_pieces(&pieces, list, n, watch, err);
    }
    cv_gathering_destroy(&all);
    cv_free(list);
    for (size_t i = 0; i < n; i++) {
        cv_http_order *o = &orders[i];
        if (status == CV_OK && o->status == CV_OK) continue;
        cv_free(o->piece.bytes);
        o->piece = (cv_http_piece){0};
    }
    return status;
}

/* ---- Http cached ----
 *
 * Between who reads a URL and the server: what was read before comes from the
 * disk, and what comes from the server is written there when it has been handed on. */

/* ---- Keys ------------------------------------------------------------------------- */

static void add_text(cv_sha256 *hash, const char *text, size_t size)
{
    uint8_t length[8];
    cv_store_le64(length, size);
    cv_sha256_add(hash, length, sizeof length);
    cv_sha256_add(hash, text, size);
}

/* Signatures of presigned URLs differ each time, and say nothing of what is read. */
static void add_url(cv_sha256 *hash, const char *url)
{
    size_t size = strcspn(url, "?");
    add_text(hash, url, size);
    for (const char *p = url + size; *p; p += size) {
        size = 1 + strcspn(p + 1, "&");
        if (strncmp(p + 1, "X-Amz-", 6) != 0) add_text(hash, p + 1, size - 1);
    }
}

static void make_key(const cv_http_object *o, const uint8_t *end, size_t end_size,
                     uint8_t key[CV_PACK_KEY])
{
    cv_sha256 hash;
    uint8_t size[8];
    const char *etag = cv_etag_is_strong(o->identity.etag) ? o->identity.etag : "";
    cv_sha256_begin(&hash);
    add_url(&hash, o->url);
    add_text(&hash, etag, strlen(etag));
    cv_store_le64(size, o->identity.size);
    cv_sha256_add(&hash, size, sizeof size);
    if (end) cv_sha256_add(&hash, end, end_size);
    cv_sha256_end(&hash, key);
}

/* What was read of this version of the object, in the folder of the session's options, when
 * they name one. `end`: its last bytes, which tell versions apart; or NULL. NULL: nothing is
 * kept. */
static cv_range_cache *cv_http_cache_open(const cv_http_object *object, const uint8_t *end,
                                   size_t end_size)
{
    uint8_t key[CV_PACK_KEY];
    const caterva_remote_options *o = &object->session->options;
    if (!o->cache_folder) return NULL;
    make_key(object, end, end_size, key);
    return cv_range_cache_open(o->cache_folder, (uint64_t)o->cache_bytes, key);
}

/* ---- Waves --------------------------------------------------------------------------- */

/* Ranges that are not in the cache, and their bytes one after the other, as far as they came. */
typedef struct missing {
    cv_reading base;
    cv_reading *reading; /* of those under way */
    cv_arrivals arrivals;
    cv_http_window window;
    cv_range_cache *cache;
    cv_store_range *ranges;
    size_t *numbers; /* of those asked for */
    size_t n;
    uint8_t *bytes; /* NULL: they are not kept */
    size_t *at;
    bool *is_here;
} missing;

static void free_missing(missing *m)
{
    cv_free(m->ranges);
    cv_free(m->numbers);
    cv_free(m->bytes);
    cv_free(m->at);
    cv_free(m->is_here);
    cv_free(m);
}

/* Who asked may use the memory for something else as soon as he has it. */
static cv_status range_arrived(void *context, size_t range, cv_error *err)
{
    missing *m = context;
    const cv_store_range *r = &m->ranges[range];
    if (m->bytes) memcpy(m->bytes + m->at[range], r->dst, r->size);
    m->is_here[range] = true;
    return m->arrivals.arrived(m->arrivals.context, m->numbers[range], err);
}

static void range_failed(void *context, size_t range)
{
    const missing *m = context;
    if (m->arrivals.failed) m->arrivals.failed(m->arrivals.context, m->numbers[range]);
}

static cv_status new_missing(size_t n, missing **out, cv_error *err)
{
    missing *m = cv_calloc(1, sizeof *m);
    if (!m) return cv_fail_memory(err, sizeof *m, "a list of ranges");
    m->ranges = cv_calloc(n, sizeof *m->ranges);
    m->numbers = cv_calloc(n, sizeof *m->numbers);
    m->at = cv_calloc(n, sizeof *m->at);
    m->is_here = cv_calloc(n, sizeof *m->is_here);
    *out = m;
    if (m->ranges && m->numbers && m->at && m->is_here) return CV_OK;
    free_missing(m);
    return cv_fail_memory(err, n * sizeof *m->ranges, "a list of ranges");
}

static cv_status take_cached(missing *m, const cv_store_range *ranges, size_t n,
                             cv_error *err)
{
    const cv_http_window *window = &m->window;
    cv_range_cache *cache = m->cache;
    cv_session *s = window->object->session;
    if (!window->is_anew) cv_range_cache_look(cache);
    for (size_t i = 0; i < n; i++) {
        const cv_store_range *r = &ranges[i];
        uint64_t pos = window->offset + r->pos;
        if (window->is_anew || !cv_range_cache_get(cache, pos, r->dst, r->size)) {
            m->ranges[m->n] = *r;
            m->numbers[m->n++] = i;
            continue;
        }
        atomic_fetch_add(&s->cached, (int64_t)r->size);
        CV_TRY(m->arrivals.arrived(m->arrivals.context, i, err));
    }
    return CV_OK;
}

/* Room for the bytes; without it nothing is kept. */
static void expect(missing *m)
{
    size_t size = 0;
    for (size_t i = 0; i < m->n; i++) {
        m->at[i] = size;
        size += m->ranges[i].size;
    }
    m->bytes = cv_malloc(size);
}

/* Those that came, as long as they follow each other. */
static void keep(const missing *m)
{
    uint64_t *positions = cv_calloc(m->n, sizeof *positions);
    size_t *sizes = cv_calloc(m->n, sizeof *sizes), n = 0;
    for (size_t i = 0; positions && sizes && i < m->n; i++) {
        positions[i] = m->window.offset + m->ranges[i].pos;
        sizes[i] = m->ranges[i].size;
    }
    while (positions && sizes && n < m->n && m->is_here[n]) n++;
    if (n > 0) cv_range_cache_put(m->cache, positions, sizes, n, m->bytes);
    cv_free(positions);
    cv_free(sizes);
}

static void end_missing(cv_reading *reading, bool gives_up)
{
    missing *m = (missing *)reading; /* its first member */
    cv_store_end_wave(m->reading, gives_up);
    if (m->bytes) keep(m);
    free_missing(m);
}

cv_status cv_http_cached_begin(const cv_http_window *window, cv_range_cache *cache,
                               const cv_store_range *ranges, size_t n,
                               const cv_arrivals *arrivals, cv_gathering *all,
                               cv_reading **out, cv_error *err)
{
    missing *m = NULL;
    if (!cache || n == 0) return cv_http_begin(window, ranges, n, arrivals, all, out, err);
    *out = NULL;
    CV_TRY(new_missing(n, &m, err));
    m->base.end = end_missing;
    m->arrivals = *arrivals;
    m->window = *window;
    m->cache = cache;
    cv_arrivals own = *arrivals;
    own.arrived = range_arrived;
    own.failed = range_failed;
    own.context = m;
    cv_status status = take_cached(m, ranges, n, err);
    if (status == CV_OK && m->n > 0) {
        expect(m);
        status = cv_http_begin(window, m->ranges, m->n, &own, all, &m->reading, err);
    }
    if (status == CV_OK)
        *out = &m->base;
    else
        end_missing(&m->base, true);
    return status;
}

cv_status cv_http_cached_read(const cv_http_window *window, cv_range_cache *cache,
                              const cv_store_range *ranges, size_t n,
                              const cv_arrivals *arrivals, cv_error *err)
{
    cv_gathering all;
    cv_reading *reading;
    cv_gathering_init(&all);
    cv_status status =
        cv_http_cached_begin(window, cache, ranges, n, arrivals, &all, &reading, err);
    if (status == CV_OK) status = cv_gathering_finish(&all, reading, arrivals->watch, err);
    cv_gathering_destroy(&all);
    return status;
}

/* ---- Pieces --------------------------------------------------------------------------- */

static bool find_piece(const cv_http_object *object, cv_range_cache *cache, const cv_ask *ask,
                       cv_http_piece *out)
{
    size_t size = (size_t)(ask->end - ask->first);
    uint8_t *bytes = cv_malloc(size);
    cv_range_cache_look(cache);
    if (!bytes || !cv_range_cache_get(cache, ask->first, bytes, size)) {
        cv_free(bytes);
        return false;
    }
    *out = (cv_http_piece){.pos = ask->first, .size = size, .bytes = bytes};
    atomic_fetch_add(&object->session->cached, (int64_t)size);
    return true;
}

static cv_status cv_http_cached_piece(cv_http_object *object, cv_range_cache *cache,
                               const cv_ask *ask, cv_watch *watch, cv_http_piece *out,
                               bool *has_no_ranges, cv_error *err)
{
    *has_no_ranges = false;
    bool is_kept = cache && !ask->is_suffix && ask->end <= object->identity.size;
    if (is_kept && find_piece(object, cache, ask, out)) return CV_OK;
    CV_TRY(cv_http_read_piece(object, ask, false, watch, out, has_no_ranges, err));
    if (is_kept) cv_range_cache_put(cache, &out->pos, &out->size, 1, out->bytes);
    return CV_OK;
}

/* ---- Http file ----
 *
 * See http_file.h. Which ranges are asked for is known here for the opening only. */

void cv_http_file_release(cv_http_file *f)
{
    if (!f || atomic_fetch_sub(&f->users, 1) > 1) return;
    for (cv_http_kept *k = atomic_load(&f->pieces); k;) {
        cv_http_kept *next = k->next;
        cv_free(k->piece.bytes);
        cv_free(k);
        k = next;
    }
    cv_range_cache_close(f->cache);
    cv_http_object_free(f->object);
    cv_free(f);
}

/* Takes over the piece. */
static cv_status keep_object(cv_http_file *f, cv_http_piece *piece, cv_error *err)
{
    cv_http_kept *k = cv_malloc(sizeof *k);
    if (!k) {
        cv_free(piece->bytes);
        return cv_fail_memory(err, sizeof *k, "bytes of a URL");
    }
    k->piece = *piece;
    k->next = atomic_load(&f->pieces);
    while (!atomic_compare_exchange_weak(&f->pieces, &k->next, k)) continue;
    return CV_OK;
}

const uint8_t *cv_http_file_find(cv_http_file *f, uint64_t pos, size_t size)
{
    for (const cv_http_kept *k = atomic_load(&f->pieces); k; k = k->next) {
        const cv_http_piece *p = &k->piece;
        if (pos >= p->pos && pos - p->pos <= p->size && size <= p->size - (pos - p->pos))
            return p->bytes + (pos - p->pos);
    }
    return NULL;
}

cv_status cv_http_file_fetch(cv_http_file *f, cv_range_cache *cache, const cv_ask *ask,
                             cv_watch *watch, bool *has_no_ranges, cv_error *err)
{
    cv_http_piece piece;
    CV_TRY(cv_http_cached_piece(f->object, cache, ask, watch, &piece, has_no_ranges, err));
    return keep_object(f, &piece, err);
}

/* The end; where a server does not know how to send that, the beginning says how long the
 * object is. */
static cv_status fetch_first(cv_http_file *f, uint64_t offset, cv_watch *watch, cv_error *err)
{
    bool no_ranges;
    const cv_ask tail = {.is_suffix = true, .end = CV_HTTP_TAIL};
    const cv_ask head = {.first = 0, .end = CV_HTTP_HEAD};
    const cv_ask inside = {.first = offset, .end = offset + CV_HTTP_TAIL};
    if (offset > 0) return cv_http_file_fetch(f, NULL, &inside, watch, &no_ranges, err);
    cv_status status = cv_http_file_fetch(f, NULL, &tail, watch, &no_ranges, err);
    return status != CV_OK && no_ranges
               ? cv_http_file_fetch(f, NULL, &head, watch, &no_ranges, err)
               : status;
}

const uint8_t *cv_http_file_end(cv_http_file *f, size_t *size)
{
    uint64_t all = f->object->identity.size;
    *size = all < CV_HTTP_TAIL ? (size_t)all : CV_HTTP_TAIL;
    return cv_http_file_find(f, all - *size, *size);
}

static cv_status compare(cv_http_file *f, const cv_http_piece *then,
                         const cv_http_again *again, bool *is_same, cv_error *err)
{
    const cv_ask ask = {.first = then->pos, .end = then->pos + then->size};
    cv_http_piece now;
    bool no_ranges;
    CV_TRY(cv_http_read_piece(f->object, &ask, true, again->watch, &now, &no_ranges, err));
    bool has_all = now.pos <= ask.first && now.pos + now.size >= ask.end;
    if (has_all && memcmp(now.bytes + (ask.first - now.pos), then->bytes, then->size) == 0) {
        cv_free(now.bytes);
        return CV_OK;
    }
    *is_same = false;
    if (has_all && again->replaces) return keep_object(f, &now, err);
    cv_free(now.bytes);
    return CV_OK;
}

/* What came last first: that is the frame's end, where the opening did not bring it. What was
 * replaced is not lent any more. */
cv_status cv_http_file_compare(cv_http_file *f, const cv_http_again *again, bool *is_same,
                               cv_error *err)
{
    *is_same = true;
    for (const cv_http_kept *k = atomic_load(&f->pieces); k; k = k->next) {
        const cv_http_piece *p = &k->piece;
        uint64_t end = p->pos + p->size;
        bool is_asked =
            (p->pos < again->end && end > again->begin) || end == f->object->identity.size;
        if (!*is_same && !again->replaces) break;
        if (is_asked && cv_http_file_find(f, p->pos, p->size) == p->bytes)
            CV_TRY(compare(f, p, again, is_same, err));
    }
    return CV_OK;
}

/* By the end of the object, when that came. */
static cv_range_cache *open_cache(cv_http_file *f)
{
    size_t size;
    const uint8_t *end = cv_http_file_end(f, &size);
    return cv_http_cache_open(f->object, end, size);
}

cv_status cv_http_file_open(cv_session *session, const char *url, const char *member,
                            uint64_t offset, cv_watch *watch, cv_http_file **out,
                            cv_error *err)
{
    cv_http_file *f = cv_calloc(1, sizeof *f);
    if (!f) return cv_fail_memory(err, sizeof *f, "a URL");
    atomic_init(&f->users, 1);
    atomic_init(&f->pieces, NULL);
    cv_status status = cv_http_object_new(session, url, member, &f->object, err);
    if (status == CV_OK) status = fetch_first(f, offset, watch, err);
    if (status != CV_OK) {
        cv_http_file_release(f);
        return status;
    }
    f->cache = open_cache(f);
    *out = f;
    return CV_OK;
}

/* ---- Http chunks ----
 *
 * Objects of chunks. The first request for one brings its beginning, which is kept
 * for a while: who asks for its size asks for its head and blocks next. Of one or a few that is
 * 1 MiB of each, mostly all of it; of many that are wanted together less. */

enum { FIRST_BYTES = 1 << 20, LEAST_BYTES = 8 * 1024, TOGETHER = 4 << 20 };
enum { MOST_KEPT = 4096, KEPT_BYTES = 32 << 20, BUCKETS = 1024 };

typedef struct chunk {
    cv_object id;
    cv_http_object *object;
    cv_http_piece first;
    int users; /* under the lock */
    bool is_forgotten;
    struct chunk *next;
    struct chunk *peer; /* in its bucket */
} chunk;

struct cv_http_chunks {
    cv_session *session;
    char *url;
    atomic_bool is_anew; /* past caches on the way */
    cv_mutex lock;
    chunk *chunks; /* newest first */
    chunk *buckets[BUCKETS];
};

cv_status cv_http_chunks_new(cv_session *session, const char *url, cv_http_chunks **out,
                             cv_error *err)
{
    cv_http_chunks *c = cv_calloc(1, sizeof *c);
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
    cv_http_object_free(k->object);
    cv_free(k->first.bytes);
    cv_free(k);
}

void cv_http_chunks_free(cv_http_chunks *c)
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

/* With the lock; NULL: it is not kept. */
static chunk *find(const cv_http_chunks *c, cv_object id)
{
    chunk *k = c->buckets[id % BUCKETS];
    while (k && (k->id != id || k->is_forgotten)) k = k->peer;
    return k;
}

static cv_status new_chunk(const cv_http_chunks *c, cv_object id, chunk **out, cv_error *err)
{
    char member[32];
    chunk *k = cv_calloc(1, sizeof *k);
    if (!k) return cv_fail_memory(err, sizeof *k, "a chunk");
    (void)snprintf(member, sizeof member, "/%s", cv_sframe_chunk_name(id).text);
    k->id = id;
    cv_status status = cv_http_object_new(c->session, c->url, member, &k->object, err);
    if (status == CV_OK)
        *out = k;
    else
        free_chunk(k);
    return status;
}

static cv_status fetch(const cv_http_chunks *c, cv_object id, cv_watch *watch, chunk **out,
                       cv_error *err)
{
    bool no_ranges;
    chunk *k = NULL;
    const cv_ask ask = {.first = 0, .end = FIRST_BYTES};
    CV_TRY(new_chunk(c, id, &k, err));
    cv_status status = cv_http_read_piece(k->object, &ask, atomic_load(&c->is_anew), watch,
                                          &k->first, &no_ranges, err);
    if (status == CATERVA_EUNSUPPORTED && no_ranges) { /* no fault of the chunk's bytes */
        status = CATERVA_EIO;
        if (err) err->code = status;
    }
    if (status == CV_OK)
        *out = k;
    else
        free_chunk(k);
    return status;
}

static void drop(cv_http_chunks *c, chunk *k)
{
    chunk **link = &c->buckets[k->id % BUCKETS];
    while (*link != k) link = &(*link)->peer;
    *link = k->peer;
    free_chunk(k);
}

/* With the lock: the oldest ones that nobody uses go. */
static void drop_old(cv_http_chunks *c)
{
    size_t n = 0, size = 0;
    for (chunk **link = &c->chunks; *link;) {
        chunk *k = *link;
        size += k->first.size;
        bool fits = ++n <= MOST_KEPT && size <= KEPT_BYTES && !k->is_forgotten;
        if (fits || k->users > 0) {
            link = &k->next;
            continue;
        }
        *link = k->next;
        drop(c, k);
    }
}

/* With the lock: the chunk is used. Another thread may have been quicker. */
static chunk *keep_chunk(cv_http_chunks *c, chunk *k)
{
    chunk *found = find(c, k->id);
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

static cv_status acquire(cv_http_chunks *c, cv_object id, cv_watch *watch, chunk **out,
                         cv_error *err)
{
    cv_mutex_lock(&c->lock);
    *out = find(c, id);
    if (*out) (*out)->users++;
    cv_mutex_unlock(&c->lock);
    if (*out) return CV_OK;
    chunk *k = NULL;
    CV_TRY(fetch(c, id, watch, &k, err));
    cv_mutex_lock(&c->lock);
    *out = keep_chunk(c, k);
    drop_old(c);
    cv_mutex_unlock(&c->lock);
    return CV_OK;
}

void cv_http_chunks_forget(cv_http_chunks *c)
{
    atomic_store(&c->is_anew, true);
    cv_mutex_lock(&c->lock);
    for (chunk *k = c->chunks; k; k = k->next) k->is_forgotten = true;
    drop_old(c);
    cv_mutex_unlock(&c->lock);
}

static void release(cv_http_chunks *c, chunk *k)
{
    cv_mutex_lock(&c->lock);
    k->users--;
    cv_mutex_unlock(&c->lock);
}

/* ---- Many at once -------------------------------------------------------------------- */

static bool is_kept(cv_http_chunks *c, cv_object id)
{
    cv_mutex_lock(&c->lock);
    bool is_it = find(c, id) != NULL;
    cv_mutex_unlock(&c->lock);
    return is_it;
}

/* Makes what is not kept yet, one of each; *n of them. */
static cv_status make_missing(cv_http_chunks *c, const cv_object *ids, size_t n_ids,
                              chunk **list, size_t *n, cv_error *err)
{
    *n = 0;
    for (size_t i = 0; i < n_ids; i++) {
        bool is_again = *n > 0 && list[*n - 1]->id == ids[i];
        if (is_again || is_kept(c, ids[i])) continue;
        CV_TRY(new_chunk(c, ids[i], &list[*n], err));
        ++*n;
    }
    return CV_OK;
}

static cv_status fetch_all(cv_http_chunks *c, chunk **list, size_t n, cv_http_order *orders,
                           cv_watch *watch, cv_error *err)
{
    uint64_t each = n > 0 ? TOGETHER / n : 0;
    if (each > FIRST_BYTES) each = FIRST_BYTES;
    if (each < LEAST_BYTES) each = LEAST_BYTES;
    for (size_t i = 0; i < n; i++)
        orders[i] = (cv_http_order){
            .object = list[i]->object, .size = each, .is_anew = atomic_load(&c->is_anew)};
    CV_TRY(cv_http_read_orders(orders, n, watch, err));
    for (size_t i = 0; i < n; i++) list[i]->first = orders[i].piece;
    return CV_OK;
}

/* What has not come is asked for once more by who needs it, and hears why. */
static void take_all(cv_http_chunks *c, chunk **list, const cv_http_order *orders, size_t n,
                     bool have_come)
{
    cv_mutex_lock(&c->lock);
    for (size_t i = 0; i < n; i++) {
        if (have_come && orders[i].status == CV_OK)
            keep_chunk(c, list[i])->users--;
        else
            free_chunk(list[i]);
    }
    drop_old(c);
    cv_mutex_unlock(&c->lock);
}

cv_status cv_http_chunks_meet(cv_http_chunks *c, const cv_object *ids, size_t n,
                              cv_watch *watch, cv_error *err)
{
    size_t n_missing = 0;
    chunk **list = cv_calloc(n + 1, sizeof *list);
    cv_http_order *orders = cv_calloc(n + 1, sizeof *orders);
    cv_status status = list && orders
                           ? make_missing(c, ids, n, list, &n_missing, err)
                           : cv_fail_memory(err, n * sizeof *orders, "a list of chunks");
    if (status == CV_OK) status = fetch_all(c, list, n_missing, orders, watch, err);
    if (list && orders) take_all(c, list, orders, n_missing, status == CV_OK);
    cv_free(list);
    cv_free(orders);
    return status;
}

cv_status cv_http_chunks_size(cv_http_chunks *c, cv_object id, cv_watch *watch,
                              uint64_t *size, cv_error *err)
{
    chunk *k;
    CV_TRY(acquire(c, id, watch, &k, err));
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is in use is not dropped */
    *size = k->object->identity.size;
    release(c, k);
    return CV_OK;
}

static cv_status check_range(const chunk *k, const cv_store_range *r, cv_error *err)
{
    uint64_t size = k->object->identity.size;
    if (r->pos <= size && r->size <= size - r->pos) return CV_OK;
    return cv_fail_past_end(err, k->object->name.text, r->pos, r->size, size);
}

/* Ranges under way: those that are not at hand, and whose they are. */
typedef struct reading {
    cv_http_chunks *chunks;
    const cv_arrivals *arrivals;
    chunk **users; /* of all ranges; NULL: not asked for yet */
    cv_http_object **objects;
    cv_store_range *ranges;
    size_t *numbers;
    size_t n;
} reading;

static cv_status chunk_arrived(void *context, size_t range, cv_error *err)
{
    const reading *r = context;
    return r->arrivals->arrived(r->arrivals->context, r->numbers[range], err);
}

static void tell_failed(const reading *r, size_t number)
{
    if (r->arrivals->failed) r->arrivals->failed(r->arrivals->context, number);
}

static void chunk_failed(void *context, size_t range)
{
    const reading *r = context;
    tell_failed(r, r->numbers[range]);
}

/* What is at hand arrives at once. */
static cv_status take_range(reading *r, size_t i, const cv_store_range *range, cv_error *err)
{
    chunk *k;
    cv_watch *watch = r->arrivals->watch;
    CV_TRY(acquire(r->chunks, range->object, watch, &r->users[i], err));
    k = r->users[i];
    CV_TRY(check_range(k, range, err));
    if (range->pos + range->size > k->first.size) {
        r->objects[r->n] = k->object;
        r->ranges[r->n] = *range;
        r->numbers[r->n++] = i;
        return CV_OK;
    }
    if (range->size > 0) memcpy(range->dst, k->first.bytes + range->pos, range->size);
    return r->arrivals->arrived(r->arrivals->context, i, err);
}

static cv_status read_ranges(reading *r, const cv_store_range *ranges, size_t n,
                             cv_error *err)
{
    for (size_t i = 0; i < n; i++) {
        cv_status status = take_range(r, i, &ranges[i], err);
        if (status != CV_OK) tell_failed(r, i);
        CV_TRY(status);
    }
    cv_arrivals own = *r->arrivals;
    own.arrived = chunk_arrived;
    own.failed = chunk_failed;
    own.context = r;
    const cv_http_window window = {.objects = r->objects,
                                   .is_anew = atomic_load(&r->chunks->is_anew)};
    return cv_http_read(&window, r->ranges, r->n, &own, err);
}

cv_status cv_http_chunks_read(cv_http_chunks *c, const cv_store_range *ranges, size_t n,
                              const cv_arrivals *arrivals, cv_error *err)
{
    reading r = {.chunks = c,
                 .arrivals = arrivals,
                 .users = cv_calloc(n, sizeof *r.users),
                 .objects = cv_calloc(n, sizeof *r.objects),
                 .ranges = cv_calloc(n, sizeof *r.ranges),
                 .numbers = cv_calloc(n, sizeof *r.numbers)};
    bool has_room = r.users && r.objects && r.ranges && r.numbers;
    cv_status status = has_room ? read_ranges(&r, ranges, n, err)
                                : cv_fail_memory(err, n * sizeof *ranges, "ranges");
    for (size_t i = 0; i < n && r.users; i++)
        if (r.users[i]) release(c, r.users[i]);
    cv_free(r.users);
    cv_free(r.objects);
    cv_free(r.ranges);
    cv_free(r.numbers);
    return status;
}
