/* Passes NULL for each pointer parameter of the functions of trees, jobs, attribute values
 * and dimensions, as nulls.c does. */
#include "nulls.h"
#include <caterva_jobs.h>
#include <caterva_tree.h>
#include <caterva_value.h>

static void values(void **state)
{
    (void)state;
    void *packed;
    const char **names;
    size_t size, at = 0;
    caterva_value v = CATERVA_VALUE_INIT;
    REFUSED(caterva_value_next(NULL, 1, &at, &v, &err));
    REFUSED(caterva_value_next("\xc0", 1, NULL, &v, &err));
    REFUSED(caterva_value_next("\xc0", 1, &at, NULL, &err));
    TAKEN(caterva_value_next("\xc0", 1, &at, &v, &err));
    v = (caterva_value)CATERVA_VALUE_INIT;
    REFUSED(caterva_value_pack(NULL, 1, &packed, &size, &err));
    REFUSED(caterva_value_pack(&v, 0, &packed, &size, &err));
    REFUSED(caterva_value_pack(&v, 1, NULL, &size, &err));
    REFUSED(caterva_value_pack(&v, 1, &packed, NULL, &err));
    TAKEN(caterva_value_pack(&v, 1, &packed, &size, &err));
    caterva_free(packed);
    REFUSED(caterva_dims_get(NULL, &names, &err));
    REFUSED(caterva_dims_get(array, NULL, &err));
    REFUSED(caterva_dims_set(NULL, NULL, &err));
    TAKEN(caterva_dims_set(array, NULL, &err));
}

static void trees(void **state)
{
    (void)state;
    caterva_tree *tree;
    const caterva_tree_list *list;
    REFUSED(caterva_tree_open(NULL, NULL, &tree, &err));
    REFUSED(caterva_tree_open("none.b2d", NULL, NULL, &err));
    TAKEN(caterva_tree_close(NULL, &err));
    REFUSED(caterva_tree_get_list(NULL, NULL, &list, &err));
    uint8_t id[CATERVA_STATE_ID];
    REFUSED(caterva_tree_state_id(NULL, id, &err));
    caterva_array *other;
    REFUSED(caterva_tree_open_array(NULL, "/a", NULL, &other, &err));
    REFUSED(caterva_tree_create(NULL, NULL, &tree, &err));
    REFUSED(caterva_tree_create("none.b2d", NULL, NULL, &err));
    REFUSED(caterva_tree_create_array(NULL, "/a", &create_options, &other, &err));
    REFUSED(caterva_tree_create_group(NULL, "/g", &err));
    REFUSED(caterva_tree_delete(NULL, "/a", &err));
    REFUSED(caterva_tree_move(NULL, "/a", "/b", &err));
    REFUSED(caterva_tree_pack(NULL, "none.b2z", NULL, &err));
    REFUSED(caterva_tree_unpack(NULL, "none.b2d", NULL, &err));
    char *text;
    size_t text_size;
    REFUSED(caterva_tree_zarr_metadata(NULL, "/", &text, &text_size, &err));
    QUIET(caterva_tree_list_release(NULL));
    REFUSED(caterva_tree_commit(NULL, &err));
    REFUSED(caterva_tree_rollback(NULL, &err));
    const char **names;
    size_t n;
    void *value;
    REFUSED(caterva_tree_attr_list(NULL, "/g", &names, &n, &err));
    REFUSED(caterva_tree_attr_get(NULL, "/g", "name", &value, &n, &err));
    REFUSED(caterva_tree_attr_set(NULL, "/g", "name", "", 0, &err));
    REFUSED(caterva_tree_attr_delete(NULL, "/g", "name", &err));
    caterva_tree_verify_result verified = CATERVA_TREE_VERIFY_RESULT_INIT;
    REFUSED(caterva_tree_verify(NULL, NULL, NULL, &verified, &err));
    caterva_tree_repair_result repaired = CATERVA_TREE_REPAIR_RESULT_INIT;
    REFUSED(caterva_tree_repair(NULL, NULL, &repaired, &err));
    REFUSED(caterva_tree_repair("none.b2d", NULL, NULL, &err));
}

static void jobs(void **state)
{
    (void)state;
    void *bytes;
    size_t size;
    caterva_array *part;
    const caterva_job_list *list;
    const void *none[1] = {NULL};
    REFUSED(caterva_job_begin(NULL, NULL, &bytes, &size, &err));
    REFUSED(caterva_job_begin(array, NULL, NULL, &size, &err));
    REFUSED(caterva_job_begin(array, NULL, &bytes, NULL, &err));
    REFUSED(caterva_part_open(NULL, "x", 1, NULL, &part, &err));
    REFUSED(caterva_part_open("x", NULL, 1, NULL, &part, &err));
    REFUSED(caterva_part_open("x", "x", 1, NULL, NULL, &err));
    REFUSED(caterva_part_finish(NULL, &bytes, &size, &err));
    REFUSED(caterva_part_finish(array, &bytes, &size, &err)); /* not a part */
    REFUSED(caterva_merge(NULL, none, &size, 1, NULL, NULL, &err));
    REFUSED(caterva_merge(array, NULL, &size, 1, NULL, NULL, &err));
    REFUSED(caterva_merge(array, none, NULL, 1, NULL, NULL, &err));
    REFUSED(caterva_job_delete(NULL, "x", 1, NULL, &err));
    REFUSED(caterva_job_delete("x", NULL, 1, NULL, &err));
    REFUSED(caterva_jobs_list(NULL, NULL, &list, &err));
    REFUSED(caterva_jobs_list("x", NULL, NULL, &err));
    QUIET(caterva_job_list_release(NULL));
}

static void no_function_is_left_out(void **state)
{
    (void)state;
    check_none_is_left_out(is_of_many, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(trees),
        cmocka_unit_test(jobs),
        cmocka_unit_test(no_function_is_left_out),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
