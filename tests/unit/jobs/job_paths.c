/* A job is found by the path of its array. By the time of the merge the path may lead to
 * another array, and several paths may lead to the array. */
#include "support/info.h"
#include "support/scratch.h"

#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIDE = 8 };

static const int64_t shape[2] = {SIDE, SIDE};
static const caterva_layout layouts[] = {CATERVA_LAYOUT_CONTIGUOUS, CATERVA_LAYOUT_SPARSE};
static char path[SCRATCH_PATH];
static caterva_array *array;
static void *job, *token;
static size_t job_size, token_size;

static void create(const char *dtype, caterva_layout layout)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = (const int32_t[]){4, 4};
    o.block_shape = (const int32_t[]){2, 4};
    o.dtype = dtype;
    o.layout = layout;
    o.overwrite = 1;
    assert_int_equal(caterva_create(path, &o, &array, NULL), CATERVA_OK);
}

static void begin_job(caterva_layout layout)
{
    scratch_path(path, "array");
    scratch_remove(path);
    create("<i4", layout);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(caterva_job_begin(array, NULL, &job, &job_size, NULL), CATERVA_OK);
}

/* Writes one chunk of zeros and ones, by the array's path or another one. */
static void write_part(const char *url)
{
    const int64_t start[2] = {0, 0}, stop[2] = {4, 4};
    int32_t items[16];
    caterva_array *part;
    for (int i = 0; i < 16; i++) items[i] = i % 2;
    assert_int_equal(caterva_part_open(url, job, job_size, NULL, &part, NULL), CATERVA_OK);
    assert_int_equal(caterva_write(part, start, stop, items, sizeof items, NULL), CATERVA_OK);
    assert_int_equal(caterva_part_finish(part, &token, &token_size, NULL), CATERVA_OK);
}

static caterva_status merge(caterva_error *err)
{
    const void *bytes = token;
    return caterva_merge(array, &bytes, &token_size, 1, NULL, NULL, err);
}

static void end_job(void)
{
    (void)caterva_job_delete(path, job, job_size, NULL, NULL);
    caterva_discard(array);
    caterva_free(token);
    caterva_free(job);
    array = NULL;
    token = job = NULL;
    scratch_remove(path);
}

/* ---- Another array -------------------------------------------------------------------------- */

/* An array with the same partition whose bytes have another meaning. */
static void an_array_of_another_dtype(caterva_layout layout)
{
    caterva_error err;
    begin_job(layout);
    write_part(path);
    caterva_discard(array);
    create("<f4", layout);
    assert_int_equal(merge(&err), CATERVA_ESHAPE); /* before its first commit */
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(merge(&err), CATERVA_ESHAPE);
    assert_non_null(strstr(err.message, "dtype is <f4, and was <i4"));
    assert_int_equal(caterva_has_pending(array), 0);
    end_job();
}

static void test_an_array_of_another_dtype(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) an_array_of_another_dtype(layouts[i]);
}

static void compact(void)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    assert_int_equal(caterva_compact(path, NULL, NULL), CATERVA_OK);
    assert_int_equal(caterva_open(path, &o, &array, NULL), CATERVA_OK);
}

static void expect_replaced(const caterva_error *err, caterva_status status)
{
    assert_int_equal(status, CATERVA_ESTALE);
    assert_non_null(strstr(err->message, "was begun"));
}

/* An array of the same kind: its chunks are equal to the old one's, so only the notes in the
 * jobs' folders distinguish them. A compact copy is the same array; the new array's own jobs
 * belong to it. */
static void an_array_of_the_same_kind(caterva_layout layout)
{
    caterva_error err;
    caterva_array *part;
    begin_job(layout);
    write_part(path);
    caterva_discard(array);
    compact();
    assert_int_equal(merge(&err), CATERVA_OK);
    assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
    caterva_discard(array);

    create("<i4", layout);
    expect_replaced(&err, merge(&err)); /* before its first commit */
    void *own;
    size_t own_size;
    assert_int_equal(caterva_job_begin(array, NULL, &own, &own_size, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    expect_replaced(&err, merge(&err));
    assert_non_null(strstr(err.message, path));
    assert_int_equal(caterva_has_pending(array), 0);
    expect_replaced(&err, caterva_part_open(path, job, job_size, NULL, &part, &err));
    assert_int_equal(caterva_job_delete(path, job, job_size, NULL, NULL), CATERVA_OK);

    caterva_free(job);
    caterva_free(token);
    job = own;
    job_size = own_size;
    write_part(path);
    assert_int_equal(merge(&err), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    end_job();
}

static void test_an_array_of_the_same_kind(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) an_array_of_the_same_kind(layouts[i]);
}

/* ---- Another path ------------------------------------------------------------------------- */

static void expect_job(const char *url, size_t n)
{
    const caterva_job_list *list;
    assert_int_equal(caterva_jobs_list(url, NULL, &list, NULL), CATERVA_OK);
    assert_int_equal(list->n, n);
    caterva_job_list_release(list);
}

static void open_by(const char *url)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    caterva_discard(array);
    assert_int_equal(caterva_open(url, &o, &array, NULL), CATERVA_OK);
}

/* Begun by one path, written and merged by the other. */
static void a_symbolic_link(caterva_layout layout, bool begin_by_link)
{
    char link[SCRATCH_PATH], parts[2 * SCRATCH_PATH];
    scratch_path(path, "array");
    scratch_path(link, "link");
    assert_int_equal(symlink(path, link), 0);
    begin_job(layout);
    if (begin_by_link) {
        assert_int_equal(caterva_job_delete(link, job, job_size, NULL, NULL), CATERVA_OK);
        caterva_free(job);
        open_by(link);
        assert_int_equal(caterva_job_begin(array, NULL, &job, &job_size, NULL), CATERVA_OK);
    }
    write_part(begin_by_link ? path : link);
    expect_job(path, 1);
    expect_job(link, 1);
    snprintf(parts, sizeof parts, "%s.parts", link);
    assert_int_not_equal(access(parts, F_OK), 0);
    open_by(begin_by_link ? path : link);
    assert_int_equal(merge(NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    expect_job(link, 0);
    assert_int_equal(unlink(link), 0);
    end_job();
}

static void test_a_symbolic_link(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) a_symbolic_link(layouts[i % 2], i / 2 == 1);
}

/* ---- What cannot be removed ---------------------------------------------------------------- */

/* Simulates a part of another user in a directory that cannot be emptied, except by root. */
static void make_stubborn(char stubborn[3 * SCRATCH_PATH])
{
    const caterva_job_list *list;
    char other[2 * SCRATCH_PATH];
    assert_int_equal(caterva_jobs_list(path, NULL, &list, NULL), CATERVA_OK);
    assert_int_equal(list->n, 1);
    assert_int_equal(list->entries[0]->has_ended, 0);
    snprintf(other, sizeof other, "%s.parts/.gone-%s/other", path, list->entries[0]->id);
    snprintf(stubborn, 3 * SCRATCH_PATH, "%s/inner", other);
    char here[2 * SCRATCH_PATH], inner[2 * SCRATCH_PATH + 8];
    snprintf(here, sizeof here, "%s/other", list->entries[0]->folder);
    snprintf(inner, sizeof inner, "%s/inner", here);
    assert_int_equal(mkdir(here, 0777), 0);
    assert_int_equal(mkdir(inner, 0777), 0);
    caterva_job_list_release(list);
}

static void expect_ended(void)
{
    const caterva_job_list *list;
    assert_int_equal(caterva_jobs_list(path, NULL, &list, NULL), CATERVA_OK);
    assert_int_equal(list->n, 1);
    assert_int_equal(list->entries[0]->has_ended, 1);
    assert_int_equal(list->entries[0]->n_parts, 1); /* the others are deleted */
    assert_int_equal(list->entries[0]->job_size, job_size);
    assert_memory_equal(list->entries[0]->job, job, job_size);
    caterva_job_list_release(list);
}

static void test_parts_that_stay(void **state)
{
    (void)state;
    char stubborn[3 * SCRATCH_PATH];
    begin_job(CATERVA_LAYOUT_SPARSE);
    write_part(path);
    make_stubborn(stubborn);
    assert_int_equal(merge(NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    expect_ended();
    assert_int_equal(merge(NULL), CATERVA_ENOTFOUND);
    assert_int_equal(caterva_job_delete(path, job, job_size, NULL, NULL), CATERVA_EIO);
    expect_ended();
    assert_int_equal(rmdir(stubborn), 0);
    assert_int_equal(caterva_job_delete(path, job, job_size, NULL, NULL), CATERVA_OK);
    expect_job(path, 0);
    end_job();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_array_of_another_dtype),
        cmocka_unit_test(test_an_array_of_the_same_kind),
        cmocka_unit_test(test_a_symbolic_link),
        cmocka_unit_test(test_parts_that_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
