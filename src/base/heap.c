/* Room: base. Memory from the system or the program's functions. Only this module calls malloc. */
#include "base/heap.h"

#include "base/os.h"

/* ---- Heap ---- */

atomic_int cv_heap_settled; /* a cv_heap_kind */
static cv_heap_functions own;

bool cv_heap_set(const cv_heap_functions *functions)
{
    int unsettled = CV_HEAP_UNSETTLED;
    if (!atomic_compare_exchange_strong(&cv_heap_settled, &unsettled, CV_HEAP_SETTING))
        return false;
    own = *functions;
    atomic_store_explicit(&cv_heap_settled, CV_HEAP_SET, memory_order_release);
    return true;
}

#ifdef _WIN32
/* Its free cannot release aligned memory, so its other functions are set like a program's. */
static void *system_allocate(void *context, size_t size, size_t alignment)
{
    (void)context;
    return _aligned_malloc(size, alignment);
}

static void system_release(void *context, void *memory)
{
    (void)context;
    _aligned_free(memory);
}

static void set_system(void)
{
    static const cv_heap_functions functions = {NULL, system_allocate, system_release};
    (void)cv_heap_set(&functions);
}

#define aligned_alloc(alignment, size) NULL /* not called */
#else
static void set_system(void) {}
#endif

/* Returns whether the memory comes from the system. The first call decides this. While another
 * thread is inside cv_heap_set, waits briefly for that thread's decision. */
static bool uses_system(void)
{
    int kind = CV_HEAP_UNSETTLED;
    if (atomic_load_explicit(&cv_heap_settled, memory_order_acquire) == kind) set_system();
    atomic_compare_exchange_strong(&cv_heap_settled, &kind, CV_HEAP_SYSTEM);
    while (kind == CV_HEAP_SETTING)
        kind = atomic_load_explicit(&cv_heap_settled, memory_order_acquire);
    return kind != CV_HEAP_SET;
}

void *cv_heap_allocate(size_t size, size_t alignment)
{
    if (size > SIZE_MAX - alignment) return NULL;
    if (uses_system())
        return alignment <= CV_HEAP_ALIGNMENT
                   ? malloc(size)
                   : aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    return own.allocate(own.context, size > 0 ? size : 1, alignment);
}

void cv_heap_release(void *memory)
{
    if (uses_system())
        free(memory);
    else if (memory)
        own.release(own.context, memory);
}

void *cv_calloc(size_t n, size_t size)
{
    size_t all;
    if (cv_heap_is_system()) return calloc(n, size); /* need not clear new pages */
    if (__builtin_mul_overflow(n, size, &all)) return NULL;
    void *memory = cv_malloc(all);
    if (memory) memset(memory, 0, all);
    return memory;
}

void *cv_realloc(void *memory, size_t old, size_t size)
{
    if (cv_heap_is_system()) return realloc(memory, size);
    void *grown = cv_malloc(size);
    if (!grown || !memory) return grown;
    memcpy(grown, memory, old < size ? old : size);
    cv_free(memory);
    return grown;
}

void *cv_grow(void *list, size_t n, size_t *room, size_t item_size)
{
    if (n < *room) return list;
    size_t more = *room ? *room * 2 : 16;
    void *grown = cv_realloc(list, n * item_size, more * item_size);
    if (grown) *room = more;
    return grown;
}

void *cv_aligned_alloc(size_t alignment, size_t size)
{
    return cv_heap_allocate(size, alignment);
}

void *cv_large_pages(size_t size)
{
    if (size > SIZE_MAX - CV_LARGE_PAGE) return NULL;
    size_t rounded = (size + CV_LARGE_PAGE - 1) / CV_LARGE_PAGE * CV_LARGE_PAGE;
    void *memory = cv_aligned_alloc(CV_LARGE_PAGE, rounded);
    if (memory) cv_os_advise_large_pages(memory, rounded);
    return memory;
}

char *cv_strndup(const char *text, size_t most)
{
    size_t length = strnlen(text, most);
    char *copy = cv_malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *cv_strdup(const char *text) { return cv_strndup(text, SIZE_MAX); }

/* ---- Buffers ----
 *
 * The capacity doubles, so that appending takes amortised O(1) per byte. */

enum { ALIGNMENT = 64 };

cv_status cv_buffer_reserve(cv_buffer *buffer, size_t capacity, cv_error *err)
{
    if (capacity <= buffer->capacity) return CV_OK;

    size_t doubled = buffer->capacity > SIZE_MAX / 2 ? capacity : buffer->capacity * 2;
    size_t wanted = capacity > doubled ? capacity : doubled;
    if (wanted > SIZE_MAX - ALIGNMENT) return cv_fail_memory(err, wanted, "a buffer");
    wanted = (wanted + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

    uint8_t *grown = cv_aligned_alloc(ALIGNMENT, wanted);
    if (!grown) return cv_fail_memory(err, wanted, "a buffer");
    if (buffer->size > 0) memcpy(grown, buffer->data, buffer->size);
    cv_free(buffer->data);
    buffer->data = grown;
    buffer->capacity = wanted;
    return CV_OK;
}

cv_status cv_buffer_resize(cv_buffer *buffer, size_t size, cv_error *err)
{
    CV_TRY(cv_buffer_reserve(buffer, size, err));
    buffer->size = size;
    return CV_OK;
}

cv_status cv_buffer_append_more(cv_buffer *buffer, const void *bytes, size_t size,
                                cv_error *err)
{
    if (size > SIZE_MAX - buffer->size) return cv_fail_memory(err, size, "a buffer");
    CV_TRY(cv_buffer_reserve(buffer, buffer->size + size, err));
    if (size > 0) memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
    return CV_OK;
}

void cv_buffer_free(cv_buffer *buffer)
{
    cv_free(buffer->data);
    *buffer = (cv_buffer){0};
}
