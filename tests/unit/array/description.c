/* Descriptions of an array: each state has one that never changes, and unreferenced ones are
 * freed. */
#include "array/array.h"
#include "support/info.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COMMITS = 5000 };

static const int64_t shape[] = {10};

static caterva_array *new_array(void)
{
    static const uint32_t seven = 7;
    const caterva_metalayer layer = {.name = "mine", .content = "some bytes", .size = 10};
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *array = NULL;
    o.ndim = 1;
    o.shape = shape;
    o.dtype = "<u4";
    o.fill = CATERVA_FILL_VALUE;
    o.fill_value = &seven;
    o.metalayers = &layer;
    o.n_metalayers = 1;
    assert_int_equal(caterva_create("mem:", &o, &array, NULL), CV_OK);
    assert_int_equal(caterva_attr_set(array, "first", "1", 1, NULL), CV_OK);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    return array;
}

/* All pointers in a description point into its own memory. */
static void check_whole(const caterva_info *info, int64_t n_items, int n_attributes)
{
    assert_int_equal(info->shape[0], n_items);
    assert_int_equal(info->n_items, n_items);
    assert_string_equal(info->dtype, "<u4");
    assert_string_equal(info->dtype_stored, "<u4");
    assert_int_equal(*(const uint32_t *)info->fill_value, 7);
    assert_int_equal(info->n_attributes, n_attributes);
    assert_string_equal(info->attribute_names[0], "first");
    assert_int_equal(info->n_metalayers, 2);
    assert_string_equal(info->metalayers[0].name, "b2nd");
    assert_string_equal(info->metalayers[1].name, "mine");
    assert_int_equal(info->metalayers[1].size, 10);
    assert_memory_equal(info->metalayers[1].content, "some bytes", 10);
}

static void a_reference_outlives_its_state_and_its_handle(void **state)
{
    (void)state;
    caterva_array *array = new_array();
    const caterva_info *before, *same, *after;
    const int64_t longer[] = {20};
    assert_int_equal(caterva_info_get(array, &before, NULL), CV_OK);
    assert_int_equal(caterva_info_get(array, &same, NULL), CV_OK);
    assert_ptr_equal(before, same);
    caterva_info_release(same);
    assert_int_equal(caterva_resize(array, longer, NULL), CV_OK);
    assert_int_equal(caterva_attr_set(array, "second", "2", 1, NULL), CV_OK);
    assert_int_equal(caterva_info_get(array, &after, NULL), CV_OK);
    caterva_discard(array);
    check_whole(before, 10, 1);
    check_whole(after, 20, 2);
    assert_string_equal(after->attribute_names[1], "second");
    caterva_info_release(before);
    caterva_info_release(after);
}

static void each_state_has_one_that_never_changes(void **state)
{
    (void)state;
    caterva_array *array = new_array();
    const caterva_info *infos[20], *same;
    for (int i = 0; i < 20; i++) {
        int64_t longer[] = {10 + i};
        assert_int_equal(caterva_resize(array, longer, NULL), CV_OK);
        assert_int_equal(caterva_info_get(array, &infos[i], NULL), CV_OK);
        assert_int_equal(caterva_info_get(array, &same, NULL), CV_OK);
        assert_ptr_equal(same, infos[i]);
        caterva_info_release(same);
        assert_int_equal(caterva_metalayer_update(array, "mine", "some bytes", 10, NULL),
                         CV_OK);
        if (i % 3 == 0) assert_int_equal(caterva_commit(array, NULL), CV_OK);
        if (i % 7 == 0) assert_int_equal(caterva_rollback(array, NULL), CV_OK);
    }
    caterva_discard(array);
    for (int i = 0; i < 20; i++) {
        check_whole(infos[i], 10 + i, 1);
        caterva_info_release(infos[i]);
    }
}

static bool same_state(caterva_array *a, caterva_array *b)
{
    return memcmp(info_of(a)->state_id, info_of(b)->state_id, CATERVA_STATE_ID) == 0;
}

static void it_says_where_the_array_is_and_how_far(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    const uint32_t items[10] = {1, 2, 3};
    const int64_t origin[] = {0};
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *array = NULL, *reader = NULL;
    o.ndim = 1;
    o.shape = shape;
    o.dtype = "<u4";
    o.overwrite = 1;
    o.durability = CATERVA_DURABILITY_ORDERED;
    scratch_path(path, "described.b2nd");
    assert_int_equal(caterva_create(path, &o, &array, NULL), CV_OK);
    assert_int_equal(caterva_has_pending(array), 1);
    assert_int_equal(info_of(array)->commit_number, 0);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(caterva_write(array, origin, shape, items, sizeof items, NULL),
                         CV_OK);
        assert_int_equal(caterva_has_pending(array), 1);
        assert_int_equal(caterva_commit(array, NULL), CV_OK);
        assert_int_equal(caterva_has_pending(array), 0);
        assert_int_equal(info_of(array)->commit_number, i);
    }
    assert_string_equal(info_of(array)->url, path);
    assert_int_equal(info_of(array)->mode, CATERVA_MODE_WRITE);
    assert_int_equal(info_of(array)->durability, CATERVA_DURABILITY_ORDERED);

    assert_int_equal(caterva_open(path, NULL, &reader, NULL), CV_OK);
    assert_string_equal(info_of(reader)->url, path);
    assert_int_equal(info_of(reader)->mode, CATERVA_MODE_READ);
    assert_int_equal(info_of(reader)->commit_number, 3);
    assert_true(same_state(reader, array));
    assert_int_equal(caterva_write(array, origin, shape, items, sizeof items, NULL), CV_OK);
    assert_true(same_state(reader, array));
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    assert_int_equal(info_of(reader)->commit_number, 3);
    assert_false(same_state(reader, array));
    assert_int_equal(caterva_refresh(reader, NULL), CV_OK);
    assert_int_equal(info_of(reader)->commit_number, 4);
    assert_true(same_state(reader, array));
    assert_string_equal(info_of(reader)->url, path);
    assert_int_equal(caterva_has_pending(reader), 0);
    caterva_discard(reader);
    caterva_discard(array);

    array = new_array();
    assert_null(info_of(array)->url);
    caterva_discard(array);
}

/* Makes 5,000 states; a leak checker verifies that they are freed. */
static void what_nobody_holds_is_not_kept(void **state)
{
    (void)state;
    caterva_array *array = new_array();
    for (int i = 0; i < COMMITS; i++) {
        const caterva_info *info;
        int64_t longer[] = {10 + i};
        assert_int_equal(caterva_resize(array, longer, NULL), CV_OK);
        assert_int_equal(caterva_info_get(array, &info, NULL), CV_OK);
        assert_int_equal(info->shape[0], longer[0]);
        caterva_info_release(info);
        assert_int_equal(caterva_commit(array, NULL), CV_OK);
    }
    caterva_discard(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reference_outlives_its_state_and_its_handle),
        cmocka_unit_test(it_says_where_the_array_is_and_how_far),
        cmocka_unit_test(each_state_has_one_that_never_changes),
        cmocka_unit_test(what_nobody_holds_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
