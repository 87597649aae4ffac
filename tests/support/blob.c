#include "blob.h"

#include "check.h"

#include <caterva_store.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void blob_init(blob *b)
{
    *b = (blob){.bytes = check_alloc(BLOB_ROOM), .fail_at = -1, .status = CATERVA_EIO};
    pthread_mutex_init(&b->lock, NULL);
}

void blob_free(blob *b)
{
    pthread_mutex_destroy(&b->lock);
    free(b->bytes);
}

/* Counts the call. Returns whether it must fail. */
static bool begin(blob *b, caterva_error *err)
{
    CHECK(err, "an error of NULL");
    int now = atomic_fetch_add(&b->at_once, 1) + 1;
    int most = atomic_load(&b->most_at_once);
    while (now > most && !atomic_compare_exchange_weak(&b->most_at_once, &most, now)) {}
    long call = atomic_fetch_add(&b->calls, 1);
    if (b->slow && call % 16 == 3) usleep(200);
    if (call != b->fail_at) return false;
    if (b->why) strncpy(err->message, b->why, sizeof err->message - 1);
    err->sys_errno = 5;
    return true;
}

static caterva_status end(blob *b, bool failed)
{
    atomic_fetch_sub(&b->at_once, 1);
    return failed ? (caterva_status)b->status : CATERVA_OK;
}

static caterva_status blob_size(void *context, uint64_t *size, caterva_error *err)
{
    blob *b = context;
    bool failed = begin(b, err);
    pthread_mutex_lock(&b->lock);
    *size = b->size;
    pthread_mutex_unlock(&b->lock);
    return end(b, failed);
}

static bool is_bad(const blob *b, uint64_t pos, size_t size, caterva_error *err)
{
    if (b->bad == 0 || b->bad < pos || b->bad - pos >= size) return false;
    if (b->why) strncpy(err->message, b->why, sizeof err->message - 1);
    return true;
}

static caterva_status blob_read(void *context, uint64_t pos, void *dst, size_t size,
                                size_t *done, caterva_error *err)
{
    blob *b = context;
    bool failed = begin(b, err) || is_bad(b, pos, size, err);
    atomic_fetch_add(&b->n_reads, 1);
    atomic_fetch_add(&b->n_bytes, (long)size);
    pthread_mutex_lock(&b->lock);
    uint64_t left = pos < b->size ? b->size - pos : 0;
    *done = size < left ? size : (size_t)left;
    if (b->short_reads && *done > 1) *done = 1 + (size_t)(pos * 31 + size) % *done;
    memcpy(dst, b->bytes + (*done > 0 ? pos : 0), *done);
    pthread_mutex_unlock(&b->lock);
    return end(b, failed);
}

/* Reads the ranges one by one, in an order that the library cannot predict. */
static caterva_status blob_read_many(void *context, const caterva_store_range *ranges,
                                     size_t n, int (*arrived)(void *token, size_t range),
                                     void *token, caterva_error *err)
{
    blob *b = context;
    bool failed = begin(b, err);
    bool stopped = false;
    size_t step = n % 7 == 0 ? 5 : 7, half = failed ? n / 2 : n;
    atomic_fetch_add(&b->n_waves, 1);
    atomic_fetch_add(&b->n_ranges, (long)n);
    if (b->slow) stopped = arrived(token, n) != 0;
    for (size_t k = 0; k < half && !stopped; k++) {
        size_t i = n % step == 0 ? k : (k * step + 3) % n;
        const caterva_store_range *r = &ranges[i];
        CHECK(r->size > 0, "a range of no bytes");
        if (b->leaves_out && i % 3 == 0) continue;
        if (is_bad(b, r->pos, r->size, err)) {
            failed = true;
            continue;
        }
        pthread_mutex_lock(&b->lock);
        bool inside = r->pos <= b->size && r->size <= b->size - r->pos;
        if (inside) memcpy(r->dst, b->bytes + r->pos, r->size);
        pthread_mutex_unlock(&b->lock);
        if (!inside) continue;
        atomic_fetch_add(&b->n_bytes, (long)r->size);
        stopped = arrived(token, i) != 0;
        if (b->lies && !stopped) stopped = arrived(token, i) || arrived(token, n + i);
    }
    if (stopped) atomic_fetch_add(&b->n_stopped, 1);
    caterva_status status = end(b, failed);
    return stopped ? CATERVA_ESTOPPED : status;
}

static caterva_status blob_write(void *context, uint64_t pos, const void *src, size_t size,
                                 caterva_error *err)
{
    blob *b = context;
    bool failed = begin(b, err);
    size_t written = !failed ? size : b->half ? size / 2 : 0;
    CHECK(pos + size <= BLOB_ROOM, "%zu bytes at %llu", size, (unsigned long long)pos);
    pthread_mutex_lock(&b->lock);
    if (pos > b->size) memset(b->bytes + b->size, 0, (size_t)(pos - b->size));
    memcpy(b->bytes + pos, src, written);
    if (pos + written > b->size) b->size = pos + written;
    pthread_mutex_unlock(&b->lock);
    return end(b, failed);
}

static caterva_status blob_truncate(void *context, uint64_t size, caterva_error *err)
{
    blob *b = context;
    bool failed = begin(b, err);
    CHECK(size <= BLOB_ROOM, "%llu bytes", (unsigned long long)size);
    pthread_mutex_lock(&b->lock);
    if (!failed && size > b->size) memset(b->bytes + b->size, 0, (size_t)(size - b->size));
    if (!failed) b->size = size;
    pthread_mutex_unlock(&b->lock);
    return end(b, failed);
}

static caterva_status blob_sync(void *context, caterva_error *err)
{
    blob *b = context;
    bool failed = begin(b, err);
    b->n_syncs++;
    return end(b, failed);
}

static int blob_has_readers(void *context) { return ((blob *)context)->has_readers; }

static void blob_close(void *context) { ((blob *)context)->n_closed++; }

caterva_store blob_store(blob *b)
{
    caterva_store s = CATERVA_STORE_INIT;
    s.context = b;
    s.name = "the blob";
    s.size = blob_size;
    s.read = blob_read;
    s.write = blob_write;
    s.truncate = blob_truncate;
    s.sync = blob_sync;
    s.has_readers = blob_has_readers;
    s.close = blob_close;
    if (b->waves) s.read_many = blob_read_many;
    return s;
}
