/* The linker turns each malloc of a test program, the library linked in, into a
 * __wrap_malloc (--wrap, see CMakeLists.txt); __real_malloc is what it was, also a
 * sanitizer's. Programs that are not linked so never ask for this file. */
#include "failing_heap.h"

#include <errno.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t most);
void __real_free(void *memory);

enum { MAX_LIVE = 4096 };

static struct {
    bool armed;
    long countdown; /* allocations of ours until one fails */
    long n_failed;
    void *live[MAX_LIVE]; /* ours, made while armed */
    int n_live;
} heap;

static bool must_fail(void)
{
    if (!heap.armed || heap.countdown-- != 0) return false;
    heap.n_failed++;
    errno = ENOMEM;
    return true;
}

static void *note(void *memory)
{
    if (heap.armed && memory) {
        if (heap.n_live == MAX_LIVE) abort();
        heap.live[heap.n_live++] = memory;
    }
    return memory;
}

static void forget(const void *memory)
{
    for (int i = heap.n_live - 1; i >= 0 && memory; i--) {
        if (heap.live[i] != memory) continue;
        heap.live[i] = heap.live[--heap.n_live];
        return;
    }
}

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t size) { return must_fail() ? NULL : note(__real_malloc(size)); }

void *__wrap_calloc(size_t n, size_t size)
{
    return must_fail() ? NULL : note(__real_calloc(n, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    if (must_fail()) return NULL;
    forget(memory);
    return note(__real_realloc(memory, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return must_fail() ? NULL : note(__real_aligned_alloc(alignment, size));
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size)
{
    if (must_fail()) return ENOMEM;
    int error = __real_posix_memalign(out, alignment, size);
    if (error == 0) note(*out);
    return error;
}

char *__wrap_strdup(const char *text)
{
    return must_fail() ? NULL : note(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t most)
{
    return must_fail() ? NULL : note(__real_strndup(text, most));
}

void __wrap_free(void *memory)
{
    forget(memory);
    __real_free(memory);
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
