/* Dead space: extents as bookkeeping against a byte map, and the growth of a file over many
 * commits, with and without a reader that holds an old state. */
#include "array/array.h"
#include "frame/space.h"
#include "support/check.h"
#include "support/random.h"
#include "support/scratch.h"

#include <caterva_upkeep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { BYTES = 512, N = 40000, CHUNK = 2000, COMMITS = 300 };

static uint64_t seed;

/* ---- Extents ------------------------------------------------------------ */

static void check_map(const cv_extents *e, const bool *map)
{
    bool seen[BYTES] = {false};
    uint64_t last = 0;
    for (size_t i = 0; i < e->n; i++) {
        assert_true(e->items[i].size > 0 && e->items[i].pos >= last);
        last = e->items[i].pos + e->items[i].size;
        assert_true(last <= BYTES);
        memset(seen + e->items[i].pos, true, e->items[i].size);
    }
    assert_memory_equal(seen, map, sizeof seen);
}

static void extents_are_a_set_of_bytes(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    cv_space space = {.free = {0}};
    bool map[BYTES] = {false};
    for (int step = 0; step < 20000; step++) {
        uint64_t pos = (uint64_t)rng_between(&r, 0, BYTES - 1);
        uint64_t size = (uint64_t)rng_between(&r, 1, BYTES - (int64_t)pos);
        if (size > 40) size = 40;
        bool touched = memchr(map + pos, true, size) != NULL;
        if (rng_one_in(&r, 3)) {
            cv_extent at;
            if (cv_extents_take(&space.free, size, &at)) {
                assert_in_range(at.size, size, size + size / CV_SPACE_SLACK);
                for (uint64_t i = 0; i < at.size; i++) assert_true(map[at.pos + i]);
                memset(map + at.pos, false, at.size);
            }
        } else if (rng_one_in(&r, 3)) {
            cv_space_occupy(&space, pos, size);
            memset(map + pos, false, size);
        } else if (!touched) {
            cv_extents_add(&space.free, (cv_extent){pos, size}, true);
            memset(map + pos, true, size);
        }
        check_map(&space.free, map);
    }
    cv_space_destroy(&space);
}

/* Takes the smallest hole that fits, whose rest only the same kind of chunk could use. */
static void a_hole_goes_to_a_chunk_of_its_size(void **state)
{
    (void)state;
    cv_extents holes = {0};
    cv_extent at;
    cv_extents_add(&holes, (cv_extent){0, 9000}, true);
    cv_extents_add(&holes, (cv_extent){10000, 1010}, true);
    cv_extents_add(&holes, (cv_extent){20000, 2000}, true);
    assert_true(cv_extents_take(&holes, 1000, &at));
    assert_int_equal(at.pos, 10000);
    assert_int_equal(at.size, 1010);
    assert_true(cv_extents_take(&holes, 1000, &at));
    assert_int_equal(at.pos, 20000);
    assert_int_equal(at.size, 1000);
    assert_int_equal(holes.n, 2);
    assert_true(cv_extents_take(&holes, 9000, &at));
    assert_int_equal(at.pos, 0);
    assert_false(cv_extents_take(&holes, 9000, &at));
    cv_space space = {.free = holes};
    cv_space_destroy(&space);
}

static void what_died_is_free_one_commit_later(void **state)
{
    (void)state;
    for (int durable = 0; durable < 2; durable++) {
        cv_space space = {.free = {0}};
        cv_extent at;
        cv_space_put(&space, 100, 50);
        cv_space_committed(&space, durable);
        cv_space_replaced(&space, 100);
        assert_false(cv_space_take(&space, 10, &at)); /* still committed */
        assert_false(cv_space_is_clear(&space, 120, 10));
        cv_space_committed(&space, durable);
        assert_int_equal(cv_space_take(&space, 10, &at), durable);
        cv_space_committed(&space, durable);
        assert_true(cv_space_take(&space, 10, &at));
        cv_space_destroy(&space);
    }
}

/* If the records have a gap, no position below the end counts as free. */
static void a_gap_in_the_books_is_not_clear(void **state)
{
    (void)state;
    cv_space space = {.free = {0}};
    assert_true(cv_space_is_clear(&space, 100, 10));
    space.dead.forgot = true;
    assert_false(cv_space_is_clear(&space, 100, 10));
    cv_space_committed(&space, false);
    space.dead.forgot = false;
    assert_false(cv_space_is_clear(&space, 100, 10)); /* it is in `aging` now */
    cv_space_destroy(&space);
}

static void a_rollback_gives_back_what_was_taken(void **state)
{
    (void)state;
    cv_space space = {.free = {0}};
    cv_extent at;
    cv_extents_add(&space.free, (cv_extent){100, 50}, true);
    cv_space_put(&space, 400, 10);
    assert_true(cv_space_take(&space, 20, &at));
    assert_int_equal(at.size, 20);
    cv_space_put(&space, at.pos, at.size);
    cv_space_put(&space, 1000, 10); /* after the end */
    cv_space_replaced(&space, 400);
    cv_space_rolled_back(&space, 1000);
    assert_int_equal(space.free.n, 1);
    assert_int_equal(space.free.items[0].pos, 100);
    assert_int_equal(space.free.items[0].size, 50);
    assert_int_equal(space.ours.n, 1); /* what was replaced is still alive */
    assert_int_equal(space.ours.items[0].pos, 400);
    assert_int_equal(space.ours.items[0].size, 10);
    assert_int_equal(space.dead.n, 0);
    cv_space_destroy(&space);
}

/* ---- Growth ------------------------------------------------------------- */

static caterva_array *make(const char *path, caterva_durability durability, rng *r)
{
    int64_t shape[1] = {N}, origin[1] = {0};
    int32_t chunks[1] = {CHUNK};
    static uint32_t items[N];
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = shape;
    options.chunk_shape = chunks;
    options.dtype = "<u4";
    options.overwrite = 1;
    options.durability = durability;
    caterva_array *array;
    rng_fill(r, items, sizeof items);
    assert_int_equal(caterva_create(path, &options, &array, NULL), CATERVA_OK);
    assert_int_equal(caterva_write(array, origin, shape, items, sizeof items, NULL),
                     CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    return array;
}

static void rewrite_one_chunk(caterva_array *array, rng *r, uint32_t *model)
{
    uint32_t items[CHUNK];
    int64_t start = rng_between(r, 0, N / CHUNK - 1) * CHUNK, stop = start + CHUNK;
    rng_fill(r, items, sizeof items);
    assert_int_equal(caterva_write(array, &start, &stop, items, sizeof items, NULL),
                     CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    memcpy(model + start, items, sizeof items);
}

static void read_all(caterva_array *array, uint32_t *items)
{
    const int64_t start[1] = {0}, stop[1] = {N};
    assert_int_equal(caterva_read(array, start, stop, items, N * sizeof *items, NULL),
                     CATERVA_OK);
}

static int64_t grown(const char *path, caterva_durability durability, bool with_reader)
{
    static uint32_t model[N], first[N], got[N];
    rng r = rng_from_seed(seed);
    caterva_array *array = make(path, durability, &r), *reader = NULL;
    struct stat info;
    read_all(array, model);
    memcpy(first, model, sizeof first);
    if (with_reader) assert_int_equal(caterva_open(path, NULL, &reader, NULL), CATERVA_OK);
    for (int i = 0; i < COMMITS; i++) rewrite_one_chunk(array, &r, model);
    read_all(array, got);
    assert_memory_equal(got, model, sizeof got);
    if (reader) {
        read_all(reader, got);
        assert_memory_equal(got, first, sizeof got);
        caterva_discard(reader);
    }
    caterva_discard(array);
    assert_int_equal(caterva_open(path, NULL, &reader, NULL), CATERVA_OK);
    read_all(reader, got);
    assert_memory_equal(got, model, sizeof got);
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    assert_int_equal(caterva_verify(reader, NULL, &result, NULL), CATERVA_OK);
    assert_int_equal(result.damages, 0);
    caterva_discard(reader);
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

static void many_commits_grow_a_file_little(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    scratch_path(path, "grows.b2nd");
    const int64_t data = N * 4, chunk = CHUNK * 4;
    assert_in_range(grown(path, CATERVA_DURABILITY_NONE, false), data, data + 30 * chunk);
    assert_in_range(grown(path, CATERVA_DURABILITY_ORDERED, false), data, data + 30 * chunk);
    /* a reader of the first state: nothing may be reused */
    assert_in_range(grown(path, CATERVA_DURABILITY_NONE, true), data + COMMITS * chunk,
                    data + (COMMITS + 30) * chunk);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extents_are_a_set_of_bytes),
        cmocka_unit_test(what_died_is_free_one_commit_later),
        cmocka_unit_test(a_gap_in_the_books_is_not_clear),
        cmocka_unit_test(a_rollback_gives_back_what_was_taken),
        cmocka_unit_test(a_hole_goes_to_a_chunk_of_its_size),
        cmocka_unit_test(many_commits_grow_a_file_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
