/* Transactions: what is put is found, is invisible to others, and is dropped by a rollback.
 * It never overwrites bytes of the committed state; chunk files get numbers that cannot be
 * confused with cached ones. */
#include "codec/encode.h"
#include "engine/write/flush.h"
#include "format/chunk_header.h"
#include "frame/commit.h"
#include "frame/frame.h"
#include "frame/layout.h"
#include "frame/lookup.h"
#include "frame/txn.h"
#include "support/fault.h"

#include "made.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 400, CHUNK = 100, BLOCK = 25 };

static caterva_array *new_array(const char *url, caterva_layout layout)
{
    geometry g = made_line(N, CHUNK, BLOCK, sizeof(int32_t));
    return made_array(url, &g, &made_lz4, layout);
}

static caterva_array *new_faulty(void)
{
    size_t size;
    uint8_t *bytes = made_frame(N, CHUNK, BLOCK, &made_lz4, &size);
    caterva_array *array = made_faulty(made_memory(bytes, size), CATERVA_DURABILITY_FULL);
    free(bytes);
    return array;
}

static void encode(caterva_array *array, int32_t first, cv_buffer *out)
{
    int32_t values[CHUNK];
    cv_encoder *encoder;
    for (int i = 0; i < CHUNK; i++) values[i] = first + i;
    assert_int_equal(cv_encoder_create(&array->workers.spec, &encoder, NULL), CV_OK);
    assert_int_equal(cv_encode_chunk(encoder, values, out, NULL), CV_OK);
    cv_encoder_free(encoder);
}

static void what_is_put_is_found_until_rolled_back(void **state)
{
    (void)state;
    caterva_array *array = new_faulty();
    cv_txn *txn = array->pending->txn;
    cv_chunk_ref before, ref;
    assert_false(cv_txn_pending(txn));
    assert_int_equal(cv_txn_find(txn, 1, &before, NULL), CV_OK);
    assert_int_equal(before.kind, CV_REF_STORED);

    cv_buffer encoded = {0};
    encode(array, 1000, &encoded);
    assert_int_equal(cv_txn_put(txn, 1, &encoded, NULL), CV_OK);
    assert_int_equal(cv_txn_put_special(txn, 2, CV_REF_UNINIT, NULL), CV_OK);
    assert_true(cv_txn_pending(txn));
    assert_int_equal(cv_txn_find(txn, 1, &ref, NULL), CV_OK);
    assert_int_equal(ref.limit, encoded.size + cv_block_table_size(CHUNK / BLOCK));
    assert_int_not_equal(ref.name, 0);
    assert_true(ref.pos >= cv_txn_snapshot(txn)->header.frame_size);
    assert_int_equal(made_item(array, CHUNK), 1000);
    assert_int_equal(cv_txn_find(txn, 2, &ref, NULL), CV_OK);
    assert_int_equal(ref.kind, CV_REF_UNINIT);
    assert_int_equal(made_item(array, 2 * CHUNK), 0);

    cv_txn_rollback(txn);
    assert_false(cv_txn_pending(txn));
    assert_int_equal(cv_txn_find(txn, 1, &ref, NULL), CV_OK);
    assert_int_equal(ref.pos, before.pos);
    assert_int_equal(made_item(array, CHUNK), CHUNK);
    assert_int_equal(made_item(array, 2 * CHUNK), 2 * CHUNK);
    cv_buffer_free(&encoded);
    caterva_discard(array);
}

static void the_snapshot_does_not_see_what_is_put(void **state)
{
    (void)state;
    caterva_array *array = new_faulty();
    cv_snapshot *snapshot = cv_frame_snapshot(array->frame);
    const cv_index *index;
    assert_int_equal(cv_snapshot_index(snapshot, array->frame->store, &index, NULL), CV_OK);
    int64_t before = cv_index_get(index, 0);
    assert_int_equal(made_write(array, 0, CHUNK, 7, 1, NULL), CV_OK);
    assert_int_equal(cv_index_get(index, 0), before);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    assert_int_equal(cv_index_get(index, 0), before); /* immutable, and still held */

    cv_snapshot *next = cv_frame_snapshot(array->frame);
    assert_ptr_not_equal(next, snapshot);
    assert_int_equal(cv_snapshot_index(next, array->frame->store, &index, NULL), CV_OK);
    assert_int_not_equal(cv_index_get(index, 0), before);
    cv_snapshot_release(next);
    cv_snapshot_release(snapshot);
    caterva_discard(array);
}

/* ---- Where bytes go ----------------------------------------------------------- */

typedef struct range {
    uint64_t pos, end;
} range;

/* Byte ranges of the committed state: chunks, index and trailer. */
static int live_ranges(caterva_array *array, range *out)
{
    cv_snapshot *s = cv_frame_snapshot(array->frame);
    const cv_index *index;
    int n = 0;
    assert_int_equal(cv_snapshot_index(s, array->frame->store, &index, NULL), CV_OK);
    for (int64_t i = 0; i < s->grid.n_chunks; i++) {
        cv_chunk_ref ref;
        cv_layout *layout;
        int64_t offset = cv_index_get(index, i);
        assert_int_equal(cv_chunk_ref_make(s, i, offset, &ref, NULL), CV_OK);
        if (ref.kind != CV_REF_STORED) continue;
        assert_int_equal(cv_layout_get(array->frame->layouts, s, &ref, &layout, NULL), CV_OK);
        out[n++] = (range){ref.pos, ref.pos + (uint64_t)layout->header.cbytes};
        cv_layout_release(layout);
    }
    out[n++] = (range){s->index_pos, s->header.frame_size};
    cv_snapshot_release(s);
    return n;
}

/* The writes since entry `from` avoid every live range; only the commit's header write
 * changes the header. */
static void check_writes(caterva_array *array, const range *live, int n_live, size_t from)
{
    const cv_fault_journal *journal = cv_store_fault_journal(array->frame->store);
    uint32_t header_size = array->snapshot->header.header_size;
    for (size_t i = from; i < journal->n_entries; i++) {
        const cv_fault_entry *e = &journal->entries[i];
        if (e->kind != CV_FAULT_ENTRY_WRITE) continue;
        if (e->pos < header_size) {
            assert_int_equal(e->pos, 16);
            assert_int_equal(e->size, header_size - 16);
            continue;
        }
        for (int k = 0; k < n_live; k++)
            assert_true(e->pos >= live[k].end || e->pos + e->size <= live[k].pos);
    }
}

static void random_change(rng *r, caterva_array *array)
{
    int64_t start = rng_between(r, 0, N - 1);
    int64_t stop = rng_between(r, start + 1, N);
    int32_t step = rng_one_in(r, 4) ? 0 : rng_int(r, 1, 1 << 20);
    assert_int_equal(made_write(array, start, stop, rng_int(r, 0, 3), step, NULL), CV_OK);
    if (rng_one_in(r, 3)) assert_int_equal(cv_pending_flush(array->pending, NULL), CV_OK);
    if (rng_one_in(r, 5)) assert_int_equal(caterva_rollback(array, NULL), CV_OK);
}

static uint64_t seed;

static void committed_bytes_are_never_written(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    caterva_array *array = new_faulty();
    for (int round = 0; round < 60; round++) {
        range live[N / CHUNK + 1];
        int n_live = live_ranges(array, live);
        size_t from = cv_store_fault_journal(array->frame->store)->n_entries;
        for (int i = rng_int(&r, 1, 6); i > 0; i--) random_change(&r, array);
        assert_int_equal(caterva_commit(array, NULL), CV_OK);
        check_writes(array, live, n_live, from);
    }
    caterva_discard(array);
}

static void a_commit_of_nothing_writes_nothing(void **state)
{
    (void)state;
    caterva_array *array = new_faulty();
    int64_t before = cv_store_fault_count(array->frame->store);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    assert_int_equal(cv_txn_commit(array->pending->txn, NULL), CV_OK);
    assert_int_equal(made_write(array, 0, 10, 5, 1, NULL), CV_OK);
    assert_int_equal(caterva_rollback(array, NULL), CV_OK);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    assert_int_equal(cv_store_fault_count(array->frame->store), before);
    caterva_discard(array);
}

/* What a failed commit wrote may be what the disk contains: until the array is reopened, it
 * must not be overwritten. */
static void a_poisoned_frame_takes_nothing_more(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 4; n++) { /* first sync, header write, second sync */
        caterva_array *array = new_faulty();
        cv_store *store = array->frame->store;
        cv_buffer encoded = {0};
        encode(array, 1000, &encoded);
        assert_int_equal(cv_txn_put(array->pending->txn, 0, &encoded, NULL), CV_OK);
        cv_store_fault_arm(store, CV_FAULT_ONCE, n, EIO);
        assert_int_equal(caterva_commit(array, NULL), CATERVA_EIO);
        int64_t before = cv_store_fault_count(store);
        assert_int_equal(caterva_commit(array, NULL), CATERVA_EIO);
        assert_int_equal(cv_txn_put(array->pending->txn, 1, &encoded, NULL), CATERVA_EIO);
        assert_int_equal(caterva_rollback(array, NULL), CV_OK);
        assert_int_equal(cv_txn_put(array->pending->txn, 1, &encoded, NULL), CATERVA_EIO);
        assert_int_equal(cv_store_fault_count(store), before);
        assert_int_equal(made_item(array, 3), 3);
        cv_buffer_free(&encoded);
        caterva_discard(array);
    }
}

/* ---- Directories --------------------------------------------------------------- */

static bool file_exists(const char *directory, int64_t number)
{
    char path[SCRATCH_PATH + 32];
    snprintf(path, sizeof path, "%s/%08llX.chunk", directory, (unsigned long long)number);
    return access(path, F_OK) == 0;
}

static void chunk_files_are_numbered_on(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    caterva_array *array = new_array(scratch_path(path, "numbered"), CATERVA_LAYOUT_SPARSE);
    assert_int_equal(made_write(array, 0, N, 0, 1, NULL), CV_OK);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    for (int64_t i = 0; i < N / CHUNK; i++) assert_true(file_exists(path, i));
    assert_int_equal(array->pending->txn->files.next, N / CHUNK);

    assert_int_equal(made_write(array, 0, CHUNK, 5, 1, NULL), CV_OK);
    assert_int_equal(cv_pending_flush(array->pending, NULL), CV_OK);
    assert_true(file_exists(path, 4));
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    assert_int_equal(made_item(array, 0), 5);
    cv_chunk_ref ref;
    assert_int_equal(cv_txn_find(array->pending->txn, 0, &ref, NULL), CV_OK);
    assert_int_equal(ref.object, 4);
    assert_false(file_exists(path, ref.object == 0 ? 1 : 0));
    caterva_discard(array);
}

static void dropped_chunk_files_disappear(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    caterva_array *array = new_array(scratch_path(path, "dropped"), CATERVA_LAYOUT_SPARSE);
    assert_int_equal(made_write(array, 0, N, 0, 1, NULL), CV_OK);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);

    assert_int_equal(made_write(array, 0, CHUNK, 5, 1, NULL), CV_OK);
    assert_int_equal(cv_pending_flush(array->pending, NULL), CV_OK);
    assert_true(file_exists(path, 4));
    assert_int_equal(caterva_rollback(array, NULL), CV_OK);
    assert_false(file_exists(path, 4));

    assert_int_equal(made_write(array, 0, CHUNK, 6, 1, NULL), CV_OK);
    caterva_discard(array);
    for (int64_t i = 4; i < 8; i++) assert_false(file_exists(path, i));
    for (int64_t i = 0; i < 4; i++) assert_true(file_exists(path, i));
}

/* A chunk put twice before the commit leaves no unreferenced file. */
static void superseded_chunk_files_disappear(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    caterva_array *array = new_array(scratch_path(path, "twice"), CATERVA_LAYOUT_SPARSE);
    assert_int_equal(made_write(array, 0, CHUNK, 0, 1, NULL), CV_OK);
    assert_int_equal(made_write(array, 0, CHUNK, 9, 1, NULL), CV_OK);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    cv_chunk_ref ref;
    assert_int_equal(cv_txn_find(array->pending->txn, 0, &ref, NULL), CV_OK);
    for (int64_t i = 0; i < 4; i++) assert_int_equal(file_exists(path, i), i == ref.object);
    caterva_discard(array);
}

/* A reused number would find what is cached of its first file. */
static void a_number_is_never_given_twice(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    int32_t zeros[CHUNK] = {0};
    int64_t start = 0, stop = CHUNK;
    caterva_array *array = new_array(scratch_path(path, "reused"), CATERVA_LAYOUT_SPARSE);
    assert_int_equal(made_write(array, 0, CHUNK, 1, 1, NULL), CV_OK);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    assert_int_equal(made_item(array, 99), 100); /* layout cached */

    assert_int_equal(caterva_write(array, &start, &stop, zeros, sizeof zeros, NULL), CV_OK);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    assert_int_equal(made_item(array, 99), 0);

    assert_int_equal(made_write(array, 0, CHUNK, 1 << 20, 12345, NULL), CV_OK);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    for (int i = 0; i < CHUNK; i++)
        assert_int_equal(made_item(array, i), (1 << 20) + i * 12345);
    caterva_discard(array);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_found_until_rolled_back),
        cmocka_unit_test(the_snapshot_does_not_see_what_is_put),
        cmocka_unit_test(committed_bytes_are_never_written),
        cmocka_unit_test(a_commit_of_nothing_writes_nothing),
        cmocka_unit_test(a_poisoned_frame_takes_nothing_more),
        cmocka_unit_test(chunk_files_are_numbered_on),
        cmocka_unit_test(dropped_chunk_files_disappear),
        cmocka_unit_test(superseded_chunk_files_disappear),
        cmocka_unit_test(a_number_is_never_given_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
