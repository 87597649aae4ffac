/* Room: store. Objects of chunks. The first request for one brings all of it, or 1 MiB, which
 * is kept for a while: who asks for its head asks for its blocks next. */
#include "store/http_chunks.h"

#include "base/heap.h"
#include "store/refusals.h"
#include "store/sframe.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_BYTES = 1 << 20, MOST_KEPT = 64 };

typedef struct chunk {
    cv_object id;
    cv_http_object *object;
    cv_http_piece first;
    int users; /* under the lock */
    struct chunk *next;
} chunk;

struct cv_http_chunks {
    cv_session *session;
    char *url;
    cv_mutex lock;
    chunk *chunks; /* newest first */
    int n;
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

/* With the lock. */
static chunk *find(const cv_http_chunks *c, cv_object id)
{
    chunk *k = c->chunks;
    while (k && k->id != id) k = k->next;
    if (k) k->users++;
    return k;
}

static cv_status fetch(const cv_http_chunks *c, cv_object id, cv_watch *watch, chunk **out,
                       cv_error *err)
{
    char member[32];
    bool no_ranges;
    chunk *k = cv_calloc(1, sizeof *k);
    if (!k) return cv_fail_memory(err, sizeof *k, "a chunk");
    (void)snprintf(member, sizeof member, "/%s", cv_sframe_chunk_name(id).text);
    k->id = id;
    cv_status status = cv_http_object_new(c->session, c->url, member, &k->object, err);
    const cv_ask ask = {.first = 0, .end = FIRST_BYTES};
    if (status == CV_OK)
        status =
            cv_http_read_piece(k->object, &ask, false, watch, &k->first, &no_ranges, err);
    if (status != CV_OK) {
        free_chunk(k);
        return status;
    }
    *out = k;
    return CV_OK;
}

/* With the lock: the oldest ones that nobody uses go. */
static void drop_old(cv_http_chunks *c)
{
    chunk **link = &c->chunks;
    for (int i = 0; *link; i++) {
        chunk *k = *link;
        if (i < MOST_KEPT || k->users > 0) {
            link = &k->next;
            continue;
        }
        *link = k->next;
        free_chunk(k);
    }
}

static cv_status acquire(cv_http_chunks *c, cv_object id, cv_watch *watch, chunk **out,
                         cv_error *err)
{
    cv_mutex_lock(&c->lock);
    *out = find(c, id);
    cv_mutex_unlock(&c->lock);
    if (*out) return CV_OK;
    chunk *k = NULL;
    CV_TRY(fetch(c, id, watch, &k, err));
    cv_mutex_lock(&c->lock);
    *out = find(c, id); /* another thread may have been quicker */
    if (*out) {
        free_chunk(k);
    } else {
        k->users = 1;
        k->next = c->chunks;
        c->chunks = k;
        *out = k;
        drop_old(c);
    }
    cv_mutex_unlock(&c->lock);
    return CV_OK;
}

static void release(cv_http_chunks *c, chunk *k)
{
    cv_mutex_lock(&c->lock);
    k->users--;
    cv_mutex_unlock(&c->lock);
}

cv_status cv_http_chunks_size(cv_http_chunks *c, cv_object id, cv_watch *watch,
                              uint64_t *size, cv_error *err)
{
    chunk *k;
    CV_TRY(acquire(c, id, watch, &k, err));
    *size = k->object->identity.size;
    release(c, k);
    return CV_OK;
}

static cv_status ignore(void *context, size_t range, cv_error *err)
{
    (void)context, (void)range, (void)err;
    return CV_OK;
}

static cv_status read_range(const chunk *k, const cv_store_range *r, cv_watch *watch,
                            cv_error *err)
{
    uint64_t size = k->object->identity.size;
    if (r->pos > size || r->size > size - r->pos)
        return cv_fail_past_end(err, k->object->shown, r->pos, r->size, size);
    if (r->size == 0) return CV_OK;
    if (r->pos + r->size <= k->first.size) {
        memcpy(r->dst, k->first.bytes + r->pos, r->size);
        return CV_OK;
    }
    const cv_http_window window = {.object = k->object};
    const cv_arrivals arrivals = {.arrived = ignore, .watch = watch};
    return cv_http_read(&window, r, 1, &arrivals, err);
}

cv_status cv_http_chunks_read(cv_http_chunks *c, const cv_store_range *range, cv_watch *watch,
                              cv_error *err)
{
    chunk *k;
    CV_TRY(acquire(c, range->object, watch, &k, err));
    cv_status status = read_range(k, range, watch, err);
    release(c, k);
    return status;
}
