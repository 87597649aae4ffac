/* Trees of more than a thousand members: each call reports progress, and is stopped at many
 * calls of on_progress. The tree is then as before, or as after the call, and the next call
 * works. */
#include "small_tree.h"

#include "support/patience.h"

#include <caterva_tree.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GROUPS = 12, EACH = 100, N = GROUPS * EACH, FILE_BYTES = 4096 }; /* of each file */

static patience progress; /* by the handle `tree` */
static double last, longest;

static double worked(void) { return (double)clock() / CLOCKS_PER_SEC; }

static int on_progress(void *unused, int64_t done, int64_t total)
{
    (void)unused;
    double now = worked();
    if (now - last > longest) longest = now - last;
    last = now;
    return patience_on_progress(&progress, done, total);
}

/* Later calls are stopped after that many reports; -1: never. */
static void wait_for(int left)
{
    progress = (patience){.left = left};
    last = worked();
    longest = 0;
}

static void check_stopped(caterva_status status)
{
    CHECK(status == CATERVA_ESTOPPED && progress.left == -1, "%s after %d calls",
          caterva_status_name(status), progress.calls);
}

static void check_reported(int64_t least)
{
    CHECK(progress.done == progress.total && progress.total >= least, "%lld of %lld",
          (long long)progress.done, (long long)progress.total);
}

/* ---- A tree ------------------------------------------------------------------------------- */

/* "/big/g0/x0" and so on, all of which are the file of /a. */
static void make_big(void)
{
    char name[100], dir[SCRATCH_PATH], file[SCRATCH_PATH];
    CHECK(mkdir(scratch_path(dir, "t.b2d/big"), 0777) == 0, "%s", dir);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "t.b2d/big/g%d", i / EACH);
        if (i % EACH == 0) CHECK(mkdir(scratch_path(dir, name), 0777) == 0, "%s", dir);
        snprintf(name, sizeof name, "t.b2d/big/g%d/x%d.b2nd", i / EACH, i);
        CHECK(link(scratch_path(file, "t.b2d/a.b2nd"), scratch_path(dir, name)) == 0, "%s",
              dir);
    }
}

static void open_tree(void)
{
    caterva_tree_options o = CATERVA_TREE_INIT;
    o.mode = CATERVA_MODE_WRITE;
    o.durability = CATERVA_DURABILITY_NONE;
    o.progress = every_step(on_progress, NULL);
    wait_for(-1);
    CHECK_OK(caterva_tree_open(path, &o, &tree, &err), err);
}

static void make_tree(void)
{
    CHECK_OK(caterva_tree_create(scratch_path(path, "t.b2d"), NULL, &tree, &err), err);
    put("/a", 1, 0);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    make_big();
    open_tree();
}

/* Number of entries below the group; -1: there is no such group. */
static int count(const char *group)
{
    const caterva_tree_list *list;
    wait_for(-1);
    caterva_status status = caterva_tree_get_list(tree, group, &list, &err);
    if (status == CATERVA_ENOTFOUND) return -1;
    CHECK_OK(status, err);
    int n = (int)list->n;
    caterva_tree_list_release(list);
    return n;
}

/* Without the file of the locks on Windows. */
static int count_hidden(void)
{
    static const char *const others[] = {".", "..", ".caterva.lock"};
    int n = 0;
    DIR *dir = opendir(path);
    CHECK(dir, "%s", path);
    for (struct dirent *e; (e = readdir(dir));) {
        n += e->d_name[0] == '.';
        for (int i = 0; i < 3; i++) n -= strcmp(e->d_name, others[i]) == 0;
    }
    closedir(dir);
    return n;
}

/* ---- Lists ---------------------------------------------------------------------------------- */

static void stop_lists(void)
{
    const caterva_tree_list *list;
    wait_for(-1);
    double begin = worked();
    CHECK_OK(caterva_tree_get_list(tree, "/", &list, &err), err);
    double all = worked() - begin;
    CHECK(list->n == N + GROUPS + 2, "%zu entries", list->n);
    caterva_tree_list_release(list);
    check_reported((N + 2) * FILE_BYTES); /* with embed.b2e */
    CHECK(progress.total == (N + 2) * FILE_BYTES && progress.calls > 2 * N,
          "%lld in %d calls", (long long)progress.total, progress.calls);
    CHECK(longest < all / 4 + 0.01, "%.3f of %.3f s without a word", longest, all);
    for (int chance = 0; chance < 2 * N; chance += chance + 1) {
        wait_for(chance);
        check_stopped(caterva_tree_get_list(tree, "/", &list, &err));
        CHECK(!list && progress.calls == chance + 1, "%d calls", progress.calls);
    }
    CHECK(count("/big") == N + GROUPS, "a list");
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static void stop_moves(void)
{
    int chance = 0;
    caterva_status status = CATERVA_ESTOPPED;
    for (; status != CATERVA_OK; chance += chance + 1) {
        wait_for(chance);
        status = caterva_tree_move(tree, "/big", "/large", &err);
        if (status == CATERVA_OK) continue;
        check_stopped(status);
        CHECK(count("/large") == -1 && count("/big") == N + GROUPS, "half-way");
    }
    check_reported(3 * N * FILE_BYTES);
    CHECK(chance > N && count("/big") == -1 && count("/large") == N + GROUPS, "moved");
    wait_for(-1);
    CHECK_OK(caterva_tree_move(tree, "/large", "/big", &err), err);
}

/* Operations on one key access no other files. */
static void look_at_one(void)
{
    caterva_array *array;
    put("/one", 1, 0);
    wait_for(-1);
    CHECK(caterva_tree_open_array(tree, "/big/g3/none", NULL, &array, &err) ==
                  CATERVA_ENOTFOUND &&
              progress.total == 0,
          "%lld bytes for none", (long long)progress.total);
    wait_for(-1);
    CHECK(caterva_tree_open_array(tree, "/big", NULL, &array, &err) == CATERVA_EUNSUPPORTED &&
              strstr(err.message, "is a group, not an array") &&
              progress.total <= EACH * FILE_BYTES,
          "%lld bytes for a group", (long long)progress.total);
    wait_for(-1);
    CHECK_OK(caterva_tree_move(tree, "/one", "/big/g3/two", &err), err);
    CHECK(progress.total <= FILE_BYTES, "%lld bytes for a move", (long long)progress.total);
    wait_for(-1);
    CHECK(caterva_tree_move(tree, "/big/g3/two", "/big/g4", &err) == CATERVA_EEXIST, "moved");
    wait_for(-1);
    CHECK_OK(caterva_tree_delete(tree, "/big/g3/two", &err), err);
    CHECK(progress.total <= FILE_BYTES, "%lld bytes for a removal",
          (long long)progress.total);
    wait_for(-1);
    CHECK(caterva_tree_delete(tree, "/big/g3/two", &err) == CATERVA_ENOTFOUND, "is there");
}

/* Stopped after that many calls; returns whether the group is gone. It is never partially
 * deleted. */
static bool stop_remove(int chance)
{
    wait_for(chance);
    check_stopped(caterva_tree_delete(tree, "/big", &err));
    CHECK(progress.calls == chance + 1, "%d calls", progress.calls);
    caterva_error said = err;
    int left = count("/big");
    if (left == N + GROUPS) {
        CHECK(count_hidden() == 0, "something is hidden at chance %d", chance);
        check_first(tree, "/big/g7/x777", 1);
        return false;
    }
    CHECK(left == -1, "%d entries at chance %d", left, chance);
    CHECK(count_hidden() == 1 && strstr(said.message, "is deleted from"), "%s", said.message);
    return true;
}

/* Which call deletes what remains. */
static void sweep(int way)
{
    caterva_tree_options o = CATERVA_TREE_INIT;
    wait_for(-1);
    if (way == 0) { /* once more */
        CHECK(caterva_tree_delete(tree, "/big", &err) == CATERVA_ENOTFOUND, "it is there");
    } else if (way == 1) { /* another removal, itself stopped before */
        put("/b", 5, 0);
        wait_for(1);
        check_stopped(caterva_tree_delete(tree, "/b", &err));
        check_first(tree, "/b", 5);
        wait_for(-1);
        CHECK_OK(caterva_tree_delete(tree, "/b", &err), err);
    } else { /* the next opening, stopped before; readers leave it */
        CHECK_OK(caterva_tree_close(tree, &err), err);
        CHECK_OK(caterva_tree_open(path, NULL, &tree, &err), err);
        CHECK(count_hidden() == 1, "a reader has removed it");
        CHECK_OK(caterva_tree_close(tree, &err), err);
        o.mode = CATERVA_MODE_WRITE;
        o.progress = every_step(on_progress, NULL);
        wait_for(1);
        check_stopped(caterva_tree_open(path, &o, &tree, &err));
        CHECK(!tree && count_hidden() == 1, "it is open");
        open_tree();
        check_reported(1);
    }
    CHECK(count_hidden() == 0, "something is left, way %d", way);
}

static void stop_removals(void)
{
    int n_gone = 0, n_whole = 0;
    wait_for(-1);
    CHECK_OK(caterva_tree_attr_set(tree, "/big/g1", "of", "\xa1x", 2, &err), err);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    for (int chance = 0; chance < 5 * N; chance += N / 2) {
        if (stop_remove(chance)) {
            sweep(n_gone++ % 3);
            make_big();
        } else {
            n_whole++;
        }
    }
    CHECK(n_gone >= 3 && n_whole >= 6, "%d gone, %d whole", n_gone, n_whole);
    wait_for(-1);
    CHECK_OK(caterva_tree_delete(tree, "/big", &err), err);
    check_reported(4 * N * FILE_BYTES);
    CHECK(progress.calls > 4 * N && count_hidden() == 0, "%d calls", progress.calls);
    CHECK(count("/") == 1, "something is left");
    make_big();
}

/* ---- Attributes -------------------------------------------------------------------------------- */

static void check_attribute(const char *group, const void *bytes, size_t size)
{
    void *value;
    size_t got;
    wait_for(-1);
    CHECK_OK(caterva_tree_attr_get(tree, group, "v", &value, &got, &err), err);
    CHECK(got == size && memcmp(value, bytes, size) == 0, "%zu bytes", got);
    caterva_free(value);
}

static void stop_values(void)
{
    enum { SIZE = 24 << 20 };
    uint8_t *bytes = check_alloc(SIZE);
    void *value;
    size_t size;
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(i * i >> 7);
    memcpy(bytes, "\xc6\x01\x7f\xff\xfb", 5); /* that many bytes */
    wait_for(-1);
    CHECK_OK(caterva_tree_attr_set(tree, "/g", "v", "\x01", 1, &err), err);
    for (int chance = 0; chance < 10; chance += 3) {
        wait_for(chance);
        check_stopped(caterva_tree_attr_set(tree, "/g", "v", bytes, SIZE, &err));
        check_attribute("/g", "\x01", 1);
    }
    wait_for(-1);
    CHECK_OK(caterva_tree_attr_set(tree, "/g", "v", bytes, SIZE, &err), err);
    check_reported(SIZE);
    for (int chance = 0; chance < 10; chance += 3) {
        wait_for(chance);
        check_stopped(caterva_tree_attr_get(tree, "/g", "v", &value, &size, &err));
    }
    check_attribute("/g", bytes, SIZE);
    check_reported(SIZE);
    wait_for(-1);
    CHECK_OK(caterva_tree_rollback(tree, &err), err);
    free(bytes);
}

static void set_all(void)
{
    char group[40];
    wait_for(-1);
    for (int i = 0; i < GROUPS; i++) {
        snprintf(group, sizeof group, "/big/g%d", i);
        CHECK_OK(caterva_tree_attr_set(tree, group, "v", "\x07", 1, &err), err);
    }
}

/* As seen by a new handle of the tree. */
static bool is_committed(int i)
{
    char group[40];
    void *value;
    size_t size;
    caterva_tree *other;
    snprintf(group, sizeof group, "/big/g%d", i);
    CHECK_OK(caterva_tree_open(path, NULL, &other, &err), err);
    caterva_status status = caterva_tree_attr_get(other, group, "v", &value, &size, &err);
    CHECK(status == CATERVA_OK || status == CATERVA_ENOTFOUND, "%s", err.message);
    if (status == CATERVA_OK) caterva_free(value);
    caterva_tree_close(other, NULL);
    return status == CATERVA_OK;
}

static void stop_commits(void)
{
    set_all();
    for (int chance = 0; chance < GROUPS; chance += 3) {
        wait_for(chance);
        check_stopped(caterva_tree_commit(tree, &err));
        for (int i = 0; i < GROUPS; i++) CHECK(!is_committed(i), "group %d", i);
    }
    wait_for(GROUPS + GROUPS / 2); /* the journal exists: too late */
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    for (int i = 0; i < GROUPS; i++) CHECK(is_committed(i), "group %d", i);
    wait_for(-1);
    CHECK_OK(caterva_tree_attr_set(tree, "/big/g3", "w", "\x07", 1, &err), err);
    CHECK_OK(caterva_tree_attr_set(tree, "/big/g4", "w", "\x07", 1, &err), err);
    wait_for(0);
    check_stopped(caterva_tree_close(tree, &err));
    open_tree();
    const char **names;
    size_t n;
    CHECK_OK(caterva_tree_attr_list(tree, "/big/g3", &names, &n, &err), err);
    CHECK(n == 1, "%zu names", n);
    caterva_free(names);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void stop_packs(void)
{
    char archive[SCRATCH_PATH];
    caterva_tree_options o = CATERVA_TREE_INIT;
    caterva_tree_pack_options pack = CATERVA_TREE_PACK_INIT;
    pack.durability = CATERVA_DURABILITY_NONE;
    scratch_path(archive, "t.b2z");
    for (int chance = 0; chance < 2 * N; chance += N - 1) {
        wait_for(chance);
        check_stopped(caterva_tree_pack(tree, archive, &pack, &err));
        CHECK(access(archive, F_OK) != 0, "%s is there", archive);
    }
    wait_for(-1);
    CHECK_OK(caterva_tree_pack(tree, archive, &pack, &err), err);
    check_reported((N + 2) * FILE_BYTES);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    o.progress = every_step(on_progress, NULL);
    for (int chance = 0; chance <= N / 1024; chance++) {
        wait_for(chance);
        check_stopped(caterva_tree_open(archive, &o, &tree, &err));
        CHECK(!tree, "a tree");
    }
    wait_for(-1);
    CHECK_OK(caterva_tree_open(archive, &o, &tree, &err), err);
    CHECK(count("/big") == N + GROUPS, "a list");
    check_reported((N + 2) * FILE_BYTES);
    const caterva_tree_list *list;
    caterva_tree_verify_options quick = CATERVA_TREE_VERIFY_INIT;
    caterva_tree_verify_result result = CATERVA_TREE_VERIFY_RESULT_INIT;
    quick.quick = 1;
    for (int chance = 0; chance < N; chance += N / 3) {
        wait_for(chance);
        check_stopped(caterva_tree_get_list(tree, "/", &list, &err));
        wait_for(chance);
        check_stopped(caterva_tree_verify(tree, "/", &quick, &result, &err));
    }
    for (int i = 0; i < 4; i++) { /* with attributes, and the contents of embed.b2e */
        patience own = {.left = -1};
        quick.quick = i % 2;
        quick.progress = every_step(patience_on_progress, &own);
        wait_for(-1);
        CHECK_OK(caterva_tree_verify(tree, i < 2 ? "/" : "/big/g3", &quick, &result, &err),
                 err);
        CHECK(result.damages == 0 && own.total > 0 && own.done == own.total, "%lld of %lld",
              (long long)own.done, (long long)own.total);
    }
    check_first(tree, "/big/g7/x777", 1);
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

int main(void)
{
    make_tree();
    stop_lists();
    look_at_one();
    stop_moves();
    stop_removals();
    stop_values();
    stop_commits();
    stop_packs();
    return 0;
}
