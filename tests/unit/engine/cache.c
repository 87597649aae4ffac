/* The block cache: added blocks are found, bytes are bounded, pinned blocks stay, keys are
 * not confused, and threads do not interfere. Order of eviction: cache_order.c. */
#include "cache_blocks.h"
#include "support/sanitized.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_THREADS = 4, ROUNDS = 20000 };

static void keys_are_distinguished(void **state)
{
    (void)state;
    cv_cache *cache = make_cache(1 << 20);
    cv_cache_key key = key_of(3), other[5] = {key, key, key, key, key};
    put(cache, &key);
    other[0].frame++;
    other[1].object = 64;
    other[2].pos++;
    other[3].generation++;
    other[4].block++;
    for (int i = 0; i < 5; i++) assert_int_equal(look(cache, &other[i]), 0);
    assert_int_equal(look(cache, &key), 1);
    for (int i = 0; i < 5; i++) put(cache, &other[i]);
    for (int i = 0; i < 5; i++) assert_int_equal(look(cache, &other[i]), 1);

    put(cache, &key); /* again: the first one stays */
    caterva_cache_info counts = counts_of(cache);
    assert_int_equal(counts.blocks, 6);
    assert_int_equal(counts.inserted, 6);
    assert_int_equal(counts.hits, 6);
    assert_int_equal(counts.misses, 5);
    cv_cache_free(cache);
}

static void bytes_are_bounded(void **state)
{
    (void)state;
    enum { LIMIT = 64 * BLOCK };
    cv_cache *cache = make_cache(LIMIT);
    uint8_t large[LIMIT] = {0};
    for (int b = 0; b < 1000; b++) {
        cv_cache_key key = key_of(b);
        if (b % 10 == 9)
            insert(cache, &key, large, (size_t)b * 40); /* other sizes between */
        else
            put(cache, &key);
        assert_true(counts_of(cache).bytes <= LIMIT);
    }
    caterva_cache_info counts = counts_of(cache);
    assert_true(counts.bytes > LIMIT / 4);
    assert_true(counts.evicted > 900);
    assert_int_equal(counts.inserted, counts.evicted + counts.blocks);

    cv_cache_key key = key_of(5000);
    insert(cache, &key, large, LIMIT); /* too large with its overhead */
    assert_null(cv_cache_find(cache, &key));
    assert_true(counts_of(cache).blocks > 0);
    cv_cache_set_limit(cache, 8 * BLOCK);
    assert_true(counts_of(cache).bytes <= 8 * BLOCK);
    cv_cache_set_limit(cache, 0);
    assert_true(cv_cache_is_empty(cache));
    put(cache, &key);
    assert_int_equal(counts_of(cache).blocks, 0);
    cv_cache_free(cache);
}

static void blocks_in_use_stay(void **state)
{
    (void)state;
    cv_cache *cache = make_cache(16 * BLOCK);
    cv_cache_key key = key_of(0);
    uint8_t expected[BLOCK];
    put(cache, &key);
    cv_cached *held = cv_cache_find(cache, &key);
    assert_non_null(held);
    for (int b = 1; b < 1000; b++) {
        cv_cache_key other = key_of(b);
        put(cache, &other);
    }
    fill(expected, &key);
    assert_memory_equal(held->bytes, expected, BLOCK);
    cv_cache_release(cache, held, NULL, NULL);
    cv_cache_free(cache);
}

static void frames_are_forgotten(void **state)
{
    (void)state;
    cv_cache *cache = make_cache(4 << 20);
    for (int b = 0; b < 3000; b++) { /* more than the first tables hold */
        cv_cache_key key = key_of(b);
        key.frame = (uint64_t)b % 3;
        put(cache, &key);
    }
    cv_cache_forget(cache, 1);
    for (int b = 0; b < 3000; b++) {
        cv_cache_key key = key_of(b);
        key.frame = (uint64_t)b % 3;
        assert_int_equal(look(cache, &key), b % 3 != 1);
    }
    cv_cache_forget(cache, 0);
    cv_cache_forget(cache, 2);
    assert_true(cv_cache_is_empty(cache));
    cv_cache_free(cache);
}

/* ---- Threads and processes -------------------------------------------------- */

typedef struct crowd {
    cv_cache *cache;
    atomic_int wrong, over, next;
} crowd;

static void *jostle(void *context)
{
    crowd *c = context;
    unsigned random = 12345u * (unsigned)(atomic_fetch_add(&c->next, 1) + 1);
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525u + 1013904223u;
        cv_cache_key key = key_of(random >> 16 & 127);
        key.frame = 1 + (random >> 8 & 1);
        int result = look(c->cache, &key);
        if (result < 0) atomic_fetch_add(&c->wrong, 1);
        if (result == 0) put(c->cache, &key);
        if (i % 512 == 0 && counts_of(c->cache).bytes > 64 * BLOCK)
            atomic_fetch_add(&c->over, 1);
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    (void)state;
    /* New blocks are counted before others are evicted: one per thread. */
    crowd c = {.cache = make_cache(60 * BLOCK)};
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, jostle, &c), 0);
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    caterva_cache_info counts = counts_of(c.cache);
    assert_int_equal(atomic_load(&c.wrong), 0);
    assert_int_equal(atomic_load(&c.over), 0);
    assert_int_equal(counts.hits + counts.misses, N_THREADS * ROUNDS);
    assert_int_equal(counts.inserted, counts.evicted + counts.blocks);
    assert_true(counts.bytes <= 60 * BLOCK);
    cv_cache_free(c.cache);
}

typedef struct busy {
    atomic_bool stop;
} busy;

static void *keep_busy(void *context)
{
    busy *b = context;
    for (int64_t i = 0; !atomic_load(&b->stop); i++) {
        cv_cache_key key = key_of(i % 200);
        if (look(cv_cache_shared(), &key) == 0) put(cv_cache_shared(), &key);
    }
    return NULL;
}

/* A child that forked while another thread held the locks. */
static int use_in_child(void)
{
    alarm(60);
    for (int b = 0; b < 400; b++) {
        cv_cache_key key = key_of(b);
        if (look(cv_cache_shared(), &key) == 0) put(cv_cache_shared(), &key);
        if (look(cv_cache_shared(), &key) != 1) return 1;
    }
    cv_cache_forget(cv_cache_shared(), 1);
    return counts_of(cv_cache_shared()).blocks > 0;
}

static void a_child_has_its_own(void **state)
{
    (void)state;
    SKIP_IF_SANITIZED();
    busy b;
    pthread_t thread;
    atomic_init(&b.stop, false);
    assert_int_equal(pthread_create(&thread, NULL, keep_busy, &b), 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(use_in_child());
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&b.stop, true);
    pthread_join(thread, NULL);
    cv_cache_forget(cv_cache_shared(), 1);
    assert_true(cv_cache_is_empty(cv_cache_shared()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_distinguished), cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(blocks_in_use_stay),     cmocka_unit_test(frames_are_forgotten),
        cmocka_unit_test(threads_share_it),       cmocka_unit_test(a_child_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
