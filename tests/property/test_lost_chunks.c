/* A directory that has lost a chunk file: operations that do not need the chunk work, a write
 * that replaces all of it repairs it, and other operations name it in their errors. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/scratch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { N = 1000, CHUNK = 100, LOST = 3, PATH_SIZE = SCRATCH_PATH + 64 };

static char path[SCRATCH_PATH], file[PATH_SIZE];
static int32_t items[2 * N];
static int found;

static void make(void)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = (int64_t[]){N};
    options.chunk_shape = (int32_t[]){CHUNK};
    options.block_shape = (int32_t[]){10};
    options.dtype = "<i4";
    options.layout = CATERVA_LAYOUT_SPARSE;
    options.overwrite = 1;
    options.durability = CATERVA_DURABILITY_NONE;
    for (int i = 0; i < 2 * N; i++) items[i] = i * i % 977;
    CHECK_OK(
        caterva_create_from_memory(path, &options, items, N * sizeof *items, &array, &err),
        err);
    CHECK_OK(caterva_close(array, &err), err);
    CHECK(unlink(file) == 0, "%s is not there", file);
}

static caterva_array *open_it(caterva_mode mode)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = mode;
    options.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_open(path, &options, &array, &err), err);
    return array;
}

static caterva_status put(caterva_array *array, int64_t start, int64_t stop,
                          caterva_error *err)
{
    caterva_status status =
        caterva_write(array, &start, &stop, items + start, sizeof items, err);
    return status == CATERVA_OK ? caterva_commit(array, err) : status;
}

static void expect_named(caterva_status status, const caterva_error *err)
{
    CHECK(status == CATERVA_ECORRUPT, "%s", caterva_status_name(status));
    CHECK(strstr(err->message, "chunk 3 is lost") && strstr(err->message, "00000003.chunk"),
          "%s", err->message);
}

static void on_damage(void *context, const caterva_damage *damage)
{
    (void)context;
    CHECK(damage->chunk == LOST, "chunk %lld: %s", (long long)damage->chunk, damage->message);
    found++;
}

static void expect_damages(int n)
{
    caterva_error err;
    caterva_verify_options options = CATERVA_VERIFY_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_array *array = open_it(CATERVA_MODE_READ);
    options.on_damage = on_damage;
    found = 0;
    CHECK_OK(caterva_verify(array, &options, &result, &err), err);
    CHECK(found == n && result.damaged_chunks == n, "%d damages instead of %d", found, n);
    caterva_discard(array);
}

static void expect_items(int64_t start, int64_t stop)
{
    static int32_t got[2 * N];
    caterva_error err;
    caterva_array *array = open_it(CATERVA_MODE_READ);
    CHECK_OK(caterva_read(array, &start, &stop, got, sizeof got, &err), err);
    CHECK(memcmp(got, items + start, (size_t)(stop - start) * sizeof *got) == 0,
          "other items");
    caterva_discard(array);
}

static void all_of_it_is_written(void)
{
    caterva_error err;
    make();
    expect_damages(1);
    caterva_array *array = open_it(CATERVA_MODE_WRITE);
    CHECK_OK(put(array, 500, 620, &err), err); /* others */
    CHECK_OK(put(array, LOST * CHUNK, (LOST + 1) * CHUNK, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    expect_damages(0);
    expect_items(0, N);
}

static void a_part_is_written(void)
{
    caterva_error err;
    int64_t start = 0, stop = N;
    static int32_t got[N];
    make();
    caterva_array *array = open_it(CATERVA_MODE_WRITE);
    expect_named(caterva_read(array, &start, &stop, got, sizeof got, &err), &err);
    caterva_status status = put(array, 310, 320, &err);
    expect_named(status, &err);
    CHECK_OK(caterva_rollback(array, &err), err);
    CHECK_OK(put(array, 0, N, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    expect_damages(0);
    expect_items(0, N);
}

/* If chunks are removed, the lost one is removed, too; if it is cut, an error names it. */
static void the_shape_changes(void)
{
    caterva_error err;
    int64_t larger = 2 * N, cut = LOST * CHUNK + 50, smaller = 200;
    make();
    caterva_array *array = open_it(CATERVA_MODE_WRITE);
    CHECK_OK(caterva_resize(array, &larger, &err), err);
    CHECK_OK(put(array, N, 2 * N, &err), err);
    expect_damages(1);
    expect_items(N, 2 * N);
    caterva_status status = caterva_resize(array, &cut, &err);
    if (status == CATERVA_OK) status = caterva_commit(array, &err);
    if (status != CATERVA_OK) expect_named(status, &err);
    CHECK_OK(caterva_rollback(array, &err), err);
    CHECK_OK(caterva_resize(array, &smaller, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    expect_damages(0);
    expect_items(0, 200);
}

static void it_is_copied(void)
{
    caterva_error err;
    char copy[PATH_SIZE];
    snprintf(copy, sizeof copy, "%s.copy", path);
    make();
    caterva_array *array = open_it(CATERVA_MODE_READ);
    expect_named(caterva_copy(array, copy, NULL, NULL, &err), &err);
    caterva_discard(array);
    CHECK(access(copy, F_OK) != 0, "half a copy is there");
    expect_named(caterva_compact(path, NULL, &err), &err);
    caterva_repair_options options = CATERVA_REPAIR_INIT;
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    options.output = copy;
    CHECK_OK(caterva_repair(path, &options, &result, &err), err);
    CHECK(result.lost_chunks == 1, "%lld chunks lost", (long long)result.lost_chunks);
}

int main(void)
{
    scratch_path(path, "array.b2nd");
    snprintf(file, sizeof file, "%s/00000003.chunk", path);
    all_of_it_is_written();
    a_part_is_written();
    the_shape_changes();
    it_is_copied();
    return 0;
}
