/* Memory for many decoded blocks: cut from slabs of 2 MiB, which the system is
 * asked to back by large pages. Filling and reading 64 MiB of blocks then costs
 * 32 page faults and few misses of the address cache instead of 16384 and many. */
#ifndef CV_ENGINE_BLOCK_MEMORY_H
#define CV_ENGINE_BLOCK_MEMORY_H

#include "base/thread.h"

#include <stddef.h>
#include <stdint.h>

typedef struct cv_slab cv_slab;

/* All zero but the lock: empty. Calls may come from any thread. */
typedef struct cv_block_memory {
    cv_mutex lock;
    cv_slab *open; /* those with a free piece; others are known by their pieces only */
} cv_block_memory;

/* One block's bytes. */
typedef struct cv_block_bytes {
    uint8_t *bytes;
    cv_slab *slab; /* NULL: from malloc */
} cv_block_bytes;

void cv_block_memory_init(cv_block_memory *memory);
void cv_block_memory_destroy(cv_block_memory *memory); /* nothing may be in use */

/* `size` bytes, aligned to 64; `bytes` is NULL without memory. Free them with the
 * same memory; the last of a slab gives the slab back. */
cv_block_bytes cv_block_memory_get(cv_block_memory *memory, size_t size);
void cv_block_memory_free(cv_block_memory *memory, cv_block_bytes block);

#endif
