/* The one write of a commit that cannot be undone, torn at every 16 bytes, with either part
 * new. The copy found by searching backwards from the end of the file is the committed
 * header. With it restored, the committed state opens with this reader and with C-Blosc2's.
 *
 * usage: test_torn_header [SEED] */
#include "crash.h"

#include "format/frame_header.h"
#include "newest_copy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { COMMITS = 6, PIECE = 16 };

static uint64_t seed;
static int n_torn;

/* Returns the header size of a file of `size` bytes. */
static uint32_t header_size_of(const uint8_t *bytes, size_t size)
{
    uint32_t header_size;
    assert_int_equal(cv_frame_header_peek(bytes, size, &header_size, NULL), CV_OK);
    return header_size;
}

static void check_restored(const history *h, uint8_t *bytes, size_t size, int state,
                           const uint8_t *committed, uint32_t header_size, size_t cut)
{
    char what[64];
    cv_header_copy copy = {.commit = 0};
    snprintf(what, sizeof what, "commit %d torn at %zu", state, cut);
    CHECK(newest_copy(bytes, size, 0, &copy), "%s: no copy", what);
    CHECK(copy.header_size == header_size, "%s: %u bytes", what, copy.header_size);
    CHECK(memcmp(copy.header, committed, header_size) == 0, "%s: another header", what);
    memcpy(bytes, copy.header, header_size);
    if (cut % (5 * PIECE) == 0) check_image(h, bytes, size, state, state, what);
    n_torn++;
}

/* Every mix of the header before and after a commit, in a file with everything that the
 * commit wrote before its header. */
static void tear(const history *h, const uint8_t *before, const uint8_t *after, size_t size)
{
    int state = h->n_states - 1;
    uint32_t n = header_size_of(after, size);
    uint8_t *torn = check_alloc(size);
    for (size_t cut = 0; cut <= n; cut += PIECE) {
        for (int first_is_new = 0; first_is_new < 2; first_is_new++) {
            memcpy(torn, after, size);
            memcpy(torn, first_is_new ? after : before, cut);
            memcpy(torn + cut, (first_is_new ? before : after) + cut, n - cut);
            check_restored(h, torn, size, state, after, n, cut);
        }
    }
    memset(torn, 0xa5, n); /* nothing of it remains */
    check_restored(h, torn, size, state, after, n, 0);
    free(torn);
}

static void change(rng *r, caterva_array *array, history *h, int i)
{
    caterva_error err;
    box b = i % 2 ? random_box(r, &h->geometry) : chunk_box(r, &h->geometry);
    CHECK_OK(write_random(r, array, h, &b, &err), err);
    if (i % 3 == 2) CHECK_OK(caterva_attr_set(array, "step", &i, sizeof i, &err), err);
    history_add(h);
    CHECK_OK(caterva_commit(array, &err), err);
}

static void a_torn_header_is_restored(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        rng r = rng_from_seed(seed + (uint64_t)round);
        geometry g = crash_geometry();
        pipeline p = random_pipeline(&r, g.item_size);
        caterva_array *array = made_array("mem:", &g, &p, CATERVA_LAYOUT_CONTIGUOUS);
        history h = history_new(&g);
        change(&r, array, &h, 0);
        size_t size;
        uint8_t *before = made_bytes(array, &size);
        if (round % 2) { /* reopened: commit numbers continue from the clock */
            caterva_discard(array);
            array = made_faulty(made_memory(before, size), CATERVA_DURABILITY_FULL);
        }
        for (int i = 1; i <= COMMITS; i++) {
            change(&r, array, &h, i);
            uint8_t *after = made_bytes(array, &size);
            tear(&h, before, after, size);
            free(before);
            before = after;
        }
        free(before);
        caterva_discard(array);
        history_free(&h);
    }
}

/* A writer opens what a crash left. The header copy of the interrupted commit still exists,
 * and must not be taken for the newest after the next commit. */
static void a_copy_of_no_commit_is_outdone(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    geometry g = crash_geometry();
    caterva_array *array = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    history h = history_new(&g);
    change(&r, array, &h, 0);
    size_t old_size, size;
    uint8_t *old = made_bytes(array, &old_size);
    change(&r, array, &h, 1);
    uint8_t *bytes = made_bytes(array, &size);
    memcpy(bytes, old, header_size_of(old, old_size)); /* removes the second commit */
    caterva_discard(array);

    history again = history_new(&g);
    oracle_copy(&again.now, &h.states[0]);
    array = made_faulty(made_memory(bytes, size), CATERVA_DURABILITY_FULL);
    change(&r, array, &again, 2); /* never an empty box, which would be no commit */
    free(bytes);
    bytes = made_bytes(array, &size);
    tear(&again, old, bytes, size);
    free(bytes);
    free(old);
    caterva_discard(array);
    history_free(&h);
    history_free(&again);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    blosc2_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_torn_header_is_restored),
        cmocka_unit_test(a_copy_of_no_commit_is_outdone),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%d torn headers\n", n_torn);
    return failed;
}
