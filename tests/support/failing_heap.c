/* Test support: an allocator for the library only. libblosc2 and the C library use their own. */
#include "failing_heap.h"

#include "aligned.h"
#include "check.h"

#include <caterva.h>
#include <caterva_store.h>
#include <stdlib.h>

enum { MAX_LIVE = 4096 };

static struct {
    bool armed;
    long countdown; /* allocations before the one that fails */
    long n_failed;
    void *live[MAX_LIVE]; /* allocated while armed */
    int n_live;
} heap;

static bool must_fail(void)
{
    if (!heap.armed || heap.countdown-- != 0) return false;
    heap.n_failed++;
    return true;
}

static void *allocate(void *context, size_t size, size_t alignment)
{
    (void)context;
    if (must_fail()) return NULL;
    void *memory = aligned_new(alignment, size);
    if (!heap.armed || !memory) return memory;
    if (heap.n_live == MAX_LIVE) abort();
    heap.live[heap.n_live++] = memory;
    return memory;
}

static void release(void *context, void *memory)
{
    (void)context;
    for (int i = heap.n_live - 1; i >= 0; i--) {
        if (heap.live[i] != memory) continue;
        heap.live[i] = heap.live[--heap.n_live];
        break;
    }
    aligned_free(memory);
}

void heap_install(void)
{
    caterva_allocator allocator = CATERVA_ALLOCATOR_INIT;
    caterva_error err;
    allocator.allocate = allocate;
    allocator.release = release;
    CHECK_OK(caterva_set_allocator(&allocator, &err), err);
}

void heap_arm(long n)
{
    heap.n_failed = heap.n_live = 0;
    heap.countdown = n;
    heap.armed = true;
}

bool heap_disarm(void)
{
    heap.armed = false;
    return heap.n_failed > 0;
}

int heap_live(void) { return heap.n_live; }
