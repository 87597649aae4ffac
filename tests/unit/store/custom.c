/* Unit: store/custom. The promises of caterva_store, and its requirements for the program's
 * functions: ownership, writability, messages of failures. */
#include "blob.h"
#include "check.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 2000 };

static int64_t shape[1] = {N}, zero[1] = {0};
static int32_t chunk_shape[1] = {500}, block_shape[1] = {100};
static int32_t values[N];

static caterva_create_options create_options(void)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 1;
    o.shape = shape;
    o.chunk_shape = chunk_shape;
    o.block_shape = block_shape;
    o.dtype = "<i4";
    o.threads = 4;
    return o;
}

static caterva_open_options open_options(caterva_mode mode)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = mode;
    o.threads = 4;
    return o;
}

/* An array of `first`, first + 1, ... in the store. */
static void put_array(const caterva_store *s, int32_t first)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = create_options();
    o.overwrite = 1;
    for (int i = 0; i < N; i++) values[i] = first + i;
    CHECK_OK(caterva_store_create(s, &o, &array, &err), err);
    CHECK_OK(caterva_write(array, zero, shape, values, sizeof values, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static void expect_items(caterva_array *array, int32_t first)
{
    int32_t got[N];
    caterva_error err;
    CHECK_OK(caterva_read(array, zero, shape, got, sizeof got, &err), err);
    for (int i = 0; i < N; i++) CHECK(got[i] == first + i, "item %d is %d", i, got[i]);
}

static caterva_status open_it(const caterva_store *s, caterva_mode mode, caterva_array **out,
                              caterva_error *err)
{
    caterva_open_options o = open_options(mode);
    return caterva_store_open(s, &o, out, err);
}

static void a_round_trip_closes_once(void **state)
{
    (void)state;
    blob b;
    caterva_error err;
    caterva_array *array;
    blob_init(&b);
    caterva_store s = blob_store(&b);
    put_array(&s, 5);
    assert_int_equal(b.n_closed, 1);
    assert_true(b.n_syncs > 0);
    CHECK_OK(open_it(&s, CATERVA_MODE_READ, &array, &err), err);
    memset(&s, 0x5a, sizeof s); /* copied */
    expect_items(array, 5);
    assert_int_equal(b.n_closed, 1);
    CHECK_OK(caterva_close(array, &err), err);
    assert_int_equal(b.n_closed, 2);
    blob_free(&b);
}

static void what_fails_to_open_is_not_closed(void **state)
{
    (void)state;
    blob b;
    caterva_error err;
    caterva_array *array;
    blob_init(&b);
    caterva_store s = blob_store(&b);
    assert_int_equal(open_it(&s, CATERVA_MODE_READ, &array, &err), CATERVA_ECORRUPT);
    assert_int_equal(open_it(&s, CATERVA_MODE_WRITE, &array, &err), CATERVA_ECORRUPT);
    put_array(&s, 0);
    caterva_create_options o = create_options();
    assert_int_equal(caterva_store_create(&s, &o, &array, &err), CATERVA_EEXIST);
    o.layout = CATERVA_LAYOUT_SPARSE;
    assert_int_equal(caterva_store_create(&s, &o, &array, &err), CATERVA_EINVAL);
    b.size -= 10;
    assert_int_equal(open_it(&s, CATERVA_MODE_READ, &array, &err), CATERVA_ECORRUPT);
    assert_int_equal(b.n_closed, 1);
    blob_free(&b);
}

static void without_a_commit_it_is_left_empty(void **state)
{
    (void)state;
    blob b;
    caterva_error err;
    caterva_array *array;
    blob_init(&b);
    caterva_store s = blob_store(&b);
    caterva_create_options o = create_options();
    o.dirty_budget = 1;
    CHECK_OK(caterva_store_create(&s, &o, &array, &err), err);
    CHECK_OK(caterva_write(array, zero, shape, values, sizeof values, &err), err);
    assert_true(b.size > 0);
    caterva_discard(array);
    assert_int_equal(b.size, 0);
    assert_int_equal(b.n_closed, 1);
    blob_free(&b);
}

static void missing_functions_are_named(void **state)
{
    (void)state;
    blob b;
    caterva_error err;
    caterva_array *array;
    blob_init(&b);
    caterva_store s = blob_store(&b);
    put_array(&s, 0);
    s.sync = NULL;
    assert_int_equal(open_it(&s, CATERVA_MODE_WRITE, &array, &err), CATERVA_EINVAL);
    assert_string_equal(err.message,
                        "the store's sync function is NULL: the store is read-only");
    s.write = NULL;
    s.truncate = NULL;
    s.close = NULL;
    s.has_readers = NULL;
    s.name = NULL;
    CHECK_OK(open_it(&s, CATERVA_MODE_READ, &array, &err), err);
    expect_items(array, 0);
    caterva_discard(array);
    s.read = NULL;
    assert_int_equal(open_it(&s, CATERVA_MODE_READ, &array, &err), CATERVA_EINVAL);
    assert_string_equal(err.message, "the store's read function is NULL");
    blob_free(&b);
}

static void one_identity_is_written_once(void **state)
{
    (void)state;
    blob b;
    caterva_error err;
    caterva_array *one, *other;
    blob_init(&b);
    caterva_store s = blob_store(&b), named = s;
    put_array(&s, 0);
    named.identity = "blob 7";
    CHECK_OK(open_it(&named, CATERVA_MODE_WRITE, &one, &err), err);
    assert_int_equal(open_it(&named, CATERVA_MODE_WRITE, &other, &err), CATERVA_EBUSY);
    assert_string_equal(err.message, "the blob is open for writing in this program");
    CHECK_OK(open_it(&named, CATERVA_MODE_READ, &other, &err), err);
    caterva_discard(other);
    caterva_discard(one);
    CHECK_OK(open_it(&named, CATERVA_MODE_WRITE, &one, &err), err);
    caterva_discard(one);
    blob_free(&b);
}

static void failures_are_reported_in_the_stores_words(void **state)
{
    (void)state;
    blob b;
    caterva_error err;
    caterva_array *array;
    blob_init(&b);
    caterva_store s = blob_store(&b);
    put_array(&s, 0);
    b.why = "the server went\naway";
    b.fail_at = b.calls;
    assert_int_equal(open_it(&s, CATERVA_MODE_READ, &array, &err), CATERVA_EIO);
    assert_string_equal(err.message,
                        "the blob cannot report its size: the server went\\x0aaway");
    assert_int_equal(err.sys_errno, 5);
    b.why = NULL;
    b.status = CATERVA_EBUSY;
    b.fail_at = b.calls + 1;
    assert_int_equal(open_it(&s, CATERVA_MODE_READ, &array, &err), CATERVA_EBUSY);
    assert_memory_equal(err.message, "the blob cannot read ", 21);
    b.status = 77; /* not a status, and one that a store must not return */
    b.fail_at = b.calls + 1;
    assert_int_equal(open_it(&s, CATERVA_MODE_READ, &array, &err), CATERVA_EIO);
    b.status = CATERVA_ECORRUPT;
    b.fail_at = b.calls + 1;
    assert_int_equal(open_it(&s, CATERVA_MODE_READ, &array, &err), CATERVA_EIO);
    blob_free(&b);
}

static caterva_status read_too_much(void *context, uint64_t pos, void *dst, size_t size,
                                    size_t *done, caterva_error *err)
{
    (void)context, (void)pos, (void)dst, (void)err;
    *done = size + 1;
    return CATERVA_OK;
}

static void what_cannot_be_is_not_believed(void **state)
{
    (void)state;
    blob b;
    caterva_error err;
    caterva_array *array;
    blob_init(&b);
    caterva_store s = blob_store(&b);
    put_array(&s, 0);
    s.read = read_too_much;
    assert_int_equal(open_it(&s, CATERVA_MODE_READ, &array, &err), CATERVA_EIO);
    assert_memory_equal(err.message, "the blob reports ", 17);
    s = blob_store(&b);
    b.size = UINT64_MAX;
    assert_int_equal(open_it(&s, CATERVA_MODE_READ, &array, &err), CATERVA_EIO);
    blob_free(&b);
}

static void refresh_sees_what_others_committed(void **state)
{
    (void)state;
    blob b;
    caterva_error err;
    caterva_array *reader, *writer;
    blob_init(&b);
    b.has_readers = true;
    caterva_store s = blob_store(&b);
    put_array(&s, 0);
    CHECK_OK(open_it(&s, CATERVA_MODE_READ, &reader, &err), err);
    CHECK_OK(open_it(&s, CATERVA_MODE_WRITE, &writer, &err), err);
    for (int round = 1; round < 5; round++) {
        for (int i = 0; i < N; i++) values[i] = 100 * round + i;
        CHECK_OK(caterva_write(writer, zero, shape, values, sizeof values, &err), err);
        CHECK_OK(caterva_commit(writer, &err), err);
        expect_items(reader, 100 * (round - 1));
        CHECK_OK(caterva_refresh(reader, &err), err);
        expect_items(reader, 100 * round);
    }
    assert_int_equal(b.n_closed, 1);
    caterva_discard(reader);
    assert_int_equal(b.n_closed, 2);
    CHECK_OK(caterva_close(writer, &err), err);
    assert_int_equal(b.n_closed, 3);
    blob_free(&b);
}

/* A store that is truncated after its size was queried: its writer has undone what it had
 * put. */
typedef struct cut_blob {
    caterva_store of;
    blob *b;
    uint64_t left; /* its size from then on */
} cut_blob;

static caterva_status size_before_the_cut(void *context, uint64_t *size, caterva_error *err)
{
    cut_blob *c = context;
    caterva_status status = c->of.size(c->of.context, size, err);
    c->b->size = c->left;
    return status;
}

static caterva_status read_what_is_left(void *context, uint64_t pos, void *dst, size_t size,
                                        size_t *done, caterva_error *err)
{
    cut_blob *c = context;
    return c->of.read(c->of.context, pos, dst, size, done, err);
}

static void a_cut_behind_the_frame_is_no_damage(void **state)
{
    (void)state;
    blob b;
    caterva_error err;
    caterva_array *array;
    blob_init(&b);
    caterva_store s = blob_store(&b);
    caterva_create_options o = create_options();
    CHECK_OK(caterva_store_create(&s, &o, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    cut_blob cut = {s, &b, b.size};
    assert_true(b.size < 2000); /* the first read would get more if it existed */
    s.context = &cut;
    s.size = size_before_the_cut;
    s.read = read_what_is_left;
    s.read_many = NULL;
    s.close = NULL;
    b.size += 1000;
    CHECK_OK(open_it(&s, CATERVA_MODE_READ, &array, &err), err);
    caterva_stats stats = CATERVA_STATS_INIT;
    CHECK_OK(caterva_statistics(array, NULL, &stats, &err), err);
    assert_int_equal(stats.n_items, N);
    caterva_discard(array);
    b.size += 1000;
    cut.left = 0;
    assert_int_equal(open_it(&s, CATERVA_MODE_READ, &array, &err), CATERVA_ECORRUPT);
    assert_string_equal(err.message, "the file is empty, not a frame");
    blob_free(&b);
}

static void *read_often(void *array)
{
    for (int i = 0; i < 50; i++) expect_items(array, 9);
    return NULL;
}

static void one_at_a_time_is_kept_to(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    blob b;
    caterva_error err;
    caterva_array *array;
    pthread_t threads[THREADS];
    caterva_open_options o = open_options(CATERVA_MODE_READ);
    o.cache_bytes = -1;
    blob_init(&b);
    b.slow = true;
    caterva_store s = blob_store(&b);
    s.one_at_a_time = 1;
    put_array(&s, 9);
    CHECK_OK(caterva_store_open(&s, &o, &array, &err), err);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, array), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    caterva_discard(array);
    assert_int_equal(b.most_at_once, 1);
    blob_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_trip_closes_once),
        cmocka_unit_test(what_fails_to_open_is_not_closed),
        cmocka_unit_test(without_a_commit_it_is_left_empty),
        cmocka_unit_test(missing_functions_are_named),
        cmocka_unit_test(one_identity_is_written_once),
        cmocka_unit_test(failures_are_reported_in_the_stores_words),
        cmocka_unit_test(what_cannot_be_is_not_believed),
        cmocka_unit_test(refresh_sees_what_others_committed),
        cmocka_unit_test(a_cut_behind_the_frame_is_no_damage),
        cmocka_unit_test(one_at_a_time_is_kept_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
