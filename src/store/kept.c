/* Room: store. Which of several threads makes the copy is decided by what reads have
 * cost: one of them is the first beyond what the copy costs. */
#include "store/kept.h"

#include "base/os.h"

#include <stdlib.h>

/* Cost is counted in bytes: a read of few takes as long as 2 KiB of a large one (0.4 us). */
enum { BYTES_PER_READ = 2048, LEAST_READS = 64 };

void cv_kept_init(cv_kept *kept, cv_file file, uint64_t offset, uint64_t size, uint64_t most)
{
    kept->file = file;
    kept->offset = offset;
    kept->size = size <= most ? (size_t)size : 0;
    atomic_init(&kept->cost, 0);
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
    int error = cv_file_read(kept->file, bytes, kept->size, kept->offset, &done);
    if (!error && done == kept->size) return bytes;
    free(bytes);
    return NULL;
}

void cv_kept_count(cv_kept *kept, size_t size)
{
    if (kept->size == 0) return;
    if (atomic_load_explicit(&kept->stopped, memory_order_relaxed)) return;
    uint64_t enough = kept->size + (uint64_t)LEAST_READS * BYTES_PER_READ;
    uint64_t cost = (uint64_t)size + BYTES_PER_READ;
    uint64_t before = atomic_fetch_add_explicit(&kept->cost, cost, memory_order_relaxed);
    if (before <= enough && before + cost > enough)
        atomic_store_explicit(&kept->bytes, read_all(kept), memory_order_release);
}

const uint8_t *cv_kept_view(const cv_kept *kept, uint64_t pos, size_t size)
{
    if (atomic_load_explicit(&kept->stopped, memory_order_relaxed)) return NULL;
    const uint8_t *bytes = atomic_load_explicit(&kept->bytes, memory_order_acquire);
    bool inside = pos <= kept->size && size <= kept->size - pos;
    return bytes && inside ? bytes + pos : NULL;
}
