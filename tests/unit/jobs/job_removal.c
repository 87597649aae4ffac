/* Several threads delete the folder of a job at once: each part once and finally everything
 * in the folder, with any number of threads. */
#include "engine/run/pool.h"
#include "jobs/folder.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PARTS = 200, HELPERS = 3 };

static const char id[] = "0123456789abcdef0123456789abcdef";
static char path[SCRATCH_PATH], folder[4 * SCRATCH_PATH];
static atomic_int n_steps;

static void make_file(const char *name)
{
    char file[5 * SCRATCH_PATH];
    (void)snprintf(file, sizeof file, "%s/%s", folder, name);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    assert_int_equal(fclose(out), 0);
}

/* Files, and directories like parts of a directory. */
static void make_parts(void)
{
    char name[64];
    for (int i = 0; i < PARTS; i++) {
        (void)snprintf(name, sizeof name, "part-%d", i);
        if (i % 3 == 0) {
            char directory[5 * SCRATCH_PATH];
            (void)snprintf(directory, sizeof directory, "%s/%s", folder, name);
            assert_int_equal(mkdir(directory, 0777), 0);
            (void)snprintf(name, sizeof name, "part-%d/chunk", i);
        }
        make_file(name);
    }
    make_file("job");
    make_file(CV_JOB_BASE);
}

static int set_up(void **state)
{
    char parts[2 * SCRATCH_PATH];
    (void)state;
    scratch_path(path, "array");
    (void)snprintf(parts, sizeof parts, "%s" CV_JOB_FOLDERS, path);
    (void)snprintf(folder, sizeof folder, "%s/%s", parts, id);
    assert_int_equal(mkdir(parts, 0777), 0);
    assert_int_equal(mkdir(folder, 0777), 0);
    make_parts();
    atomic_store(&n_steps, 0);
    return 0;
}

static void assert_gone(void)
{
    char parts[2 * SCRATCH_PATH];
    (void)snprintf(parts, sizeof parts, "%s" CV_JOB_FOLDERS, path);
    assert_int_equal(access(parts, F_OK), -1);
}

static void take_steps(void *removal)
{
    while (cv_job_removal_step(removal)) atomic_fetch_add(&n_steps, 1);
}

static void test_threads_share_the_parts(void **state)
{
    (void)state;
    cv_job_removal *removal;
    assert_int_equal(cv_job_removal_begin(path, id, NULL, &removal, NULL), CV_OK);
    assert_int_equal(access(folder, F_OK), -1); /* it loses its name first */
    (void)cv_pool_run(HELPERS, take_steps, removal, NULL, NULL);
    assert_int_equal(atomic_load(&n_steps),
                     PARTS + 1); /* and the base; the record is deleted last */
    assert_int_equal(cv_job_removal_end(removal, NULL), CV_OK);
    assert_gone();
}

static void test_the_end_deletes_what_no_step_did(void **state)
{
    (void)state;
    cv_job_removal *removal;
    assert_int_equal(cv_job_removal_begin(path, id, NULL, &removal, NULL), CV_OK);
    for (int i = 0; i < PARTS / 2; i++) assert_true(cv_job_removal_step(removal));
    assert_int_equal(cv_job_removal_end(removal, NULL), CV_OK);
    assert_gone();
}

static void test_a_job_that_is_not_there(void **state)
{
    (void)state;
    cv_error err = {0};
    cv_job_removal *removal;
    assert_int_equal(
        cv_job_removal_begin(path, "fedcba98765432100123456789abcdef", NULL, &removal, &err),
        CATERVA_ENOTFOUND);
    assert_non_null(strstr(err.message, "there is no job"));
    assert_int_equal(cv_job_folder_remove(path, id, NULL, NULL), CV_OK);
    assert_gone();
    assert_int_equal(cv_job_folder_remove(path, id, NULL, NULL), CATERVA_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_threads_share_the_parts, set_up),
        cmocka_unit_test_setup(test_the_end_deletes_what_no_step_did, set_up),
        cmocka_unit_test_setup(test_a_job_that_is_not_there, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
