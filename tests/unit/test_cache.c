/* The block cache: what was put in is found, the bytes are bounded, who is in use
 * stays, no key is taken for another, and threads do not disturb each other. */
#include "engine/cache.h"
#include "support/sanitized.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCK = 1024, N_THREADS = 4, ROUNDS = 20000 };

static cv_cache *make_cache(int64_t limit)
{
    cv_cache *cache = NULL;
    assert_int_equal(cv_cache_create(limit, &cache, NULL), CV_OK);
    return cache;
}

static cv_cache_key key_of(int64_t block)
{
    return (cv_cache_key){.frame = 1, .object = -1, .pos = 64, .block = (int32_t)block};
}

/* Bytes that tell which key they belong to. */
static void fill(uint8_t *bytes, const cv_cache_key *key)
{
    memset(bytes, (int)(key->block * 7 + (int)key->generation), BLOCK);
    memcpy(bytes, key, sizeof *key);
}

static void put(cv_cache *cache, const cv_cache_key *key)
{
    uint8_t bytes[BLOCK];
    fill(bytes, key);
    cv_cache_insert(cache, key, bytes, BLOCK);
}

/* 1 found and right, 0 not there, -1 found and wrong. */
static int look(cv_cache *cache, const cv_cache_key *key)
{
    uint8_t expected[BLOCK];
    cv_cached *found = cv_cache_find(cache, key);
    if (!found) return 0;
    fill(expected, key);
    bool right = memcmp(cv_cached_bytes(found), expected, BLOCK) == 0;
    cv_cache_release(found);
    return right ? 1 : -1;
}

static caterva_cache_counts counts_of(cv_cache *cache)
{
    caterva_cache_counts counts;
    cv_cache_measure(cache, &counts);
    return counts;
}

static void keys_are_told_apart(void **state)
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
    caterva_cache_counts counts = counts_of(cache);
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
            cv_cache_insert(cache, &key, large, (size_t)b * 40); /* other sizes between */
        else
            put(cache, &key);
        assert_true(counts_of(cache).bytes <= LIMIT);
    }
    caterva_cache_counts counts = counts_of(cache);
    assert_true(counts.bytes > LIMIT / 4);
    assert_true(counts.evicted > 900);
    assert_int_equal(counts.inserted, counts.evicted + counts.blocks);

    cv_cache_key key = key_of(5000);
    cv_cache_insert(cache, &key, large, LIMIT); /* with its overhead: too large */
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

/* ---- Put in before anybody asked ------------------------------------------------ */

static void put_ahead(cv_cache *cache, const cv_cache_key *key)
{
    cv_cached *room = cv_cache_reserve(cache, key, BLOCK);
    assert_non_null(room);
    fill(cv_cached_room(room), key);
    cv_cached_mark_ahead(room);
    cv_cache_settle(cache, room, true);
}

/* Beside blocks in steady use, which leave no room for newcomers. */
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
    assert_int_equal(counts_of(cache).hits, hits); /* asking is not finding */
    cv_cache_free(cache);
}

/* Found once it is a newcomer: those in use stay, it goes. */
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

/* A scan that reads whole blocks which came ahead takes no more of the cache than
 * are ahead of it: each makes room for the next. */
static void what_is_spent_leaves_first(void **state)
{
    (void)state;
    cv_cache *cache = make_cache(100 * BLOCK);
    for (int b = 0; b < 80; b++) { /* touched once, so that anything could push them out */
        cv_cache_key key = key_of(b);
        put(cache, &key);
    }
    for (int b = 0; b < 500; b++) {
        cv_cache_key key = key_of(1000 + b);
        put_ahead(cache, &key);
        cv_cached *found = cv_cache_find(cache, &key);
        assert_non_null(found);
        cv_cache_release_spent(cache, found);
    }
    int left = 0;
    for (int b = 0; b < 80; b++) {
        cv_cache_key key = key_of(b);
        left += cv_cache_holds(cache, &key);
    }
    assert_true(left >= 40); /* each queue has some of its own to let go of first */

    cv_cache_key key = key_of(5); /* found before: of use to others */
    look(cache, &key);
    cv_cache_release_spent(cache, cv_cache_find(cache, &key));
    for (int b = 0; b < 40; b++) {
        cv_cache_key once = key_of(3000 + b);
        put(cache, &once);
    }
    assert_true(cv_cache_holds(cache, &key));
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

/* Blocks in steady use, many or few, survive any number that come once. */
static void a_scan_passes_through(void **state)
{
    (void)state;
    check_scan(400, 100);
    check_scan(16, 4);
}

/* A scan through a cache of blocks that were in steady use: what its first step
 * puts in is there for the next. */
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

/* What the caller of cv_cache_admits relies on: all of a request that fits, and
 * of a larger one a part that fits, the same each time. */
static void large_requests_get_a_share(void **state)
{
    (void)state;
    cv_cache *cache = make_cache(400 * BLOCK);
    int admitted = 0;
    for (int b = 0; b < 4000; b++) {
        cv_cache_key key = key_of(b);
        assert_true(cv_cache_admits(cache, &key, 300 * BLOCK));
        bool in = cv_cache_admits(cache, &key, 4000 * BLOCK);
        assert_int_equal(cv_cache_admits(cache, &key, 4000 * BLOCK), in);
        admitted += in;
    }
    assert_in_range(admitted, 200, 400);

    /* So a request ten times the cache, again and again, finds its share. */
    for (int round = 0; round < 3; round++) {
        int found = 0;
        for (int b = 0; b < 4000; b++) {
            cv_cache_key key = key_of(b);
            if (look(cache, &key) == 1)
                found++;
            else if (cv_cache_admits(cache, &key, 4000 * BLOCK))
                put(cache, &key);
        }
        if (round > 0) assert_int_equal(found, admitted);
    }
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
    assert_memory_equal(cv_cached_bytes(held), expected, BLOCK);
    cv_cache_release(held);
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
    /* Newcomers are counted before others have left: one for each thread. */
    crowd c = {.cache = make_cache(60 * BLOCK)};
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, jostle, &c), 0);
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    caterva_cache_counts counts = counts_of(c.cache);
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
        cmocka_unit_test(keys_are_told_apart),
        cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(a_scan_passes_through),
        cmocka_unit_test(newcomers_are_given_time),
        cmocka_unit_test(large_requests_get_a_share),
        cmocka_unit_test(blocks_in_use_stay),
        cmocka_unit_test(frames_are_forgotten),
        cmocka_unit_test(threads_share_it),
        cmocka_unit_test(a_child_has_its_own),
        cmocka_unit_test(what_came_ahead_stays_until_it_is_found),
        cmocka_unit_test(what_came_ahead_is_then_like_others),
        cmocka_unit_test(what_is_spent_leaves_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
