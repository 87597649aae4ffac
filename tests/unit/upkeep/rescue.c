/* Repair with nothing but a header and chunks: the chunk files of a directory are used by
 * their numbers; a header in the wrong place is not used. */
#include "made.h"
#include "scratch.h"

#include <caterva_upkeep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 400, CHUNK = 100, BLOCK = 25 };

/* Damages the end of the frame, and the header copy after it. */
static void damage_the_end(const char *path)
{
    size_t size;
    uint8_t *bytes = scratch_load(path, &size);
    size_t end = (size_t)bytes[22] << 8 | bytes[23]; /* see docs/format.md */
    memset(bytes + end - 150, 0, size - end + 150);
    scratch_save(path, bytes, size);
    free(bytes);
}

static caterva_status repair(const char *path, int guess, caterva_repair_result *result,
                             caterva_error *err)
{
    caterva_repair_options options = CATERVA_REPAIR_INIT;
    options.guess = guess;
    options.overwrite = 1;
    return caterva_repair(path, &options, result, err);
}

static void files_are_numbered_by_their_names(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], frame[SCRATCH_PATH + 32], repaired[SCRATCH_PATH + 32];
    caterva_error err;
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    geometry g = made_line(N, CHUNK, BLOCK, sizeof(int32_t));
    scratch_remove(scratch_path(path, "directory"));
    snprintf(frame, sizeof frame, "%s/chunks.b2frame", path);
    snprintf(repaired, sizeof repaired, "%s.repaired", path);
    caterva_array *array = made_array(path, &g, &made_lz4, CATERVA_LAYOUT_SPARSE);
    CHECK_OK(made_write(array, 0, N, 0, 1, &err), err);
    CHECK_OK(caterva_close(array, &err), err);

    damage_the_end(frame);
    assert_int_equal(repair(path, 0, &result, &err), CATERVA_ECORRUPT);
    CHECK_OK(repair(path, 1, &result, &err), err);
    assert_int_equal(result.found, CATERVA_FOUND_ORDER);
    assert_int_equal(result.lost_chunks, 0);
    assert_int_equal(result.lost_attributes, -1);
    assert_true(result.written && !result.complete);
    CHECK_OK(caterva_open(repaired, NULL, &array, &err), err);
    for (int64_t i = 0; i < N; i++) assert_int_equal(made_item(array, i), i);
    caterva_discard(array);

    /* The directory's own header does not describe a file. */
    size_t size;
    uint8_t *bytes = scratch_load(frame, &size);
    scratch_remove(path);
    scratch_save(path, bytes, size);
    free(bytes);
    assert_int_equal(repair(path, 1, &result, &err), CATERVA_ECORRUPT);
    scratch_remove(repaired);
}

/* The seal is lost; the table after each chunk still has its checksums, if it is there. */
static void tables_vouch_without_a_seal(void **state)
{
    (void)state;
    static const char magic[] = "cvseal1\n";
    char path[SCRATCH_PATH];
    caterva_error err;
    geometry g = made_line(N, CHUNK, BLOCK, sizeof(int32_t));
    pipeline plain = {.codec = CATERVA_CODEC_LZ4, .level = 0};
    for (int damage = 0; damage < 2; damage++) {
        caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
        caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
        scratch_remove(scratch_path(path, "unsealed"));
        caterva_array *array = made_array(path, &g, &plain, CATERVA_LAYOUT_CONTIGUOUS);
        CHECK_OK(made_write(array, 0, N, 0, 1, &err), err);
        CHECK_OK(caterva_commit(array, &err), err);
        CHECK_OK(caterva_chunk_describe(array, 1, &info, &err), err);
        CHECK_OK(caterva_close(array, &err), err);

        size_t size;
        uint8_t *bytes = scratch_load(path, &size);
        size_t footer = size - sizeof magic;
        while (memcmp(bytes + footer, magic, sizeof magic - 1) != 0) footer--;
        size_t end = (size_t)(info.position + info.stored_bytes);
        bytes[damage ? end + 10 : end - 60] ^= 1; /* of the table; of an item */
        bytes[footer - 1] ^= 1;
        scratch_save(path, bytes, size);
        free(bytes);
        CHECK_OK(repair(path, 0, &result, &err), err);
        assert_true(result.written && !result.complete);
        assert_int_equal(result.lost_chunks, damage ? 0 : 1);
        assert_int_equal(result.unverified_chunks, damage ? 1 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_are_numbered_by_their_names),
                                       cmocka_unit_test(tables_vouch_without_a_seal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
