/* Room: store. Between who reads a URL and the server: what was read before comes from the
 * disk, and what comes from the server is written there when it has been handed on. */
#include "store/http_cached.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/sha256.h"

#include <string.h>

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

cv_range_cache *cv_http_cache_open(const cv_http_object *object, const uint8_t *end,
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

cv_status cv_http_cached_piece(cv_http_object *object, cv_range_cache *cache,
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
