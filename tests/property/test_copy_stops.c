/* A copy that is stopped at any call of on_progress, or fails, leaves no file and no
 * temporary file, and what was at the path is unchanged. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/info.h"
#include "support/patience.h"
#include "support/refuse.h"
#include "support/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const int32_t other_chunks[2] = {3, 7}, other_blocks[2] = {2, 2};
static char folder[SCRATCH_PATH];

static int count_entries(void)
{
    int n = -2; /* . and .. */
    DIR *dir = opendir(folder);
    CHECK(dir != NULL, "cannot list %s", folder);
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

/* Stops at call 0, 1, ... until the copy runs through; returns how often. */
static int stop_everywhere(caterva_array *source, const char *path,
                           const caterva_create_options *create, int entries)
{
    caterva_error err;
    caterva_copy_options options = CATERVA_COPY_INIT;
    patience p = {0};
    options.create = create;
    options.memory = 1; /* chunk by chunk */
    options.progress = every_step(patience_on_progress, &p);
    for (int calls = 0;; calls++) {
        caterva_array *copy = source; /* must become NULL */
        p = (patience){.left = calls};
        caterva_status status = caterva_copy(source, path, &options, &copy, &err);
        if (status == CATERVA_OK) {
            CHECK(p.done == p.total && p.total > 0, "ended at %lld of %lld",
                  (long long)p.done, (long long)p.total);
            check_small_array(copy);
            CHECK_OK(caterva_close(copy, &err), err);
            return calls;
        }
        CHECK(status == CATERVA_ESTOPPED && strcmp(err.message, "stopped") == 0, "%s",
              err.message);
        CHECK(copy == NULL, "a handle in spite of the stop");
        CHECK(count_entries() == entries, "%d files after a stop", count_entries());
    }
}

/* A directory has many files, each of which is synced: the copy can be stopped between
 * them. */
static void check_stops_of_syncs(caterva_array *source, const char *path,
                                 const caterva_create_options *create, int stops)
{
    caterva_create_options without = *create;
    scratch_remove(path);
    without.durability = CATERVA_DURABILITY_NONE;
    int fewer = stop_everywhere(source, path, &without, 0);
    scratch_remove(path);
    CHECK(stops >= fewer + 3, "%d chances to stop, %d without syncs", stops, fewer);
    CHECK(stop_everywhere(source, path, create, 0) == stops, "not as often again");
}

static void stop_copies(caterva_array *source)
{
    for (int kind = 0; kind < 4; kind++) {
        char path[SCRATCH_PATH];
        scratch_path(path, "folder/copy");
        caterva_create_options create = CATERVA_CREATE_INIT;
        create.layout = kind % 2 ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
        create.threads = 1 + kind % 2;
        if (kind >= 2) {
            create.chunk_shape = other_chunks;
            create.block_shape = other_blocks;
        }
        int stops = stop_everywhere(source, path, &create, 0);
        CHECK(stops > 2, "only %d chances to stop", stops);
        if (kind == 1) check_stops_of_syncs(source, path, &create, stops);

        create.overwrite = 1;
        caterva_error err;
        caterva_array *old;
        stop_everywhere(source, path, &create, 1);
        CHECK_OK(caterva_open(path, NULL, &old, &err), err);
        check_small_array(old);
        caterva_discard(old);
        scratch_remove(path);
    }
    check_small_array(source);
}

static void fail_copies(caterva_array *source)
{
    char path[SCRATCH_PATH];
    caterva_array *copy = source;
    REFUSE(EINVAL_BIT | ENOTFOUND_BIT, caterva_copy(source, "", NULL, &copy, err));
    scratch_path(path, "no-such-folder/copy.b2nd");
    REFUSE(EIO_BIT | ENOTFOUND_BIT, caterva_copy(source, path, NULL, &copy, err));
    scratch_path(path, "folder/there");
    scratch_save(path, "precious", 8);
    REFUSE(EEXIST_BIT, caterva_copy(source, path, NULL, &copy, err));
    CHECK(copy == NULL && count_entries() == 1, "something was left behind");
    size_t size;
    uint8_t *kept = scratch_load(path, &size);
    CHECK(kept && size == 8 && memcmp(kept, "precious", 8) == 0, "what was there changed");
    caterva_free(kept);
    scratch_remove(path);
}

/* Over its own file: the open handle continues to see the old one. */
static void copy_over_itself(void)
{
    char path[SCRATCH_PATH];
    caterva_error err;
    scratch_path(path, "folder/self.b2nd");
    caterva_array *array = make_small_array(path);
    CHECK_OK(caterva_close(array, &err), err);
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    caterva_create_options create = CATERVA_CREATE_INIT;
    create.chunk_shape = other_chunks;
    create.overwrite = 1;
    caterva_copy_options options = CATERVA_COPY_INIT;
    options.create = &create;
    CHECK_OK(caterva_copy(array, path, &options, NULL, &err), err);
    check_small_array(array);
    CHECK_OK(caterva_refresh(array, &err), err);
    check_small_array(array);
    CHECK(info_of(array)->chunk_shape[0] == other_chunks[0], "not the new one");
    caterva_discard(array);
    CHECK(count_entries() == 1, "%d files", count_entries());
    scratch_remove(path);
}

int main(void)
{
    scratch_path(folder, "folder");
    CHECK(mkdir(folder, 0777) == 0, "cannot make %s", folder);
    caterva_array *source = make_small_array("mem:");
    stop_copies(source);
    fail_copies(source);
    caterva_discard(source);
    copy_over_itself();
    puts("stopped and failed copies leave nothing");
    return 0;
}
