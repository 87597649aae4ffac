/* An unfinished commit of several arrays: how readers use its journal, which handle finishes
 * it, and which journals are refused. */
#include "check.h"
#include "scratch.h"

#include "base/os_dir.h"
#include "base/os_file.h"
#include "frame/snapshot.h"
#include "store/memory.h"
#include "tree/journal.h"

#include <caterva_tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 12 };

static caterva_error err;
static char tree_path[SCRATCH_PATH];

/* A file of the tree, as it was before the commit and as the commit leaves it. */
typedef struct version {
    uint8_t *bytes;
    size_t size;
    uint8_t *header;
    uint32_t header_size;
    uint64_t commit;
    uint32_t name;
} version;

typedef struct file {
    const char *key, *path;
    version old, new;
} file;

static file files[] = {{.key = "/a", .path = "a.b2nd"}, {.key = "/g/b", .path = "g/b.b2nd"}};

/* ---- Arrays --------------------------------------------------------------------------- */

static void fill(caterva_array *array, int32_t value)
{
    static const int64_t start[] = {0, 0}, stop[] = {ROWS, 4};
    int32_t items[ROWS * 4];
    for (int i = 0; i < ROWS * 4; i++) items[i] = value + i;
    CHECK_OK(caterva_write(array, start, stop, items, sizeof items, &err), err);
}

static int32_t read_value(caterva_array *array)
{
    static const int64_t start[] = {0, 0}, stop[] = {ROWS, 4};
    int32_t items[ROWS * 4];
    CHECK_OK(caterva_read(array, start, stop, items, sizeof items, &err), err);
    for (int i = 0; i < ROWS * 4; i++) CHECK(items[i] == items[0] + i, "item %d", i);
    return items[0];
}

static const char *file_path(char out[SCRATCH_PATH], const char *path)
{
    char name[SCRATCH_PATH];
    snprintf(name, sizeof name, "t.b2d/%s", path);
    return scratch_path(out, name);
}

static caterva_status open_key(const char *key, caterva_mode mode, caterva_array **out)
{
    char url[SCRATCH_PATH + 40];
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = mode;
    snprintf(url, sizeof url, "%s::%s", tree_path, key);
    return caterva_open(url, &o, out, &err);
}

static int32_t value_of(const char *key)
{
    caterva_array *array;
    CHECK_OK(open_key(key, CATERVA_MODE_READ, &array), err);
    int32_t value = read_value(array);
    CHECK_OK(caterva_refresh(array, &err), err);
    CHECK(read_value(array) == value, "another state after a refresh");
    caterva_discard(array);
    return value;
}

static int32_t bare_value(const file *f)
{
    char path[SCRATCH_PATH];
    caterva_array *array;
    CHECK_OK(caterva_open(file_path(path, f->path), NULL, &array, &err), err);
    int32_t value = read_value(array);
    caterva_discard(array);
    return value;
}

/* ---- Two versions --------------------------------------------------------------------- */

static version load(const file *f)
{
    char path[SCRATCH_PATH];
    version v = {.bytes = NULL};
    cv_store *store;
    cv_snapshot *s;
    v.bytes = scratch_load(file_path(path, f->path), &v.size);
    CHECK(v.bytes, "%s", path);
    CHECK_OK(cv_store_memory_borrow(v.bytes, v.size, &store, &err), err);
    CHECK_OK(cv_snapshot_load(store, false, &s, &err), err);
    v.header = v.bytes;
    v.header_size = (uint32_t)s->header_bytes.size;
    v.commit = s->footer.commit;
    v.name = cv_snapshot_name(s);
    cv_snapshot_release(s);
    cv_store_close(store);
    return v;
}

static void make_versions(void)
{
    static const int64_t shape[] = {ROWS, 4};
    static const int32_t chunk[] = {5, 4};
    caterva_tree *tree;
    caterva_array *arrays[2];
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk;
    o.dtype = "<i4";
    scratch_path(tree_path, "t.b2d");
    CHECK_OK(caterva_tree_create(tree_path, NULL, &tree, &err), err);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(caterva_tree_create_array(tree, files[i].key, &o, &arrays[i], &err), err);
        fill(arrays[i], 100 * (i + 1));
    }
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    for (int i = 0; i < 2; i++) files[i].old = load(&files[i]);
    for (int i = 0; i < 2; i++) fill(arrays[i], 100 * (i + 1) + 1);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    for (int i = 0; i < 2; i++) files[i].new = load(&files[i]);
    for (int i = 0; i < 2; i++) caterva_discard(arrays[i]);
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

/* Everything exists, but the headers are the old ones. */
static void put_files(void)
{
    char path[SCRATCH_PATH];
    for (int i = 0; i < 2; i++) {
        const version *old = &files[i].old, *new = &files[i].new;
        CHECK(old->header_size == new->header_size, "headers of two sizes");
        uint8_t *bytes = check_alloc(new->size);
        memcpy(bytes, new->bytes, new->size);
        memcpy(bytes, old->header, old->header_size);
        scratch_save(file_path(path, files[i].path), bytes, new->size);
        free(bytes);
    }
}

static cv_journal_step step_of(const file *f)
{
    return (cv_journal_step){.path = f->path,
                             .commit = f->new.commit,
                             .old_name = f->old.name,
                             .header = f->new.header,
                             .header_size = f->new.header_size};
}

static void put_journal(const cv_journal_step *steps, size_t n)
{
    char path[SCRATCH_PATH];
    cv_buffer bytes = {0};
    CHECK_OK(cv_journal_write(steps, n, &bytes, &err), err);
    scratch_save(file_path(path, ".caterva-commit"), bytes.data, bytes.size);
    cv_buffer_free(&bytes);
}

static bool has_journal(void)
{
    char path[SCRATCH_PATH];
    return access(file_path(path, ".caterva-commit"), F_OK) == 0;
}

/* A commit of both that was killed after its journal was written. */
static void kill_commit(void)
{
    cv_journal_step steps[] = {step_of(&files[0]), step_of(&files[1])};
    put_files();
    put_journal(steps, 2);
}

static void check_values(int32_t a, int32_t b)
{
    CHECK(value_of("/a") == a && value_of("/g/b") == b, "%d and %d", value_of("/a"),
          value_of("/g/b"));
}

static void refused(caterva_status status, caterva_status expected, const char *words)
{
    CHECK(status == expected && strstr(err.message, words), "%s instead of %s \"%s\": %s",
          caterva_status_name(status), caterva_status_name(expected), words, err.message);
}

/* ---- Readers and writers --------------------------------------------------------------- */

static void test_readers(void)
{
    caterva_tree *tree;
    caterva_tree_verify_result result = CATERVA_TREE_VERIFY_RESULT_INIT;
    put_files();
    check_values(100, 200);
    kill_commit();
    check_values(101, 201);
    CHECK(bare_value(&files[0]) == 100 && bare_value(&files[1]) == 200, "not whole");
    CHECK_OK(caterva_tree_open(tree_path, NULL, &tree, &err), err);
    CHECK_OK(caterva_tree_verify(tree, NULL, NULL, &result, &err), err);
    CHECK(result.damages == 0 && result.members == 3, "%lld damages",
          (long long)result.damages);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    CHECK(has_journal(), "a reader finished it");
}

/* Later changes of others are kept. */
static void test_change_by_others(void)
{
    char path[SCRATCH_PATH];
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_tree_options t = CATERVA_TREE_INIT;
    caterva_tree *tree;
    o.mode = t.mode = CATERVA_MODE_WRITE;
    kill_commit();
    CHECK_OK(caterva_open(file_path(path, files[0].path), &o, &array, &err), err);
    fill(array, 500);
    CHECK_OK(caterva_close(array, &err), err);
    check_values(500, 201);
    CHECK_OK(caterva_tree_open(tree_path, &t, &tree, &err), err);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    CHECK(!has_journal(), "not finished");
    check_values(500, 201);
    CHECK(bare_value(&files[0]) == 500 && bare_value(&files[1]) == 201, "not finished");
}

/* A journal that reappears later does no harm. */
static void test_late_journal(void)
{
    caterva_tree_options t = CATERVA_TREE_INIT;
    caterva_tree *tree;
    caterva_array *array;
    cv_journal_step steps[] = {step_of(&files[0]), step_of(&files[1])};
    t.mode = CATERVA_MODE_WRITE;
    kill_commit();
    CHECK_OK(open_key("/a", CATERVA_MODE_WRITE, &array), err); /* which finishes it */
    CHECK(!has_journal() && read_value(array) == 101, "not finished");
    CHECK(bare_value(&files[1]) == 201, "the other is not");
    for (int32_t value = 102; value < 108; value++) {
        fill(array, value);
        CHECK_OK(caterva_commit(array, &err), err);
        put_journal(steps, 2);
        check_values(value, 201);
    }
    caterva_discard(array);
    CHECK_OK(caterva_tree_open(tree_path, &t, &tree, &err), err);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    check_values(107, 201);
}

/* While its writer exists, the files of a commit are locked. */
static void test_busy(void)
{
    cv_dir dir;
    caterva_array *array;
    cv_journal_step one = step_of(&files[1]);
    kill_commit();
    put_journal(&one, 1);
    CHECK(cv_dir_open(cv_dir_here, tree_path, 0, &dir) == 0, "%s", tree_path);
    CHECK(cv_file_lock(cv_dir_as_file(dir)) == 0, "locked");
    refused(open_key("/g/b", CATERVA_MODE_WRITE, &array), CATERVA_EBUSY, "not finished");
    CHECK_OK(open_key("/a", CATERVA_MODE_WRITE, &array), err);
    caterva_discard(array);
    check_values(100, 201);
    cv_dir_close(&dir);
}

/* ---- Journals that are refused ---------------------------------------------------------- */

static void check_refused(const char *words)
{
    caterva_tree *tree;
    caterva_array *array;
    const caterva_tree_list *list;
    caterva_tree_options t = CATERVA_TREE_INIT;
    caterva_tree_verify_result result = CATERVA_TREE_VERIFY_RESULT_INIT;
    t.mode = CATERVA_MODE_WRITE;
    refused(open_key("/a", CATERVA_MODE_READ, &array), CATERVA_ECORRUPT, words);
    refused(open_key("/a", CATERVA_MODE_WRITE, &array), CATERVA_ECORRUPT, words);
    refused(caterva_tree_open(tree_path, &t, &tree, &err), CATERVA_ECORRUPT, words);
    CHECK_OK(caterva_tree_open(tree_path, NULL, &tree, &err), err);
    refused(caterva_tree_get_list(tree, NULL, &list, &err), CATERVA_ECORRUPT, words);
    CHECK_OK(caterva_tree_verify(tree, NULL, NULL, &result, &err), err);
    CHECK(result.damages == 1 && result.members == 1, "%lld", (long long)result.damages);
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

static void test_damaged(void)
{
    char path[SCRATCH_PATH];
    size_t size;
    kill_commit();
    uint8_t *bytes = scratch_load(file_path(path, ".caterva-commit"), &size);
    for (size_t i = 0; i < size; i++) {
        caterva_array *array;
        bytes[i] ^= (uint8_t)(1 + i % 255);
        scratch_save(path, bytes, size);
        bytes[i] ^= (uint8_t)(1 + i % 255);
        caterva_status status = open_key("/a", CATERVA_MODE_READ, &array);
        CHECK(status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED,
              "byte %zu changed: %s", i, caterva_status_name(status));
    }
    for (size_t n = 0; n < size; n += n < 40 ? 1 : 37) {
        scratch_save(path, bytes, n);
        check_refused(".caterva-commit in ");
    }
    free(bytes);
    unlink(path);
}

static void test_bad_steps(void)
{
    static const char *const paths[] = {"../x.b2nd", "/x.b2nd", "g//b.b2nd",
                                        "",        "a\nb.b2nd"};
    char path[SCRATCH_PATH];
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        cv_journal_step step = step_of(&files[0]);
        step.path = paths[i];
        put_journal(&step, 1);
        check_refused(".caterva-commit in ");
    }
    static const char *const names[] = {"../.x", "x", ".g/x", ""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cv_journal_step step = {.path = "a.b2nd", .file = names[i]};
        put_journal(&step, 1);
        check_refused(".caterva-commit in ");
    }
    cv_journal_step step = step_of(&files[0]);
    step.header_size = 16;
    put_journal(&step, 1);
    check_refused(".caterva-commit in ");
    unlink(file_path(path, ".caterva-commit"));
    put_files();
    check_values(100, 200);
}

/* A file that took the name of a new array meanwhile stays; missing files are skipped. */
static void test_files(void)
{
    char path[SCRATCH_PATH];
    caterva_tree *tree;
    caterva_tree_options t = CATERVA_TREE_INIT;
    t.mode = CATERVA_MODE_WRITE;
    put_files();
    scratch_save(file_path(path, "g/.new"), files[1].new.bytes, files[1].new.size);
    cv_journal_step steps[] = {{.path = "a.b2nd", .file = ".gone"},
                               {.path = "g/c.b2nd", .file = ".new"},
                               {.path = "q/r.b2nd", .file = ".none"}};
    put_journal(steps, 3);
    CHECK(value_of("/g/c") == 201 && value_of("/a") == 100, "%d", value_of("/g/c"));
    steps[1] = (cv_journal_step){.path = "a.b2nd", .file = ".new2"};
    scratch_save(file_path(path, ".new2"), files[1].new.bytes, files[1].new.size);
    put_journal(steps, 3);
    CHECK_OK(caterva_tree_open(tree_path, &t, &tree, &err), err);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    CHECK(bare_value(&files[0]) == 100, "replaced");
    steps[0] = steps[1];
    steps[0].replaces = true;
    put_journal(steps, 3);
    CHECK(value_of("/a") == 201, "%d", value_of("/a"));
    CHECK_OK(caterva_tree_open(tree_path, &t, &tree, &err), err);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    CHECK(bare_value(&files[0]) == 201 && !has_journal(), "not replaced");
}

int main(void)
{
    make_versions();
    test_readers();
    test_change_by_others();
    test_late_journal();
    test_busy();
    test_damaged();
    test_bad_steps();
    test_files();
    for (int i = 0; i < 2; i++) {
        free(files[i].old.bytes);
        free(files[i].new.bytes);
    }
    return 0;
}
