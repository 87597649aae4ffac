/* Room: store. See http_file.h. Which ranges are asked for is known here for the opening only. */
#include "store/http_file.h"

#include "base/heap.h"
#include "store/http_cached.h"

#include <string.h>

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
static cv_status keep(cv_http_file *f, cv_http_piece *piece, cv_error *err)
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
    return keep(f, &piece, err);
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
    if (has_all && again->replaces) return keep(f, &now, err);
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
