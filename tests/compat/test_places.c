/* Arrays in files: appended to other files, where C-Blosc2's b2nd finds them too, and
 * deleted, which must never delete anything else. */
#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_store.h"

#include "support/check.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <blosc2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 1000, APPENDED = 3 };

static caterva_array *make(const char *url, caterva_layout layout, int32_t first)
{
    caterva_error err;
    caterva_create_options options = CATERVA_CREATE_INIT;
    caterva_array *array = NULL;
    int32_t items[N];
    for (int i = 0; i < N; i++) items[i] = first + i;
    options.ndim = 1;
    options.shape = (int64_t[]){N};
    options.chunk_shape = (int32_t[]){100};
    options.dtype = "<i4";
    options.layout = layout;
    CHECK_OK(caterva_create_from_memory(url, &options, items, sizeof items, &array, &err),
             err);
    return array;
}

static void save(const char *url, caterva_layout layout)
{
    caterva_error err;
    CHECK_OK(caterva_close(make(url, layout, 0), &err), err);
}

static int exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void check_status(caterva_status got, caterva_status wanted, const caterva_error *err)
{
    CHECK(got == wanted, "%s instead of %s: %s", caterva_status_name(got),
          caterva_status_name(wanted), got == CATERVA_OK ? "" : err->message);
}

/* ---- Appending ------------------------------------------------------------------- */

static void check_appended(const char *path, uint64_t offset, int32_t first)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *ours = NULL;
    b2nd_array_t *theirs = NULL;
    int64_t start = 17, stop = N, shape = N - 17;
    int32_t a[N], b[N];
    options.offset = offset;
    CHECK_OK(caterva_open(path, &options, &ours, &err), err);
    CHECK_OK(caterva_read(ours, &start, &stop, a, sizeof a, &err), err);
    CHECK(b2nd_open_offset(path, &theirs, (int64_t)offset) >= 0, "b2nd_open_offset");
    CHECK(b2nd_get_slice_cbuffer(theirs, &start, &stop, b, &shape, (int64_t)sizeof b) >= 0,
          "b2nd_get_slice_cbuffer");
    for (int i = 0; i < N - 17; i++)
        CHECK(a[i] == first + 17 + i && a[i] == b[i], "item %d at byte %llu", i,
              (unsigned long long)offset);
    b2nd_free(theirs);
    caterva_discard(ours);
}

static void arrays_are_appended(const char *path)
{
    caterva_error err;
    uint64_t offsets[APPENDED];
    size_t size;
    scratch_save(path, "header", 6);
    for (int i = 0; i < APPENDED; i++) { /* with pending changes */
        caterva_array *array = make("mem:", CATERVA_LAYOUT_CONTIGUOUS, 10 * i);
        CHECK_OK(
            caterva_frame_append(array, path, CATERVA_DURABILITY_FULL, &offsets[i], &err),
            err);
        caterva_discard(array);
    }
    CHECK(offsets[0] == 6, "the first begins at byte %llu", (unsigned long long)offsets[0]);
    for (int i = 0; i < APPENDED; i++) check_appended(path, offsets[i], 10 * i);
    uint8_t *bytes = scratch_load(path, &size);
    CHECK(memcmp(bytes, "header", 6) == 0, "what was there is gone");
    free(bytes);
    CHECK(unlink(path) == 0, "unlink");
    caterva_array *array =
        make("mem:", CATERVA_LAYOUT_CONTIGUOUS, 5); /* a new file is made */
    CHECK_OK(caterva_frame_append(array, path, CATERVA_DURABILITY_NONE, NULL, &err), err);
    check_appended(path, 0, 5);

    caterva_array *writer = NULL;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_open(path, &options, &writer, &err), err);
    check_status(caterva_frame_append(array, path, CATERVA_DURABILITY_FULL, NULL, &err),
                 CATERVA_EBUSY, &err);
    caterva_discard(writer);
    check_status(caterva_frame_append(array, "/", CATERVA_DURABILITY_FULL, NULL, &err),
                 CATERVA_EIO, &err);
    check_status(caterva_frame_append(array, "", CATERVA_DURABILITY_FULL, NULL, &err),
                 CATERVA_EINVAL, &err);
    caterva_discard(array);
    CHECK_OK(caterva_delete(path, NULL, &err), err);
}

/* ---- Deleting -------------------------------------------------------------------- */

static void arrays_are_deleted(const char *path, caterva_layout layout)
{
    caterva_error err;
    caterva_array *reader = NULL;
    caterva_open_options options = CATERVA_OPEN_INIT;
    int64_t start = 0, stop = N;
    int32_t items[N];
    save(path, layout);
    options.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_open(path, &options, &reader, &err), err);
    check_status(caterva_delete(path, NULL, &err), CATERVA_EBUSY, &err);
    caterva_discard(reader);

    options.mode = CATERVA_MODE_READ;
    CHECK_OK(caterva_open(path, &options, &reader, &err), err);
    if (layout == CATERVA_LAYOUT_SPARSE) {
        check_status(caterva_delete(path, NULL, &err), CATERVA_EBUSY, &err);
        caterva_discard(reader);
        reader = NULL;
    }
    CHECK_OK(caterva_delete(path, NULL, &err), err);
    CHECK(!exists(path), "%s is still there", path);
    if (reader) CHECK_OK(caterva_read(reader, &start, &stop, items, sizeof items, &err), err);
    caterva_discard(reader);
    check_status(caterva_delete(path, NULL, &err), CATERVA_ENOTFOUND, &err);
}

static void others_are_left(const char *path)
{
    caterva_error err;
    char inside[SCRATCH_PATH + 16];
    snprintf(inside, sizeof inside, "%s/notes.txt", path);
    scratch_save(path, "not an array, but a user's letter", 33);
    check_status(caterva_delete(path, NULL, &err), CATERVA_ECORRUPT, &err);
    CHECK(exists(path), "a text is gone");
    CHECK(unlink(path) == 0 && mkdir(path, 0777) == 0, "mkdir");
    check_status(caterva_delete(path, NULL, &err), CATERVA_ENOTFOUND, &err);
    CHECK(exists(path) && rmdir(path) == 0, "an empty directory is gone");

    save(path, CATERVA_LAYOUT_SPARSE);
    scratch_save(inside, "notes", 5);
    check_status(caterva_delete(path, NULL, &err), CATERVA_EEXIST, &err);
    caterva_array *array = NULL;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err); /* nothing was deleted */
    caterva_discard(array);
    CHECK(unlink(inside) == 0, "notes are gone");
    CHECK_OK(caterva_delete(path, NULL, &err), err);
    check_status(caterva_delete("mem:", NULL, &err), CATERVA_EINVAL, &err);
    check_status(caterva_delete(NULL, NULL, &err), CATERVA_EINVAL, &err);
}

static void a_link_stays(const char *path, const char *link)
{
    caterva_error err;
    save(path, CATERVA_LAYOUT_CONTIGUOUS);
    CHECK(symlink(path, link) == 0, "symlink");
    CHECK_OK(caterva_delete(link, NULL, &err), err);
    CHECK(!exists(path) && exists(link), "not the array was deleted");
    CHECK(unlink(link) == 0, "unlink");
}

int main(void)
{
    char path[SCRATCH_PATH], link[SCRATCH_PATH];
    scratch_path(path, "array.b2nd");
    scratch_path(link, "link.b2nd");
    blosc2_init();
    arrays_are_appended(path);
    arrays_are_deleted(path, CATERVA_LAYOUT_CONTIGUOUS);
    arrays_are_deleted(path, CATERVA_LAYOUT_SPARSE);
    others_are_left(path);
    a_link_stays(path, link);
    blosc2_destroy();
    return 0;
}
