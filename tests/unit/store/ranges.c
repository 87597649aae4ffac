/* Unit: ranges that are read together. Each arrives completely and once, from a file whose
 * bytes are in memory, from one whose bytes are not, and from memory; a waiting caller may
 * cancel; and a range that does not exist fails as a read does. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/memory.h"
#include "unit/file_store.h"

enum { N = 40, SIZE = 5000, STEP = 60000 };

typedef struct waiting {
    cv_store_range ranges[N];
    uint8_t bytes[N][SIZE];
    int n_arrived[N];
    int total, most; /* number that may arrive */
} waiting;

static uint8_t byte_at(uint64_t pos) { return (uint8_t)(pos * 7 + pos / 251); }

static cv_status take(void *context, size_t k, cv_error *err)
{
    waiting *w = context;
    w->n_arrived[k]++;
    for (uint64_t i = 0; i < SIZE; i++)
        assert_int_equal(w->bytes[k][i], byte_at(w->ranges[k].pos + i));
    if (++w->total < w->most) return CV_OK;
    return cv_fail(err, CATERVA_ESTOPPED, -1, "enough");
}

static void ask_for_all(waiting *w)
{
    memset(w, 0, sizeof *w);
    w->most = N + 1;
    for (int i = 0; i < N; i++) /* not in the order of the file */
        w->ranges[i] = (cv_store_range){CV_FRAME_OBJECT, (uint64_t)(i * 7 % N) * STEP + 123,
                                        SIZE, w->bytes[i]};
}

static void check_store(cv_store *store)
{
    static waiting w;
    const cv_arrivals arrivals = {.arrived = take, .context = &w};
    ask_for_all(&w);
    assert_int_equal(cv_store_read_many(store, w.ranges, N, &arrivals, &error), CV_OK);
    for (int i = 0; i < N; i++) assert_int_equal(w.n_arrived[i], 1);

    ask_for_all(&w);
    w.most = 3;
    assert_int_equal(cv_store_read_many(store, w.ranges, N, &arrivals, &error),
                     CATERVA_ESTOPPED);
    assert_int_equal(w.total, 3);

    ask_for_all(&w);
    w.ranges[N / 2].pos = (uint64_t)N * STEP;
    assert_int_equal(cv_store_read_many(store, w.ranges, N, &arrivals, &error),
                     CATERVA_ECORRUPT);
    assert_int_equal(w.n_arrived[N / 2], 0);
}

static void fill(cv_store *store)
{
    static uint8_t bytes[N * STEP];
    for (uint64_t i = 0; i < sizeof bytes; i++) bytes[i] = byte_at(i);
    assert_int_equal(cv_store_write(store, CV_FRAME_OBJECT, 0, bytes, sizeof bytes, &error),
                     CV_OK);
}

static void test_file(void **state)
{
    (void)state;
    room r = begin("ranges");
    cv_store *store = create(r.path, false, "");
    fill(store);
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    check_store(store);
    cv_store_close(store);
    int fd = open(r.path, O_RDONLY);
    assert_true(fd >= 0 && fsync(fd) == 0);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    assert_int_equal(cv_store_file_open(r.path, 0, false, &store, &error), CV_OK);
    check_store(store);
    cv_store_close(store);
}

static void test_memory(void **state)
{
    (void)state;
    cv_store *store;
    assert_int_equal(cv_store_memory_create(&store, &error), CV_OK);
    fill(store);
    check_store(store);
    cv_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
