/* Invalid jobs and parts: each cut or changed byte of a job, a token and a part, missing
 * parts, a changed array, items written twice; and what a part refuses. None of this changes
 * the array. */
#include "support/scratch.h"

#include "caterva.h"
#include "caterva_jobs.h"
#include "support/info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { SIDE = 12, MOST = 4096 };

static const int64_t shape[2] = {SIDE, SIDE};
static const int32_t chunk_shape[2] = {4, 4}, block_shape[2] = {2, 4};
static int32_t items[SIDE * SIDE];
static char path[SCRATCH_PATH];
static caterva_array *array;
static void *job;
static size_t job_size;

/* A worker's token. */
typedef struct token {
    void *bytes;
    size_t size;
} token;

static caterva_array *open_array(void)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_array *out = NULL;
    o.mode = CATERVA_MODE_WRITE;
    assert_int_equal(caterva_open(path, &o, &out, NULL), CATERVA_OK);
    return out;
}

static void make(caterva_layout layout)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk_shape;
    o.block_shape = block_shape;
    o.dtype = "<i4";
    o.layout = layout;
    o.overwrite = 1;
    for (int i = 0; i < SIDE * SIDE; i++) items[i] = i * 7919;
    scratch_path(path, layout == CATERVA_LAYOUT_SPARSE ? "sparse" : "array");
    assert_int_equal(caterva_create_from_memory(path, &o, items, sizeof items, &array, NULL),
                     CATERVA_OK);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    array = open_array();
    assert_int_equal(caterva_job_begin(array, NULL, &job, &job_size, NULL), CATERVA_OK);
}

static int set_up(void **state)
{
    (void)state;
    make(CATERVA_LAYOUT_CONTIGUOUS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    caterva_job_delete(path, job, job_size, NULL, NULL);
    caterva_discard(array);
    caterva_free(job);
    scratch_remove(path);
    return 0;
}

/* Rows [start, stop) of columns [left, right), all `value`. */
static token write_part(int64_t start, int64_t stop, int64_t left, int64_t right,
                        int32_t value)
{
    const int64_t from[2] = {start, left}, to[2] = {stop, right};
    int32_t values[SIDE * SIDE];
    caterva_array *part;
    token t;
    for (int i = 0; i < SIDE * SIDE; i++) values[i] = value + i % 5;
    assert_int_equal(caterva_part_open(path, job, job_size, NULL, &part, NULL), CATERVA_OK);
    assert_int_equal(caterva_write(part, from, to, values, sizeof values, NULL), CATERVA_OK);
    assert_int_equal(caterva_part_finish(part, &t.bytes, &t.size, NULL), CATERVA_OK);
    return t;
}

static caterva_status merge(const token *tokens, size_t n, caterva_error *err)
{
    const void *bytes[4];
    size_t sizes[4];
    for (size_t i = 0; i < n; i++) {
        bytes[i] = tokens[i].bytes;
        sizes[i] = tokens[i].size;
    }
    return caterva_merge(array, bytes, sizes, n, NULL, NULL, err);
}

static void assert_unchanged(void)
{
    const int64_t origin[2] = {0, 0};
    int32_t got[SIDE * SIDE];
    assert_int_equal(caterva_has_pending(array), 0);
    assert_int_equal(caterva_read(array, origin, shape, got, sizeof got, NULL), CATERVA_OK);
    assert_memory_equal(got, items, sizeof got);
}

static void part_path(const token *t, char out[2 * SCRATCH_PATH])
{
    const caterva_job_list *list;
    const uint8_t *name = (const uint8_t *)t->bytes + 8 + 16 + 5; /* magic, id, db and size */
    assert_int_equal(caterva_jobs_list(path, NULL, &list, NULL), CATERVA_OK);
    assert_int_equal(list->n, 1);
    snprintf(out, 2 * SCRATCH_PATH, "%s/%.*s", list->entries[0]->folder,
             ((const uint8_t *)t->bytes)[8 + 16 + 4], (const char *)name);
    caterva_job_list_release(list);
}

/* ---- Bytes ------------------------------------------------------------------------------- */

static void damaged_tokens(void **state)
{
    (void)state;
    token good = write_part(1, 7, 2, 9, 5);
    uint8_t copy[MOST];
    caterva_error err;
    assert_true(good.size < 1024 + 24 * 6 && good.size < MOST);
    for (size_t size = 0; size < good.size; size++) { /* cut */
        token cut = {copy, size};
        memcpy(copy, good.bytes, size);
        assert_int_equal(merge(&cut, 1, &err), CATERVA_ECORRUPT);
        assert_non_null(strstr(err.message, "tokens[0]"));
    }
    for (size_t bit = 0; bit < 8 * good.size; bit++) { /* changed */
        token changed = {copy, good.size};
        memcpy(copy, good.bytes, good.size);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(merge(&changed, 1, &err), CATERVA_ECORRUPT);
    }
    assert_unchanged();
    caterva_free(good.bytes);
}

static void damaged_jobs(void **state)
{
    (void)state;
    uint8_t copy[MOST];
    caterva_array *part;
    assert_true(job_size < MOST);
    for (size_t size = 0; size < job_size; size++) {
        memcpy(copy, job, size);
        assert_int_equal(caterva_part_open(path, copy, size, NULL, &part, NULL),
                         CATERVA_ECORRUPT);
    }
    for (size_t bit = 0; bit < 8 * job_size; bit++) {
        memcpy(copy, job, job_size);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(caterva_part_open(path, copy, job_size, NULL, &part, NULL),
                         CATERVA_ECORRUPT);
    }
}

/* A changed part is refused, or the byte does not matter. */
static void damaged_parts(void **state)
{
    (void)state;
    char name[2 * SCRATCH_PATH];
    size_t size;
    token t = write_part(0, 5, 0, 8, 3);
    caterva_error err;
    part_path(&t, name);
    uint8_t *bytes = scratch_load(name, &size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 0x41;
        scratch_save(name, bytes, size);
        bytes[i] ^= 0x41;
        caterva_status status = merge(&t, 1, &err);
        if (status != CATERVA_OK) assert_int_equal(status, CATERVA_ECORRUPT);
        assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
        assert_unchanged();
    }
    for (size_t cut = 0; cut < size; cut += 1 + cut / 16) {
        scratch_save(name, bytes, cut);
        assert_int_not_equal(merge(&t, 1, &err), CATERVA_OK);
        assert_non_null(strstr(err.message, "part "));
        assert_unchanged();
    }
    remove(name);
    assert_int_equal(merge(&t, 1, &err), CATERVA_ENOTFOUND);
    scratch_save(name, bytes, size);
    assert_int_equal(merge(&t, 1, &err), CATERVA_OK);
    free(bytes);
    caterva_free(t.bytes);
}

/* A part of the same length in place of another: a stale view of it. */
static void exchanged_parts(void **state)
{
    (void)state;
    char name[2][2 * SCRATCH_PATH];
    size_t size[2];
    caterva_error err;
    token t[2] = {write_part(0, 4, 0, 4, 100), write_part(0, 4, 0, 4, 200)};
    for (int i = 0; i < 2; i++) part_path(&t[i], name[i]);
    uint8_t *bytes = scratch_load(name[1], &size[1]);
    scratch_save(name[0], bytes, size[1]);
    assert_int_equal(merge(&t[0], 1, &err), CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "is not the finished part"));
    assert_unchanged();
    free(bytes);
    for (int i = 0; i < 2; i++) caterva_free(t[i].bytes);
}

/* ---- Conflicts --------------------------------------------------------------------------- */

static void the_same_items(void **state)
{
    (void)state;
    caterva_error err;
    char name[2][2 * SCRATCH_PATH];
    token t[2] = {write_part(0, 6, 0, 6, 1), write_part(5, 9, 5, 9, 2)};
    assert_int_equal(merge(t, 2, &err), CATERVA_EEXIST);
    for (int i = 0; i < 2; i++) {
        part_path(&t[i], name[i]);
        assert_non_null(strstr(err.message, strrchr(name[i], '/') + 1));
        caterva_free(t[i].bytes);
    }
    assert_unchanged();
}

static void a_token_twice(void **state)
{
    (void)state;
    token t = write_part(0, 5, 0, 5, 1), twice[2] = {t, t};
    assert_int_equal(merge(twice, 2, NULL), CATERVA_OK);
    assert_int_equal(merge(twice, 2, NULL), CATERVA_OK);
    caterva_free(t.bytes);
}

static void another_job(void **state)
{
    (void)state;
    void *other, *mine = job;
    size_t other_size, mine_size = job_size;
    caterva_error err;
    token t[2] = {write_part(0, 4, 0, 4, 1), {NULL, 0}};
    assert_int_equal(caterva_job_begin(array, NULL, &other, &other_size, NULL), CATERVA_OK);
    job = other;
    job_size = other_size;
    t[1] = write_part(4, 8, 0, 4, 1);
    assert_int_equal(merge(t, 2, &err), CATERVA_EINVAL);
    assert_int_equal(caterva_job_delete(path, other, other_size, NULL, NULL), CATERVA_OK);
    assert_int_equal(caterva_job_delete(path, other, other_size, NULL, NULL),
                     CATERVA_ENOTFOUND);
    assert_int_equal(merge(t + 1, 1, &err), CATERVA_ENOTFOUND);
    assert_unchanged();
    for (int i = 0; i < 2; i++) caterva_free(t[i].bytes);
    caterva_free(other);
    job = mine;
    job_size = mine_size;
}

static void the_base_has_changed(void **state)
{
    (void)state;
    const int64_t here[2] = {0, 0}, end[2] = {1, 1}, there[2] = {8, 8}, end2[2] = {9, 9};
    int32_t value = -1;
    caterva_error err;
    token t = write_part(0, 3, 0, 3, 1);
    assert_int_equal(caterva_write(array, there, end2, &value, 4, NULL), CATERVA_OK);
    assert_int_equal(merge(&t, 1, NULL), CATERVA_OK); /* another chunk */
    assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
    assert_int_equal(caterva_write(array, here, end, &value, 4, NULL), CATERVA_OK);
    assert_int_equal(merge(&t, 1, &err), CATERVA_ESTALE);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(merge(&t, 1, &err), CATERVA_ESTALE);
    assert_non_null(strstr(err.message, "chunk 0"));
    caterva_free(t.bytes);
}

/* What was committed without acknowledgement is no conflict. */
static void merged_before(void **state)
{
    (void)state;
    const int64_t origin[2] = {0, 0};
    int32_t got[2][SIDE * SIDE];
    caterva_merge_options o = CATERVA_MERGE_INIT;
    caterva_merge_result result = CATERVA_MERGE_RESULT_INIT;
    token t = write_part(0, 7, 1, 8, 1);
    const void *bytes = t.bytes;
    o.keep = 1;
    assert_int_equal(caterva_merge(array, &bytes, &t.size, 1, &o, &result, NULL), CATERVA_OK);
    assert_int_equal(result.merged_before, 0);
    assert_int_equal(result.chunks, 4);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(caterva_read(array, origin, shape, got[0], sizeof got[0], NULL), 0);
    caterva_close(array, NULL);
    array = open_array();
    assert_int_equal(caterva_merge(array, &bytes, &t.size, 1, &o, &result, NULL), CATERVA_OK);
    assert_int_equal(result.merged_before, 4);
    assert_int_equal(caterva_read(array, origin, shape, got[1], sizeof got[1], NULL), 0);
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    caterva_free(t.bytes);
}

/* Blocks that only one part wrote, or none, keep their stored bytes. */
static void what_is_decoded(void **state)
{
    (void)state;
    enum { LARGE = 64 };
    static const int64_t large[2] = {LARGE, LARGE}, from[2][2] = {{0, 0}, {16, 0}};
    static const int64_t to[2][2] = {{16, LARGE}, {24, LARGE / 2}};
    static const int32_t chunks[2] = {LARGE, LARGE}, blocks[2] = {8, LARGE / 2};
    static int32_t values[LARGE * LARGE], got[LARGE * LARGE];
    caterva_merge_result result = CATERVA_MERGE_RESULT_INIT;
    caterva_create_options o = CATERVA_CREATE_INIT;
    const void *bytes[2];
    void *made[2];
    size_t sizes[2];
    tear_down(NULL);
    o.ndim = 2;
    o.shape = large;
    o.chunk_shape = chunks;
    o.block_shape = blocks;
    o.dtype = "<i4";
    for (int i = 0; i < LARGE * LARGE; i++) values[i] = i;
    assert_int_equal(
        caterva_create_from_memory(path, &o, values, sizeof values, &array, NULL),
        CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(caterva_job_begin(array, NULL, &job, &job_size, NULL), CATERVA_OK);
    for (int i = 0; i < 2; i++) {
        caterva_array *part;
        assert_int_equal(caterva_part_open(path, job, job_size, NULL, &part, NULL), 0);
        assert_int_equal(caterva_write(part, from[i], to[i], values, sizeof values, NULL), 0);
        assert_int_equal(caterva_part_finish(part, &made[i], &sizes[i], NULL), CATERVA_OK);
        bytes[i] = made[i];
    }
    assert_int_equal(caterva_merge(array, bytes, sizes, 2, NULL, &result, NULL), CATERVA_OK);
    assert_int_equal(result.chunks, 1);
    assert_int_equal(result.spliced_chunks, 1);
    assert_int_equal(result.decoded_blocks, 0);
    assert_int_equal(caterva_read(array, from[0], large, got, sizeof got, NULL), CATERVA_OK);
    assert_memory_equal(got, values, 16 * LARGE * sizeof got[0]);
    assert_int_equal(got[16 * LARGE], 0);
    assert_int_equal(got[17 * LARGE], LARGE / 2);
    assert_int_equal(got[17 * LARGE + LARGE / 2], 17 * LARGE + LARGE / 2);
    assert_int_equal(got[LARGE * LARGE - 1], LARGE * LARGE - 1);
    for (int i = 0; i < 2; i++) caterva_free(made[i]);
}

/* ---- Parts ------------------------------------------------------------------------------- */

static void what_a_part_refuses(void **state)
{
    (void)state;
    caterva_array *part;
    void *bytes;
    size_t size;
    static const char *const names[] = {"y", "x"};
    int32_t row[8] = {0};
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    token none = {.bytes = row, .size = sizeof row};
    const void *tokens[] = {none.bytes};
    buffer.data = row;
    buffer.size = sizeof row;
    assert_int_equal(caterva_part_open(path, job, job_size, NULL, &part, NULL), CATERVA_OK);
    const caterva_status refused[] = {
        caterva_commit(part, NULL),
        caterva_resize(part, shape, NULL),
        caterva_append(part, 0, 1, &buffer, NULL),
        caterva_insert(part, 0, 1, 1, NULL, NULL),
        caterva_remove(part, 0, 0, 1, NULL),
        caterva_attr_set(part, "x", "y", 1, NULL),
        caterva_attr_delete(part, "x", NULL),
        caterva_dims_set(part, names, NULL),
        caterva_dims_set(part, NULL, NULL),
        caterva_metalayer_update(part, "x", "y", 1, NULL),
        caterva_job_begin(part, NULL, &bytes, &size, NULL),
        caterva_merge(part, tokens, &none.size, 1, NULL, NULL, NULL),
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(refused[i], CATERVA_EUNSUPPORTED);
    assert_int_equal(caterva_close(part, NULL), CATERVA_OK); /* discards it */
    const caterva_job_list *list;
    assert_int_equal(caterva_jobs_list(path, NULL, &list, NULL), CATERVA_OK);
    assert_int_equal(list->n, 1);
    assert_int_equal(list->entries[0]->n_parts, 0);
    assert_int_equal(list->entries[0]->is_live, 1);
    assert_int_equal(list->entries[0]->job_size, job_size);
    assert_memory_equal(list->entries[0]->job, job, job_size);
    caterva_job_list_release(list);
}

/* A part without writes has a token, and no file. */
static void an_empty_part(void **state)
{
    (void)state;
    caterva_array *part;
    token t;
    assert_int_equal(caterva_part_open(path, job, job_size, NULL, &part, NULL), CATERVA_OK);
    assert_int_equal(caterva_part_finish(part, &t.bytes, &t.size, NULL), CATERVA_OK);
    assert_int_equal(merge(&t, 1, NULL), CATERVA_OK);
    assert_unchanged();
    caterva_free(t.bytes);
}

static void places_without_room(void **state)
{
    (void)state;
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *memory;
    caterva_error err;
    void *bytes;
    size_t size;
    o.ndim = 2;
    o.shape = shape;
    o.dtype = "<i4";
    assert_int_equal(caterva_create("mem:", &o, &memory, NULL), CATERVA_OK);
    assert_int_equal(caterva_job_begin(memory, NULL, &bytes, &size, &err),
                     CATERVA_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "memory"));
    caterva_discard(memory);
}

/* Two coordinators: the array's lock reports it. A job of a closed handle is listed and
 * remains. */
static void coordinators(void **state)
{
    (void)state;
    const caterva_job_list *list;
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_array *second;
    o.mode = CATERVA_MODE_WRITE;
    assert_int_equal(caterva_open(path, &o, &second, NULL), CATERVA_EBUSY);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    array = open_array();
    assert_int_equal(caterva_jobs_list(path, NULL, &list, NULL), CATERVA_OK);
    assert_int_equal(list->n, 1);
    assert_int_equal(list->entries[0]->is_live, 0);
    caterva_job_list_release(list);
}

/* In a directory chunks keep the bytes of their files; the commit deletes the job's
 * folder. */
static void a_directory(void **state)
{
    (void)state;
    char folder[SCRATCH_PATH + 8];
    struct stat st;
    tear_down(NULL);
    make(CATERVA_LAYOUT_SPARSE);
    token t[2] = {write_part(0, 4, 0, 8, 1), write_part(4, 7, 0, 8, 2)};
    assert_int_equal(merge(t, 2, NULL), CATERVA_OK);
    assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
    assert_unchanged();
    assert_int_equal(merge(t, 2, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    snprintf(folder, sizeof folder, "%s.parts", path);
    assert_int_not_equal(stat(folder, &st), 0);
    const int64_t at[2] = {5, 7}, end[2] = {6, 8};
    int32_t value;
    assert_int_equal(caterva_read(array, at, end, &value, 4, NULL), CATERVA_OK);
    assert_int_equal(value, 2 + 15 % 5);
    for (int i = 0; i < 2; i++) caterva_free(t[i].bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(damaged_tokens),      TEST(damaged_jobs),         TEST(damaged_parts),
        TEST(exchanged_parts),     TEST(the_same_items),       TEST(a_token_twice),
        TEST(another_job),         TEST(the_base_has_changed), TEST(merged_before),
        TEST(what_is_decoded),     TEST(what_a_part_refuses),  TEST(an_empty_part),
        TEST(places_without_room), TEST(coordinators),         TEST(a_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
