/* Prefetch and read-ahead are effective: prefetched blocks are found, a scan finds blocks
 * decoded ahead of it, and others keep their blocks in the cache; measured by the counts of
 * the cache, not by time.
 *
 * usage: test_prefetch [SEED] */
#include "caterva.h"

#include "base/os.h"
#include "support/check.h"
#include "support/cube.h"
#include "support/scratch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, LAYERS = CUBE_SIDE / 16, LAYER_BLOCKS = LAYERS * LAYERS };

static caterva_cache_info counts_of(caterva_array *array)
{
    caterva_cache_info counts = CATERVA_CACHE_INFO_INIT;
    caterva_cache_describe(array, &counts, NULL);
    return counts;
}

/* Returns false if that many were not prefetched after a long time. */
static bool wait_for(caterva_array *array, int64_t prefetched)
{
    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        if (counts_of(array).prefetched >= prefetched) return true;
        usleep(1000);
    }
    return false;
}

static void what_is_prefetched_is_found(const char *path, int32_t *model)
{
    caterva_array *array = cube_open(path, 2, CUBE_CACHE_ALL, true);
    cube_box all = cube_box_of(cube_origin, cube_shape);
    cube_prefetch(array, &all);
    CHECK(wait_for(array, LAYERS * LAYER_BLOCKS), "%lld blocks were prefetched",
          (long long)counts_of(array).prefetched);
    CHECK(counts_of(array).misses == 0 && counts_of(array).hits == 0, "they were counted");
    cube_check_read(array, model, &all);
    for (int axis = 0; axis < 3; axis++) {
        cube_box b = cube_plane(axis, 17, 1);
        cube_check_read(array, model, &b);
    }
    CHECK(counts_of(array).misses == 0, "%lld were decoded again",
          (long long)counts_of(array).misses);
    cube_prefetch(array, &all); /* all are cached */
    usleep(20000);
    CHECK(counts_of(array).prefetched == LAYERS * LAYER_BLOCKS, "some came twice");
    caterva_discard(array);
}

static void it_gets_half_of_the_cache(const char *path)
{
    enum { BLOCKS = 40 };
    caterva_array *array = cube_open(path, 3, BLOCKS * (CUBE_BLOCK_BYTES + 300), false);
    cube_box all = cube_box_of(cube_origin, cube_shape);
    for (int i = 0; i < 20; i++)
        cube_prefetch(array, &all); /* eight wait; no more are queued */
    CHECK(wait_for(array, BLOCKS / 2 - 2), "only %lld blocks",
          (long long)counts_of(array).prefetched);
    usleep(20000);
    CHECK(counts_of(array).prefetched <= BLOCKS / 2 + 1, "%lld blocks",
          (long long)counts_of(array).prefetched);
    caterva_discard(array);
}

static void it_may_do_nothing(const char *path, int32_t *model)
{
    static const struct {
        int threads;
        int64_t cache_bytes;
    } cases[] = {{1, CUBE_CACHE_ALL}, {2, -1}, {2, 100}};
    cube_box all = cube_box_of(cube_origin, cube_shape);
    caterva_error err;
    for (int i = 0; i < 3; i++) {
        caterva_array *array = cube_open(path, cases[i].threads, cases[i].cache_bytes, false);
        cube_prefetch(array, &all);
        for (int64_t k = 0; k < CUBE_SIDE; k++) {
            cube_box b = cube_plane(0, k, 1);
            cube_check_read(array, model, &b);
        }
        CHECK(counts_of(array).prefetched == 0, "case %d", i);
        int64_t beyond[3] = {CUBE_SIDE, CUBE_SIDE, CUBE_SIDE + 1};
        CHECK(caterva_prefetch(array, cube_origin, beyond, &err) == CATERVA_ERANGE,
              "accepted");
        CHECK(caterva_prefetch(array, NULL, cube_shape, &err) == CATERVA_EINVAL, "accepted");
        CHECK(caterva_prefetch(NULL, cube_origin, cube_shape, &err) == CATERVA_EINVAL,
              "accepted");
        CHECK_OK(caterva_prefetch(array, cube_origin, cube_origin, &err), err);
        caterva_discard(array);
    }
}

/* A slow scan, forwards or backwards: except for the layer it begins in, every block was
 * decoded in the background. */
static void a_scan_finds_all(const char *path, int32_t *model, bool backwards, bool off,
                             cube_way how)
{
    caterva_array *array = cube_open(path, 2, CUBE_CACHE_ALL, off);
    int64_t misses_at_first = 0;
    bool expected = !off && cv_os_cores() >= 2;
    for (int64_t k = 0; k < CUBE_SIDE; k++) {
        cube_box b = cube_plane(0, backwards ? CUBE_SIDE - 1 - k : k, 1);
        cube_check_read_by(how, array, model, &b);
        if (k == 2) misses_at_first = counts_of(array).misses;
        int64_t layers = k < 2 ? 0 : k / 16 + 1 < LAYERS ? k / 16 + 1 : LAYERS - 1;
        if (!expected) continue;
        CHECK(wait_for(array, layers * LAYER_BLOCKS), "plane %lld: %lld blocks", (long long)k,
              (long long)counts_of(array).prefetched);
    }
    caterva_cache_info counts = counts_of(array);
    if (expected)
        CHECK(counts.misses == misses_at_first, "%lld blocks were decoded by the scan",
              (long long)(counts.misses - misses_at_first));
    else
        CHECK(counts.prefetched == 0, "read ahead all the same");
    CHECK(counts.inserted == LAYERS * LAYER_BLOCKS, "%lld blocks",
          (long long)counts.inserted);
    caterva_discard(array);
}

/* Whole blocks, prefetched and read once, do not displace others. */
static void a_scan_of_whole_blocks_passes(const char *path, int32_t *model)
{
    enum { BLOCKS = 40 };
    caterva_array *array = cube_open(path, 2, BLOCKS * (CUBE_BLOCK_BYTES + 300), true);
    cube_box kept = cube_plane(0, 1, 1); /* once: any block could evict it */
    cube_check_read(array, model, &kept);
    int64_t n = 0;
    for (int64_t i = 16; i < CUBE_SIDE; i += 16) {
        cube_box slab = cube_plane(0, i, 16);
        cube_prefetch(array, &slab);
        n += LAYER_BLOCKS;
        CHECK(wait_for(array, n), "only %lld", (long long)counts_of(array).prefetched);
        cube_check_read(array, model, &slab);
    }
    int64_t misses = counts_of(array).misses;
    cube_check_read(array, model, &kept);
    CHECK(counts_of(array).misses <= misses + LAYER_BLOCKS / 2, "%lld of %d were pushed out",
          (long long)(counts_of(array).misses - misses), LAYER_BLOCKS);
    caterva_discard(array);
}

int main(int argc, char **argv)
{
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *array;
    int32_t *model = cube_new(seed_argument(argc, argv, 1));
    scratch_path(path, "fixed");
    cube_create(path, model, -1, true, &(rng){0}, &array);
    CHECK_OK(caterva_close(array, &err), err);
    what_is_prefetched_is_found(path, model);
    it_gets_half_of_the_cache(path);
    it_may_do_nothing(path, model);
    for (int i = 0; i < 4 * CUBE_WAYS; i++)
        a_scan_finds_all(path, model, i & 1, i & 2, (cube_way)(i / 4));
    a_scan_of_whole_blocks_passes(path, model);
    free(model);
    return 0;
}
