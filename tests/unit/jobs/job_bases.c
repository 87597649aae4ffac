/* The base of a job. Parts of a job are merged after everything that leaves the items of the
 * array as they were when the job began: first commits, rollbacks, closes, growth. Each case
 * runs for several kinds of fill, in files and in directories. */
#include "support/scratch.h"

#include "caterva.h"
#include "caterva_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 10, COLUMNS = 7, MORE_ROWS = 21, MOST_ITEM = 24, PARTS = 3 };

typedef struct setting {
    const char *dtype;
    size_t item_size;
    uint8_t fill[MOST_ITEM];
    caterva_fill kind;
    caterva_layout layout;
} setting;

typedef struct token {
    void *bytes;
    size_t size;
} token;

static char path[SCRATCH_PATH];
static const setting *now;
static caterva_array *array;
static int64_t shape[2];
static uint8_t expected[MORE_ROWS * COLUMNS * MOST_ITEM];
static void *job;
static size_t job_size;
static token tokens[PARTS];

/* ---- The array ---------------------------------------------------------------------------- */

static void must(caterva_status status, const caterva_error *err)
{
    if (status != CATERVA_OK)
        fail_msg("%s, fill %d, %s: %s", now->dtype, (int)now->kind,
                 now->layout == CATERVA_LAYOUT_SPARSE ? "directory" : "file", err->message);
}

static void expect_items(int64_t first, int64_t last, const uint8_t *item)
{
    for (int64_t i = first * COLUMNS; i < last * COLUMNS; i++)
        memcpy(expected + (size_t)i * now->item_size, item, now->item_size);
}

static caterva_create_options options(void)
{
    static const int32_t chunk_shape[2] = {4, 3}, block_shape[2] = {2, 2};
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk_shape;
    o.block_shape = block_shape;
    o.dtype = now->dtype;
    o.layout = now->layout;
    o.fill = now->kind;
    o.fill_value = now->kind == CATERVA_FILL_VALUE ? now->fill : NULL;
    o.overwrite = 1;
    o.durability = CATERVA_DURABILITY_NONE;
    return o;
}

static void create(int64_t rows)
{
    caterva_error err;
    shape[0] = rows;
    shape[1] = COLUMNS;
    caterva_create_options o = options();
    scratch_path(path, now->layout == CATERVA_LAYOUT_SPARSE ? "directory" : "file");
    expect_items(0, MORE_ROWS, now->fill);
    must(caterva_create(path, &o, &array, &err), &err);
}

static void reopen(void)
{
    caterva_error err;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    if (array) must(caterva_close(array, &err), &err);
    must(caterva_open(path, &o, &array, &err), &err);
}

static void write_rows(caterva_array *out, int64_t first, int64_t last, uint8_t value)
{
    caterva_error err;
    uint8_t item[MOST_ITEM];
    int64_t start[2] = {first, 0}, stop[2] = {last, COLUMNS};
    size_t size = now->item_size;
    memset(item, value, sizeof item);
    expect_items(first, last, item);
    must(caterva_write(out, start, stop, expected + (size_t)(first * COLUMNS) * size,
                       (size_t)((last - first) * COLUMNS) * size, &err),
         &err);
}

static void resize(int64_t rows)
{
    caterva_error err;
    shape[0] = rows;
    must(caterva_resize(array, shape, &err), &err);
}

static void commit(void)
{
    caterva_error err;
    must(caterva_commit(array, &err), &err);
}

static void roll_back(void)
{
    caterva_error err;
    must(caterva_rollback(array, &err), &err);
}

/* ---- The job ------------------------------------------------------------------------------ */

static void begin(int64_t rows)
{
    caterva_error err;
    caterva_job_options o = CATERVA_JOB_INIT;
    shape[0] = rows;
    o.shape = shape;
    must(caterva_job_begin(array, &o, &job, &job_size, &err), &err);
}

/* Each part has rows of its own, which begin and end within shared chunks. */
static void write_parts(void)
{
    caterva_error err;
    for (int64_t i = 0; i < PARTS; i++) {
        caterva_array *part;
        int64_t first = i * shape[0] / PARTS, last = (i + 1) * shape[0] / PARTS;
        must(caterva_part_open(path, job, job_size, NULL, &part, &err), &err);
        if (first < last) write_rows(part, first, last, (uint8_t)(0x11 * (i + 1)));
        must(caterva_part_finish(part, &tokens[i].bytes, &tokens[i].size, &err), &err);
    }
}

static void merge(int first, int last)
{
    caterva_error err;
    const void *bytes[PARTS];
    size_t sizes[PARTS], n = 0;
    for (int i = first; i < last; i++, n++) {
        bytes[n] = tokens[i].bytes;
        sizes[n] = tokens[i].size;
    }
    must(caterva_merge(array, bytes, sizes, n, NULL, NULL, &err), &err);
}

static void check_items(void)
{
    caterva_error err;
    static uint8_t got[sizeof expected];
    const int64_t origin[2] = {0, 0};
    size_t size = (size_t)(shape[0] * COLUMNS) * now->item_size;
    must(caterva_read(array, origin, shape, got, size, &err), &err);
    assert_memory_equal(got, expected, size);
}

static void merge_and_check(void)
{
    merge(0, PARTS);
    check_items();
    reopen();
    check_items();
}

/* ---- The cases ---------------------------------------------------------------------------- */

static void the_first_commit(void)
{
    create(ROWS);
    begin(ROWS);
    commit();
    write_parts();
    merge_and_check();
}

static void a_close(void)
{
    create(ROWS);
    begin(ROWS);
    reopen();
    write_parts();
    merge_and_check();
}

static void no_commit(void)
{
    create(ROWS);
    begin(ROWS);
    write_parts();
    merge_and_check();
}

static void a_rollback(void)
{
    create(ROWS);
    begin(ROWS);
    roll_back();
    write_parts();
    merge(0, PARTS);
    roll_back();
    commit();
    merge_and_check();
}

static void pending_changes(void)
{
    create(ROWS);
    write_rows(array, 2, 5, 7);
    begin(ROWS);
    reopen();
    write_parts();
    merge_and_check();
}

static void sizes_before(void)
{
    create(3);
    write_rows(array, 1, 2, 7);
    resize(MORE_ROWS);
    resize(ROWS);
    begin(ROWS);
    reopen();
    write_parts();
    merge_and_check();
}

static void growth_with_the_job(void)
{
    create(ROWS);
    write_rows(array, 1, 6, 7);
    begin(MORE_ROWS);
    reopen();
    write_parts();
    merge_and_check();
}

static void growth_of_nothing(void)
{
    create(0);
    begin(MORE_ROWS);
    reopen();
    write_parts();
    merge_and_check();
}

static void emptied_before(void)
{
    create(ROWS);
    write_rows(array, 0, ROWS, 7);
    commit();
    resize(0);
    expect_items(0, MORE_ROWS, now->fill);
    begin(MORE_ROWS);
    reopen();
    write_parts();
    merge_and_check();
}

/* The growth is lost with the coordinator, and repeated by the next one. */
static void a_coordinator_that_dies(void)
{
    create(ROWS);
    reopen();
    begin(MORE_ROWS);
    caterva_discard(array);
    array = NULL;
    write_parts();
    reopen();
    merge_and_check();
}

static void in_place_of_another(void)
{
    create(ROWS);
    write_rows(array, 0, ROWS, 7);
    reopen();
    caterva_discard(array);
    create(ROWS);
    begin(ROWS);
    reopen();
    write_parts();
    merge_and_check();
}

/* ---- All of them -------------------------------------------------------------------------- */

static int clean(void **state)
{
    (void)state;
    caterva_discard(array);
    array = NULL;
    caterva_free(job);
    job = NULL;
    for (int i = 0; i < PARTS; i++) {
        caterva_free(tokens[i].bytes);
        tokens[i].bytes = NULL;
    }
    scratch_remove(path);
    return 0;
}

static void run(void (*one)(void))
{
    one();
    clean(NULL);
}

static void run_all(void (*one)(void))
{
    setting all[] = {
        {.dtype = "<f4", .item_size = 4, .fill = {0}, .kind = CATERVA_FILL_ZEROS},
        {.dtype = "<f4", .item_size = 4, .fill = {0, 0, 0xc0, 0x7f}, .kind = CATERVA_FILL_NAN},
        {.dtype = "<f4", .item_size = 4, .fill = {0, 0xc0, 0x79, 0xc4}},
        {.dtype = "|u1", .item_size = 1, .fill = {255}},
        {.dtype = "|S5", .item_size = 5, .fill = "blank"},
        {.dtype = "<c16", .item_size = 16, .fill = {1, 2, 3}},
        {.dtype = "[('a', '<i8'), ('b', '<f8')]", .item_size = 16, .fill = {9}},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        now = &all[i];
        if (i > 1) all[i].kind = CATERVA_FILL_VALUE;
        all[i].layout = CATERVA_LAYOUT_CONTIGUOUS;
        run(one);
        all[i].layout = CATERVA_LAYOUT_SPARSE;
        run(one);
    }
}

#define CASES(X)                                                                             \
    X(the_first_commit)                                                                      \
    X(a_close)                                                                               \
    X(no_commit)                                                                             \
    X(a_rollback)                                                                            \
    X(pending_changes)                                                                       \
    X(sizes_before)                                                                          \
    X(growth_with_the_job)                                                                   \
    X(growth_of_nothing)                                                                     \
    X(emptied_before)                                                                        \
    X(a_coordinator_that_dies)                                                               \
    X(in_place_of_another)

#define DEFINE(name)                                                                         \
    static void test_##name(void **state)                                                    \
    {                                                                                        \
        (void)state;                                                                         \
        run_all(name);                                                                       \
    }
CASES(DEFINE)

#define LIST(name) cmocka_unit_test_teardown(test_##name, clean),

int main(void)
{
    const struct CMUnitTest tests[] = {CASES(LIST)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
