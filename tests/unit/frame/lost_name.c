/* Another process renames the file during a commit, before each of its writes and syncs.
 * Either the commit reports it and pending changes are kept, or the renamed file contains
 * them: an acknowledged commit is never lost. */
#include "frame/frame.h"

#include "made.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 400, CHUNK = 100, BLOCK = 25, FIRST = 7000 };

/* ---- A store under which a file is renamed ------------------------------------ */

static struct {
    cv_store_ops ops;
    const cv_store_ops *real;
    int left;               /* operations before it happens */
    bool is_moved, is_late; /* late: after the write that makes the new state visible */
    char path[SCRATCH_PATH], away[SCRATCH_PATH];
} thief;

static void maybe_steal(void)
{
    if (thief.left-- != 0) return;
    assert_int_equal(rename(thief.path, thief.away), 0);
    thief.is_moved = true;
}

static cv_status stealing_write(cv_store *store, cv_object object, uint64_t pos,
                                const void *src, size_t size, cv_error *err)
{
    enum { HEADER_WRITE = 16 }; /* the position of a header write */
    if (pos == HEADER_WRITE && !thief.is_moved) thief.is_late = true;
    maybe_steal();
    return thief.real->write(store, object, pos, src, size, err);
}

static cv_status stealing_sync(cv_store *store, cv_object object, cv_error *err)
{
    maybe_steal();
    return thief.real->sync(store, object, err);
}

static void arm(cv_store *store, int after)
{
    thief.real = store->ops;
    thief.ops = *store->ops;
    thief.ops.write = stealing_write;
    thief.ops.sync = stealing_sync;
    thief.left = after;
    thief.is_moved = thief.is_late = false;
    store->ops = &thief.ops;
}

/* ---- What is found afterwards --------------------------------------------------- */

static int32_t first_item(const char *path)
{
    caterva_array *array;
    assert_int_equal(caterva_open(path, NULL, &array, NULL), CV_OK);
    int32_t item = made_item(array, 0);
    assert_int_equal(caterva_close(array, NULL), CV_OK);
    return item;
}

/* Returns false if the commit ended before the file was renamed. */
static bool try_one(caterva_durability durability, int after)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *array;
    geometry g = made_line(N, CHUNK, BLOCK, sizeof(int32_t));
    scratch_remove(thief.path);
    scratch_remove(thief.away);
    array = made_array(thief.path, &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    assert_int_equal(caterva_close(array, NULL), CV_OK);
    options.mode = CATERVA_MODE_WRITE;
    options.durability = durability;
    assert_int_equal(caterva_open(thief.path, &options, &array, NULL), CV_OK);
    int32_t before = made_item(array, 0);
    assert_int_equal(made_write(array, 0, CHUNK, FIRST, 1, NULL), CV_OK);

    arm(array->frame->store, after);
    cv_status status = caterva_commit(array, NULL);
    array->frame->store->ops = thief.real;
    if (!thief.is_moved) {
        assert_int_equal(status, CV_OK);
        assert_int_equal(caterva_close(array, NULL), CV_OK);
        return false;
    }
    int32_t found = first_item(thief.away);
    if (!thief.is_late) {
        assert_int_equal(status, CATERVA_EIO);
        assert_int_equal(found, before);
    } else if (status == CV_OK) {
        assert_int_equal(found, FIRST);
        assert_int_not_equal(durability, CATERVA_DURABILITY_FULL);
    } else {
        assert_int_equal(status, CATERVA_EIO);
        assert_true(found == before || found == FIRST);
    }
    assert_int_equal(rename(thief.away, thief.path), 0);
    if (status != CV_OK && found == before) /* refused before the state was visible */
        assert_int_equal(caterva_commit(array, NULL), CV_OK);
    caterva_discard(array);
    assert_int_equal(first_item(thief.path), FIRST);
    return true;
}

static void a_renamed_file_loses_no_commit(void **state)
{
    (void)state;
    const caterva_durability durabilities[] = {
        CATERVA_DURABILITY_NONE, CATERVA_DURABILITY_ORDERED, CATERVA_DURABILITY_FULL};
    scratch_path(thief.path, "array");
    scratch_path(thief.away, "away");
    for (int d = 0; d < 3; d++) {
        int n = 0;
        while (try_one(durabilities[d], n)) n++;
        assert_true(n >= 2 + d); /* the tail, the header; the syncs */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_renamed_file_loses_no_commit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
