/* Misuse of handles, boxes, lookups and descriptions: every call that breaks a documented
 * rule must return a defined status with a message, with and without an error struct, and
 * leave the handle usable. */
#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_store.h"

#include "support/buffer.h"
#include "support/check.h"
#include "support/info.h"
#include "support/refuse.h"

#include <stdio.h>
#include <string.h>

/* ---- Handles ---------------------------------------------------------------- */

static void abuse_boxes(caterva_array *array)
{
    static const int64_t boxes[][4] = {
        /* start, stop */
        {-1, 0, 2, 2},        {0, -1, 2, 2},
        {0, 0, 7, 7},         {0, 0, 6, 8},
        {3, 0, 2, 7},         {0, 5, 6, 4},
        {7, 0, 7, 7},         {INT64_MIN, 0, 6, 7},
        {0, 0, INT64_MAX, 7}, {0, INT64_MAX, 6, 7},
        {0, 0, 6, INT64_MIN}, {INT64_MIN, 0, INT64_MAX, 7},
        {-5, -5, -2, -2},     {INT64_MAX, 0, INT64_MIN, 7},
        {0, 8, 0, 9},         {6, 7, 7, 8},
    };
    int32_t bytes[64] = {0};
    for (int i = 0; i < COUNT(boxes); i++) {
        REFUSE(ERANGE_BIT,
               caterva_read(array, boxes[i], boxes[i] + 2, bytes, sizeof(bytes), err));
        REFUSE(ERANGE_BIT,
               caterva_write(array, boxes[i], boxes[i] + 2, bytes, sizeof(bytes), err));
    }
    check_small_array(array);
}

static void abuse_sizes(caterva_array *array)
{
    static const size_t sizes[] = {0, 1, 4, sizeof(small_values) - 1,
                                   sizeof(small_values) - 4};
    int64_t start[2] = {0, 0};
    int32_t bytes[42] = {0};
    for (int i = 0; i < COUNT(sizes); i++) {
        REFUSE(ESHORT_BIT, caterva_read(array, start, small_shape, bytes, sizes[i], err));
        REFUSE(ESHORT_BIT, caterva_write(array, start, small_shape, bytes, sizes[i], err));
    }
    check_small_array(array);
}

static void abuse_pointers(caterva_array *array)
{
    int64_t start[2] = {0, 0};
    int32_t bytes[42];
    size_t size = sizeof(bytes);
    REFUSE(EINVAL_BIT, caterva_read(NULL, start, small_shape, bytes, size, err));
    REFUSE(EINVAL_BIT, caterva_read(array, NULL, small_shape, bytes, size, err));
    REFUSE(EINVAL_BIT, caterva_read(array, start, NULL, bytes, size, err));
    REFUSE(EINVAL_BIT, caterva_read(array, start, small_shape, NULL, size, err));
    REFUSE(EINVAL_BIT, caterva_write(NULL, start, small_shape, small_values, size, err));
    REFUSE(EINVAL_BIT, caterva_write(array, NULL, small_shape, small_values, size, err));
    REFUSE(EINVAL_BIT, caterva_write(array, start, NULL, small_values, size, err));
    REFUSE(EINVAL_BIT, caterva_write(array, start, small_shape, NULL, size, err));
    REFUSE(EINVAL_BIT, caterva_commit(NULL, err));
    REFUSE(EINVAL_BIT, caterva_rollback(NULL, err));
    check_small_array(array);
}

static void abuse_reports(caterva_array *array)
{
    void *frame = NULL;
    size_t size = 0;
    caterva_space space = CATERVA_SPACE_INIT;
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_verify_options verify = CATERVA_VERIFY_INIT;
    static const int64_t chunks[] = {-1, 6, 7, INT64_MAX, INT64_MIN};
    REFUSE(EINVAL_BIT, caterva_frame_copy(NULL, &frame, &size, err));
    REFUSE(EINVAL_BIT, caterva_frame_copy(array, NULL, &size, err));
    REFUSE(EINVAL_BIT, caterva_frame_copy(array, &frame, NULL, err));
    REFUSE(EINVAL_BIT, caterva_measure(NULL, &space, err));
    REFUSE(EINVAL_BIT, caterva_measure(array, NULL, err));
    REFUSE(EINVAL_BIT, caterva_chunk_describe(NULL, 0, &chunk, err));
    REFUSE(EINVAL_BIT, caterva_chunk_describe(array, 0, NULL, err));
    for (int i = 0; i < COUNT(chunks); i++)
        REFUSE(ERANGE_BIT, caterva_chunk_describe(array, chunks[i], &chunk, err));
    REFUSE(EINVAL_BIT, caterva_verify(NULL, &verify, &result, err));
    verify.struct_size = 0;
    REFUSE(EINVAL_BIT, caterva_verify(array, &verify, &result, err));
    check_small_array(array);
}

static void ignore_damage(void *context, const caterva_damage *damage)
{
    (void)context, (void)damage;
}

static void abuse_repairs(caterva_array *array)
{
    caterva_repair_options repair = CATERVA_REPAIR_INIT;
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    REFUSE(EINVAL_BIT, caterva_repair(NULL, &repair, &result, err));
    REFUSE(EINVAL_BIT, caterva_repair("none", &repair, NULL, err));
    REFUSE(EINVAL_BIT, caterva_repair("mem:", &repair, &result, err));
    REFUSE(ENOTFOUND_BIT, caterva_repair("/nowhere/at/all", NULL, &result, err));
    repair.threads = -1;
    REFUSE(EINVAL_BIT, caterva_repair("none", &repair, &result, err));
    repair = (caterva_repair_options)CATERVA_REPAIR_INIT;
    repair.durability = (caterva_durability)9;
    REFUSE(EINVAL_BIT, caterva_repair("none", &repair, &result, err));
    repair = (caterva_repair_options)CATERVA_REPAIR_INIT;
    repair.output = "mem:";
    REFUSE(EINVAL_BIT, caterva_repair("none", &repair, &result, err));
    repair.struct_size = 0;
    REFUSE(EINVAL_BIT, caterva_repair("none", &repair, &result, err));

    caterva_skip_options skip = CATERVA_SKIP_INIT;
    int64_t from[2] = {0, 0}, to[2] = {1, 1}, beyond[2] = {1, 8};
    int32_t item[8];
    REFUSE(EINVAL_BIT,
           caterva_read_skipping(array, BOX(from, to), PLAIN(item, sizeof item), NULL, err));
    REFUSE(EINVAL_BIT,
           caterva_read_skipping(array, BOX(from, to), PLAIN(item, sizeof item), &skip, err));
    skip.on_damage = ignore_damage;
    REFUSE(EINVAL_BIT,
           caterva_read_skipping(NULL, BOX(from, to), PLAIN(item, sizeof item), &skip, err));
    REFUSE(EINVAL_BIT,
           caterva_read_skipping(array, BOX(NULL, to), PLAIN(item, sizeof item), &skip, err));
    REFUSE(ESHORT_BIT,
           caterva_read_skipping(array, BOX(from, to), PLAIN(item, 3), &skip, err));
    REFUSE(ERANGE_BIT, caterva_read_skipping(array, BOX(from, beyond),
                                             PLAIN(item, sizeof item), &skip, err));
    skip.struct_size = 1;
    REFUSE(EINVAL_BIT,
           caterva_read_skipping(array, BOX(from, to), PLAIN(item, sizeof item), &skip, err));
    check_small_array(array);
}

static void abuse_names(caterva_array *array)
{
    void *value = NULL;
    size_t size = 0;
    REFUSE(ENOTFOUND_BIT, caterva_attr_get(array, "nothing", &value, &size, err));
    REFUSE(ENOTFOUND_BIT, caterva_attr_get(array, "", &value, &size, err));
    REFUSE(EINVAL_BIT, caterva_attr_get(NULL, "a", &value, &size, err));
    REFUSE(EINVAL_BIT, caterva_attr_get(array, NULL, &value, &size, err));
    REFUSE(EINVAL_BIT, caterva_attr_get(array, "a", NULL, &size, err));
    const caterva_info *info = NULL;
    static const char *const names[] = {"caterva", "", "b2n", "b2nd ", NULL};
    for (int i = 0; i < COUNT(names); i++)
        CHECK(!caterva_info_metalayer(info_of(array), names[i]), "metalayer %d", i);
    CHECK(caterva_info_metalayer(info_of(array), "b2nd") != NULL, "no b2nd");
    CHECK(caterva_info_metalayer(NULL, "b2nd") == NULL, "a metalayer of nothing");
    REFUSE(EINVAL_BIT, caterva_info_get(NULL, &info, err));
    REFUSE(EINVAL_BIT, caterva_info_get(array, NULL, err));
    CHECK(info == NULL, "a description of nothing");
}

static void abuse_frames(void)
{
    void *frame = NULL;
    size_t size = 0;
    caterva_error detail;
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_array *array = make_small_array("mem:");
    caterva_array *second = NULL;
    CHECK_OK(caterva_frame_copy(array, &frame, &size, &detail), detail);
    REFUSE(EINVAL_BIT | ECORRUPT_BIT, caterva_frame_open(NULL, size, 0, &o, &second, err));
    REFUSE(EINVAL_BIT | ECORRUPT_BIT, caterva_frame_open(frame, 0, 0, &o, &second, err));
    REFUSE(EINVAL_BIT, caterva_frame_open(frame, size, 0, &o, NULL, err));
    for (size_t n = 1; n < size; n += 7)
        REFUSE(ECORRUPT_BIT | EUNSUPPORTED_BIT,
               caterva_frame_open(frame, n, 1, &o, &second, err));
    o.mode = CATERVA_MODE_WRITE;
    REFUSE(EINVAL_BIT, caterva_frame_open(frame, size, 0, &o, &second, err));
    caterva_free(frame);
    caterva_discard(array);
}

/* ---- Without a handle -------------------------------------------------------- */

static void abuse_dtypes(void)
{
    static const char *const texts[] = {
        "",
        " ",
        "<",
        "<f3",
        "<i5",
        "x4",
        "<f4 ",
        "<f4x",
        "<<f4",
        "<f-4",
        "<f4,<f4",
        "|S-1",
        "<U99999999999999999999",
        "<M8[",
        "<M8[]x",
        "<M8[zz]",
        "<m8[ns",
        "<M4[ns]",
        "[",
        "[(",
        "[()]",
        "[('a')]",
        "[('a', )]",
        "[('a', '<f4'",
        "[('a', '<f4')",
        "('a', '<f4')",
        "[('a', '<f4'),, ('b', '<f4')]",
        "[('a', '<f9')]",
        "[('a', '<f4', (3)]",
        "[('a', '<f4', (-1,))]",
        "[('a', '<f4', (9999999999, 9999999999, 9999999999))]",
        "[('a', '<f4')] ]",
        "[('a' '<f4')]",
        "['a', '<f4']",
        "[('a', '<f4', 3, 4)]",
        "[('a\\', '<f4')]",
        "\xff\xfe",
        "[[[[[[[[[[[[",
        "{'names': 1}",
    };
    caterva_dtype *dtype = NULL;
    for (int i = 0; i < COUNT(texts); i++) {
        caterva_error detail = {.code = CATERVA_OK};
        caterva_status status = caterva_dtype_parse(texts[i], &dtype, &detail);
        check_refusal(EINVAL_BIT | EUNSUPPORTED_BIT, status, &detail, __LINE__, texts[i]);
        status = caterva_dtype_parse(texts[i], &dtype, NULL);
        check_refusal(EINVAL_BIT | EUNSUPPORTED_BIT, status, NULL, __LINE__, texts[i]);
    }
    REFUSE(EINVAL_BIT, caterva_dtype_parse(NULL, &dtype, err));
    REFUSE(EINVAL_BIT, caterva_dtype_parse("<f4", NULL, err));

    /* Deep nesting is refused or parsed, never a crash. */
    static char deep[60000];
    for (int n = 0; n + 16 < (int)sizeof(deep); n += 7) memcpy(deep + n, "[('a', ", 7);
    REFUSE(EINVAL_BIT | EUNSUPPORTED_BIT, caterva_dtype_parse(deep, &dtype, err));
}

static void abuse_partition(void)
{
    int32_t chunks[16];
    int32_t blocks[16];
    static const int64_t negative[2] = {6, -7};
    static const int64_t huge[2] = {INT64_MAX, INT64_MAX};
    static const int32_t zero[2] = {0, 3};
    const int64_t *s = small_shape;
    REFUSE(EINVAL_BIT, caterva_partition_choose(-1, s, 4, NULL, NULL, chunks, blocks, err));
    REFUSE(EINVAL_BIT, caterva_partition_choose(99, s, 4, NULL, NULL, chunks, blocks, err));
    REFUSE(EINVAL_BIT, caterva_partition_choose(2, NULL, 4, NULL, NULL, chunks, blocks, err));
    REFUSE(EINVAL_BIT, caterva_partition_choose(2, s, 0, NULL, NULL, chunks, blocks, err));
    REFUSE(EINVAL_BIT, caterva_partition_choose(2, s, -4, NULL, NULL, chunks, blocks, err));
    REFUSE(EINVAL_BIT,
           caterva_partition_choose(2, s, INT64_MAX, NULL, NULL, chunks, blocks, err));
    REFUSE(EINVAL_BIT,
           caterva_partition_choose(2, negative, 4, NULL, NULL, chunks, blocks, err));
    REFUSE(EINVAL_BIT, caterva_partition_choose(2, huge, 4, NULL, NULL, chunks, blocks, err));
    REFUSE(EINVAL_BIT, caterva_partition_choose(2, s, 4, zero, NULL, chunks, blocks, err));
    REFUSE(EINVAL_BIT, caterva_partition_choose(2, s, 4, NULL, zero, chunks, blocks, err));
    REFUSE(EINVAL_BIT, caterva_partition_choose(2, s, 4, NULL, NULL, NULL, blocks, err));
    REFUSE(EINVAL_BIT, caterva_partition_choose(2, s, 4, NULL, NULL, chunks, NULL, err));
}

static void abuse_lookups(void)
{
    static const int numbers[] = {-1, 0, 3, 6, 31, 99, 257, INT32_MAX, INT32_MIN};
    for (int i = 0; i < COUNT(numbers); i++) {
        CHECK(caterva_codec_name(numbers[i]) == NULL, "codec %d has a name", numbers[i]);
        if (numbers[i] != 3) /* filter 3 is delta */
            CHECK(caterva_filter_name(numbers[i]) == NULL, "filter %d", numbers[i]);
    }
    CHECK(caterva_codec_number("nope") == -1 && caterva_codec_number(NULL) == -1, "codec");
    CHECK(caterva_filter_number("") == -1 && caterva_filter_number(NULL) == -1, "filter");
    CHECK(strcmp(caterva_status_name((caterva_status)-99), "unknown status") == 0, "status");
    CHECK(caterva_close(NULL, NULL) == CATERVA_OK, "closing nothing");
    caterva_discard(NULL);
    caterva_free(NULL);
    caterva_dtype_free(NULL);
}

int main(void)
{
    caterva_array *array = make_small_array("mem:");
    abuse_boxes(array);
    abuse_sizes(array);
    abuse_pointers(array);
    abuse_reports(array);
    abuse_repairs(array);
    abuse_names(array);
    check_small_array(array);
    caterva_discard(array);

    abuse_frames();
    abuse_dtypes();
    abuse_partition();
    abuse_lookups();
    printf("%d misuses refused\n", refusals());
    CHECK(refusals() >= 250, "too few");
    return 0;
}
