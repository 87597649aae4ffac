/* The block cache: order of eviction. */
#include "cache_blocks.h"

#include <pthread.h>

/* ---- Put in before anybody asked ------------------------------------------------ */

static void put_ahead(cv_cache *cache, const cv_cache_key *key)
{
    const cv_cache_entrant entrant = {.size = BLOCK, .ahead = true};
    cv_cached *room = cv_cache_reserve(cache, key, &entrant);
    assert_non_null(room);
    fill(room->bytes, key);
    cv_cache_settle(cache, room, true);
}

/* Finds the block as the next step of a scan of an array that is larger than the cache. */
static void pass(cv_cache *cache, const cv_cache_key *key, bool is_last)
{
    const cv_grid grid = {
        .ndim = 1, .item_strides = {1}, .block_bytes = BLOCK, .n_all_blocks = INT64_MAX};
    cv_cached *found = cv_cache_find(cache, key);
    assert_non_null(found);
    const cv_block_job part = {
        .shape = {1}, .block_pos = atomic_load(&found->sweep.last) + 1, .ends = is_last};
    cv_cache_release(cache, found, &grid, &part);
}

/* Beside blocks in steady use, which leave no room for new blocks. */
static void what_came_ahead_stays_until_it_is_found(void **state)
{
    (void)state;
    enum { N_HOT = 300, N_AHEAD = 100 };
    cv_cache *cache = make_cache(400 * BLOCK);
    for (int turn = 0; turn < 4; turn++)
        for (int b = 0; b < N_HOT; b++) {
            cv_cache_key key = key_of(b);
            if (look(cache, &key) == 0) put(cache, &key);
        }
    for (int b = 0; b < N_AHEAD; b++) {
        cv_cache_key key = key_of(1000 + b), hot = key_of(b);
        put_ahead(cache, &key);
        look(cache, &hot);
    }
    assert_int_equal(counts_of(cache).prefetched, N_AHEAD);
    uint64_t hits = (uint64_t)counts_of(cache).hits;
    int n = 0;
    for (int b = 0; b < N_AHEAD; b++) {
        cv_cache_key key = key_of(1000 + b);
        n += cv_cache_holds(cache, &key);
    }
    assert_true(n >= N_AHEAD * 9 / 10);            /* there are several queues */
    assert_int_equal(counts_of(cache).hits, hits); /* cv_cache_holds does not count */
    cv_cache_free(cache);
}

/* Once found, it is like a new block: used blocks stay, it is evicted. */
static void what_came_ahead_is_then_like_others(void **state)
{
    (void)state;
    cv_cache *cache = make_cache(100 * BLOCK);
    cv_cache_key ahead = key_of(1000), hot = key_of(1);
    put(cache, &hot);
    put_ahead(cache, &ahead);
    for (int i = 0; i < 3; i++) assert_int_equal(look(cache, &hot), 1);
    assert_int_equal(look(cache, &ahead), 1);
    for (int b = 0; b < 110; b++) {
        cv_cache_key once = key_of(2000 + b);
        put(cache, &once);
    }
    assert_false(cv_cache_holds(cache, &ahead));
    assert_true(cv_cache_holds(cache, &hot));
    cv_cache_free(cache);
}

/* A scan that reads whole prefetched blocks uses no more of the cache than is prefetched:
 * each block it finishes makes room for the next. */
static void what_is_spent_leaves_first(void **state)
{
    (void)state;
    cv_cache *cache = make_cache(100 * BLOCK);
    for (int b = 0; b < 80; b++) { /* used once, so that any block could evict them */
        cv_cache_key key = key_of(b);
        put(cache, &key);
    }
    for (int b = 0; b < 500; b++) {
        cv_cache_key key = key_of(1000 + b);
        put_ahead(cache, &key);
        pass(cache, &key, true);
    }
    int left = 0;
    for (int b = 0; b < 80; b++) {
        cv_cache_key key = key_of(b);
        left += cv_cache_holds(cache, &key);
    }
    assert_true(left >= 40); /* each queue has blocks of its own to evict first */

    cv_cache_key key = key_of(5); /* found before: used */
    look(cache, &key);
    pass(cache, &key, true);
    for (int b = 0; b < 40; b++) {
        cv_cache_key once = key_of(3000 + b);
        put(cache, &once);
    }
    assert_true(cv_cache_holds(cache, &key));
    cv_cache_free(cache);
}

/* A thread that has filled the cache and ended. */
static void *fill_and_end(void *context)
{
    for (int b = 0; b < 1000; b++) {
        cv_cache_key key = key_of(b);
        put(context, &key);
    }
    return NULL;
}

/* Blocks are evicted by age, whichever thread added them. */
static void what_a_thread_left_makes_room(void **state)
{
    (void)state;
    enum { N = 400 };
    cv_cache *cache = make_cache(N * BLOCK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fill_and_end, cache), 0);
    pthread_join(thread, NULL);
    int64_t n_blocks = counts_of(cache).blocks;
    for (int b = 0; b < 2 * N; b++) {
        cv_cache_key key = key_of(5000 + b);
        put(cache, &key);
    }
    for (int b = 0; b < 1000; b++) {
        cv_cache_key key = key_of(b);
        assert_false(cv_cache_holds(cache, &key));
    }
    assert_int_equal(counts_of(cache).blocks, n_blocks);
    cv_cache_free(cache);
}

/* Frequent hits of a scan do not count as uses. */
static void passing_is_no_use(void **state)
{
    (void)state;
    cv_cache *cache = make_cache(100 * BLOCK);
    for (int b = 0; b < 60; b++) {
        cv_cache_key key = key_of(b);
        put(cache, &key);
        for (int i = 0; i < 5; i++)
            if (b < 30)
                look(cache, &key);
            else
                pass(cache, &key, false);
    }
    for (int b = 0; b < 300; b++) {
        cv_cache_key key = key_of(1000 + b);
        put(cache, &key);
    }
    for (int b = 0; b < 60; b++) {
        cv_cache_key key = key_of(b);
        assert_int_equal(cv_cache_holds(cache, &key), b < 30);
    }
    cv_cache_free(cache);
}

static void check_scan(int n_blocks, int n_in_use)
{
    cv_cache *cache = make_cache(n_blocks * BLOCK);
    for (int b = 0; b < n_in_use; b++) {
        cv_cache_key key = key_of(b);
        put(cache, &key);
    }
    int found = 0, looked = 0;
    for (int64_t once = 1000; once < 20000; once++) {
        cv_cache_key key = key_of(once);
        put(cache, &key);
        key = key_of(once % n_in_use);
        looked++;
        found += look(cache, &key) == 1;
    }
    assert_int_equal(found, looked);
    cv_cache_free(cache);
}

/* Blocks in steady use, many or few, survive any number of blocks read once. */
static void a_scan_passes_through(void **state)
{
    (void)state;
    check_scan(400, 100);
    check_scan(16, 4);
}

/* A scan through a cache of blocks that were in steady use: the block that its first step
 * adds is found by the next. */
static void newcomers_are_given_time(void **state)
{
    (void)state;
    enum { LIMIT = 400, OLD = 350, STEP = LIMIT / 8 };
    cv_cache *cache = make_cache(LIMIT * BLOCK);
    for (int b = 0; b < OLD; b++) {
        cv_cache_key key = key_of(b);
        put(cache, &key);
        for (int i = 0; i < 4; i++) (void)look(cache, &key);
    }
    for (int first = 1000; first < 3000; first += STEP) {
        for (int b = 0; b < STEP; b++) {
            cv_cache_key key = key_of(first + b);
            assert_int_equal(look(cache, &key), 0);
            put(cache, &key);
        }
        for (int b = 0; b < 4 * STEP; b++) {
            cv_cache_key key = key_of(first + b % STEP);
            assert_int_equal(look(cache, &key), 1);
        }
    }
    cv_cache_free(cache);
}

/* Returns whether a request of that many bytes may add the block; does not add it. */
static bool admits(cv_cache *cache, const cv_cache_key *key, int64_t request_bytes)
{
    const cv_cache_entrant entrant = {.size = BLOCK, .request_bytes = request_bytes};
    cv_cached *room = cv_cache_reserve(cache, key, &entrant);
    if (room) cv_cache_settle(cache, room, false);
    return room != NULL;
}

/* All blocks of a request that fits are admitted, and of a larger one a share that fits, the
 * same each time. */
static void large_requests_get_a_share(void **state)
{
    (void)state;
    cv_cache *cache = make_cache(400 * BLOCK);
    int admitted = 0;
    for (int b = 0; b < 4000; b++) {
        cv_cache_key key = key_of(b);
        assert_true(admits(cache, &key, 300 * BLOCK));
        bool in = admits(cache, &key, 4000 * BLOCK);
        assert_int_equal(admits(cache, &key, 4000 * BLOCK), in);
        admitted += in;
    }
    assert_in_range(admitted, 200, 400);

    /* So a repeated request of ten times the cache finds its share. */
    for (int round = 0; round < 3; round++) {
        int found = 0;
        for (int b = 0; b < 4000; b++) {
            cv_cache_key key = key_of(b);
            if (look(cache, &key) == 1)
                found++;
            else if (admits(cache, &key, 4000 * BLOCK))
                put(cache, &key);
        }
        if (round > 0) assert_int_equal(found, admitted);
    }
    cv_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_passes_through),
        cmocka_unit_test(newcomers_are_given_time),
        cmocka_unit_test(large_requests_get_a_share),
        cmocka_unit_test(what_came_ahead_stays_until_it_is_found),
        cmocka_unit_test(what_came_ahead_is_then_like_others),
        cmocka_unit_test(what_is_spent_leaves_first),
        cmocka_unit_test(what_a_thread_left_makes_room),
        cmocka_unit_test(passing_is_no_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
