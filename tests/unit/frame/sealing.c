/* Sealing what another writer made, as a whole and incrementally with each commit: then any
 * change of its bytes is detected, and earlier damage is distinguished. */
#include "array/array.h"
#include "base/arith.h"
#include "base/crc.h"

#include "frame/lookup.h"
#include "made.h"
#include "scratch.h"
#include "support/info.h"
#include "unseal.h"

#include <caterva_upkeep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

/* cmocka has a print_error of its own. */
#define print_error blosc2_print_error
#include <b2nd.h>
#include <blosc2.h>
#undef print_error

#include <cmocka.h>

enum { N = 400, CHUNK = 100, BLOCK = 25, N_CHUNKS = N / CHUNK };

/* Items 0, 1, ..., N - 1, written by C-Blosc2. */
static void foreign(const char *path, bool contiguous)
{
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    int64_t shape = N;
    int32_t chunk = CHUNK, block = BLOCK, items[N];
    b2nd_array_t *array;
    for (int i = 0; i < N; i++) items[i] = i;
    cparams.typesize = sizeof items[0];
    cparams.nthreads = dparams.nthreads = 1;
    blosc2_storage storage = {.contiguous = contiguous,
                              .urlpath = (char *)path,
                              .cparams = &cparams,
                              .dparams = &dparams};
    scratch_remove(path);
    b2nd_context_t *ctx =
        b2nd_create_ctx(&storage, 1, &shape, &chunk, &block, "<i4", 0, NULL, 0);
    assert_true(b2nd_from_cbuffer(ctx, &array, items, sizeof items) >= 0);
    b2nd_free(array);
    b2nd_free_ctx(ctx);
}

static const caterva_upkeep_options undurable = {.struct_size = sizeof undurable,
                                                 .durability = CATERVA_DURABILITY_NONE};

static caterva_array *open_array(const char *path, caterva_mode mode)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = mode;
    CHECK_OK(caterva_open(path, &options, &array, &err), err);
    return array;
}

static void check_sealed(const char *path, int sealed, int64_t unverified, int64_t damaged)
{
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_array *array = open_array(path, CATERVA_MODE_READ);
    assert_int_equal(info_of(array)->sealed, sealed);
    CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
    assert_int_equal(result.unverified_chunks, unverified);
    assert_int_equal(result.damaged_chunks, damaged);
    for (int64_t i = 0; i < N && damaged == 0; i += 33)
        assert_int_equal(made_item(array, i), i);
    caterva_discard(array);
}

static int64_t chunk_position(const char *path, int64_t chunk)
{
    caterva_error err;
    caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
    caterva_array *array = open_array(path, CATERVA_MODE_READ);
    CHECK_OK(caterva_chunk_describe(array, chunk, &info, &err), err);
    caterva_discard(array);
    return info.position;
}

static void flip(const char *path, int64_t at)
{
    size_t size;
    uint8_t *bytes = scratch_load(path, &size);
    bytes[at < 0 ? (int64_t)size + at : at] ^= 4;
    scratch_save(path, bytes, size);
    free(bytes);
}

static void a_foreign_file_is_sealed_where_it_lies(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    foreign(scratch_path(path, "foreign"), true);
    check_sealed(path, 0, N_CHUNKS, 0);
    int64_t before = chunk_position(path, 2);
    assert_int_equal(caterva_seal(path, &undurable, NULL), CATERVA_OK);
    check_sealed(path, 1, 0, 0);
    assert_int_equal(chunk_position(path, 2), before);
    assert_int_equal(caterva_seal(path, &undurable, NULL), CATERVA_OK); /* again */
    check_sealed(path, 1, 0, 0);
    flip(path, before + 60);
    check_sealed(path, 1, 0, 1);
}

static void a_foreign_directory_is_sealed_at_once_or_not(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    foreign(scratch_path(path, "foreign-dir"), false);
    caterva_array *array = open_array(path, CATERVA_MODE_WRITE);
    assert_int_equal(made_write(array, 0, CHUNK, 0, 1, NULL), CATERVA_OK);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    check_sealed(path, 1, N_CHUNKS - 1, 0); /* a commit leaves their files alone */
    assert_int_equal(caterva_seal(path, &undurable, NULL), CATERVA_OK);
    check_sealed(path, 1, 0, 0);
}

/* This library's checksums after chunks whose seal another writer dropped. */
static void tables_that_stand_there_are_used(void **state)
{
    (void)state;
    size_t size;
    char path[SCRATCH_PATH];
    uint8_t *bytes = made_frame(N, CHUNK, BLOCK, &made_lz4, &size);
    unseal(bytes, size);
    scratch_save(scratch_path(path, "unsealed"), bytes, size);
    free(bytes);
    check_sealed(path, 0, N_CHUNKS, 0);
    assert_int_equal(caterva_seal(path, &undurable, NULL), CATERVA_OK);
    check_sealed(path, 1, 0, 0);
}

static void damage_from_before_is_not_vouched_for(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    foreign(scratch_path(path, "damaged"), true);
    flip(path, chunk_position(path, 1) + 5); /* its decoded size */
    assert_int_equal(caterva_seal(path, &undurable, NULL), CATERVA_OK);
    check_sealed(path, 1, 1, 1);
}

/* The list of tables at other positions shrinks with the array. */
static void tables_of_chunks_that_went_are_forgotten(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    int64_t shorter = CHUNK;
    foreign(scratch_path(path, "shrunk"), true);
    assert_int_equal(caterva_seal(path, &undurable, NULL), CATERVA_OK);
    caterva_array *array = open_array(path, CATERVA_MODE_WRITE);
    assert_int_equal(caterva_resize(array, &shorter, NULL), CATERVA_OK);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    array = open_array(path, CATERVA_MODE_READ);
    const cv_index *index;
    assert_int_equal(cv_snapshot_index(array->snapshot, array->frame->store, &index, NULL),
                     CV_OK);
    assert_int_equal(index->strays->n, 1);
    assert_int_equal(made_item(array, 99), 99);
    caterva_discard(array);
}

/* ---- Damage to the seal itself -------------------------------------------- */

typedef struct sealed_file {
    uint8_t *bytes;
    size_t size;
    uint8_t *tail; /* the footer, followed by the trailer */
    cv_seal_footer footer;
    uint8_t *head;
    uint8_t *index;
} sealed_file;

static sealed_file load_sealed(const char *path)
{
    sealed_file f = {.size = 0};
    caterva_array *array = open_array(path, CATERVA_MODE_READ);
    const cv_snapshot *s = array->snapshot;
    uint64_t footer = s->header.frame_size - s->trailer.size - CV_SEAL_FOOTER;
    uint64_t index = s->index_pos;
    caterva_discard(array);
    f.bytes = scratch_load(path, &f.size);
    f.tail = f.bytes + footer;
    f.index = f.bytes + index;
    assert_true(cv_seal_footer_read(f.tail, &f.footer));
    f.head = f.tail + CV_SEAL_FOOTER - f.footer.size;
    return f;
}

/* Damage with a valid checksum: the root is recomputed. */
static void save_with_new_root(const char *path, sealed_file *f)
{
    uint32_t header_size;
    size_t tail_size = f->size - (size_t)(f->tail - f->bytes);
    assert_int_equal(cv_frame_header_peek(f->bytes, f->size, &header_size, NULL), CV_OK);
    f->footer.head_crc = cv_crc32c(0, f->head, f->footer.head_size);
    cv_seal_footer_write(&f->footer, f->tail);
    cv_seal_root_write(f->tail, tail_size, f->bytes, header_size);
    scratch_save(path, f->bytes, f->size);
    free(f->bytes);
}

static void check_unreadable(const char *path, const char *words)
{
    caterva_error err = {0};
    int32_t value;
    int64_t start = 5, stop = 6;
    caterva_array *array = open_array(path, CATERVA_MODE_READ);
    assert_int_equal(caterva_read(array, &start, &stop, &value, sizeof value, &err),
                     CATERVA_ECORRUPT);
    if (!strstr(err.message, words)) fail_msg("\"%s\", not \"%s\"", err.message, words);
    caterva_discard(array);

    caterva_open_options options = CATERVA_OPEN_INIT;
    options.unchecked = 1; /* the items themselves are undamaged */
    CHECK_OK(caterva_open(path, &options, &array, &err), err);
    assert_int_equal(made_item(array, 5), 5);
    caterva_discard(array);
}

static void a_seal_that_does_not_fit_is_damage(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    foreign(scratch_path(path, "misfit"), true);
    assert_int_equal(caterva_seal(path, &undurable, NULL), CATERVA_OK);

    sealed_file f = load_sealed(path);
    memset(f.head + f.footer.head_size - 4, 0, 4); /* one page, declared as zeros */
    save_with_new_root(path, &f);
    check_unreadable(path, "the seal is damaged");
}

static void strays_have_a_checksum(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    foreign(scratch_path(path, "strays"), true);
    assert_int_equal(caterva_seal(path, &undurable, NULL), CATERVA_OK);
    sealed_file f = load_sealed(path);
    f.tail[-1] ^= 1;
    scratch_save(path, f.bytes, f.size);
    free(f.bytes);
    check_unreadable(path, "the seal is damaged");
}

/* An index that claims to be shorter than its space. */
static void an_index_of_another_size_is_damage(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    size_t size;
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    uint8_t *bytes = made_frame(4000, 10, 5, &made_lz4, &size); /* enough to compress */
    scratch_save(scratch_path(path, "index"), bytes, size);
    free(bytes);
    sealed_file f = load_sealed(path);
    cv_store_le32(f.index + 12, cv_load_le32(f.index + 12) - 1);
    scratch_save(path, f.bytes, f.size);
    free(f.bytes);
    caterva_array *array = open_array(path, CATERVA_MODE_READ);
    CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
    assert_true(result.damages > 0);
    caterva_discard(array);
}

/* All index entries are equal: every chunk has the checksums of that one chunk. */
static void one_chunk_may_stand_for_all(void **state)
{
    (void)state;
    enum { MANY = 20 };
    char path[SCRATCH_PATH];
    size_t size;
    uint8_t *bytes = made_frame(MANY * CHUNK, CHUNK, BLOCK, &made_lz4, &size);
    scratch_save(scratch_path(path, "same"), bytes, size);
    free(bytes);
    sealed_file f = load_sealed(path);
    memset(f.index, 0, 40);
    memcpy(f.index, "\5\1\5\10", 4);
    cv_store_le32(f.index + 4, 8 * MANY);
    cv_store_le32(f.index + 8, 8 * MANY);
    cv_store_le32(f.index + 12, 40);
    f.index[31] = 0x30;
    unseal(f.bytes, f.size);
    scratch_save(path, f.bytes, f.size);
    free(f.bytes);

    for (int round = 0; round < 2; round++) {
        caterva_error err;
        caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
        caterva_array *array = open_array(path, CATERVA_MODE_READ);
        for (int i = 0; i < MANY; i += 3)
            assert_int_equal(made_item(array, i * CHUNK + 7), 7);
        CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
        assert_int_equal(result.unverified_chunks, round == 0 ? MANY : 0);
        caterva_discard(array);
        assert_int_equal(caterva_seal(path, &undurable, NULL), CATERVA_OK);
    }
}

int main(void)
{
    blosc2_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_foreign_file_is_sealed_where_it_lies),
        cmocka_unit_test(a_foreign_directory_is_sealed_at_once_or_not),
        cmocka_unit_test(tables_that_stand_there_are_used),
        cmocka_unit_test(damage_from_before_is_not_vouched_for),
        cmocka_unit_test(tables_of_chunks_that_went_are_forgotten),
        cmocka_unit_test(a_seal_that_does_not_fit_is_damage),
        cmocka_unit_test(strays_have_a_checksum),
        cmocka_unit_test(an_index_of_another_size_is_damage),
        cmocka_unit_test(one_chunk_may_stand_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
