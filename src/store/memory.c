/* Room: store. Frames in memory. A frame is borrowed from the caller and read-only, or it grows in
 * segments, which never move, so that views stay valid beside a writer:
 *
 *   segment  0        1                2
 *            |- 64K -|----- 128K -----|------------ 256K ------------| ...
 *
 * Each segment is installed by one compare-and-swap and lives until the store is closed. Bytes
 * beyond the size are always zero, so growing does not clear memory. */
#include "store/memory.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/os_file.h"
#include "store/store.h"

#include <stdatomic.h>
#include <string.h>

enum { FIRST_SEGMENT_BITS = 16, N_SEGMENTS = sizeof(size_t) > 4 ? 40 : 15 };

typedef struct memory_store {
    cv_store base;
    atomic_uint_least64_t size;
    _Atomic(uint8_t *) segments[N_SEGMENTS];
} memory_store;

typedef struct borrowed_store {
    cv_store base;
    const uint8_t *bytes;
    size_t size;
} borrowed_store;

/* ---- Segments ----------------------------------------------------------- */

typedef struct stretch {
    int segment;
    size_t start; /* position in the segment */
    size_t size;
} stretch;

static size_t segment_size(int segment)
{
    return (size_t)1 << (FIRST_SEGMENT_BITS + segment);
}

/* Segment k begins at 64K * (2^k - 1), so k is the highest set bit of pos / 64K + 1. */
static stretch stretch_at(uint64_t pos, size_t size)
{
    uint64_t scaled = (pos >> FIRST_SEGMENT_BITS) + 1;
    int segment = 63 - __builtin_clzll(scaled);
    uint64_t segment_pos = ((UINT64_C(1) << segment) - 1) << FIRST_SEGMENT_BITS;
    size_t start = (size_t)(pos - segment_pos);
    size_t room = segment_size(segment) - start;
    return (stretch){segment, start, size < room ? size : room};
}

static uint8_t *segment_bytes(const memory_store *m, int segment)
{
    return atomic_load_explicit(&m->segments[segment], memory_order_acquire);
}

/* Returns the segment, and allocates it if it is missing. Returns NULL if out of memory. If two
 * writers race, both use the segment that was installed first. */
static uint8_t *need_segment(memory_store *m, int segment)
{
    uint8_t *bytes = segment_bytes(m, segment);
    if (bytes) return bytes;
    uint8_t *fresh = cv_calloc(1, segment_size(segment));
    if (!fresh) return NULL;
    if (atomic_compare_exchange_strong(&m->segments[segment], &bytes, fresh)) return fresh;
    cv_free(fresh);
    return bytes;
}

/* Allocates every segment below `end`, because a gap must read as zeros. */
static cv_status reserve(memory_store *m, uint64_t end, cv_error *err)
{
    uint64_t limit = ((UINT64_C(1) << N_SEGMENTS) - 1) << FIRST_SEGMENT_BITS;
    if (end > limit) return cv_fail_memory(err, SIZE_MAX, "an array in memory");
    if (end == 0) return CV_OK;
    int last = stretch_at(end - 1, 1).segment;
    for (int i = 0; i <= last; i++)
        if (!need_segment(m, i))
            return cv_fail_memory(err, segment_size(i), "an array in memory");
    return CV_OK;
}

static void grow_size(memory_store *m, uint64_t size)
{
    uint64_t before = atomic_load_explicit(&m->size, memory_order_relaxed);
    while (before < size && !atomic_compare_exchange_weak_explicit(&m->size, &before, size,
                                                                   memory_order_release,
                                                                   memory_order_relaxed)) {}
}

/* ---- Memory that grows -------------------------------------------------- */

static cv_status memory_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err)
{
    memory_store *m = (memory_store *)store;
    CV_TRY(cv_store_check_frame(store, object, err));
    *size = atomic_load_explicit(&m->size, memory_order_acquire);
    return CV_OK;
}

static cv_status memory_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                             size_t size, cv_error *err)
{
    memory_store *m = (memory_store *)store;
    uint64_t have, end;
    CV_TRY(memory_size(store, object, &have, err));
    if (!cv_add_u64(pos, size, &end) || end > have)
        return cv_fail_past_end(err, "the frame in memory", pos, size, have);

    for (uint8_t *to = dst; size > 0;) {
        stretch s = stretch_at(pos, size);
        memcpy(to, segment_bytes(m, s.segment) + s.start, s.size);
        to += s.size;
        pos += s.size;
        size -= s.size;
    }
    return CV_OK;
}

static const uint8_t *memory_view(cv_store *store, cv_object object, uint64_t pos,
                                  size_t size)
{
    memory_store *m = (memory_store *)store;
    uint64_t have, end;
    if (memory_size(store, object, &have, NULL) != CV_OK) return NULL;
    if (!cv_add_u64(pos, size, &end) || end > have || size == 0) return NULL;
    stretch s = stretch_at(pos, size);
    return s.size == size ? segment_bytes(m, s.segment) + s.start : NULL;
}

static void memory_warm(cv_store *store, cv_object object, uint64_t pos, size_t size)
{
    cv_warm_bytes(cv_store_view(store, object, pos, size), size);
}

static cv_status memory_write(cv_store *store, cv_object object, uint64_t pos,
                              const void *src, size_t size, cv_error *err)
{
    memory_store *m = (memory_store *)store;
    uint64_t end;
    CV_TRY(cv_store_check_frame(store, object, err));
    if (size == 0) return CV_OK;
    if (!cv_add_u64(pos, size, &end)) end = UINT64_MAX;
    CV_TRY(reserve(m, end, err));

    for (const uint8_t *from = src; size > 0;) {
        stretch s = stretch_at(pos, size);
        memcpy(segment_bytes(m, s.segment) + s.start, from, s.size);
        from += s.size;
        pos += s.size;
        size -= s.size;
    }
    grow_size(m, end);
    return CV_OK;
}

static void clear(memory_store *m, uint64_t pos, uint64_t end)
{
    while (pos < end) {
        stretch s = stretch_at(pos, (size_t)(end - pos));
        memset(segment_bytes(m, s.segment) + s.start, 0, s.size);
        pos += s.size;
    }
}

static cv_status memory_truncate(cv_store *store, cv_object object, uint64_t size,
                                 cv_error *err)
{
    memory_store *m = (memory_store *)store;
    uint64_t before;
    CV_TRY(memory_size(store, object, &before, err));
    CV_TRY(reserve(m, size, err));
    atomic_store_explicit(&m->size, size, memory_order_release);
    clear(m, size, before);
    return CV_OK;
}

static cv_status memory_sync(cv_store *store, cv_object object, cv_error *err)
{
    return cv_store_check_frame(store, object, err);
}

static cv_status memory_publish(cv_store *store, bool durable, cv_error *err)
{
    (void)durable, (void)err;
    store->published = true;
    return CV_OK;
}

static void memory_close(cv_store *store)
{
    memory_store *m = (memory_store *)store;
    for (int i = 0; i < N_SEGMENTS; i++) cv_free(segment_bytes(m, i));
    cv_free(m);
}

static const cv_store_ops memory_ops = {
    .name = "memory",
    .size = memory_size,
    .read = memory_read,
    .view = memory_view,
    .warm = memory_warm,
    .write = memory_write,
    .truncate = memory_truncate,
    .sync = memory_sync,
    .publish = memory_publish,
    .close = memory_close,
};

cv_status cv_store_memory_create(cv_store **out, cv_error *err)
{
    memory_store *m = cv_calloc(1, sizeof *m);
    if (!m) return cv_fail_memory(err, sizeof *m, "a store");
    m->base = (cv_store){.ops = &memory_ops, .writable = true, .in_memory = true};
    atomic_init(&m->size, 0);
    for (int i = 0; i < N_SEGMENTS; i++) atomic_init(&m->segments[i], NULL);
    *out = &m->base;
    return CV_OK;
}

/* ---- Borrowed memory ---------------------------------------------------- */

static cv_status borrowed_size(cv_store *store, cv_object object, uint64_t *size,
                               cv_error *err)
{
    CV_TRY(cv_store_check_frame(store, object, err));
    *size = ((borrowed_store *)store)->size;
    return CV_OK;
}

static const uint8_t *borrowed_view(cv_store *store, cv_object object, uint64_t pos,
                                    size_t size)
{
    const borrowed_store *b = (const borrowed_store *)store;
    if (object != CV_FRAME_OBJECT || size == 0) return NULL;
    if (pos > b->size || size > b->size - pos) return NULL;
    return b->bytes + pos;
}

static cv_status borrowed_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                               size_t size, cv_error *err)
{
    const borrowed_store *b = (const borrowed_store *)store;
    CV_TRY(cv_store_check_frame(store, object, err));
    if (pos > b->size || size > b->size - pos)
        return cv_fail_past_end(err, "the frame in memory", pos, size, b->size);
    if (size > 0) memcpy(dst, b->bytes + pos, size);
    return CV_OK;
}

static void borrowed_close(cv_store *store) { cv_free(store); }

static const cv_store_ops borrowed_ops = {
    .name = "memory",
    .size = borrowed_size,
    .read = borrowed_read,
    .view = borrowed_view,
    .warm = memory_warm,
    .sync = memory_sync,
    .publish = memory_publish,
    .close = borrowed_close,
};

cv_status cv_store_memory_borrow(const void *bytes, size_t size, cv_store **out,
                                 cv_error *err)
{
    borrowed_store *b = cv_calloc(1, sizeof *b);
    if (!b) return cv_fail_memory(err, sizeof *b, "a store");
    b->base = (cv_store){.ops = &borrowed_ops, .in_memory = true, .published = true};
    b->bytes = bytes;
    b->size = size;
    *out = &b->base;
    return CV_OK;
}
