/* A merge reserves space for all chunks at once if that makes it faster, and gives back what
 * it did not need: also after a rollback, and if parts consist mostly of other bytes than
 * chunks. */
#include "support/behind.h"
#include "support/info.h"
#include "support/random.h"
#include "support/scratch.h"

#include "caterva.h"
#include "caterva_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { PARTS = 64, ROWS = 4, COLUMNS = 1024 };

static const int64_t shape[2] = {PARTS * ROWS, COLUMNS};
static char path[SCRATCH_PATH];
static caterva_array *array;
static void *job, *tokens[PARTS];
static size_t job_size, sizes[PARTS];

static int64_t size_of_file(void)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void write_part(rng *r, int number)
{
    static int32_t items[ROWS * COLUMNS];
    const int64_t start[2] = {number * ROWS, 0}, stop[2] = {(number + 1) * ROWS, COLUMNS};
    caterva_array *part;
    rng_fill(r, items, sizeof items);
    assert_int_equal(caterva_part_open(path, job, job_size, NULL, &part, NULL), CATERVA_OK);
    assert_int_equal(caterva_write(part, start, stop, items, sizeof items, NULL), CATERVA_OK);
    assert_int_equal(caterva_part_finish(part, &tokens[number], &sizes[number], NULL),
                     CATERVA_OK);
}

static int set_up(void **state)
{
    (void)state;
    rng r = rng_from_seed(1);
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = (const int32_t[]){ROWS, COLUMNS};
    o.dtype = "<i4";
    o.overwrite = 1;
    scratch_path(path, "array");
    assert_int_equal(caterva_create(path, &o, &array, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(caterva_job_begin(array, NULL, &job, &job_size, NULL), CATERVA_OK);
    for (int i = 0; i < PARTS; i++) write_part(&r, i);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < PARTS; i++) caterva_free(tokens[i]);
    caterva_free(job);
    caterva_discard(array);
    scratch_remove(path);
    return 0;
}

static int64_t bytes_of_parts(void)
{
    const caterva_job_list *list;
    assert_int_equal(caterva_jobs_list(path, NULL, &list, NULL), CATERVA_OK);
    int64_t bytes = list->entries[0]->part_bytes;
    caterva_job_list_release(list);
    return bytes;
}

static void merge(void)
{
    assert_int_equal(
        caterva_merge(array, (const void *const *)tokens, sizes, PARTS, NULL, NULL, NULL),
        CATERVA_OK);
}

static void room_goes_back(void **state)
{
    (void)state;
    int64_t before = size_of_file(), parts = bytes_of_parts();
    int64_t chunks = (int64_t)PARTS * ROWS * COLUMNS * 4;
    for (int i = 0; i < 2; i++) { /* once more after a rollback */
        merge();
        assert_in_range(size_of_file() - before, chunks, parts - PARTS * 64);
        if (i == 0) assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
    }
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    int64_t frame = info_of(array)->frame_bytes;
    assert_in_range(frame, chunks, chunks + chunks / 20);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    array = NULL;
    assert_in_range(size_of_file(), frame, frame + 4096);
}

static bool puts_behind(caterva_array *writer)
{
    put_behind(writer);
    cv_pending_put_behind(writer->pending, 8, 0);
    bool active = writer->pending->behind.active;
    assert_int_equal(cv_behind_end(&writer->pending->behind, CV_OK, NULL), CV_OK);
    return active;
}

/* The cores are for other workers. */
static void parts_take_one_core(void **state)
{
    (void)state;
    caterva_array *part;
    assert_true(puts_behind(array));
    assert_int_equal(caterva_part_open(path, job, job_size, NULL, &part, NULL), CATERVA_OK);
    assert_false(puts_behind(part));
    caterva_discard(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(room_goes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_take_one_core, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
