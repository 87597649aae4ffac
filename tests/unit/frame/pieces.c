/* Pieces: their result, for all sizes and destinations; parts written in any order; a failing
 * read. */
#include "engine/write/flush.h"

#include "check.h"
#include "random.h"
#include "scratch.h"
#include "support/fault.h"
#include "store/file.h"
#include "store/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STORED = 3 << 20, AT_HAND = 1 << 20 };

static uint64_t seed;

/* A store with random bytes, and random bytes in memory. */
typedef struct scene {
    rng r;
    cv_store *store;
    uint8_t *stored, *at_hand;
    cv_buffer list, stage, expected;
} scene;

static void fill(scene *s)
{
    s->stored = check_alloc(STORED);
    s->at_hand = check_alloc(AT_HAND);
    rng_fill(&s->r, s->stored, STORED);
    rng_fill(&s->r, s->at_hand, AT_HAND);
    assert_int_equal(cv_store_write(s->store, CV_FRAME_OBJECT, 0, s->stored, STORED, NULL),
                     CV_OK);
}

static void begin(scene *s)
{
    cv_store *memory;
    *s = (scene){.r = rng_from_seed(seed)};
    assert_int_equal(cv_store_memory_create(&memory, NULL), CV_OK);
    assert_int_equal(cv_store_fault_create(memory, &s->store, NULL), CV_OK);
    fill(s);
}

/* A store that copies by itself. */
static void begin_in_file(scene *s)
{
    char path[SCRATCH_PATH];
    *s = (scene){.r = rng_from_seed(seed)};
    scratch_path(path, "pieces");
    assert_int_equal(cv_store_file_create(path, true, &s->store, NULL), CV_OK);
    assert_non_null(s->store->ops->copy);
    fill(s);
}

static void end(scene *s)
{
    cv_store_close(s->store);
    free(s->stored);
    free(s->at_hand);
    cv_buffer_free(&s->list);
    cv_buffer_free(&s->stage);
    cv_buffer_free(&s->expected);
}

static void add_piece(scene *s, size_t size)
{
    bool stored = rng_one_in(&s->r, 2);
    int64_t pos = rng_between(&s->r, 0, (stored ? STORED : AT_HAND) - (int64_t)size);
    cv_piece piece = {.object = CV_FRAME_OBJECT, .pos = (uint64_t)pos, .size = size};
    if (!stored) piece = (cv_piece){.bytes = s->at_hand + pos, .size = size};
    assert_int_equal(cv_pieces_add(&s->list, piece, NULL), CV_OK);
    const uint8_t *from = (stored ? s->stored : s->at_hand) + pos;
    assert_int_equal(cv_buffer_append(&s->expected, from, size, NULL), CV_OK);
}

static cv_pieces_job job_at(scene *s, uint64_t pos)
{
    return (cv_pieces_job){.store = s->store,
                           .list = &s->list,
                           .size = s->expected.size,
                           .object = CV_FRAME_OBJECT,
                           .pos = pos};
}

static void check_pieces(void (*begin_scene)(scene *))
{
    scene s;
    begin_scene(&s);
    uint8_t *got = check_alloc(2 * STORED);
    for (int round = 0; round < 60; round++) {
        s.list.size = s.expected.size = 0;
        int n = rng_int(&s.r, 1, 12);
        int64_t most = rng_one_in(&s.r, 2) ? 5000 : 400000;
        for (int i = 0; i < n; i++) add_piece(&s, (size_t)rng_between(&s.r, 0, most));
        cv_pieces_job job = job_at(&s, STORED + (uint64_t)rng_between(&s.r, 0, 9000));
        if (job.size == 0) continue;
        for (int64_t part = cv_pieces_n_parts(&job) - 1; part >= 0; part--)
            assert_int_equal(cv_pieces_write_part(&job, part, &s.stage, NULL), CV_OK);
        assert_int_equal(
            cv_store_read(s.store, CV_FRAME_OBJECT, job.pos, got, (size_t)job.size, NULL),
            CV_OK);
        assert_memory_equal(got, s.expected.data, s.expected.size);
    }
    free(got);
    end(&s);
}

static void pieces_come_one_behind_the_other(void **state)
{
    (void)state;
    check_pieces(begin);
    check_pieces(begin_in_file);
}

static void a_file_copies_no_bytes_it_has_not(void **state)
{
    (void)state;
    scene s;
    cv_error error = {0};
    begin_in_file(&s);
    const cv_store_ops *ops = s.store->ops;
    assert_int_equal(ops->copy(s.store, STORED - 10, STORED, 11, &error), CATERVA_ECORRUPT);
    assert_int_equal(error.position, STORED);
    assert_int_equal(ops->copy(s.store, UINT64_MAX, 0, 2, &error), CATERVA_ECORRUPT);
    assert_int_equal(ops->copy(s.store, STORED - 10, STORED, 10, &error), CV_OK);
    end(&s);
}

/* Parts cover the job once and write no byte more. */
static void parts_are_no_more_than_the_whole(void **state)
{
    (void)state;
    scene s;
    begin(&s);
    add_piece(&s, 700000);
    for (uint64_t pos = STORED; pos < STORED + 4100; pos += 4095) {
        cv_pieces_job job = job_at(&s, pos);
        int64_t before = cv_store_fault_journal_size(s.store), bytes = 0;
        int64_t n = cv_pieces_n_parts(&job);
        for (int64_t part = 0; part < n; part++)
            assert_int_equal(cv_pieces_write_part(&job, part, &s.stage, NULL), CV_OK);
        for (int64_t i = before; i < before + n; i++)
            bytes += cv_store_fault_journal_bytes(s.store, i);
        assert_int_equal(bytes, 700000);
    }
    end(&s);
}

static void neighbours_are_joined(void **state)
{
    (void)state;
    scene s;
    begin(&s);
    cv_piece pieces[] = {
        {.object = CV_FRAME_OBJECT, .pos = 10, .size = 5},
        {.object = CV_FRAME_OBJECT, .pos = 15, .size = 5},
        {.bytes = s.at_hand + 20, .size = 0},
        {.object = 3, .pos = 20, .size = 5},
        {.bytes = s.at_hand, .size = 7},
        {.bytes = s.at_hand + 7, .size = 2},
        {.bytes = s.at_hand + 10, .size = 2},
    };
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        assert_int_equal(cv_pieces_add(&s.list, pieces[i], NULL), CV_OK);
    const cv_piece *got = (const cv_piece *)(const void *)s.list.data;
    assert_int_equal(s.list.size, 4 * sizeof(cv_piece));
    assert_int_equal(got[0].size, 10);
    assert_int_equal(got[1].object, 3);
    assert_int_equal(got[2].size, 9);
    end(&s);
}

static void a_failed_read_is_reported(void **state)
{
    (void)state;
    scene s;
    begin(&s);
    cv_piece piece = {.object = CV_FRAME_OBJECT, .pos = 0, .size = 100};
    assert_int_equal(cv_pieces_add(&s.list, piece, NULL), CV_OK);
    cv_pieces_job job = job_at(&s, STORED);
    job.size = 100;
    cv_store_fault_arm(s.store, CV_FAULT_READ, 0, 5);
    assert_int_equal(cv_pieces_write_part(&job, 0, &s.stage, NULL), CATERVA_EIO);
    end(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_come_one_behind_the_other),
        cmocka_unit_test(a_file_copies_no_bytes_it_has_not),
        cmocka_unit_test(parts_are_no_more_than_the_whole),
        cmocka_unit_test(neighbours_are_joined),
        cmocka_unit_test(a_failed_read_is_reported),
    };
    seed = seed_argument(argc, argv, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
