/* Fixed metalayers of the user: kept as given, changed without changing their length, dropped
 * by a rollback, visible to others after the commit. */
#include "made.h"
#include "scratch.h"
#include "support/info.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const caterva_metalayer LAYERS[] = {
    {.name = "first", .content = "0123456789", .size = 10},
    {.name = "none", .content = ""}};

static caterva_array *create(const char *url)
{
    caterva_error err;
    caterva_array *array;
    geometry g = made_line(100, 20, 5, 4);
    caterva_create_options o = options_for(&g, &made_lz4);
    o.metalayers = LAYERS;
    o.n_metalayers = 2;
    o.overwrite = 1;
    CHECK_OK(caterva_create(url, &o, &array, &err), err);
    return array;
}

static void check_content(caterva_array *array, const char *name, const char *expected)
{
    const caterva_metalayer *layer = caterva_info_metalayer(info_of(array), name);
    assert_non_null(layer);
    assert_int_equal(layer->size, strlen(expected));
    assert_memory_equal(layer->content, expected, layer->size);
}

static void they_stand_behind_the_array_s_own(void **state)
{
    (void)state;
    caterva_array *array = create("mem:");
    const caterva_info *info = info_of(array);
    assert_int_equal(info->n_metalayers, 3);
    assert_string_equal(info->metalayers[0].name, "b2nd");
    assert_string_equal(info->metalayers[1].name, "first");
    assert_string_equal(info->metalayers[2].name, "none");
    assert_null(caterva_info_metalayer(info, "second"));
    assert_null(caterva_info_metalayer(info, ""));
    check_content(array, "first", "0123456789");
    check_content(array, "none", "");
    caterva_discard(array);
}

static void a_change_waits_for_the_commit(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *array = create(scratch_path(path, "metalayers")), *other;
    CHECK_OK(caterva_commit(array, &err), err);
    CHECK_OK(caterva_metalayer_update(array, "first", "ABCDEFGHIJ", 10, &err), err);
    check_content(array, "first", "ABCDEFGHIJ");
    CHECK_OK(caterva_rollback(array, &err), err);
    check_content(array, "first", "0123456789");

    CHECK_OK(caterva_metalayer_update(array, "first", "abcdefghij", 10, &err), err);
    CHECK_OK(made_write(array, 0, 100, 7, 1, &err), err);
    CHECK_OK(caterva_open(path, NULL, &other, &err), err);
    check_content(other, "first", "0123456789");
    CHECK_OK(caterva_commit(array, &err), err);
    CHECK_OK(caterva_refresh(other, &err), err);
    check_content(other, "first", "abcdefghij");
    assert_int_equal(made_item(other, 50), 57);
    assert_int_equal(info_of(other)->sealed, 1);
    caterva_discard(other);
    caterva_discard(array);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    caterva_error err;
    caterva_array *array = create("mem:");
    assert_int_equal(caterva_metalayer_update(array, "first", "short", 5, &err),
                     CATERVA_EINVAL);
    assert_non_null(strstr(err.message, "\"first\" has a fixed length of 10 bytes, not 5"));
    assert_int_equal(caterva_metalayer_update(array, "nothing", "", 0, &err),
                     CATERVA_ENOTFOUND);
    assert_int_equal(caterva_metalayer_update(array, "b2nd", "", 0, &err), CATERVA_EINVAL);
    check_content(array, "first", "0123456789");
    CHECK_OK(caterva_metalayer_update(array, "none", "", 0, &err), err);
    caterva_discard(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_stand_behind_the_array_s_own),
        cmocka_unit_test(a_change_waits_for_the_commit),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
