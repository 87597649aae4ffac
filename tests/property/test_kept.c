/* A small file that is read often is kept in memory: a handle continues to read the old
 * contents if the file is damaged or truncated meanwhile. Verify reads the file itself, and
 * so do reads after it. And verify detects damage of bytes that this handle has read
 * before. */
#include "support/check.h"
#include "support/random.h"
#include "support/scratch.h"

#include <caterva_upkeep.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 64, N_ITEMS = SIDE * SIDE };

static const int64_t shape[2] = {SIDE, SIDE};
static int32_t items[N_ITEMS];

static void create(const char *path)
{
    caterva_error err;
    rng r = rng_from_seed(3);
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = (int32_t[]){32, 32};
    o.block_shape = (int32_t[]){16, 16};
    o.dtype = "<i4";
    o.overwrite = 1;
    for (int i = 0; i < N_ITEMS; i++) items[i] = (int32_t)(rng_next(&r) & 0xffff);
    caterva_array *array;
    CHECK_OK(caterva_create_from_memory(path, &o, items, sizeof items, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static caterva_array *open_with(const char *path, int64_t keep_bytes)
{
    caterva_error err;
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_array *array;
    o.cache_bytes = -1;
    o.keep_bytes = keep_bytes;
    CHECK_OK(caterva_open(path, &o, &array, &err), err);
    return array;
}

static caterva_status read_point(caterva_array *array, int64_t i, int64_t j)
{
    caterva_error err;
    int32_t item;
    int64_t start[2] = {i, j}, stop[2] = {i + 1, j + 1};
    caterva_status status = caterva_read(array, start, stop, &item, sizeof item, &err);
    CHECK(status != CATERVA_OK || item == items[i * SIDE + j], "item %lld, %lld is %d",
          (long long)i, (long long)j, item);
    return status;
}

/* So often that a file of some KiB is kept. */
static void read_often(caterva_array *array)
{
    rng r = rng_from_seed(4);
    for (int i = 0; i < 300; i++)
        CHECK(read_point(array, rng_between(&r, 0, SIDE - 1), rng_between(&r, 0, SIDE - 1)) ==
                  CATERVA_OK,
              "point %d", i);
}

static void flip(const char *path, int64_t pos)
{
    size_t size;
    uint8_t *bytes = scratch_load(path, &size);
    CHECK(bytes && (size_t)pos < size, "%lld", (long long)pos);
    bytes[pos] ^= 0x10;
    scratch_save(path, bytes, size);
    free(bytes);
}

static int64_t damaged_chunks(caterva_array *array)
{
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
    return result.damaged_chunks;
}

/* `at`: byte of chunk 0 that is damaged. */
static void damage_is_seen_by_verify(const char *path, int64_t keep_bytes, int64_t at)
{
    caterva_error err;
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    create(path);
    caterva_array *array = open_with(path, keep_bytes);
    bool kept = keep_bytes >= 0;
    read_often(array);
    CHECK_OK(caterva_chunk_describe(array, 0, &chunk, &err), err);
    flip(path, chunk.position + at);
    /* The handle has cached the head that it has checked. */
    bool is_head = at < 32;
    CHECK((read_point(array, 0, 0) == CATERVA_OK) == (kept || is_head),
          "keep %lld, byte %lld", (long long)keep_bytes, (long long)at);
    CHECK(damaged_chunks(array) == 1, "verify saw no damage at byte %lld", (long long)at);
    CHECK(read_point(array, 0, 0) != CATERVA_OK, "read what is damaged");
    CHECK(read_point(array, 40, 40) == CATERVA_OK, "chunk 3");
    flip(path, chunk.position + at);
    CHECK(damaged_chunks(array) == 0, "verify still sees damage");
    caterva_discard(array);
}

static void a_cut_file_is_still_read(const char *path)
{
    create(path);
    caterva_array *array = open_with(path, 0);
    read_often(array);
    CHECK(truncate(path, 100) == 0, "truncate");
    read_often(array);
    caterva_discard(array);
}

static void refresh_sees_the_new_state(const char *path)
{
    caterva_error err;
    create(path);
    caterva_array *writer, *reader = open_with(path, 0);
    read_often(reader);
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_open(path, &o, &writer, &err), err);
    for (int i = 0; i < N_ITEMS; i++) items[i]++;
    int64_t origin[2] = {0, 0};
    CHECK_OK(caterva_write(writer, origin, shape, items, sizeof items, &err), err);
    CHECK_OK(caterva_close(writer, &err), err);
    for (int i = 0; i < N_ITEMS; i++) items[i]--;
    read_often(reader);
    CHECK_OK(caterva_refresh(reader, &err), err);
    for (int i = 0; i < N_ITEMS; i++) items[i]++;
    read_often(reader);
    read_often(reader);
    caterva_discard(reader);
}

int main(void)
{
    enum { HEAD = 20, FIRST_BLOCK = 32 + 4 * 4 + 10 };
    char path[SCRATCH_PATH];
    caterva_error err;
    caterva_array *array;
    scratch_path(path, "kept.b2nd");
    damage_is_seen_by_verify(path, 0, FIRST_BLOCK);
    damage_is_seen_by_verify(path, -1, FIRST_BLOCK);
    damage_is_seen_by_verify(path, 0, HEAD);
    damage_is_seen_by_verify(path, -1, HEAD);
    a_cut_file_is_still_read(path);
    refresh_sees_the_new_state(path);
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.keep_bytes = -2;
    CHECK(caterva_open(path, &o, &array, &err) == CATERVA_EINVAL, "accepted");
    return 0;
}
