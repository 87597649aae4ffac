/* What commit and close do with pending changes if the commit fails or is stopped: the C
 * columns of the table in docs/reliability.md, "What close, exit and interruption do". */
#include "scratch.h"
#include "support/every_step.h"

#include <caterva.h>
#include <caterva_tree.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 4, OLD = 0, NEW = 7 };

typedef enum failure { FILE_MOVED, STOPPED, N_FAILURES } failure;

static caterva_status expected[] = {CATERVA_EIO, CATERVA_ESTOPPED};

static char root[SCRATCH_PATH], file[SCRATCH_PATH + 8], away[SCRATCH_PATH + 8];
static bool stops;

static int tell(void *context, int64_t done, int64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return stops;
}

static void let_fail(failure how, bool begins)
{
    stops = how == STOPPED && begins;
    if (how == FILE_MOVED)
        assert_int_equal(begins ? rename(file, away) : rename(away, file), 0);
}

static int32_t stored(void)
{
    caterva_array *array;
    int32_t item = -1;
    const int64_t start = 1, stop = 2;
    assert_int_equal(caterva_open(file, NULL, &array, NULL), CATERVA_OK);
    assert_int_equal(caterva_read(array, &start, &stop, &item, sizeof item, NULL),
                     CATERVA_OK);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    return item;
}

static caterva_create_options new_options(void)
{
    static const int64_t shape = N;
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = &shape;
    options.dtype = "<i4";
    options.overwrite = 1;
    return options;
}

static void change(caterva_array *array)
{
    const int64_t start = 0, shape = N;
    const int32_t items[N] = {NEW, NEW, NEW, NEW};
    assert_int_equal(caterva_write(array, &start, &shape, items, sizeof items, NULL),
                     CATERVA_OK);
}

/* ---- Arrays ------------------------------------------------------------------ */

static caterva_array *changed_array(void)
{
    caterva_create_options create = new_options();
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *array;
    scratch_path(root, "close");
    scratch_remove(root);
    snprintf(file, sizeof file, "%s.b2nd", root);
    snprintf(away, sizeof away, "%s.away", root);
    assert_int_equal(caterva_create(file, &create, &array, NULL), CATERVA_OK);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    options.mode = CATERVA_MODE_WRITE;
    options.progress = every_step(tell, NULL);
    assert_int_equal(caterva_open(file, &options, &array, NULL), CATERVA_OK);
    change(array);
    return array;
}

static void test_a_failed_commit_of_an_array_is_repeated(void **state)
{
    (void)state;
    for (failure how = 0; how < N_FAILURES; how++) {
        caterva_array *array = changed_array();
        for (int i = 0; i < 2; i++) {
            let_fail(how, true);
            assert_int_equal(caterva_commit(array, NULL), expected[how]);
            let_fail(how, false);
            assert_true(caterva_has_pending(array));
            assert_int_equal(stored(), OLD);
        }
        assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
        assert_int_equal(stored(), NEW);
        assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    }
}

static void test_a_failed_close_of_an_array_releases_it(void **state)
{
    (void)state;
    for (failure how = 0; how < N_FAILURES; how++) {
        caterva_open_options options = CATERVA_OPEN_INIT;
        caterva_array *array = changed_array();
        let_fail(how, true);
        assert_int_equal(caterva_close(array, NULL), expected[how]);
        let_fail(how, false);
        assert_int_equal(stored(), OLD);
        options.mode = CATERVA_MODE_WRITE; /* no lock remains */
        assert_int_equal(caterva_open(file, &options, &array, NULL), CATERVA_OK);
        caterva_discard(array);
    }
}

static void test_discard_drops(void **state)
{
    (void)state;
    caterva_discard(changed_array());
    assert_int_equal(stored(), OLD);
    assert_int_equal(caterva_close(changed_array(), NULL), CATERVA_OK);
    assert_int_equal(stored(), NEW);
}

/* ---- Trees ------------------------------------------------------------------- */

static const caterva_tree_options writing = {
    .struct_size = sizeof writing,
    .mode = CATERVA_MODE_WRITE,
    .progress = {.report = tell, .per_second = CATERVA_NONE}};

static caterva_tree *changed_tree(caterva_array **array)
{
    caterva_create_options create = new_options();
    caterva_tree *tree;
    scratch_path(root, "close.b2d");
    scratch_remove(root);
    snprintf(file, sizeof file, "%s/x.b2nd", root);
    snprintf(away, sizeof away, "%s.away", root);
    assert_int_equal(caterva_tree_create(root, &writing, &tree, NULL), CATERVA_OK);
    assert_int_equal(caterva_tree_create_array(tree, "/x", &create, array, NULL), CATERVA_OK);
    assert_int_equal(caterva_tree_commit(tree, NULL), CATERVA_OK);
    change(*array);
    assert_int_equal(caterva_tree_attr_set(tree, "/", "n", "\x01", 1, NULL), CATERVA_OK);
    return tree;
}

static bool has_attribute(void)
{
    caterva_tree *tree;
    const char **names;
    size_t n;
    assert_int_equal(caterva_tree_open(root, NULL, &tree, NULL), CATERVA_OK);
    assert_int_equal(caterva_tree_attr_list(tree, "/", &names, &n, NULL), CATERVA_OK);
    caterva_free(names);
    assert_int_equal(caterva_tree_close(tree, NULL), CATERVA_OK);
    return n == 1;
}

static void test_a_failed_commit_of_a_tree_is_repeated(void **state)
{
    (void)state;
    for (failure how = 0; how < N_FAILURES; how++) {
        caterva_array *array;
        caterva_tree *tree = changed_tree(&array);
        for (int i = 0; i < 2; i++) {
            let_fail(how, true);
            assert_int_equal(caterva_tree_commit(tree, NULL), expected[how]);
            let_fail(how, false);
            assert_true(caterva_has_pending(array));
            assert_int_equal(stored(), OLD);
            assert_false(has_attribute());
        }
        assert_int_equal(caterva_tree_commit(tree, NULL), CATERVA_OK);
        assert_int_equal(stored(), NEW);
        assert_true(has_attribute());
        assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
        assert_int_equal(caterva_tree_close(tree, NULL), CATERVA_OK);
    }
}

/* The attributes were to be committed with the array's items. The array's pending changes are
 * its own. */
static void test_a_tree_is_closed_after_a_failed_commit(void **state)
{
    (void)state;
    for (failure how = 0; how < N_FAILURES; how++) {
        caterva_array *array;
        caterva_tree *tree = changed_tree(&array);
        let_fail(how, true);
        assert_int_equal(caterva_tree_commit(tree, NULL), expected[how]);
        let_fail(how, false);
        assert_int_equal(caterva_tree_close(tree, NULL), expected[how]);
        assert_false(has_attribute());
        assert_int_equal(stored(), OLD);
        assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
        assert_int_equal(stored(), NEW);
        assert_int_equal(caterva_tree_open(root, &writing, &tree, NULL), CATERVA_OK);
        assert_int_equal(caterva_tree_close(tree, NULL), CATERVA_OK);
    }
}

static void test_rollback_and_close_of_a_tree_drop(void **state)
{
    (void)state;
    caterva_array *array;
    caterva_tree *tree = changed_tree(&array);
    assert_int_equal(caterva_tree_rollback(tree, NULL), CATERVA_OK);
    assert_int_equal(caterva_tree_close(tree, NULL), CATERVA_OK);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    assert_int_equal(stored(), OLD);
    assert_false(has_attribute());

    tree = changed_tree(&array);
    assert_int_equal(caterva_tree_close(tree, NULL), CATERVA_OK);
    assert_true(has_attribute());
    assert_int_equal(stored(), OLD); /* the array is open, and its changes are pending */
    caterva_discard(array);
    assert_int_equal(stored(), OLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_failed_commit_of_an_array_is_repeated),
        cmocka_unit_test(test_a_failed_close_of_an_array_releases_it),
        cmocka_unit_test(test_discard_drops),
        cmocka_unit_test(test_a_failed_commit_of_a_tree_is_repeated),
        cmocka_unit_test(test_a_tree_is_closed_after_a_failed_commit),
        cmocka_unit_test(test_rollback_and_close_of_a_tree_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
