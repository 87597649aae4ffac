/* Every call that may take long is stopped at each call of on_progress: committed items
 * remain, a rollback restores them, and the call runs through afterwards. Progress never goes
 * back, never exceeds the total, and ends there. */
#include "caterva.h"
#include "caterva_store.h"
#include "caterva_upkeep.h"

#include "support/buffer.h"
#include "support/check.h"
#include "support/info.h"
#include "support/patience.h"
#include "support/scratch.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS = 12, COLUMNS = 40, N = ROWS * COLUMNS, MORE = 4 };
static const int64_t shape[2] = {ROWS, COLUMNS};
static const int32_t chunk_shape[2] = {5, 16}, block_shape[2] = {2, 8};
static char folder[SCRATCH_PATH], path[SCRATCH_PATH], appended[SCRATCH_PATH];
static int32_t items[N], others[N];

static int count_entries(void)
{
    int n = -2; /* . and .. */
    DIR *dir = opendir(folder);
    CHECK(dir != NULL, "cannot list %s", folder);
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

/* ---- The array ------------------------------------------------------------------ */

static caterva_create_options creation(patience *p, caterva_layout layout, int threads)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk_shape;
    o.block_shape = block_shape;
    o.dtype = "<i4";
    o.overwrite = 1;
    o.layout = layout;
    o.threads = threads;
    o.durability = CATERVA_DURABILITY_NONE;
    o.progress = every_step(p ? patience_on_progress : NULL, p);
    return o;
}

static void make(caterva_layout layout)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = creation(NULL, layout, 1);
    scratch_remove(path);
    CHECK_OK(caterva_create_from_memory(path, &o, items, sizeof items, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static void check_items(caterva_array *array)
{
    static const int64_t zeros[2];
    caterva_error err;
    int32_t read[N];
    const caterva_info *info = info_of(array);
    CHECK(memcmp(info->shape, shape, sizeof shape) == 0, "shape (%lld, %lld)",
          (long long)info->shape[0], (long long)info->shape[1]);
    CHECK_OK(caterva_read(array, zeros, shape, read, sizeof read, &err), err);
    CHECK(memcmp(read, items, sizeof items) == 0, "other items");
}

/* As another handle sees it. */
static void check_committed(void)
{
    caterva_error err;
    caterva_array *array;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    check_items(array);
    caterva_discard(array);
    CHECK(count_entries() == 1, "%d entries", count_entries());
}

/* ---- A frame that is copied to be opened -------------------------------------------- */

static void stop_frame_open(void)
{
    void *frame;
    size_t size;
    caterva_error err;
    caterva_array *array;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_frame_copy(array, &frame, &size, &err), err);
    caterva_discard(array);
    for (int chance = 0, stopped = 1; stopped; chance++) {
        patience p = {.left = chance};
        caterva_open_options o = CATERVA_OPEN_INIT;
        o.progress = every_step(patience_on_progress, &p);
        caterva_status status = caterva_frame_open(frame, size, 1, &o, &array, &err);
        stopped = p.done < p.total;
        CHECK(status == (stopped ? CATERVA_ESTOPPED : CATERVA_OK), "%d after %d calls",
              status, p.calls);
        CHECK(stopped ? !array : p.calls == 2 && p.total == (int64_t)size, "%d calls",
              p.calls);
        if (stopped) continue;
        p = (patience){.left = -1};
        check_items(array);
        caterva_discard(array);
    }
    caterva_free(frame);
}

/* ---- Calls through a handle ------------------------------------------------------- */

typedef caterva_status (*action)(caterva_array *array, caterva_error *err);

static caterva_status read_all(caterva_array *a, caterva_error *err)
{
    static const int64_t zeros[2];
    int32_t read[N];
    return caterva_read(a, zeros, shape, read, sizeof read, err);
}

static caterva_status read_steps(caterva_array *a, caterva_error *err)
{
    caterva_axis axes[2] = {{.kind = CATERVA_AXIS_SLICE, .stop = ROWS, .step = 3},
                            {.kind = CATERVA_AXIS_ALL}};
    caterva_selection s = CATERVA_SELECTION_INIT;
    caterva_buffer b = CATERVA_BUFFER_INIT;
    int32_t read[N];
    s.kind = CATERVA_SELECTION_AXES;
    s.axes = axes;
    s.n_axes = 2;
    b.data = read;
    b.size = sizeof read;
    return caterva_read_selection(a, &s, &b, err);
}

static caterva_status read_view(caterva_array *a, caterva_error *err)
{
    int32_t read[2 * N]; /* the array may have grown */
    caterva_view *view;
    caterva_error ignored;
    CHECK_OK(caterva_view_of(a, &view, &ignored), ignored);
    caterva_status status = caterva_view_read(view, NULL, PLAIN(read, sizeof read), err);
    caterva_view_free(view);
    return status;
}

static caterva_status count_statistics(caterva_array *a, caterva_error *err)
{
    caterva_stats stats = CATERVA_STATS_INIT;
    return caterva_statistics(a, NULL, &stats, err);
}

static caterva_status verify_all(caterva_array *a, caterva_error *err)
{
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    return caterva_verify(a, NULL, &result, err);
}

static caterva_status measure(caterva_array *a, caterva_error *err)
{
    caterva_space space = CATERVA_SPACE_INIT;
    return caterva_measure(a, &space, err);
}

static caterva_status to_frame(caterva_array *a, caterva_error *err)
{
    void *frame = NULL;
    size_t size;
    caterva_status status = caterva_frame_copy(a, &frame, &size, err);
    if (status == CATERVA_OK) caterva_free(frame);
    return status;
}

static long size_of(const char *name)
{
    struct stat about;
    return stat(name, &about) == 0 ? (long)about.st_size : 0;
}

/* The file is as long as before, or has the whole frame after its end. */
static caterva_status append_frame(caterva_array *a, caterva_error *err)
{
    uint64_t offset = 0;
    long before = size_of(appended);
    caterva_status status =
        caterva_frame_append(a, appended, CATERVA_DURABILITY_NONE, &offset, err);
    long after = size_of(appended);
    CHECK(status == CATERVA_OK ? offset == (uint64_t)before && after > before
                               : after == before,
          "%ld bytes, then %ld", before, after);
    return status;
}

static caterva_status copy_to_memory(caterva_array *a, caterva_error *err)
{
    return caterva_copy(a, "mem:", NULL, NULL, err);
}

static caterva_status write_all(caterva_array *a, caterva_error *err)
{
    static const int64_t zeros[2];
    return caterva_write(a, zeros, shape, others, sizeof others, err);
}

static caterva_status write_inside(caterva_array *a, caterva_error *err)
{
    static const int64_t start[2] = {1, 3}, stop[2] = {ROWS - 1, COLUMNS - 3};
    return caterva_write(a, start, stop, others, sizeof others, err);
}

static caterva_status write_and_commit(caterva_array *a, caterva_error *err)
{
    caterva_status status = write_inside(a, err);
    return status == CATERVA_OK ? caterva_commit(a, err) : status;
}

static caterva_status shrink(caterva_array *a, caterva_error *err)
{
    static const int64_t smaller[2] = {7, 23};
    return caterva_resize(a, smaller, err);
}

static caterva_status insert(caterva_array *a, caterva_error *err)
{
    return caterva_insert(a, 0, 3, MORE, PLAIN(others, sizeof others), err);
}

static caterva_status append(caterva_array *a, caterva_error *err)
{
    return caterva_append(a, 1, MORE, PLAIN(others, sizeof others), err);
}

static caterva_status take_out(caterva_array *a, caterva_error *err)
{
    return caterva_remove(a, 1, 3, 9, err);
}

typedef struct named_action {
    const char *name;
    action run;
    bool writes;   /* needs a handle for writing, and a rollback afterwards */
    bool commits;  /* the file is another one after success */
    bool reshapes; /* if stopped, some items have moved and others have not */
} named_action;

/* Items that moved are not read together with items that did not. The committed state can be
 * read. */
static void check_refuses_reads(caterva_array *array)
{
    static const action reads[] = {read_all, read_steps,   read_view,     count_statistics,
                                   to_frame, append_frame, copy_to_memory};
    caterva_error err;
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++)
        CHECK(reads[i](array, &err) == CATERVA_EROLLBACK && strstr(err.message, "half-way"),
              "read %zu of mixed items", i);
    CHECK(verify_all(array, &err) == CATERVA_OK, "%s", err.message);
    check_committed();
}

static const named_action actions[] = {
    {"read", read_all, .writes = false},
    {"read steps", read_steps, .writes = false},
    {"read view", read_view, .writes = false},
    {"statistics", count_statistics, .writes = false},
    {"verify", verify_all, .writes = false},
    {"measure", measure, .writes = false},
    {"to_frame", to_frame, .writes = false},
    {"frame_append", append_frame, .writes = false},
    {"copy", copy_to_memory, .writes = false},
    {"write", write_all, .writes = true},
    {"write inside", write_inside, .writes = true},
    {"write and commit", write_and_commit, .writes = true, .commits = true},
    {"resize", shrink, .writes = true, .reshapes = true},
    {"insert", insert, .writes = true, .reshapes = true},
    {"append", append, .writes = true, .reshapes = true},
    {"remove", take_out, .writes = true, .reshapes = true},
};

static caterva_array *open_watched(const named_action *act, patience *p, int threads)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = act->writes ? CATERVA_MODE_WRITE : CATERVA_MODE_READ;
    o.threads = threads;
    o.durability = CATERVA_DURABILITY_NONE;
    o.dirty_budget = 1; /* so that flushes occur inside writes, too */
    o.cache_bytes = -1;
    o.progress = every_step(patience_on_progress, p);
    CHECK_OK(caterva_open(path, &o, &array, &err), err);
    return array;
}

/* Stops at call number `chance`; false if there was no such call. */
static bool stop_once(const named_action *act, int chance, int threads)
{
    caterva_error err;
    patience p = {.left = chance};
    caterva_array *array = open_watched(act, &p, threads);
    caterva_status status = act->run(array, &err);
    bool stopped = status == CATERVA_ESTOPPED;
    if (stopped)
        CHECK(strcmp(err.message, "stopped") == 0 && err.code == status, "%s", err.message);
    else
        CHECK(status == CATERVA_OK, "%s: %s", act->name, err.message);
    p = (patience){.left = -1};
    if (!stopped && act->commits) {
        caterva_discard(array);
        return false;
    }
    if (stopped && act->reshapes) check_refuses_reads(array);
    p = (patience){.left = -1};
    if (act->writes) CHECK_OK(caterva_rollback(array, &err), err);
    p = (patience){.left = -1};
    check_items(array); /* no lock is held, and the handle works */
    check_committed();
    p = (patience){.left = -1};
    status = act->run(array, &err);
    CHECK(status == CATERVA_OK, "%s after a stop: %s", act->name, err.message);
    CHECK(act->commits || (p.done == p.total && p.total > 0), "%s ended at %lld of %lld",
          act->name, (long long)p.done, (long long)p.total);
    caterva_discard(array);
    if (act->commits) make(CATERVA_LAYOUT_CONTIGUOUS);
    return stopped;
}

static void stop_actions(int threads)
{
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        int chance = 0;
        while (stop_once(&actions[i], chance, threads)) chance++;
        CHECK(chance >= 3, "%s has only %d chances to stop", actions[i].name, chance);
        make(CATERVA_LAYOUT_CONTIGUOUS);
    }
}

/* A stopped commit keeps pending changes: it can be repeated. */
static void commit_again(void)
{
    static const int64_t start[2] = {1, 3}, stop[2] = {ROWS - 1, COLUMNS - 3};
    static const int64_t zeros[2];
    caterva_error err;
    int32_t before[N], after[N];
    caterva_array *array;
    patience p = {.left = -1};
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    o.threads = 1;
    o.progress = every_step(patience_on_progress, &p);
    CHECK_OK(caterva_open(path, &o, &array, &err), err);
    CHECK_OK(caterva_write(array, start, stop, others, sizeof others, &err), err);
    p = (patience){.left = -1};
    CHECK_OK(caterva_read(array, zeros, shape, before, sizeof before, &err), err);
    for (int chance = 0;; chance++) {
        p = (patience){.left = chance};
        caterva_status status = caterva_commit(array, &err);
        if (status == CATERVA_OK) {
            CHECK(chance >= 3, "only %d chances", chance);
            break;
        }
        CHECK(status == CATERVA_ESTOPPED, "%s", err.message);
        check_committed();
        p = (patience){.left = -1};
        CHECK_OK(caterva_read(array, zeros, shape, after, sizeof after, &err), err);
        CHECK(memcmp(before, after, sizeof after) == 0, "what was pending changed");
    }
    p = (patience){.left = -1};
    CHECK_OK(caterva_close(array, &err), err);
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, zeros, shape, after, sizeof after, &err), err);
    CHECK(memcmp(before, after, sizeof after) == 0, "not what was committed");
    caterva_discard(array);
    make(CATERVA_LAYOUT_CONTIGUOUS);
}

/* ---- New arrays, and closing --------------------------------------------------------- */

/* Written whole and closed; if stopped, nothing of it exists, and what existed remains. */
static void stop_creations(caterva_layout layout, int threads)
{
    make(layout);
    for (int chance = 0;; chance++) {
        caterva_error err;
        caterva_array *array;
        patience p = {.left = chance};
        caterva_create_options o = creation(&p, layout, threads);
        caterva_status status =
            caterva_create_from_memory(path, &o, others, sizeof others, &array, &err);
        p.done = p.total = 0;
        if (status == CATERVA_OK)
            status = caterva_close(array, &err);
        else
            CHECK(!array, "a handle in spite of the stop");
        if (status == CATERVA_OK) {
            CHECK(chance >= 3, "only %d chances", chance);
            break;
        }
        CHECK(status == CATERVA_ESTOPPED, "%s", err.message);
        check_committed();
    }
    make(CATERVA_LAYOUT_CONTIGUOUS);
}

/* ---- By path --------------------------------------------------------------------------- */

static void stop_upkeep(caterva_layout layout)
{
    caterva_status (*const calls[])(const char *, const caterva_upkeep_options *,
                                    caterva_error *) = {caterva_compact, caterva_seal};
    for (int i = 0; i < 2; i++) {
        make(layout);
        for (int chance = 0;; chance++) {
            caterva_error err;
            patience p = {.left = chance};
            caterva_upkeep_options o = CATERVA_UPKEEP_INIT;
            o.durability = CATERVA_DURABILITY_NONE;
            o.progress = every_step(patience_on_progress, &p);
            caterva_status status = calls[i](path, &o, &err);
            check_committed();
            if (status == CATERVA_OK) {
                CHECK(chance >= 3 && p.done == p.total, "%d chances, %lld of %lld", chance,
                      (long long)p.done, (long long)p.total);
                break;
            }
            CHECK(status == CATERVA_ESTOPPED, "%s", err.message);
        }
    }
}

/* ---- Leaving at once ------------------------------------------------------------------- */

/* New uncommitted arrays are deleted, a committed one stays, and handles can be closed. */
static void abandon_all(void)
{
    char other[SCRATCH_PATH];
    caterva_error err;
    caterva_array *file, *directory;
    caterva_create_options o = creation(NULL, CATERVA_LAYOUT_CONTIGUOUS, 1);
    make(CATERVA_LAYOUT_CONTIGUOUS);
    CHECK_OK(caterva_create_from_memory(path, &o, others, sizeof others, &file, &err), err);
    o.layout = CATERVA_LAYOUT_SPARSE;
    o.dirty_budget = 1;
    scratch_path(other, "folder/other");
    CHECK_OK(caterva_create_from_memory(other, &o, others, sizeof others, &directory, &err),
             err);
    CHECK(count_entries() == 3, "%d entries before", count_entries());
    caterva_delete_temporaries();
    check_committed();
    caterva_discard(file);
    caterva_discard(directory);
    check_committed();
    caterva_delete_temporaries(); /* nothing is left to do */
    check_committed();
}

int main(void)
{
    for (int i = 0; i < N; i++) {
        items[i] = i * 7919 % 1009;
        others[i] = -i * 31 % 997;
    }
    scratch_path(folder, "folder");
    scratch_path(path, "folder/array");
    scratch_path(appended, "appended");
    CHECK(mkdir(folder, 0777) == 0, "cannot make %s", folder);
    make(CATERVA_LAYOUT_CONTIGUOUS);
    for (int threads = 1; threads <= 3; threads += 2) stop_actions(threads);
    commit_again();
    stop_frame_open();
    for (int threads = 1; threads <= 3; threads += 2) {
        stop_creations(CATERVA_LAYOUT_CONTIGUOUS, threads);
        stop_creations(CATERVA_LAYOUT_SPARSE, threads);
    }
    stop_upkeep(CATERVA_LAYOUT_CONTIGUOUS);
    stop_upkeep(CATERVA_LAYOUT_SPARSE);
    abandon_all();
    puts("stopped everywhere, and nothing lost");
    return 0;
}
