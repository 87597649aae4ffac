/* Unit: store/directory and store/chunk_files. The kept descriptors of chunk files, of which
 * there are fewer than files, under threads and at the end. */
#include "random.h"
#include "scratch.h"
#include "store/directory.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/rooms.h"

static cv_error error;

static cv_status replace(cv_store *store, const char *text)
{
    return cv_store_replace(store, text, strlen(text), true, &error);
}

/* An open writer whose frame is "frame". */
static cv_store *create_published(const char *path)
{
    cv_store *store;
    memset(&error, 0, sizeof error);
    assert_int_equal(cv_store_directory_create(path, false, &store, &error), CV_OK);
    assert_int_equal(replace(store, "frame"), CV_OK);
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    return store;
}

/* More chunks than slots, so that files are opened and closed. */
enum { CHUNKS = 300, CHUNK_SIZE = 96, READERS = 6, READS = 4000 };

typedef struct load {
    cv_store *store;
    uint64_t seed;
    atomic_int *wrong;
} load;

static void fill_chunk(cv_object id, uint8_t bytes[CHUNK_SIZE])
{
    rng r = rng_from_seed((uint64_t)id);
    rng_fill(&r, bytes, CHUNK_SIZE);
}

static void *read_chunks(void *context)
{
    load *l = context;
    rng r = rng_from_seed(l->seed);
    for (int i = 0; i < READS; i++) {
        uint8_t want[CHUNK_SIZE], back[CHUNK_SIZE], frame[5];
        cv_object id = rng_int(&r, 0, CHUNKS - 1);
        int from = rng_int(&r, 0, CHUNK_SIZE - 1);
        size_t n = (size_t)rng_int(&r, 0, CHUNK_SIZE - from);
        fill_chunk(id, want);
        if (cv_store_read(l->store, id, (uint64_t)from, back, n, NULL) != CV_OK ||
            memcmp(back, want + from, n) != 0 ||
            cv_store_read(l->store, CV_FRAME_OBJECT, 0, frame, 5, NULL) != CV_OK ||
            memcmp(frame, "frame", 5) != 0)
            atomic_fetch_add(l->wrong, 1);
    }
    return NULL;
}

/* Writes, reads and removes chunks of its own, whose slots readers use too. */
static int write_beside_readers(cv_store *store)
{
    uint8_t bytes[CHUNK_SIZE], back[CHUNK_SIZE];
    int wrong = 0;
    for (int round = 0; round < 300; round++) {
        cv_object id = CHUNKS + round % 100;
        fill_chunk(id + round, bytes);
        wrong += cv_store_write(store, id, 0, bytes, CHUNK_SIZE, NULL) != CV_OK;
        wrong += cv_store_read(store, id, 0, back, CHUNK_SIZE, NULL) != CV_OK;
        wrong += memcmp(bytes, back, CHUNK_SIZE) != 0;
        if (round % 20 == 0) wrong += replace(store, "frame again") != CV_OK;
        wrong += cv_store_remove(store, id, NULL) != CV_OK;
    }
    return wrong;
}

static void test_many_readers_beside_a_writer(void **state)
{
    (void)state;
    room r = new_room("threads");
    uint8_t bytes[CHUNK_SIZE];
    atomic_int wrong = 0;
    pthread_t threads[READERS];
    load loads[READERS];
    cv_store *store = create_published(r.path);
    for (cv_object id = 0; id < CHUNKS; id++) {
        fill_chunk(id, bytes);
        assert_int_equal(cv_store_write(store, id, 0, bytes, CHUNK_SIZE, &error), CV_OK);
    }
    for (int i = 0; i < READERS; i++) {
        loads[i] = (load){store, (uint64_t)i + 1, &wrong};
        assert_int_equal(pthread_create(&threads[i], NULL, read_chunks, &loads[i]), 0);
    }
    assert_int_equal(write_beside_readers(store), 0);
    for (int i = 0; i < READERS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    cv_store_close(store);
}

static void test_descriptors_are_bounded_and_closed(void **state)
{
    (void)state;
    if (access("/proc/self/fd", R_OK) != 0) skip();
#ifdef _WIN32
    skip(); /* in wine these are the descriptors of all its programs */
#endif
    room r = new_room("descriptors");
    int before = count_entries("/proc/self/fd");
    cv_store *store = create_published(r.path);
    for (cv_object id = 0; id < CHUNKS; id++)
        assert_int_equal(cv_store_write(store, id, 0, "chunk", 5, &error), CV_OK);
    for (cv_object id = 0; id < CHUNKS; id++) {
        char back[6] = "";
        assert_int_equal(cv_store_read(store, id, 0, back, 5, &error), CV_OK);
        assert_string_equal(back, "chunk");
    }
    int during = count_entries("/proc/self/fd");
    assert_in_range(during, before + 10, before + 64 + 8);
    cv_store_close(store);
    assert_int_equal(count_entries("/proc/self/fd"), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_readers_beside_a_writer),
        cmocka_unit_test(test_descriptors_are_bounded_and_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
