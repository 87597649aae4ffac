/* Unit: base/heap and array/allocator. A program's own allocator, which counts: all memory of
 * the library is allocated and released by it, after errors too, in all threads. */
#include "base/heap.h"
#include "aligned.h"
#include "check.h"
#include "scratch.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/rooms.h"

/* ---- An allocator that knows its own -------------------------------------------------- */

/* Precedes each block of memory, so that releasing anything else is detected. */
typedef struct label {
    void *start; /* from the system */
    size_t size;
    uint64_t mark;
} label;

static const uint64_t mark_live = 0x6361746572766131, mark_gone = 0x6361746572766130;
static atomic_llong n_live, n_allocated, live_bytes;
static char allocator_context;

static void *allocate(void *context, size_t size, size_t alignment)
{
    bool is_power = alignment > 0 && (alignment & (alignment - 1)) == 0;
    CHECK(context == &allocator_context && size > 0 && is_power, "%zu bytes at %zu", size,
          alignment);
    size_t before = alignment > sizeof(label) ? alignment : 2 * sizeof(label);
    before = (before + alignment - 1) / alignment * alignment;
    uint8_t *start = aligned_new(alignment < 16 ? 16 : alignment, before + size);
    CHECK(start, "no memory");
    memset(start, 0xa5, before + size); /* fresh memory is not zero */
    label l = {start, size, mark_live};
    memcpy(start + before - sizeof l, &l, sizeof l);
    atomic_fetch_add(&n_live, 1);
    atomic_fetch_add(&n_allocated, 1);
    atomic_fetch_add(&live_bytes, (long long)size);
    return start + before;
}

static void release(void *context, void *memory)
{
    label l;
    CHECK(context == &allocator_context && memory, "released without an allocator");
    memcpy(&l, (uint8_t *)memory - sizeof l, sizeof l);
    CHECK(l.mark == mark_live, "released what was not allocated");
    memset(memory, 0x5a, l.size); /* released memory is overwritten */
    atomic_fetch_sub(&n_live, 1);
    atomic_fetch_sub(&live_bytes, (long long)l.size);
    l.mark = mark_gone;
    memcpy((uint8_t *)memory - sizeof l, &l, sizeof l);
    aligned_free(l.start);
}

static caterva_allocator counting(void)
{
    caterva_allocator a = CATERVA_ALLOCATOR_INIT;
    a.context = &allocator_context;
    a.allocate = allocate;
    a.release = release;
    return a;
}

/* ---- Setting it -------------------------------------------------------------------------- */

static void what_is_no_allocator_is_refused(void **state)
{
    (void)state;
    caterva_error err;
    struct {
        caterva_allocator known;
        long beyond;
    } newer = {counting(), 0};
    caterva_allocator a = counting();
    a.allocate = NULL;
    assert_int_equal(caterva_set_allocator(&a, &err), CATERVA_EINVAL);
    assert_string_equal(err.message, "the allocator's allocate function is NULL");
    a = counting();
    a.release = NULL;
    assert_int_equal(caterva_set_allocator(&a, &err), CATERVA_EINVAL);
    assert_string_equal(err.message, "the allocator's release function is NULL");
    a = counting();
    a.struct_size = 0;
    assert_int_equal(caterva_set_allocator(&a, &err), CATERVA_EINVAL);
    newer.known.struct_size = sizeof newer;
    newer.beyond = 1;
    assert_int_equal(caterva_set_allocator(&newer.known, &err), CATERVA_EINVAL);
}

/* In a process of its own. */
static int set_too_late(const char *unused)
{
    (void)unused;
    caterva_dtype *type = NULL;
    caterva_allocator a = counting();
    if (caterva_dtype_parse("<f8", &type, NULL) != CATERVA_OK) return 1;
    caterva_dtype_free(type);
    if (caterva_set_allocator(&a, NULL) != CATERVA_EBUSY) return 2;
    if (caterva_dtype_parse("<f8", &type, NULL) != CATERVA_OK) return 3;
    caterva_dtype_free(type);
    return n_allocated == 0 ? 0 : 4;
}

static void it_is_too_late_after_the_first_allocation(void **state)
{
    (void)state;
    assert_int_equal(in_child(set_too_late, ""), 0);
}

static void it_is_set_once(void **state)
{
    (void)state;
    caterva_error err;
    caterva_allocator a = counting();
    CHECK_OK(caterva_set_allocator(&a, &err), err);
    assert_int_equal(caterva_set_allocator(&a, &err), CATERVA_EBUSY);
}

/* ---- The functions themselves ------------------------------------------------------------ */

static void each_function_asks_it(void **state)
{
    (void)state;
    long long before = n_live;
    uint8_t *bytes[7] = {cv_malloc(100),
                         cv_calloc(25, 4),
                         cv_realloc(NULL, 0, 100),
                         cv_aligned_alloc(64, 100),
                         cv_large_pages(100),
                         (uint8_t *)cv_strdup("copied"),
                         (uint8_t *)cv_strndup("copied", 4)};
    assert_int_equal(n_live, before + 7);
    for (int i = 0; i < 100; i++) assert_int_equal(bytes[1][i], 0);
    assert_int_equal((uintptr_t)bytes[3] % 64, 0);
    assert_int_equal((uintptr_t)bytes[4] % CV_LARGE_PAGE, 0);
    assert_string_equal((char *)bytes[5], "copied");
    assert_string_equal((char *)bytes[6], "copi");
    memset(bytes[2], 7, 100);
    bytes[2] = cv_realloc(bytes[2], 100, 1000);
    for (int i = 0; i < 100; i++) assert_int_equal(bytes[2][i], 7);
    bytes[2] = cv_realloc(bytes[2], 1000, 10);
    for (int i = 0; i < 10; i++) assert_int_equal(bytes[2][i], 7);
    assert_int_equal(n_live, before + 7);
    assert_null(cv_calloc(SIZE_MAX / 2, 4));
    assert_null(cv_aligned_alloc(64, SIZE_MAX - 10));
    for (int i = 0; i < 7; i++) cv_free(bytes[i]);
    cv_free(cv_malloc(0));
    cv_free(NULL);
    assert_int_equal(n_live, before);
}

/* ---- Whole lives of arrays ---------------------------------------------------------------- */

enum { N = 96, CHUNK = 32, BLOCK = 16 };

static caterva_array *make(const char *url, caterva_layout layout)
{
    static int32_t values[N * N];
    caterva_error err;
    caterva_array *array = NULL;
    int32_t chunk[2] = {CHUNK, CHUNK}, block[2] = {BLOCK, BLOCK};
    int64_t shape[2] = {N, N}, start[2] = {0, 0};
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk;
    o.block_shape = block;
    o.dtype = "<i4";
    o.layout = layout;
    o.overwrite = 1;
    o.threads = 3;
    for (int i = 0; i < N * N; i++) values[i] = i;
    CHECK_OK(caterva_create(url, &o, &array, &err), err);
    CHECK_OK(caterva_write(array, start, shape, values, sizeof values, &err), err);
    CHECK_OK(caterva_attr_set(array, "unit", "\xa5metre", 6, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    return array;
}

static void read_and_change(caterva_array *array)
{
    static int32_t values[N * N];
    caterva_error err;
    int64_t start[2] = {0, 0}, stop[2] = {N, N}, low[2] = {3, 3}, high[2] = {5, 60};
    size_t size = 0;
    void *frame = NULL;
    caterva_verify_result verified = CATERVA_VERIFY_RESULT_INIT;
    caterva_view *all = NULL, *turned = NULL;
    CHECK_OK(caterva_read(array, start, stop, values, sizeof values, &err), err);
    for (int i = 0; i < N * N; i++) CHECK(values[i] == i, "item %d is %d", i, values[i]);
    CHECK_OK(caterva_view_of(array, &all, &err), err);
    CHECK_OK(caterva_view_transpose(all, NULL, &turned, &err), err);
    caterva_view_free(all);
    caterva_view_free(turned);
    CHECK_OK(caterva_write(array, low, high, values, 2 * 57 * sizeof values[0], &err), err);
    CHECK_OK(caterva_frame_copy(array, &frame, &size, &err), err);
    caterva_free(frame);
    CHECK_OK(caterva_verify(array, NULL, &verified, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    CHECK_OK(caterva_rollback(array, &err), err);
}

static void fail_in_many_ways(const char *path, caterva_array *array)
{
    caterva_error err;
    caterva_array *none = NULL;
    caterva_dtype *type = NULL;
    caterva_view *view = NULL;
    int64_t start[2] = {5, 5}, stop[2] = {4, 400};
    int32_t item;
    assert_int_not_equal(caterva_open("/nowhere/at/all", NULL, &none, &err), CATERVA_OK);
    assert_int_not_equal(caterva_read(array, start, stop, &item, 4, &err), CATERVA_OK);
    assert_int_not_equal(caterva_dtype_parse("[('a', '<f4'), ('b',", &type, &err),
                         CATERVA_OK);
    assert_int_not_equal(caterva_view_stack(NULL, 0, 0, &view, &err), CATERVA_OK);
    if (strncmp(path, "mem:", 4) == 0) return;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    assert_int_equal(caterva_open(path, &o, &none, &err), CATERVA_EBUSY);
}

static void live_and_die(const char *url, caterva_layout layout)
{
    caterva_error err;
    long long before = n_live, allocated = n_allocated;
    caterva_array *array = make(url, layout);
    read_and_change(array);
    fail_in_many_ways(url, array);
    CHECK_OK(caterva_close(array, &err), err);
    CHECK(n_allocated > allocated + 50, "only %lld allocations", n_allocated - allocated);
    CHECK(n_live == before, "%s: %lld pieces, %lld bytes in all not released", url,
          (long long)n_live - before, (long long)live_bytes);
}

/* The pool and the shared cache may keep what was allocated for the first array. */
static void all_that_was_allocated_is_released(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    caterva_discard(make("mem:", CATERVA_LAYOUT_CONTIGUOUS));
    for (int round = 0; round < 3; round++) {
        live_and_die("mem:", CATERVA_LAYOUT_CONTIGUOUS);
        live_and_die(scratch_path(path, "file"), CATERVA_LAYOUT_CONTIGUOUS);
        live_and_die(scratch_path(path, "directory"), CATERVA_LAYOUT_SPARSE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_allocator_is_refused),
        cmocka_unit_test(it_is_too_late_after_the_first_allocation),
        cmocka_unit_test(it_is_set_once),
        cmocka_unit_test(each_function_asks_it),
        cmocka_unit_test(all_that_was_allocated_is_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
