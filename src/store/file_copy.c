/* Room: store. Which of several threads makes the copy is decided by what reads have
 * cost: one of them is the first beyond what the copy costs. */
#include "store/file_copy.h"

#include "base/heap.h"
#include "base/os.h"

/* Cost is counted in bytes: a read of few takes as long as 2 KiB of a large one (0.4 us). */
enum { BYTES_PER_READ = 2048, LEAST_READS = 64 };

void cv_file_copy_init(cv_file_copy *copy, cv_file file, uint64_t offset, uint64_t size,
                       uint64_t most)
{
    copy->file = file;
    copy->offset = offset;
    copy->size = size <= most ? (size_t)size : 0;
    atomic_init(&copy->cost, 0);
    atomic_init(&copy->stopped, false);
    atomic_init(&copy->bytes, NULL);
}

void cv_file_copy_free(cv_file_copy *copy) { cv_free(atomic_load(&copy->bytes)); }

void cv_file_copy_stop(cv_file_copy *copy)
{
    atomic_store_explicit(&copy->stopped, true, memory_order_relaxed);
}

static uint8_t *read_all(const cv_file_copy *copy)
{
    size_t done = 0;
    bool large = copy->size >= (size_t)CV_LARGE_PAGE; /* looked at all over the place */
    uint8_t *bytes = large ? cv_large_pages(copy->size) : cv_malloc(copy->size);
    if (!bytes) return NULL; /* as without: from the file */
    int error = cv_file_read(copy->file, bytes, copy->size, copy->offset, &done);
    if (!error && done == copy->size) return bytes;
    cv_free(bytes);
    return NULL;
}

void cv_file_copy_count(cv_file_copy *copy, size_t size)
{
    if (copy->size == 0) return;
    if (atomic_load_explicit(&copy->stopped, memory_order_relaxed)) return;
    uint64_t enough = copy->size + (uint64_t)LEAST_READS * BYTES_PER_READ;
    uint64_t cost = (uint64_t)size + BYTES_PER_READ;
    uint64_t before = atomic_fetch_add_explicit(&copy->cost, cost, memory_order_relaxed);
    if (before <= enough && before + cost > enough)
        atomic_store_explicit(&copy->bytes, read_all(copy), memory_order_release);
}

const uint8_t *cv_file_copy_view(const cv_file_copy *copy, uint64_t pos, size_t size)
{
    if (atomic_load_explicit(&copy->stopped, memory_order_relaxed)) return NULL;
    const uint8_t *bytes = atomic_load_explicit(&copy->bytes, memory_order_acquire);
    bool inside = pos <= copy->size && size <= copy->size - pos;
    return bytes && inside ? bytes + pos : NULL;
}
