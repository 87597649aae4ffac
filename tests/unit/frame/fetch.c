/* Fetching blocks: neighbours are read together, within the budget, in stored order with tags
 * kept, and each block gets its own bytes, also if a hostile chunk makes blocks share
 * them. */
#include "frame/fetch.h"
#include "base/arith.h"

#include "made.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MAX_BLOCKS = 200, CHUNK_BYTES = 1 << 20, READS = 1000 };

static uint64_t seed;

/* A store that lends no memory and records its reads. */
typedef struct noting_store {
    cv_store base;
    uint8_t *bytes;
    struct {
        uint64_t pos;
        size_t size;
    } reads[READS];
    int n_reads, n_waves;
    bool lends;
    cv_at_once at_once; /* its answer for ranges that may be in memory */
} noting_store;

static cv_status noting_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                             size_t size, cv_error *err)
{
    noting_store *s = (noting_store *)store;
    (void)object;
    if (pos + size > CHUNK_BYTES)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos, "past the end");
    assert_true(s->n_reads < READS);
    s->reads[s->n_reads].pos = pos;
    s->reads[s->n_reads++].size = size;
    memcpy(dst, s->bytes + pos, size);
    return CV_OK;
}

static const uint8_t *noting_view(cv_store *store, cv_object object, uint64_t pos,
                                  size_t size)
{
    noting_store *s = (noting_store *)store;
    (void)object, (void)size;
    return s->lends ? s->bytes + pos : NULL;
}

static cv_at_once noting_read_at_once(cv_store *store, const cv_store_range *r)
{
    noting_store *s = (noting_store *)store;
    if (s->at_once == CV_AT_ONCE_READ) memcpy(r->dst, s->bytes + r->pos, r->size);
    return s->at_once;
}

static cv_status noting_read_many(cv_store *store, const cv_store_range *ranges, size_t n,
                                  const cv_arrivals *arrivals, cv_error *err)
{
    ((noting_store *)store)->n_waves++;
    return cv_store_read_each(store, ranges, n, arrivals, err);
}

static const cv_store_ops noting_ops = {.name = "noting",
                                        .read = noting_read,
                                        .read_many = noting_read_many,
                                        .read_at_once = noting_read_at_once,
                                        .view = noting_view};

/* A chunk at byte 100 of the store, and the list of wanted blocks. */
typedef struct scene {
    noting_store store;
    cv_frame frame;
    cv_layout layout;
    cv_block_range ranges[MAX_BLOCKS];
    cv_wanted wanted[MAX_BLOCKS];
    cv_buffer buffer;
} scene;

static scene *new_scene(void)
{
    scene *s = check_alloc(sizeof *s);
    rng r = rng_from_seed(seed);
    s->store.base.ops = &noting_ops;
    s->store.at_once = CV_AT_ONCE_UNKNOWN;
    s->store.bytes = check_alloc(CHUNK_BYTES);
    rng_fill(&r, s->store.bytes, CHUNK_BYTES);
    s->frame.store = &s->store.base;
    s->layout.pos = 100;
    s->layout.object = CV_FRAME_OBJECT;
    s->layout.blocks = s->ranges;
    s->layout.header.cbytes = CHUNK_BYTES - 100;
    return s;
}

static void free_scene(scene *s)
{
    cv_buffer_free(&s->buffer);
    free(s->store.bytes);
    free(s);
}

/* Blocks in sequence, `gap` bytes apart. */
static void lay_out(scene *s, int n, int32_t size, int32_t gap)
{
    s->layout.n_blocks = n;
    for (int i = 0; i < n; i++) {
        s->ranges[i].start = 1000 + i * (size + gap);
        s->ranges[i].end = s->ranges[i].start + size;
    }
}

static void want(scene *s, int i, int64_t block)
{
    s->wanted[i] = (cv_wanted){.block = block, .tag = 5000 + block};
}

/* Fetches all wanted blocks in as many steps as necessary; every block must have its own
 * bytes. Returns the number of steps. */
static int fetch_all(scene *s, int64_t n, size_t budget)
{
    int steps = 0;
    for (int64_t done = 0; done < n; steps++) {
        int64_t fetched = n - done;
        assert_int_equal(cv_fetch_blocks(&s->frame, &s->layout, s->wanted + done, &fetched,
                                         false, budget, &s->buffer, NULL),
                         CV_OK);
        assert_in_range(fetched, 1, n - done);
        for (int64_t i = done; i < done + fetched; i++) {
            const cv_wanted *w = &s->wanted[i];
            cv_block_range range = s->ranges[w->block];
            assert_int_equal(w->tag, 5000 + w->block);
            assert_int_equal(w->packed.block, w->block);
            assert_int_equal(w->packed.streams_size, range.end - range.start);
            assert_memory_equal(w->packed.streams, s->store.bytes + 100 + range.start,
                                (size_t)w->packed.streams_size);
            if (!w->packed.in_place) continue;
            assert_true(w->packed.streams >= s->buffer.data + CV_BLOCK_PREFIX);
            assert_true(w->packed.streams + w->packed.streams_size <=
                        s->buffer.data + s->buffer.capacity);
            if (i > done) /* stored order */
                assert_true(s->ranges[s->wanted[i - 1].block].start <= range.start);
        }
        done += fetched;
    }
    return steps;
}

static void neighbours_come_in_one_read(void **state)
{
    (void)state;
    scene *s = new_scene();
    lay_out(s, 10, 500, 0);
    for (int i = 0; i < 10; i++) want(s, i, i);
    assert_int_equal(fetch_all(s, 10, 1 << 20), 1);
    assert_int_equal(s->store.n_reads, 1);
    assert_int_equal(s->store.reads[0].pos, 1100);
    assert_int_equal(s->store.reads[0].size, 5000);
    for (int i = 0; i < 10; i++) assert_true(s->wanted[i].packed.in_place);
    free_scene(s);
}

static void distant_blocks_come_in_several(void **state)
{
    (void)state;
    scene *s = new_scene();
    lay_out(s, 3, 500, 20000);
    for (int i = 0; i < 3; i++) want(s, i, i);
    assert_int_equal(fetch_all(s, 3, 1 << 20), 1);
    assert_int_equal(s->store.n_reads, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(s->store.reads[i].size, 500);

    lay_out(s, 3, 500, 100); /* a small gap is read over */
    s->store.n_reads = 0;
    for (int i = 0; i < 3; i++) want(s, i, i);
    fetch_all(s, 3, 1 << 20);
    assert_int_equal(s->store.n_reads, 1);
    assert_int_equal(s->store.reads[0].size, 1700);
    free_scene(s);
}

/* Reads the first range to find out whether it is in memory. */
static void the_first_range_is_tried_at_once(void **state)
{
    (void)state;
    static const struct {
        cv_at_once at_once;
        int n_reads, n_waves;
        unsigned n_near;
    } cases[] = {
        {CV_AT_ONCE_READ, 2, 0, 7}, {CV_AT_ONCE_UNKNOWN, 3, 0, 7}, {CV_AT_ONCE_NO, 3, 1, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        scene *s = new_scene();
        s->store.at_once = cases[c].at_once;
        atomic_store(&s->store.base.n_near, 7);
        lay_out(s, 3, 500, 20000);
        for (int i = 0; i < 3; i++) want(s, i, i);
        assert_int_equal(fetch_all(s, 3, 1 << 20), 1);
        assert_int_equal(s->store.n_reads, cases[c].n_reads);
        assert_int_equal(s->store.n_waves, cases[c].n_waves);
        assert_int_equal(atomic_load(&s->store.base.n_near), cases[c].n_near);
        free_scene(s);
    }
}

static void many_runs_come_in_waves(void **state)
{
    (void)state;
    scene *s = new_scene();
    lay_out(s, 100, 50, 5000);
    for (int i = 0; i < 100; i++) want(s, i, i);
    assert_int_equal(fetch_all(s, 100, 1 << 20), 4); /* of 32 */
    assert_int_equal(s->store.n_reads, 100);
    free_scene(s);
}

static void the_budget_bounds_a_fetch(void **state)
{
    (void)state;
    scene *s = new_scene();
    for (size_t budget = 0; budget < 12000; budget += 371) {
        lay_out(s, 20, 1000, 0);
        for (int i = 0; i < 20; i++) want(s, i, i);
        cv_buffer_free(&s->buffer);
        s->store.n_reads = 0;
        int steps = fetch_all(s, 20, budget);
        assert_true(budget < 1000 ? steps == 20 : steps <= (int)(20000 / (budget / 2)) + 1);
        /* At least one block, and a prefix before it. */
        size_t most = (budget > 1000 ? budget : 1000) + CV_BLOCK_PREFIX;
        for (int i = 0; i < s->store.n_reads; i++)
            assert_true(s->store.reads[i].size <= most);
        assert_true(s->buffer.capacity <= 2 * most + 64);
    }
    free_scene(s);
}

static void the_list_may_be_in_any_order(void **state)
{
    (void)state;
    scene *s = new_scene();
    lay_out(s, 50, 300, 0);
    for (int i = 0; i < 50; i++) want(s, i, i * 17 % 50);
    assert_int_equal(fetch_all(s, 50, 1 << 20), 1);
    assert_int_equal(s->store.n_reads, 1);
    for (int i = 0; i < 50; i++) assert_int_equal(s->wanted[i].block, i);
    free_scene(s);
}

static void borrowed_bytes_are_not_read(void **state)
{
    (void)state;
    scene *s = new_scene();
    s->store.lends = true;
    lay_out(s, 10, 500, 0);
    for (int i = 0; i < 10; i++) want(s, i, 9 - i);
    assert_int_equal(fetch_all(s, 10, 0), 1);
    assert_int_equal(s->store.n_reads, 0);
    for (int i = 0; i < 10; i++) {
        assert_false(s->wanted[i].packed.in_place); /* the store's memory */
        assert_ptr_equal(s->wanted[i].packed.chunk, s->store.bytes + 100);
    }
    free_scene(s);
}

static void a_failed_read_is_reported(void **state)
{
    (void)state;
    scene *s = new_scene();
    int64_t fetched = 3;
    lay_out(s, 3, 500, 0);
    s->layout.pos = CHUNK_BYTES - 1500;
    for (int i = 0; i < 3; i++) want(s, i, i);
    assert_int_equal(cv_fetch_blocks(&s->frame, &s->layout, s->wanted, &fetched, false,
                                     1 << 20, &s->buffer, NULL),
                     CATERVA_ECORRUPT);
    free_scene(s);
}

/* Ranges of any length that overlap, nest and repeat. */
static void hostile_ranges_do_no_harm(void **state)
{
    (void)state;
    scene *s = new_scene();
    rng r = rng_from_seed(seed);
    for (int i = 0; i < 2000; i++) {
        int n = rng_int(&r, 1, MAX_BLOCKS);
        int32_t most = rng_one_in(&r, 2) ? 2000 : 100000;
        s->layout.n_blocks = n;
        for (int b = 0; b < n; b++) {
            s->ranges[b].start = rng_int(&r, 32, most);
            s->ranges[b].end =
                s->ranges[b].start + rng_int(&r, 1, rng_one_in(&r, 9) ? most : 60);
            want(s, b, b);
        }
        s->store.n_reads = 0;
        fetch_all(s, n, (size_t)rng_int(&r, 0, rng_one_in(&r, 2) ? 3000 : 200000));
    }
    free_scene(s);
}

static void whole_chunks_and_raw_bytes(void **state)
{
    (void)state;
    scene *s = new_scene();
    const uint8_t *bytes;
    uint8_t raw[100];
    s->layout.header.cbytes = 5000;
    assert_int_equal(cv_fetch_chunk(&s->frame, &s->layout, &s->buffer, &bytes, NULL), CV_OK);
    assert_ptr_equal(bytes, s->buffer.data);
    assert_memory_equal(bytes, s->store.bytes + 100, 5000);
    s->store.lends = true;
    assert_int_equal(cv_fetch_chunk(&s->frame, &s->layout, &s->buffer, &bytes, NULL), CV_OK);
    assert_ptr_equal(bytes, s->store.bytes + 100);
    assert_int_equal(cv_fetch_raw(&s->frame, &s->layout, 40, raw, sizeof raw, NULL), CV_OK);
    assert_memory_equal(raw, s->store.bytes + 100 + 32 + 40, sizeof raw);
    free_scene(s);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_come_in_one_read),
        cmocka_unit_test(distant_blocks_come_in_several),
        cmocka_unit_test(the_first_range_is_tried_at_once),
        cmocka_unit_test(many_runs_come_in_waves),
        cmocka_unit_test(the_budget_bounds_a_fetch),
        cmocka_unit_test(the_list_may_be_in_any_order),
        cmocka_unit_test(borrowed_bytes_are_not_read),
        cmocka_unit_test(a_failed_read_is_reported),
        cmocka_unit_test(hostile_ranges_do_no_harm),
        cmocka_unit_test(whole_chunks_and_raw_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
