#include "blob.h"

#include "check.h"

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

/* Each call counts, and true: this one fails. */
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

static caterva_status blob_read(void *context, uint64_t pos, void *dst, size_t size,
                                size_t *done, caterva_error *err)
{
    blob *b = context;
    bool failed = begin(b, err);
    pthread_mutex_lock(&b->lock);
    uint64_t left = pos < b->size ? b->size - pos : 0;
    *done = size < left ? size : (size_t)left;
    if (b->short_reads && *done > 1) *done = 1 + (size_t)(pos * 31 + size) % *done;
    memcpy(dst, b->bytes + (*done > 0 ? pos : 0), *done);
    pthread_mutex_unlock(&b->lock);
    return end(b, failed);
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
    return s;
}
