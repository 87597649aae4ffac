/* The ways to create an array: each fill, and from a buffer. Checks its items, what is at the
 * path before and after the commit, and that a failure leaves nothing. */
#include "base/arith.h"
#include "support/check.h"
#include "support/scratch.h"

#include <caterva_upkeep.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS = 37, COLUMNS = 23 };

static const int64_t shape[2] = {ROWS, COLUMNS}, origin[2] = {0, 0};
static float got[ROWS][COLUMNS];

static caterva_create_options options_with(caterva_fill fill, const float *value)
{
    static const int32_t chunks[2] = {10, 9}, blocks[2] = {4, 5};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = shape;
    options.chunk_shape = chunks;
    options.block_shape = blocks;
    options.dtype = "<f4";
    options.fill = fill;
    options.fill_value = value;
    return options;
}

static int exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static void read_back(const char *path)
{
    caterva_error err;
    caterva_array *array;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, origin, shape, got, sizeof got, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static void check_fill(const char *path, caterva_fill fill, const float *value,
                       float expected)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options options = options_with(fill, value);
    CHECK_OK(caterva_create(path, &options, &array, &err), err);
    CHECK(!exists(path), "there before the commit");
    CHECK_OK(caterva_close(array, &err), err);
    read_back(path);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        float item = got[i / COLUMNS][i % COLUMNS];
        uint32_t bits = cv_load_le32((const uint8_t *)&got[i / COLUMNS][i % COLUMNS]);
        if (fill == CATERVA_FILL_NAN) memcpy(&item, &bits, sizeof item); /* as "<f4" says */
        CHECK(isnan(expected) ? isnan(item) : item == expected, "fill %d: item %d is %g",
              (int)fill, i, (double)item);
    }
    scratch_remove(path);
}

/* A fill that must be stored is stored only for chunks that were never written, and is
 * visible before. */
static void check_lazy_fill(const char *path)
{
    const float value = 2.5f, other = 1.0f;
    const int64_t part[2] = {20, COLUMNS}, late[2] = {25, 3}, late_end[2] = {26, 4};
    static float items[20][COLUMNS];
    caterva_error err;
    caterva_array *array;
    caterva_space space = CATERVA_SPACE_INIT;
    caterva_create_options options = options_with(CATERVA_FILL_VALUE, &value);
    for (int i = 0; i < 20 * COLUMNS; i++) items[i / COLUMNS][i % COLUMNS] = (float)i;
    CHECK_OK(caterva_create(path, &options, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, part, items, sizeof items, &err), err);
    CHECK_OK(caterva_rollback(array, &err), err);
    CHECK_OK(caterva_write(array, origin, part, items, sizeof items, &err), err);
    CHECK_OK(caterva_write(array, late, late_end, &other, sizeof other, &err), err);
    for (int round = 0; round < 2; round++) { /* pending, and committed */
        CHECK_OK(caterva_read(array, origin, shape, got, sizeof got, &err), err);
        CHECK(memcmp(got, items, sizeof items) == 0, "not what was written");
        for (int i = 20 * COLUMNS; i < ROWS * COLUMNS; i++)
            CHECK(got[i / COLUMNS][i % COLUMNS] == (i == 25 * COLUMNS + 3 ? other : value),
                  "round %d: item %d is %g", round, i, (double)got[i / COLUMNS][i % COLUMNS]);
        if (round == 0) CHECK_OK(caterva_commit(array, &err), err);
    }
    CHECK_OK(caterva_measure(array, &space, &err), err);
    CHECK(space.dead_bytes == 0 && space.special_chunks > 0, "%lld dead bytes",
          (long long)space.dead_bytes);
    CHECK_OK(caterva_close(array, &err), err);
    scratch_remove(path);
}

/* Points written through a selection before the first commit, within the fill. */
static void check_selected_fill(void)
{
    const float value = 2.5f;
    float items[2] = {1.0f, 3.0f};
    const int64_t points[4] = {3, 4, 36, 22};
    caterva_error err;
    caterva_array *array;
    caterva_create_options options = options_with(CATERVA_FILL_VALUE, &value);
    caterva_selection selection = CATERVA_SELECTION_INIT;
    selection.kind = CATERVA_SELECTION_POINTS;
    selection.points = points;
    selection.n_points = 2;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    buffer.data = items;
    buffer.size = sizeof items;
    CHECK_OK(caterva_create("mem:", &options, &array, &err), err);
    CHECK_OK(caterva_write_selection(array, &selection, &buffer, &err), err);
    for (int round = 0; round < 2; round++) { /* pending, and committed */
        CHECK_OK(caterva_read(array, origin, shape, got, sizeof got, &err), err);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            float at = got[i / COLUMNS][i % COLUMNS];
            float expected = i == 3 * COLUMNS + 4     ? 1.0f
                             : i == 36 * COLUMNS + 22 ? 3.0f
                                                      : value;
            CHECK(at == expected, "round %d: item %d is %g", round, i, (double)at);
        }
        if (round == 0) CHECK_OK(caterva_commit(array, &err), err);
    }
    caterva_discard(array);
}

static void check_buffer(const char *path)
{
    caterva_error err;
    caterva_array *array;
    float items[ROWS][COLUMNS];
    caterva_create_options options = options_with(CATERVA_FILL_ZEROS, NULL);
    for (int i = 0; i < ROWS * COLUMNS; i++) items[i / COLUMNS][i % COLUMNS] = (float)i;
    CHECK_OK(caterva_create_from_memory(path, &options, items, sizeof items, &array, &err),
             err);
    CHECK(!exists(path), "there before the commit");
    CHECK_OK(caterva_close(array, &err), err);
    read_back(path);
    CHECK(memcmp(got, items, sizeof got) == 0, "not what the buffer held");
    scratch_remove(path);

    CHECK(caterva_create_from_memory(path, &options, items, sizeof items - 1, &array, &err) ==
              CATERVA_ESHORT,
          "a buffer too small was taken");
    CHECK(!array && !exists(path), "something was left behind");
    CHECK(caterva_create_from_memory(path, &options, NULL, sizeof items, &array, &err) ==
              CATERVA_EINVAL,
          "no buffer was taken");
}

int main(void)
{
    char path[SCRATCH_PATH];
    const float value = 2.5f;
    scratch_path(path, "created.b2nd");
    check_fill(path, CATERVA_FILL_ZEROS, NULL, 0.0f);
    check_fill(path, CATERVA_FILL_UNINIT, NULL, 0.0f);
    check_fill(path, CATERVA_FILL_NAN, NULL, NAN);
    check_fill(path, CATERVA_FILL_VALUE, &value, value);
    check_lazy_fill(path);
    check_selected_fill();
    check_buffer(path);
    puts("every way to make an array makes it");
    return 0;
}
