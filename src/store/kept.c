/* Room: store. Which of several threads makes the copy is decided by the count of
 * reads: each number is seen by one of them. */
#include "store/kept.h"

#include "base/os.h"

#include <stdlib.h>

/* A read of few bytes takes as long as 2 KiB of a large one (0.4 us). */
enum { BYTES_PER_READ = 2048, LEAST_READS = 64 };

void cv_kept_init(cv_kept *kept, int fd, uint64_t offset, uint64_t size, uint64_t most)
{
    kept->fd = fd;
    kept->offset = offset;
    kept->size = size <= most ? (size_t)size : 0;
    atomic_init(&kept->n_reads, 0);
    atomic_init(&kept->stopped, false);
    atomic_init(&kept->bytes, NULL);
}

void cv_kept_free(cv_kept *kept) { free(atomic_load(&kept->bytes)); }

void cv_kept_stop(cv_kept *kept)
{
    atomic_store_explicit(&kept->stopped, true, memory_order_relaxed);
}

static uint8_t *read_all(const cv_kept *kept)
{
    size_t done = 0;
    bool large = kept->size >= (size_t)CV_OS_LARGE_PAGE; /* looked at all over the place */
    uint8_t *bytes = large ? cv_os_large_pages(kept->size) : malloc(kept->size);
    if (!bytes) return NULL; /* as without: from the file */
    int error = cv_os_read(kept->fd, bytes, kept->size, kept->offset, &done);
    if (!error && done == kept->size) return bytes;
    free(bytes);
    return NULL;
}

/* Counts a read; the one that makes the file worth keeping makes the copy. */
static const uint8_t *count_read(cv_kept *kept)
{
    unsigned n = atomic_fetch_add_explicit(&kept->n_reads, 1, memory_order_relaxed);
    if (n != LEAST_READS + kept->size / BYTES_PER_READ) return NULL;
    uint8_t *bytes = read_all(kept);
    atomic_store_explicit(&kept->bytes, bytes, memory_order_release);
    return bytes;
}

const uint8_t *cv_kept_view(cv_kept *kept, uint64_t pos, size_t size)
{
    if (kept->size == 0) return NULL;
    if (atomic_load_explicit(&kept->stopped, memory_order_relaxed)) return NULL;
    const uint8_t *bytes = atomic_load_explicit(&kept->bytes, memory_order_acquire);
    if (!bytes) bytes = count_read(kept);
    bool inside = pos <= kept->size && size <= kept->size - pos;
    return bytes && inside ? bytes + pos : NULL;
}
