/* Room: store. Another header in front of a file that has an older one: what a commit has
 * promised and not written yet. */
#include "store/headed.h"

#include "base/heap.h"
#include "store/refusals.h"

typedef struct headed_store {
    cv_store base;
    cv_store *inner;
    cv_buffer head;
} headed_store;

static cv_store *inner_of(cv_store *store) { return ((headed_store *)store)->inner; }

static cv_status headed_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err)
{
    return cv_store_size(inner_of(store), object, size, err);
}

static void headed_stamp(cv_store *store, cv_stamp *out)
{
    *out = cv_store_stamp(inner_of(store));
}

/* Over what was read of the inner one's. */
static void put_head(const headed_store *h, uint64_t pos, void *dst, size_t size)
{
    if (pos >= h->head.size || size == 0) return;
    size_t from = (size_t)pos, left = h->head.size - from;
    memcpy(dst, h->head.data + from, size < left ? size : left);
}

static cv_status headed_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                             size_t size, cv_error *err)
{
    const headed_store *h = (const headed_store *)store;
    CV_TRY(cv_store_read(h->inner, object, pos, dst, size, err));
    put_head(h, pos, dst, size);
    return CV_OK;
}

static cv_at_once headed_read_at_once(cv_store *store, const cv_store_range *r)
{
    cv_at_once result = cv_store_read_at_once(inner_of(store), r);
    if (result == CV_AT_ONCE_READ)
        put_head((const headed_store *)store, r->pos, r->dst, r->size);
    return result;
}

static void headed_reads_state(cv_store *store, uint64_t state)
{
    cv_store_reads_state(inner_of(store), state);
}

static void headed_close(cv_store *store)
{
    headed_store *h = (headed_store *)store;
    cv_store_close(h->inner);
    cv_buffer_free(&h->head);
    cv_free(h);
}

static const cv_store_ops headed_ops = {
    .name = "file with another header",
    .stamp = headed_stamp,
    .size = headed_size,
    .read = headed_read,
    .read_at_once = headed_read_at_once,
    .write = cv_store_no_write,
    .truncate = cv_store_no_truncate,
    .sync = cv_store_no_sync,
    .replace = cv_store_no_replace,
    .remove = cv_store_no_remove,
    .publish = cv_store_no_publish,
    .reads_state = headed_reads_state,
    .close = headed_close,
};

cv_status cv_store_headed(cv_store *inner, const void *head, size_t size, cv_store **out,
                          cv_error *err)
{
    headed_store *h = cv_calloc(1, sizeof *h);
    if (!h) return cv_fail_memory(err, sizeof *h, "a store");
    cv_status status = cv_buffer_append(&h->head, head, size, err);
    if (status != CV_OK) {
        cv_free(h);
        return status;
    }
    h->base = (cv_store){.ops = &headed_ops, .published = true};
    h->base.opened = inner->opened;
    h->inner = inner;
    *out = &h->base;
    return CV_OK;
}
