/* Room: store. Objects of chunks. The first request for one brings its beginning, which is kept
 * for a while: who asks for its size asks for its head and blocks next. Of one or a few that is
 * 1 MiB of each, mostly all of it; of many that are wanted together less. */
#include "store/http_chunks.h"

#include "base/heap.h"
#include "store/refusals.h"
#include "store/sframe.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

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
static chunk *keep(cv_http_chunks *c, chunk *k)
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
    *out = keep(c, k);
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
            keep(c, list[i])->users--;
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
    return cv_fail_past_end(err, k->object->shown, r->pos, r->size, size);
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

static cv_status range_arrived(void *context, size_t range, cv_error *err)
{
    const reading *r = context;
    return r->arrivals->arrived(r->arrivals->context, r->numbers[range], err);
}

static void tell_failed(const reading *r, size_t number)
{
    if (r->arrivals->failed) r->arrivals->failed(r->arrivals->context, number);
}

static void range_failed(void *context, size_t range)
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
    own.arrived = range_arrived;
    own.failed = range_failed;
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
