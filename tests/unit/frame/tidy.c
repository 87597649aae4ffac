/* What a clean close gives back: the file ends with its frame, and dead space before the
 * index is released if worthwhile, and never while a reader needs it. After any failure the
 * committed state exists.
 *
 * usage: test_tidy [SEED] */
#include "fault/crash.h"
#include "frame/commit.h"
#include "support/info.h"
#include "support/scratch.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 60000, CHUNK = 5000 };

static uint64_t seed;

static caterva_array *open_for(const char *path, caterva_mode mode,
                               caterva_durability durability)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = mode;
    options.durability = durability;
    caterva_array *array;
    CHECK_OK(caterva_open(path, &options, &array, &err), err);
    return array;
}

/* Items that do not compress: chunks of 20 kB. */
static void write_noise(rng *r, caterva_array *array, int64_t start, int64_t stop)
{
    caterva_error err;
    size_t size = (size_t)(stop - start) * 4;
    uint8_t *noise = check_alloc(size);
    rng_fill(r, noise, size);
    CHECK_OK(caterva_write(array, &start, &stop, noise, size, &err), err);
    free(noise);
}

/* The second half is after the first, whichever thread finishes first. */
static void fill_with_noise(rng *r, caterva_array *array)
{
    write_noise(r, array, 0, N / 2);
    write_noise(r, array, N / 2, N);
}

static void make_file(rng *r, const char *path)
{
    caterva_error err;
    geometry g = made_line(N, CHUNK, 500, 4);
    caterva_array *array = made_array(path, &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    fill_with_noise(r, array);
    CHECK_OK(caterva_close(array, &err), err);
}

static size_t stored_size(const char *path)
{
    struct stat st;
    CHECK(stat(path, &st) == 0, "no %s", path);
    return (size_t)st.st_size;
}

/* Both readers accept the file as a whole frame in memory; C-Blosc2 requires its exact
 * length. */
static void check_exact(const char *path)
{
    size_t size;
    uint8_t *bytes = scratch_load(path, &size);
    b2nd_array_t *array = NULL;
    assert_int_equal(b2nd_from_cframe(bytes, (int64_t)size, true, &array), 0);
    b2nd_free(array);
    caterva_array *ours;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    assert_int_equal(caterva_frame_open(bytes, size, 0, NULL, &ours, NULL), CATERVA_OK);
    assert_int_equal(caterva_verify(ours, NULL, &result, NULL), CATERVA_OK);
    assert_int_equal(result.damages, 0);
    caterva_discard(ours);
    uint64_t frame_size = 0;
    for (int i = 16; i < 24; i++) frame_size = frame_size << 8 | bytes[i];
    assert_int_equal(frame_size, size);
    free(bytes);
}

static void a_closed_file_ends_with_its_frame(void **state)
{
    (void)state;
    caterva_error err;
    rng r = rng_from_seed(seed);
    char path[SCRATCH_PATH];
    scratch_path(path, "exact.b2nd");
    for (int d = CATERVA_DURABILITY_FULL; d <= CATERVA_DURABILITY_NONE; d++) {
        scratch_remove(path);
        make_file(&r, path);
        check_exact(path);
        for (int session = 0; session < 15; session++) {
            caterva_array *array = open_for(path, CATERVA_MODE_WRITE, (caterva_durability)d);
            for (int i = rng_int(&r, 0, 4); i > 0; i--) {
                int64_t n = info_of(array)->shape[0];
                int64_t start = rng_between(&r, 0, n);
                int64_t to = rng_between(&r, N / 4, N);
                write_noise(&r, array, start, rng_between(&r, start, n));
                if (rng_one_in(&r, 3)) CHECK_OK(caterva_resize(array, &to, &err), err);
                CHECK_OK(caterva_commit(array, &err), err);
            }
            CHECK_OK(caterva_close(array, &err), err);
            check_exact(path);
        }
    }
}

/* A crash left bytes after the frame: the next close truncates them. */
static void bytes_behind_the_frame_go(void **state)
{
    (void)state;
    caterva_error err;
    rng r = rng_from_seed(seed);
    char path[SCRATCH_PATH];
    scratch_path(path, "behind.b2nd");
    make_file(&r, path);
    size_t size = stored_size(path);
    assert_int_equal(truncate(path, (off_t)size + 12345), 0);
    CHECK_OK(caterva_close(open_for(path, CATERVA_MODE_READ, CATERVA_DURABILITY_FULL), &err),
             err);
    assert_int_equal(stored_size(path), size + 12345);
    CHECK_OK(caterva_close(open_for(path, CATERVA_MODE_WRITE, CATERVA_DURABILITY_FULL), &err),
             err);
    assert_int_equal(stored_size(path), size);
    check_exact(path);
}

/* A killed or failed writer left bytes after the frame: a commit beside a reader of the
 * committed state does not write after them, and the file is truncated at once. */
static void bytes_behind_the_frame_are_used(void **state)
{
    (void)state;
    caterva_error err;
    rng r = rng_from_seed(seed);
    char path[SCRATCH_PATH];
    scratch_path(path, "left.b2nd");
    for (int d = CATERVA_DURABILITY_FULL; d <= CATERVA_DURABILITY_NONE; d++) {
        scratch_remove(path);
        make_file(&r, path);
        size_t size = stored_size(path);
        assert_int_equal(truncate(path, (off_t)size + 1234567), 0);
        caterva_array *reader = open_for(path, CATERVA_MODE_READ, CATERVA_DURABILITY_FULL);
        caterva_array *writer = open_for(path, CATERVA_MODE_WRITE, (caterva_durability)d);
        write_noise(&r, writer, 0, CHUNK);
        CHECK_OK(caterva_commit(writer, &err), err);
        assert_true(stored_size(path) < size + 2 * CHUNK * 4);
        caterva_discard(writer);
        caterva_discard(reader);
        CHECK_OK(
            caterva_close(open_for(path, CATERVA_MODE_WRITE, CATERVA_DURABILITY_FULL), &err),
            err);
        check_exact(path);
    }
}

/* An array appended after another one is not truncated when the first is opened for
 * writing. */
static void an_array_behind_the_frame_stays(void **state)
{
    (void)state;
    caterva_error err;
    rng r = rng_from_seed(seed);
    char path[SCRATCH_PATH], other[SCRATCH_PATH];
    uint64_t offset;
    uint8_t before[400], after[400];
    int64_t start = 0, stop = 100;
    scratch_path(path, "first.b2nd");
    scratch_path(other, "second.b2nd");
    make_file(&r, path);
    make_file(&r, other);
    caterva_array *second = open_for(other, CATERVA_MODE_READ, CATERVA_DURABILITY_FULL);
    CHECK_OK(caterva_read(second, &start, &stop, before, sizeof before, &err), err);
    CHECK_OK(caterva_frame_append(second, path, CATERVA_DURABILITY_NONE, &offset, &err), err);
    caterva_discard(second);
    for (int round = 0; round < 2; round++) {
        caterva_array *writer = open_for(path, CATERVA_MODE_WRITE, CATERVA_DURABILITY_FULL);
        if (round == 1) { /* discouraged, see the header; but must not do harm at once */
            write_noise(&r, writer, 0, CHUNK);
            CHECK_OK(caterva_commit(writer, &err), err);
        }
        CHECK_OK(caterva_close(writer, &err), err);
        caterva_open_options options = CATERVA_OPEN_INIT;
        options.offset = offset;
        CHECK_OK(caterva_open(path, &options, &second, &err), err);
        CHECK_OK(caterva_read(second, &start, &stop, after, sizeof after, &err), err);
        assert_memory_equal(before, after, sizeof before);
        caterva_discard(second);
    }
}

/* Half of the array is removed: the close gives its space back, but not while a reader needs
 * it. */
static void a_reader_keeps_what_it_reads(void **state)
{
    (void)state;
    caterva_error err;
    rng r = rng_from_seed(seed);
    char path[SCRATCH_PATH];
    int64_t half = N / 2;
    scratch_path(path, "reader.b2nd");
    make_file(&r, path);
    size_t size = stored_size(path);
    int32_t before[N], after[N];
    int64_t start = 0, stop = N;

    caterva_array *reader = open_for(path, CATERVA_MODE_READ, CATERVA_DURABILITY_FULL);
    CHECK_OK(caterva_read(reader, &start, &stop, before, sizeof before, &err), err);
    caterva_array *writer = open_for(path, CATERVA_MODE_WRITE, CATERVA_DURABILITY_FULL);
    CHECK_OK(caterva_resize(writer, &half, &err), err);
    CHECK_OK(caterva_close(writer, &err), err);
    assert_true(stored_size(path) >= size);
    CHECK_OK(caterva_read(reader, &start, &stop, after, sizeof after, &err), err);
    assert_memory_equal(before, after, sizeof before);
    CHECK_OK(caterva_close(reader, &err), err);

    writer = open_for(path, CATERVA_MODE_WRITE, CATERVA_DURABILITY_FULL);
    CHECK_OK(caterva_read(writer, &start, &half, after, sizeof after, &err), err);
    assert_memory_equal(before, after, (size_t)half * 4);
    CHECK_OK(caterva_close(writer, &err), err);
    assert_true(stored_size(path) < size * 7 / 10);
    check_exact(path);
}

/* In a fault store: the array of `make_file`, cut to half and committed, and its oracle. */
static caterva_array *half_array(rng *r, history *h, caterva_durability durability)
{
    caterva_error err;
    geometry g = made_line(N, CHUNK, 500, 4);
    int64_t half = N / 2;
    caterva_array *array = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    size_t size;
    fill_with_noise(r, array);
    CHECK_OK(caterva_commit(array, &err), err);
    uint8_t *bytes = made_bytes(array, &size);
    caterva_discard(array);
    array = made_faulty(made_memory(bytes, size), durability);
    free(bytes);
    CHECK_OK(caterva_resize(array, &half, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    g.shape[0] = half;
    *h = history_new(&g);
    read_all(array, &g, h->now.bytes);
    history_add(h);
    return array;
}

static size_t size_now(caterva_array *array)
{
    size_t size;
    free(made_bytes(array, &size));
    return size;
}

static void what_is_tidy_is_left_alone(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    history h;
    caterva_array *array = half_array(&r, &h, CATERVA_DURABILITY_FULL);
    size_t before = size_now(array);
    cv_txn_tidy(array->pending->txn);
    assert_true(size_now(array) < before * 6 / 10);
    int64_t n = cv_store_fault_count(array->frame->store);
    cv_txn_tidy(array->pending->txn);
    assert_int_equal(cv_store_fault_count(array->frame->store), n);

    /* 500 bytes of 120,000: not worth it */
    caterva_error err;
    CHECK_OK(caterva_attr_set(array, "x", "1", 1, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    CHECK_OK(caterva_attr_set(array, "x", "2", 1, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    n = cv_store_fault_count(array->frame->store);
    cv_txn_tidy(array->pending->txn);
    assert_true(cv_store_fault_count(array->frame->store) <= n + 2); /* sync, cut */
    caterva_discard(array);
    history_free(&h);
}

/* Every operation fails, once and for ever: the state does not change. */
static void failing_costs_nothing(void **state)
{
    (void)state;
    static const cv_fault_kind kinds[] = {CV_FAULT_ONCE, CV_FAULT_FOREVER, CV_FAULT_SHORT,
                                          CV_FAULT_READ};
    for (int i = 0; i < 4 * 3; i++) {
        bool reached = true;
        for (int64_t n = 0; reached; n++) {
            rng r = rng_from_seed(seed);
            history h;
            char what[64];
            snprintf(what, sizeof what, "kind %d, operation %lld", i % 4, (long long)n);
            caterva_array *array = half_array(&r, &h, (caterva_durability)(i / 4));
            cv_store *store = array->frame->store;
            cv_store_fault_arm(store, kinds[i % 4], n, ENOSPC);
            cv_txn_tidy(array->pending->txn);
            reached = cv_store_fault_hits(store) > 0;
            cv_store_fault_arm(store, CV_FAULT_NONE, 0, 0);
            size_t size;
            uint8_t *bytes = made_bytes(array, &size);
            check_image(&h, bytes, size, 0, 0, what);
            free(bytes);
            caterva_discard(array);
            history_free(&h);
        }
    }
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    blosc2_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_file_ends_with_its_frame),
        cmocka_unit_test(bytes_behind_the_frame_go),
        cmocka_unit_test(bytes_behind_the_frame_are_used),
        cmocka_unit_test(an_array_behind_the_frame_stays),
        cmocka_unit_test(a_reader_keeps_what_it_reads),
        cmocka_unit_test(what_is_tidy_is_left_alone),
        cmocka_unit_test(failing_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
