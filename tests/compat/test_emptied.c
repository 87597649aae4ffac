/* Arrays that lose all their items and get new ones, in a file that C-Blosc2 opens after
 * every commit; and files that C-Blosc2 emptied. */
#include "support/check.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 20, COLUMNS = 10 };

static const int64_t full_shape[2] = {ROWS, COLUMNS};
static const int64_t no_rows[2] = {0, COLUMNS};

/* Checks that C-Blosc2 sees that many rows, and an attribute "note" of that many bytes. */
static void check_theirs(const char *path, int64_t rows, int32_t note_size)
{
    b2nd_array_t *theirs;
    uint8_t *note = NULL;
    int32_t size = 0;
    CHECK(b2nd_open(path, &theirs) >= 0, "C-Blosc2 does not open it");
    CHECK(theirs->shape[0] == rows, "%lld rows, not %lld", (long long)theirs->shape[0],
          (long long)rows);
    blosc2_vlmeta_get(theirs->sc, "note", &note, &size);
    CHECK(size == note_size, "a note of %d bytes, not %d", (int)size, (int)note_size);
    free(note);
    b2nd_free(theirs);
}

static void write_rows(caterva_array *a)
{
    caterva_error err;
    const int64_t origin[2] = {0, 0};
    int32_t items[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) items[i] = i * i;
    CHECK_OK(caterva_resize(a, full_shape, &err), err);
    CHECK_OK(caterva_write(a, origin, full_shape, items, sizeof items, &err), err);
}

static caterva_array *create(const char *path, caterva_durability durability)
{
    caterva_error err;
    caterva_array *a;
    const int32_t chunks[2] = {5, 5};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = no_rows;
    options.chunk_shape = chunks;
    options.dtype = "<i4";
    options.durability = durability;
    scratch_remove(path);
    CHECK_OK(caterva_create(path, &options, &a, &err), err);
    return a;
}

static void set_note(caterva_array *a, size_t size)
{
    static const uint8_t value[1000];
    caterva_error err;
    CHECK_OK(caterva_attr_set(a, "note", value, size, &err), err);
    CHECK_OK(caterva_commit(a, &err), err);
}

/* Empty, with notes that grow and shrink, filled, emptied, with notes again. */
static void check_life(const char *path, caterva_durability durability)
{
    caterva_error err;
    caterva_array *a = create(path, durability);
    CHECK_OK(caterva_commit(a, &err), err);
    check_theirs(path, 0, 0);
    for (int i = 0; i < 3; i++) {
        set_note(a, 10);
        check_theirs(path, 0, 10);
        set_note(a, 1000);
        check_theirs(path, 0, 1000);
        write_rows(a);
        CHECK_OK(caterva_commit(a, &err), err);
        check_theirs(path, ROWS, 1000);
        CHECK_OK(caterva_resize(a, no_rows, &err), err);
        CHECK_OK(caterva_commit(a, &err), err);
        check_theirs(path, 0, 1000);
    }
    CHECK_OK(caterva_close(a, &err), err);
    check_theirs(path, 0, 1000);
}

/* A reader of the previous state can continue reading it. */
static void check_beside_reader(const char *path)
{
    caterva_error err;
    caterva_array *reader;
    const int64_t origin[2] = {0, 0};
    int32_t items[ROWS * COLUMNS];
    caterva_array *a = create(path, CATERVA_DURABILITY_NONE);
    write_rows(a);
    set_note(a, 1000);
    CHECK_OK(caterva_open(path, NULL, &reader, &err), err);
    CHECK_OK(caterva_resize(a, no_rows, &err), err);
    CHECK_OK(caterva_commit(a, &err), err);
    CHECK_OK(caterva_read(reader, origin, full_shape, items, sizeof items, &err), err);
    for (int i = 0; i < ROWS * COLUMNS; i++) CHECK(items[i] == i * i, "item %d", i);
    caterva_discard(reader);
    CHECK_OK(caterva_close(a, &err), err);
    check_theirs(path, 0, 1000);
}

/* If that reader has refreshed before the writer closes, it needs no byte of the file, and
 * C-Blosc2 opens the file. So it does after a later commit. */
static void check_beside_follower(const char *path, bool closes)
{
    caterva_error err;
    caterva_array *reader;
    caterva_array *a = create(path, CATERVA_DURABILITY_NONE);
    write_rows(a);
    CHECK_OK(caterva_commit(a, &err), err);
    CHECK_OK(caterva_open(path, NULL, &reader, &err), err);
    CHECK_OK(caterva_resize(a, no_rows, &err), err);
    CHECK_OK(caterva_commit(a, &err), err);
    CHECK_OK(caterva_refresh(reader, &err), err);
    if (!closes) set_note(a, 100);
    if (closes) CHECK_OK(caterva_close(a, &err), err);
    check_theirs(path, 0, closes ? 0 : 100);
    if (!closes) CHECK_OK(caterva_close(a, &err), err);
    caterva_discard(reader);
}

/* C-Blosc2 leaves the size of the chunk area unchanged, which is more than exists. */
static void check_their_emptied(const char *path)
{
    caterva_error err;
    caterva_array *a = create(path, CATERVA_DURABILITY_NONE);
    write_rows(a);
    CHECK_OK(caterva_close(a, &err), err);
    b2nd_array_t *theirs;
    CHECK(b2nd_open(path, &theirs) >= 0, "C-Blosc2 does not open it");
    CHECK(b2nd_resize(theirs, no_rows, NULL) >= 0, "C-Blosc2 does not empty it");
    b2nd_free(theirs);

    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_open(path, &options, &a, &err), err);
    set_note(a, 10);
    check_theirs(path, 0, 10);
    write_rows(a);
    int32_t item;
    const int64_t start[2] = {ROWS - 1, COLUMNS - 1};
    CHECK_OK(caterva_read(a, start, full_shape, &item, sizeof item, &err), err);
    CHECK(item == (ROWS * COLUMNS - 1) * (ROWS * COLUMNS - 1), "the last item is %d", item);
    CHECK_OK(caterva_close(a, &err), err);
    check_theirs(path, ROWS, 10);
}

int main(void)
{
    char path[SCRATCH_PATH];
    blosc2_init();
    scratch_path(path, "emptied.b2nd");
    for (int d = CATERVA_DURABILITY_FULL; d <= CATERVA_DURABILITY_NONE; d++)
        check_life(path, (caterva_durability)d);
    check_beside_reader(path);
    check_beside_follower(path, true);
    check_beside_follower(path, false);
    check_their_emptied(path);
    blosc2_destroy();
    return 0;
}
