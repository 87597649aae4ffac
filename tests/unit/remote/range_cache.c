/* The cache folder: what was stored is found, in any pieces, with the same key; and no damage
 * of a pack goes undetected. */
#include "base/os_dir.h"
#include "remote/transfer.h"

#include "base/os.h"
#include "support/check.h"
#include "support/random.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 300000, BOUND = 64 << 20 };

static uint8_t thing[SIZE];
static const uint8_t key[CV_PACK_KEY] = {1, 2, 3}, other_key[CV_PACK_KEY] = {1, 2, 4};

static const char *folder(const char *name)
{
    static char path[SCRATCH_PATH];
    scratch_path(path, name);
    scratch_remove(path);
    rng r = rng_from_seed(11);
    rng_fill(&r, thing, sizeof thing);
    return path;
}

static void put(cv_range_cache *c, uint64_t pos, size_t size)
{
    cv_range_cache_put(c, &pos, &size, 1, thing + pos);
}

static bool gets(cv_range_cache *c, uint64_t pos, size_t size)
{
    uint8_t *bytes = check_alloc(size);
    bool has = cv_range_cache_get(c, pos, bytes, size);
    if (has) assert_memory_equal(bytes, thing + pos, size);
    free(bytes);
    return has;
}

static void what_is_put_comes_back(void **state)
{
    (void)state;
    const char *path = folder("cache");
    cv_range_cache *c = cv_range_cache_open(path, BOUND, key);
    put(c, 1000, 200000);
    put(c, 250000, 10);
    for (int other = 0; other < 2; other++) {
        cv_range_cache *d = other ? cv_range_cache_open(path, BOUND, key) : c;
        cv_range_cache_look(d);
        assert_true(gets(d, 1000, 200000));
        assert_true(gets(d, 65000, 3000)); /* of two extents */
        assert_true(gets(d, 250003, 7));
        assert_false(gets(d, 999, 2));
        assert_false(gets(d, 200999, 2));
        assert_false(gets(d, 250003, 8));
        assert_false(gets(d, 0, 1));
        if (other) cv_range_cache_close(d);
    }
    put(c, 201000, 49000); /* the gap */
    assert_true(gets(c, 1000, 249010));
    cv_range_cache *stranger = cv_range_cache_open(path, BOUND, other_key);
    cv_range_cache_look(stranger);
    assert_false(gets(stranger, 1000, 10));
    cv_range_cache_forget(stranger);
    assert_true(gets(c, 1000, 10));
    cv_range_cache_forget(c);
    assert_false(gets(c, 1000, 10));
    cv_range_cache_close(stranger);
    cv_range_cache_close(c);
}

static void many_ranges_at_random(void **state)
{
    (void)state;
    uint64_t seed = cv_os_time_ns();
    printf("seed %llu\n", (unsigned long long)seed);
    static uint8_t has[SIZE];
    const char *path = folder("random");
    rng r = rng_from_seed(seed);
    cv_range_cache *c = cv_range_cache_open(path, BOUND, key);
    memset(has, 0, sizeof has);
    for (int i = 0; i < 400; i++) {
        uint64_t pos = (uint64_t)rng_between(&r, 0, SIZE - 1);
        size_t most = (size_t)(SIZE - pos),
               size = 1 + (size_t)rng_between(&r, 0, 2999) * 40 % most;
        if (size > most) size = most;
        if (i % 2) {
            put(c, pos, size);
            memset(has + pos, 1, size);
            continue;
        }
        bool all = memchr(has + pos, 0, size) == NULL;
        assert_int_equal(gets(c, pos, size), all);
    }
    cv_range_cache_close(c);
}

/* The path of the one pack in a folder. */
static void pack_path(const char *path, char out[2 * SCRATCH_PATH])
{
    cv_dir dir;
    cv_listing listing;
    int error;
    assert_int_equal(cv_dir_open(cv_dir_here, path, 0, &dir), 0);
    assert_int_equal(cv_listing_open(dir, &listing), 0);
    const char *name = cv_listing_next(&listing, &error);
    assert_non_null(name);
    (void)snprintf(out, 2 * SCRATCH_PATH, "%s/%s", path, name);
    cv_listing_close(&listing);
}

static void no_byte_is_damaged_unnoticed(void **state)
{
    (void)state;
    char pack[2 * SCRATCH_PATH];
    size_t size;
    const char *path = folder("damaged");
    const uint64_t positions[] = {10, 1000, 50};
    const size_t sizes[] = {20, 100, 33};
    cv_range_cache *c = cv_range_cache_open(path, BOUND, key);
    uint8_t joined[153];
    memcpy(joined, thing + 10, 20);
    memcpy(joined + 20, thing + 1000, 100);
    memcpy(joined + 120, thing + 50, 33);
    cv_range_cache_put(c, positions, sizes, 3, joined);
    cv_range_cache_close(c);
    pack_path(path, pack);
    uint8_t *bytes = scratch_load(pack, &size);
    for (size_t at = 0; at <= size; at++) {
        uint8_t kept = at < size ? bytes[at] : 0;
        if (at < size) bytes[at] ^= 0x10;
        scratch_save(pack, bytes, size);
        c = cv_range_cache_open(path, BOUND, key);
        cv_range_cache_look(c);
        bool all = true;
        for (int i = 0; i < 3; i++) all = gets(c, positions[i], sizes[i]) && all;
        assert_int_equal(all, at == size);
        cv_range_cache_close(c);
        if (at < size) bytes[at] = kept;
    }
    for (size_t cut = 0; cut < size; cut++) {
        scratch_save(pack, bytes, cut);
        c = cv_range_cache_open(path, BOUND, key);
        cv_range_cache_look(c);
        bool all = true;
        for (int i = 0; i < 3; i++) all = gets(c, positions[i], sizes[i]) && all;
        assert_false(all);
        cv_range_cache_close(c);
    }
    free(bytes);
}

static void what_does_not_fit_is_not_kept(void **state)
{
    (void)state;
    const char *path = folder("small");
    cv_range_cache *c = cv_range_cache_open(path, 1000, key);
    put(c, 0, 100);
    assert_false(gets(c, 0, 100));
    cv_range_cache_close(c);
    c = cv_range_cache_open(path, 1 << 20, key);
    for (int i = 0; i < 100; i++) put(c, (uint64_t)i * 2000, 2000);
    assert_true(gets(c, 99 * 2000, 2000));
    cv_range_cache_close(c);
    assert_null(cv_range_cache_open("/proc/no/such/folder", BOUND, key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_comes_back),
        cmocka_unit_test(many_ranges_at_random),
        cmocka_unit_test(no_byte_is_damaged_unnoticed),
        cmocka_unit_test(what_does_not_fit_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
