/* Verify: every kind of damage is reported, with its chunk and position, and nothing else is;
 * verify continues after damage and stops on request. */
#include "base/arith.h"
#include "codec/encode.h"
#include "engine/write/flush.h"
#include "format/chunk_header.h"
#include "frame/frame.h"
#include "frame/layout.h"

#include "frame/txn.h"
#include "made.h"
#include "scratch.h"
#include "store/memory.h"
#include "support/every_step.h"
#include "unseal.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 1000, CHUNK = 100, BLOCK = 25, N_CHUNKS = 10 };

static uint64_t seed;

/* The reports of one run. */
typedef struct findings {
    int n;
    int64_t chunks[64], positions[64];
    caterva_status codes[64];
    char messages[64][240];
    caterva_verify_result result;
    int progress_calls, stop_after; /* bytes */
    int64_t done;
} findings;

static void note(void *context, const caterva_damage *damage)
{
    findings *f = context;
    assert_true(f->n < 64);
    assert_non_null(damage->message);
    if (damage->chunk >= 0) assert_int_equal(damage->index[0], damage->chunk);
    f->chunks[f->n] = damage->chunk;
    f->positions[f->n] = damage->position;
    f->codes[f->n] = damage->code;
    snprintf(f->messages[f->n++], 240, "%s", damage->message);
}

static int count_progress(void *context, int64_t done, int64_t total)
{
    findings *f = context;
    f->progress_calls++;
    if (done < f->done || done > total) f->stop_after = 1;
    f->done = done;
    return f->stop_after > 0 && done >= f->stop_after;
}

static cv_status verify(caterva_array *array, int quick, findings *f, cv_error *err)
{
    caterva_verify_options o = CATERVA_VERIFY_INIT;
    o.quick = quick;
    o.on_damage = note;
    o.context = f;
    o.progress = every_step(count_progress, f);
    f->result = (caterva_verify_result)CATERVA_VERIFY_RESULT_INIT;
    return caterva_verify(array, &o, &f->result, err);
}

static findings verify_bytes(const uint8_t *bytes, size_t size, int quick)
{
    findings f = {.n = 0};
    caterva_error err;
    caterva_array *array;
    CHECK_OK(caterva_frame_open(bytes, size, 0, NULL, &array, &err), err);
    CHECK_OK(verify(array, quick, &f, &err), err);
    caterva_discard(array);
    assert_int_equal(f.result.damages, f.n);
    return f;
}

/* zlib detects any damage of its streams; positions[i]: of chunk i. */
static uint8_t *good_frame(size_t *size, uint64_t positions[N_CHUNKS],
                           int32_t sizes[N_CHUNKS])
{
    const pipeline zlib = {
        .codec = CATERVA_CODEC_ZLIB, .level = 5, .filters = {CATERVA_FILTER_SHUFFLE}};
    caterva_array *array;
    uint8_t *bytes = made_frame(N, CHUNK, BLOCK, &zlib, size);
    assert_int_equal(caterva_frame_open(bytes, *size, 0, NULL, &array, NULL), CATERVA_OK);
    for (int64_t i = 0; i < N_CHUNKS; i++) {
        caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
        assert_int_equal(caterva_chunk_describe(array, i, &info, NULL), CATERVA_OK);
        assert_int_equal(info.kind, CATERVA_CHUNK_STORED);
        assert_false(info.memcpyed);
        positions[i] = (uint64_t)info.position;
        sizes[i] = (int32_t)info.stored_bytes;
    }
    caterva_discard(array);
    return bytes;
}

static void a_good_array_has_no_damage(void **state)
{
    (void)state;
    size_t size;
    uint64_t positions[N_CHUNKS];
    int32_t sizes[N_CHUNKS];
    uint8_t *bytes = good_frame(&size, positions, sizes);
    for (int quick = 0; quick <= 1; quick++) {
        findings f = verify_bytes(bytes, size, quick);
        assert_int_equal(f.n, 0);
        assert_int_equal(f.result.checked_chunks, N_CHUNKS);
        assert_int_equal(f.result.damaged_chunks, 0);
        assert_true(f.progress_calls >= 1);
    }
    free(bytes);
}

static void check_one_damage(const uint8_t *bytes, size_t size, int quick, int64_t chunk,
                             uint64_t position)
{
    findings f = verify_bytes(bytes, size, quick);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.chunks[0], chunk);
    assert_int_equal(f.codes[0], CATERVA_ECORRUPT);
    assert_int_equal(f.positions[0], position);
    assert_int_equal(f.result.damaged_chunks, 1);
    assert_int_equal(f.result.checked_chunks, N_CHUNKS);
}

static void damaged_headers_and_starts_are_found(void **state)
{
    (void)state;
    size_t size;
    uint64_t positions[N_CHUNKS];
    int32_t sizes[N_CHUNKS];
    uint8_t *bytes = good_frame(&size, positions, sizes);
    static const int fields[] = {0, 2,  3,  5,
                                 9, 14, 35, 39}; /* 35, 39: high bytes of block starts */
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        int64_t chunk = (int64_t)i;
        uint8_t *at = bytes + positions[chunk] + fields[i], kept = *at;
        *at = fields[i] == 0 ? 0 : fields[i] == 2 ? kept & 0xfe : kept ^ 0x40;
        check_one_damage(bytes, size, 0, chunk, positions[chunk]);
        check_one_damage(bytes, size, 1, chunk, positions[chunk]);
        *at = kept;
    }
    free(bytes);
}

static void damaged_streams_are_found_unless_quick(void **state)
{
    (void)state;
    size_t size;
    uint64_t positions[N_CHUNKS];
    int32_t sizes[N_CHUNKS];
    uint8_t *bytes = good_frame(&size, positions, sizes);
    int64_t damaged[] = {1, 4, 9};
    for (int i = 0; i < 3; i++) {
        uint8_t *streams = bytes + positions[damaged[i]] + 32 + 4 * (CHUNK / BLOCK);
        memset(streams, 0x55, (size_t)(sizes[damaged[i]] - 32 - 4 * (CHUNK / BLOCK)));
    }
    findings f = verify_bytes(bytes, size, 0);
    assert_int_equal(f.n, 3);
    assert_int_equal(f.result.damaged_chunks, 3);
    assert_int_equal(f.result.checked_chunks, N_CHUNKS);
    for (int i = 0; i < 3; i++) {
        bool known = false;
        for (int k = 0; k < 3; k++) known = known || f.chunks[i] == damaged[k];
        assert_true(known);
        uint64_t streams = positions[f.chunks[i]] + 32 + 4 * (CHUNK / BLOCK);
        assert_int_equal(f.positions[i], streams);
        assert_non_null(strstr(f.messages[i], "damaged"));
    }
    f = verify_bytes(bytes, size, 1);
    assert_int_equal(f.n, 0);
    free(bytes);
}

/* ---- Overlaps -------------------------------------------------------------------------- */

/* The same frame with other offsets in its index. */
static uint8_t *with_offsets(const uint8_t *bytes, size_t size, const int64_t *offsets,
                             size_t *new_size)
{
    caterva_array *array;
    cv_buffer index = {0}, frame = {0};
    assert_int_equal(caterva_frame_open(bytes, size, 0, NULL, &array, NULL), CATERVA_OK);
    const cv_snapshot *s = array->snapshot;
    assert_int_equal(made_index(offsets, N_CHUNKS, &index), CV_OK);
    assert_int_equal(cv_buffer_append(&frame, bytes, (size_t)s->index_pos, NULL), CV_OK);
    assert_int_equal(cv_buffer_append(&frame, index.data, index.size, NULL), CV_OK);
    assert_int_equal(
        cv_buffer_append(&frame, s->trailer_bytes.data, s->trailer_bytes.size, NULL), CV_OK);
    cv_store_be64(frame.data + 16, frame.size); /* the frame's size */
    unseal(frame.data, frame.size);
    caterva_discard(array);
    cv_buffer_free(&index);
    uint8_t *copy = check_alloc(frame.size);
    memcpy(copy, frame.data, frame.size);
    *new_size = frame.size;
    cv_buffer_free(&frame);
    return copy;
}

static void chunks_that_share_bytes_are_found(void **state)
{
    (void)state;
    size_t size, other_size;
    uint64_t positions[N_CHUNKS];
    int32_t sizes[N_CHUNKS];
    uint8_t *bytes = good_frame(&size, positions, sizes);
    uint64_t header_size = cv_load_be32(bytes + 11);
    int64_t offsets[N_CHUNKS];
    for (int i = 0; i < N_CHUNKS; i++) offsets[i] = (int64_t)(positions[i] - header_size);
    offsets[7] = offsets[2];
    uint8_t *other = with_offsets(bytes, size, offsets, &other_size);
    findings f = verify_bytes(other, other_size, 0);
    assert_int_equal(f.n, 1);
    assert_true(f.chunks[0] == 2 || f.chunks[0] == 7);
    assert_non_null(strstr(f.messages[0], "shares bytes"));
    free(other);
    free(bytes);
}

/* A large memcpyed chunk that contains two small ones, which do not touch. */
static void chunks_inside_a_chunk_are_all_found(void **state)
{
    (void)state;
    enum { WIDE = 1000 };
    rng r = rng_from_seed(seed);
    geometry g = made_line(3 * WIDE, WIDE, WIDE, sizeof(int32_t));
    caterva_array *array = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    int32_t noise[WIDE];
    int64_t zero = 0, wide = WIDE;
    rng_fill(&r, noise, sizeof noise);
    /* Two whole "repeated item" chunks within the noise. */
    for (int i = 0; i < 2; i++) {
        uint8_t *chunk = (uint8_t *)(noise + 100 + 500 * i);
        memset(chunk, 0, 36);
        memcpy(chunk, (uint8_t[]){5, 1, 0x05, 4}, 4);
        cv_store_le32(chunk + 4, WIDE * 4);
        cv_store_le32(chunk + 8, WIDE * 4);
        cv_store_le32(chunk + 12, 36);
        chunk[31] = 3 << 4;
    }
    assert_int_equal(caterva_write(array, &zero, &wide, noise, sizeof noise, NULL),
                     CATERVA_OK);
    assert_int_equal(cv_pending_flush(array->pending, NULL), CV_OK);
    cv_txn *txn = array->pending->txn;
    cv_chunk_ref ref;
    assert_int_equal(cv_txn_find(txn, 0, &ref, NULL), CV_OK);
    size_t table = cv_block_table_size(cv_txn_snapshot(txn)->grid.n_blocks);
    assert_int_equal(ref.limit, 32 + WIDE * 4 + table); /* stored uncompressed */
    int64_t first = cv_index_get(&txn->index, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            cv_index_set(&txn->index, 1 + i, first + 32 + 400 + 2000 * i, 0, NULL), CV_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    findings f = {.n = 0};
    assert_int_equal(verify(array, 0, &f, NULL), CV_OK);
    assert_int_equal(f.n, 2);
    caterva_discard(array);
}

/* ---- Outside chunks ------------------------------------------------------------------- */

static void a_damaged_index_is_reported(void **state)
{
    (void)state;
    size_t size;
    uint64_t positions[N_CHUNKS];
    int32_t sizes[N_CHUNKS];
    uint8_t *bytes = good_frame(&size, positions, sizes);
    caterva_array *array;
    assert_int_equal(caterva_frame_open(bytes, size, 0, NULL, &array, NULL), CATERVA_OK);
    uint64_t index_pos = array->snapshot->index_pos;
    caterva_discard(array);
    bytes[index_pos + 4] ^= 1; /* nbytes */
    findings f = verify_bytes(bytes, size, 0);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.chunks[0], -1);
    assert_int_equal(f.positions[0], index_pos);
    assert_int_equal(f.result.checked_chunks, 0);
    assert_int_equal(f.result.damaged_chunks, 0);
    free(bytes);
}

/* A new frame's seed can contain attributes; the first is valid, the second is not. */
static caterva_array *array_with_attributes(cv_buffer *good, cv_buffer *bad)
{
    geometry g = made_line(N, CHUNK, BLOCK, sizeof(int32_t));
    caterva_array *model = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS),
                  *array;
    cv_metalayer attributes[2] = {{"good", NULL, 0}, {"bad", NULL, 0}};
    cv_store *store;
    cv_frame *frame;
    attributes[0].data = good->data;
    attributes[0].size = (uint32_t)good->size;
    attributes[1].data = bad->data;
    attributes[1].size = (uint32_t)bad->size;
    cv_frame_seed first = {.header = model->snapshot->header,
                           .attributes = attributes,
                           .n_attributes = 2,
                           .initial_offset = cv_offset_of_kind(CV_REF_ZEROS)};
    assert_int_equal(cv_store_memory_create(&store, NULL), CV_OK);
    assert_int_equal(cv_frame_create(store, &first, CATERVA_DURABILITY_NONE, &frame, NULL),
                     CV_OK);
    assert_int_equal(cv_array_new(frame, true, 1, &array, NULL), CV_OK);
    caterva_discard(model);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    return array;
}

static void damaged_attributes_are_reported(void **state)
{
    (void)state;
    static char text[1000];
    cv_buffer good = {0}, bad = {0};
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i % 7);
    assert_int_equal(cv_encode_plain(text, sizeof text, NULL, &good, NULL), CV_OK);
    assert_int_equal(cv_encode_plain(text, sizeof text, NULL, &bad, NULL), CV_OK);
    assert_true(bad.size < sizeof text);
    for (size_t cut = 0; cut <= bad.size; cut += 11) {
        cv_buffer part = {.data = bad.data, .size = cut}; /* never all of it */
        findings f = {.n = 0};
        caterva_array *array = array_with_attributes(&good, &part);
        void *value;
        size_t size;
        assert_int_equal(verify(array, 0, &f, NULL), CV_OK);
        assert_int_equal(f.n, cut < bad.size);
        assert_int_equal(f.result.damages, cut < bad.size);
        if (f.n) assert_int_equal(f.chunks[0], -1);
        if (f.n) assert_non_null(strstr(f.messages[0], "attribute"));
        assert_int_equal(caterva_attr_get(array, "good", &value, &size, NULL), CATERVA_OK);
        assert_int_equal(size, sizeof text);
        assert_memory_equal(value, text, size);
        caterva_free(value);
        caterva_discard(array);
    }
    cv_buffer_free(&good);
    cv_buffer_free(&bad);
}

static void missing_chunk_files_are_damage(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], file[SCRATCH_PATH + 32];
    geometry g = made_line(N, CHUNK, BLOCK, sizeof(int32_t));
    caterva_array *array =
        made_array(scratch_path(path, "missing"), &g, &made_lz4, CATERVA_LAYOUT_SPARSE);
    assert_int_equal(made_write(array, 0, N, 0, 1, NULL), CATERVA_OK);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    snprintf(file, sizeof file, "%s/00000003.chunk", path);
    assert_int_equal(unlink(file), 0);
    findings f = {.n = 0};
    assert_int_equal(caterva_open(path, NULL, &array, NULL), CATERVA_OK);
    assert_int_equal(verify(array, 0, &f, NULL), CV_OK);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.result.checked_chunks, N_CHUNKS);
    caterva_discard(array);
}

/* ---- Progress -------------------------------------------------------------------------- */

static void progress_may_stop_it(void **state)
{
    (void)state;
    size_t size;
    uint64_t positions[N_CHUNKS];
    int32_t sizes[N_CHUNKS];
    uint8_t *bytes = good_frame(&size, positions, sizes);
    for (int stop_after = 1; stop_after <= N_CHUNKS; stop_after++) {
        findings f = {.stop_after = stop_after * CHUNK * 4};
        caterva_open_options o = CATERVA_OPEN_INIT;
        caterva_array *array;
        cv_error err;
        o.threads = stop_after % 3 + 1;
        assert_int_equal(caterva_frame_open(bytes, size, 0, &o, &array, NULL), CATERVA_OK);
        assert_int_equal(verify(array, 0, &f, &err), CATERVA_ESTOPPED);
        assert_non_null(strstr(err.message, "stopped"));
        assert_true(f.result.checked_chunks + o.threads >= stop_after); /* others are begun */
        assert_true(f.result.checked_chunks < stop_after + 3);
        caterva_discard(array);
    }
    free(bytes);
}

static void arrays_without_chunks_are_fine(void **state)
{
    (void)state;
    geometry g = made_line(0, 10, 5, sizeof(int32_t));
    caterva_array *array = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    assert_int_equal(caterva_verify(array, NULL, &result, NULL), CATERVA_OK);
    assert_int_equal(result.checked_chunks, 0);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(caterva_verify(array, NULL, &result, NULL), CATERVA_OK);
    assert_int_equal(caterva_verify(array, NULL, NULL, NULL), CATERVA_EINVAL);
    assert_int_equal(caterva_verify(NULL, NULL, &result, NULL), CATERVA_EINVAL);
    caterva_discard(array);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_array_has_no_damage),
        cmocka_unit_test(damaged_headers_and_starts_are_found),
        cmocka_unit_test(damaged_streams_are_found_unless_quick),
        cmocka_unit_test(chunks_that_share_bytes_are_found),
        cmocka_unit_test(chunks_inside_a_chunk_are_all_found),
        cmocka_unit_test(a_damaged_index_is_reported),
        cmocka_unit_test(damaged_attributes_are_reported),
        cmocka_unit_test(missing_chunk_files_are_damage),
        cmocka_unit_test(progress_may_stop_it),
        cmocka_unit_test(arrays_without_chunks_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
