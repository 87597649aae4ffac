/* Two handles on one array: a reader keeps the state it opened, through commits, changes of
 * shape and compaction, until it refreshes. */
#include "support/check.h"
#include "support/every_step.h"
#include "support/info.h"
#include "support/scratch.h"

#include <caterva_upkeep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { N = 1000, ROUNDS = 20 };

static const int64_t origin[1] = {0};

static void write_all(caterva_array *array, int32_t value, int64_t n)
{
    caterva_error err;
    int32_t *items = check_alloc((size_t)n * sizeof *items);
    for (int64_t i = 0; i < n; i++) items[i] = value + (int32_t)i;
    CHECK_OK(caterva_write(array, origin, &n, items, (size_t)n * sizeof *items, &err), err);
    free(items);
}

static void check_all(caterva_array *array, int32_t value, int64_t n)
{
    caterva_error err;
    CHECK(info_of(array)->shape[0] == n, "%lld items, not %lld",
          (long long)info_of(array)->shape[0], (long long)n);
    int32_t *items = check_alloc((size_t)n * sizeof *items);
    CHECK_OK(caterva_read(array, origin, &n, items, (size_t)n * sizeof *items, &err), err);
    for (int64_t i = 0; i < n; i++)
        CHECK(items[i] == value + (int32_t)i, "item %lld is %d, not %d", (long long)i,
              items[i], value + (int32_t)i);
    free(items);
}

static int64_t file_size(const char *path)
{
    struct stat info;
    CHECK(stat(path, &info) == 0, "%s", path);
    return info.st_size;
}

static caterva_array *create(const char *path)
{
    caterva_error err;
    int64_t shape[1] = {N};
    int32_t chunks[1] = {300}, blocks[1] = {50};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = shape;
    options.chunk_shape = chunks;
    options.block_shape = blocks;
    options.dtype = "<i4";
    options.overwrite = 1;
    options.durability = CATERVA_DURABILITY_NONE;
    caterva_array *array;
    CHECK_OK(caterva_create(path, &options, &array, &err), err);
    return array;
}

/* ---- The watch ---------------------------------------------------------- */

typedef struct progress {
    int calls, stop;
    int64_t done, total;
} progress;

static int listen(void *context, int64_t done, int64_t total)
{
    progress *h = context;
    h->calls++;
    h->done = done;
    h->total = total;
    return h->stop;
}

/* A handle's on_progress is still called after a refresh, whether the file has grown, another
 * has its name, or nothing has changed. */
static void check_watch(const char *path)
{
    caterva_error err;
    progress h = {0};
    int64_t n = N;
    caterva_array *writer = create(path), *reader;
    write_all(writer, 0, n);
    CHECK_OK(caterva_commit(writer, &err), err);
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.progress = every_step(listen, &h);
    CHECK_OK(caterva_open(path, &options, &reader, &err), err);
    for (int round = 0; round < 4; round++) {
        if (round == 1) {
            n = 3 * N;
            CHECK_OK(caterva_resize(writer, &n, &err), err);
            write_all(writer, 7, n);
            CHECK_OK(caterva_commit(writer, &err), err);
        }
        if (round == 2) {
            CHECK_OK(caterva_close(writer, &err), err);
            CHECK_OK(caterva_compact(path, NULL, &err), err);
        }
        CHECK_OK(caterva_refresh(reader, &err), err);
        h = (progress){0};
        check_all(reader, round == 0 ? 0 : 7, n);
        CHECK(h.calls > 0, "round %d: on_progress was not called", round);
        CHECK(h.done == h.total, "round %d: %lld bytes of %lld", round, (long long)h.done,
              (long long)h.total);
    }
    int32_t *items = check_alloc((size_t)n * sizeof *items);
    h.stop = 1;
    CHECK(caterva_read(reader, origin, &n, items, (size_t)n * sizeof *items, &err) ==
              CATERVA_ESTOPPED,
          "a refreshed handle does not stop");
    free(items);
    caterva_discard(reader);
}

int main(void)
{
    caterva_error err;
    char path[SCRATCH_PATH];
    scratch_path(path, "refresh.b2nd");
    caterva_array *writer = create(path), *reader;
    write_all(writer, 0, N);
    CHECK_OK(caterva_commit(writer, &err), err);
    CHECK_OK(caterva_open(path, NULL, &reader, &err), err);

    int64_t n = N;
    for (int round = 1; round <= ROUNDS; round++) {
        int64_t before = n;
        n = N + 37 * round;
        CHECK_OK(caterva_resize(writer, &n, &err), err);
        write_all(writer, 1000 * round, n);
        check_all(reader, 1000 * (round - 1), before);
        CHECK_OK(caterva_commit(writer, &err), err);
        check_all(reader, 1000 * (round - 1), before);
        CHECK_OK(caterva_refresh(reader, &err), err);
        check_all(reader, 1000 * round, n);
    }
    CHECK(caterva_compact(path, NULL, &err) == CATERVA_EBUSY, "not busy");
    CHECK_OK(caterva_close(writer, &err), err);

    int64_t size = file_size(path);
    CHECK_OK(caterva_compact(path, NULL, &err), err);
    CHECK(size <= 3 * file_size(path), "the file grew to %lld bytes, for %lld",
          (long long)size, (long long)file_size(path));
    check_all(reader, 1000 * ROUNDS, n); /* still the old file */
    CHECK_OK(caterva_refresh(reader, &err), err);
    check_all(reader, 1000 * ROUNDS, n);
    caterva_space space = CATERVA_SPACE_INIT;
    CHECK_OK(caterva_measure(reader, &space, &err), err);
    CHECK(space.dead_bytes == 0, "%lld dead bytes", (long long)space.dead_bytes);
    CHECK_OK(caterva_close(reader, &err), err);
    check_watch(path);
    puts("a reader sees one state until it refreshes");
    return 0;
}
