/* What a handle keeps from its opening: options and path survive caterva_refresh and a change
 * of the working directory. */
#include "support/check.h"
#include "support/info.h"
#include "support/scratch.h"

#include <caterva_upkeep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 100, N = 1000 };

static const int64_t origin[1] = {0};

static void create(const char *path, int64_t n, int value, caterva_layout layout)
{
    caterva_error err;
    uint8_t bytes[N];
    int64_t shape[1] = {n};
    int32_t chunks[1] = {CHUNK};
    for (int i = 0; i < N; i++) bytes[i] = (uint8_t)(i % CHUNK * 37 + value);
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = shape;
    options.chunk_shape = chunks;
    options.block_shape = chunks;
    options.dtype = "|u1";
    options.codec = CATERVA_CODEC_LZ4;
    options.level = CATERVA_NONE;
    options.filters[0] = CATERVA_FILTER_NONE;
    options.layout = layout;
    caterva_array *array;
    CHECK_OK(caterva_create_from_memory(path, &options, bytes, (size_t)n, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static caterva_status read_all(caterva_array *array)
{
    uint8_t got[N];
    return caterva_read(array, origin, info_of(array)->shape, got, N, NULL);
}

/* Changes a byte of the last chunk. */
static void damage(const char *path)
{
    caterva_error err;
    caterva_array *array;
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_chunk_describe(array, N / CHUNK - 1, &chunk, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    size_t size;
    uint8_t *bytes = scratch_load(path, &size);
    CHECK(bytes, "%s", path);
    bytes[chunk.position + 60] ^= 0xff;
    scratch_save(path, bytes, size);
    free(bytes);
}

static void unchecked_stays_unchecked(void)
{
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    create(scratch_path(path, "unchecked.b2nd"), N, 1, CATERVA_LAYOUT_CONTIGUOUS);
    damage(path);
    for (int unchecked = 0; unchecked < 2; unchecked++) {
        caterva_status wanted = unchecked ? CATERVA_OK : CATERVA_ECORRUPT;
        options.unchecked = unchecked;
        options.cache_bytes = -1;
        CHECK_OK(caterva_open(path, &options, &array, &err), err);
        for (int round = 0; round < 3; round++) {
            caterva_status got = read_all(array);
            CHECK(got == wanted, "unchecked %d, refreshed %d times: %s", unchecked, round,
                  caterva_status_name(got));
            CHECK_OK(caterva_refresh(array, &err), err);
        }
        CHECK_OK(caterva_close(array, &err), err);
    }
}

static void check_shape(caterva_array *array, int64_t n, const char *when)
{
    int64_t got = info_of(array)->shape[0];
    CHECK(got == n, "%s: %lld items, not %lld", when, (long long)got, (long long)n);
    CHECK(read_all(array) == CATERVA_OK, "%s: cannot be read", when);
}

static void go(const char *path) { CHECK(chdir(path) == 0, "cannot go to %s", path); }

static void make_directory(const char *path)
{
    CHECK(mkdir(path, 0777) == 0, "cannot make %s", path);
}

/* Two directories with arrays of the same name. */
static void the_place_stays(caterva_layout layout)
{
    caterva_error err;
    caterva_array *array, *fresh;
    char root[SCRATCH_PATH], back[SCRATCH_PATH];
    CHECK(getcwd(back, sizeof back), "no working directory");
    scratch_path(root, layout == CATERVA_LAYOUT_SPARSE ? "directories" : "files");
    make_directory(root);
    go(root);
    make_directory("one");
    make_directory("two");
    create("one/x.b2nd", 300, 1, layout);
    create("two/x.b2nd", 700, 2, layout);
    go("one");
    CHECK_OK(caterva_open("x.b2nd", NULL, &array, &err), err);
    go("../two");
    CHECK_OK(caterva_refresh(array, &err), err);
    check_shape(array, 300, "elsewhere");

    go("../one"); /* another array in its place */
    CHECK(rename("x.b2nd", "old.b2nd") == 0, "rename");
    create("x.b2nd", 500, 3, layout);
    go("../two");
    CHECK_OK(caterva_refresh(array, &err), err);
    check_shape(array, 500, "replaced");

    CHECK(rename("../one", "../moved") == 0, "rename");
    CHECK(caterva_refresh(array, &err) == CATERVA_ENOTFOUND, "found what was moved away");
    check_shape(array, 500, "moved");
    CHECK(rename("../moved", "../one") == 0, "rename");
    CHECK_OK(caterva_refresh(array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);

    /* New arrays are published where the path led when they were created. */
    int64_t shape[1] = {400};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = shape;
    options.dtype = "|u1";
    options.layout = layout;
    CHECK_OK(caterva_create("new.b2nd", &options, &fresh, &err), err);
    go("../one");
    CHECK_OK(caterva_close(fresh, &err), err);
    CHECK(access("new.b2nd", F_OK) != 0, "made in another directory");
    CHECK_OK(caterva_open("../two/new.b2nd", NULL, &array, &err), err);
    go(back);
    CHECK_OK(caterva_refresh(array, &err), err);
    check_shape(array, 400, "made");
    CHECK_OK(caterva_close(array, &err), err);
}

int main(void)
{
    unchecked_stays_unchecked();
    the_place_stays(CATERVA_LAYOUT_CONTIGUOUS);
    the_place_stays(CATERVA_LAYOUT_SPARSE);
    puts("handles keep their options and their place");
    return 0;
}
