/* The growable buffer: contents kept, memory aligned, impossible sizes refused without
 * harm. */
#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void appending_keeps_what_is_there(void **state)
{
    (void)state;
    cv_buffer b = {0};
    for (int i = 0; i < 5000; i++) {
        uint8_t bytes[3] = {(uint8_t)i, (uint8_t)(i >> 8), 7};
        assert_int_equal(cv_buffer_append(&b, bytes, (size_t)(i % 4), NULL), CV_OK);
        assert_true(b.size <= b.capacity);
    }
    size_t at = 0;
    for (int i = 0; i < 5000; i++) {
        if (i % 4 > 0) assert_int_equal(b.data[at], (uint8_t)i);
        at += (size_t)(i % 4);
    }
    assert_int_equal(b.size, at);
    cv_buffer_free(&b);
}

static void memory_is_aligned(void **state)
{
    (void)state;
    for (size_t size = 1; size < 100000; size = size * 3 + 1) {
        cv_buffer b = {0};
        assert_int_equal(cv_buffer_resize(&b, size, NULL), CV_OK);
        assert_int_equal((uintptr_t)b.data % 64, 0);
        assert_true(b.capacity >= size);
        for (size_t i = 0; i < b.capacity; i++) b.data[i] = 1; /* all of it may be written */
        cv_buffer_free(&b);
    }
}

static void growing_doubles(void **state)
{
    (void)state;
    cv_buffer b = {0};
    int moves = 0;
    for (size_t i = 0, before = 0; i < 1000000; i++) {
        assert_int_equal(cv_buffer_append(&b, "x", 1, NULL), CV_OK);
        if (b.capacity != before) moves++;
        before = b.capacity;
    }
    assert_true(moves < 20);
    cv_buffer_free(&b);
}

static void shrinking_and_reserving_keep_memory(void **state)
{
    (void)state;
    cv_buffer b = {0};
    assert_int_equal(cv_buffer_append(&b, "hello", 5, NULL), CV_OK);
    const uint8_t *data = b.data;
    assert_int_equal(cv_buffer_reserve(&b, 2, NULL), CV_OK);
    assert_int_equal(cv_buffer_resize(&b, 2, NULL), CV_OK);
    assert_ptr_equal(b.data, data);
    assert_int_equal(b.size, 2);
    assert_int_equal(cv_buffer_reserve(&b, 1000, NULL), CV_OK);
    assert_int_equal(b.size, 2);
    assert_memory_equal(b.data, "he", 2);
    cv_buffer_free(&b);
}

static void sizes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    cv_buffer b = {0};
    cv_error err = {.code = CV_OK};
    volatile size_t too_many = SIZE_MAX - 2; /* the compiler must not see the value */
    assert_int_equal(cv_buffer_append(&b, "hello", 5, NULL), CV_OK);
    assert_int_equal(cv_buffer_reserve(&b, SIZE_MAX, &err), CATERVA_ENOMEM);
    assert_int_equal(err.code, CATERVA_ENOMEM);
    assert_int_equal(cv_buffer_append(&b, "x", too_many, NULL), CATERVA_ENOMEM);
    assert_int_equal(cv_buffer_resize(&b, SIZE_MAX - 40, NULL), CATERVA_ENOMEM);
    assert_int_equal(b.size, 5);
    assert_memory_equal(b.data, "hello", 5);
    cv_buffer_free(&b);
}

static void a_freed_buffer_is_empty_and_usable(void **state)
{
    (void)state;
    cv_buffer b = {0};
    cv_buffer_free(&b);
    assert_int_equal(cv_buffer_append(&b, NULL, 0, NULL), CV_OK);
    assert_int_equal(cv_buffer_append(&b, "ab", 2, NULL), CV_OK);
    cv_buffer_free(&b);
    assert_null(b.data);
    assert_int_equal(b.size, 0);
    assert_int_equal(b.capacity, 0);
    assert_int_equal(cv_buffer_append(&b, "cd", 2, NULL), CV_OK);
    assert_memory_equal(b.data, "cd", 2);
    cv_buffer_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appending_keeps_what_is_there),
        cmocka_unit_test(memory_is_aligned),
        cmocka_unit_test(growing_doubles),
        cmocka_unit_test(shrinking_and_reserving_keep_memory),
        cmocka_unit_test(sizes_that_cannot_be_are_refused),
        cmocka_unit_test(a_freed_buffer_is_empty_and_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
