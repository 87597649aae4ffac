/* Trees created and changed: the result, and what is refused without any change. */
#include "small_tree.h"

#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Bytes that python-blosc2 writes -------------------------------------------------- */

static const char embed[] =
    "9ea862326672616d6500d20000007ccf00000000000000f5a412005502d30000000000000000"
    "d30000000000000000d200000001d200000000d200002000d10002d10002c3d8060000000000"
    "010500000000000000000093cd0013de0001a6623274726565d20000006ddc0001c60000000a"
    "81a776657273696f6e01940193cd001bde0001af6573746f72655f6d65746164617461d20000"
    "0021dc0001c60000003c050107011c0000001c0000003c000000000000000001050000000000"
    "0000000082a9656d6265645f6d617080ae63757272656e745f6f666673657400ce00000079d8"
    "0000000000000000000000000000000000";

static void test_embed(void)
{
    char file[SCRATCH_PATH], hex[600] = "";
    size_t size;
    uint8_t *bytes = scratch_load(scratch_path(file, "t.b2d/embed.b2e"), &size);
    CHECK(bytes && size == 245, "%zu bytes", size);
    bytes[193] &= (uint8_t)~2; /* claims that a big-endian machine made the chunk */
    for (size_t i = 0; i < size; i++) sprintf(hex + 2 * i, "%02x", bytes[i]);
    free(bytes);
    CHECK(strcmp(hex, embed) == 0, "%s\n%s", hex, embed);
}

/* ---- Changes -------------------------------------------------------------------------- */

static void test_create(void)
{
    caterva_tree *other;
    caterva_array *array;
    caterva_create_options o = create_options();
    CHECK_OK(caterva_tree_create(scratch_path(path, "t.b2d"), NULL, &tree, &err), err);
    test_embed();
    check_list(tree, "");
    put("/a", 1, 0);
    put("/g/h/x", 2, 0);
    CHECK_OK(caterva_tree_create_group(tree, "/empty", &err), err);
    check_list(tree, "/a /empty/ /g/ /g/h/ /g/h/x ");
    refused(caterva_tree_create(path, NULL, &other, &err), CATERVA_EEXIST, "exists already");
    caterva_tree_options writing = CATERVA_TREE_INIT;
    writing.mode = CATERVA_MODE_WRITE;
    refused(caterva_tree_open(path, &writing, &other, &err), CATERVA_EBUSY, "elsewhere");
    CHECK_OK(caterva_tree_create_array(tree, "/later", &o, &array, &err), err);
    check_list(tree, "/a /empty/ /g/ /g/h/ /g/h/x ");
    caterva_discard(array);
    check_list(tree, "/a /empty/ /g/ /g/h/ /g/h/x ");
}

static void test_keys_in_the_way(void)
{
    caterva_array *array;
    caterva_create_options o = create_options();
    static const struct {
        const char *key;
        caterva_status status;
        const char *words;
    } cases[] = {
        {"/a", CATERVA_EEXIST, "exists already"},
        {"/g", CATERVA_EEXIST, "is a group"},
        {"/empty", CATERVA_EEXIST, "is a group"},
        {"/a/b", CATERVA_EEXIST, "not a group"},
        {"/a/b/c/d", CATERVA_EEXIST, "not a group"},
        {"/a.b2nd/z", CATERVA_EEXIST, "not a group"},
        {"/", CATERVA_EINVAL, "is the tree itself"},
        {"/g/__vlmeta__", CATERVA_EINVAL, "name"},
        {"/g/../x", CATERVA_EINVAL, "\"..\""},
        {"x", CATERVA_EINVAL, "slash"},
        {"/g/", CATERVA_EINVAL, "empty"},
        {"/.x", CATERVA_EINVAL, "dot"},
        {"/g/.x/y", CATERVA_EINVAL, "dot"},
        {"/q.b2nd.parts/x", CATERVA_EINVAL, "q.b2nd.parts"},
        {"/g/q.b2f.parts/h/x", CATERVA_EINVAL, "jobs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        refused(caterva_tree_create_array(tree, cases[i].key, &o, &array, &err),
                cases[i].status, cases[i].words);
        refused(caterva_tree_create_group(tree, cases[i].key, &err), cases[i].status,
                cases[i].words);
    }
    refused(caterva_tree_move(tree, "/a", "/g/.a", &err), CATERVA_EINVAL, "dot");
    refused(caterva_tree_attr_set(tree, "/.h", "a", "\x01", 1, &err), CATERVA_EINVAL, "dot");
    static const char folder[] = "/g/q.b2nd.parts"; /* as a job of /g/q has */
    refused(caterva_tree_create_group(tree, folder, &err), CATERVA_EINVAL, "jobs");
    refused(caterva_tree_move(tree, "/g", "/q.b2nd.parts", &err), CATERVA_EINVAL, "jobs");
    refused(caterva_tree_move(tree, "/a", "/q.b2nd.parts/a", &err), CATERVA_EINVAL, "jobs");
    refused(caterva_tree_attr_set(tree, "/a.b2nd", "a", "\x01", 1, &err), CATERVA_EEXIST,
            "leaf");
    refused(caterva_tree_attr_set(tree, folder, "a", "\x01", 1, &err), CATERVA_EINVAL,
            "jobs");
    put(folder, 7, 0); /* the name of an array hides nothing */
    check_list(tree, "/a /empty/ /g/ /g/h/ /g/h/x /g/q.b2nd.parts ");
    CHECK_OK(caterva_tree_delete(tree, folder, &err), err);
    put("/a", 100, 1);
    check_first(tree, "/a", 100);
    o.layout = CATERVA_LAYOUT_SPARSE;
    refused(caterva_tree_create_array(tree, "/s", &o, &array, &err), CATERVA_EINVAL,
            "one file");
    check_list(tree, "/a /empty/ /g/ /g/h/ /g/h/x ");
}

/* Pending arrays and groups count as existing. */
static void test_pending_in_the_way(void)
{
    char folder[SCRATCH_PATH];
    caterva_array *n, *x, *other;
    caterva_create_options o = create_options();
    CHECK_OK(caterva_tree_create_array(tree, "/n", &o, &n, &err), err);
    CHECK_OK(caterva_tree_create_array(tree, "/p/q", &o, &x, &err), err);
    CHECK_OK(caterva_tree_attr_set(tree, "/t/u", "a", "\x01", 1, &err), err);
    for (int overwrite = 0; overwrite < 2; overwrite++) {
        o.overwrite = overwrite;
        refused(caterva_tree_create_array(tree, "/n/b", &o, &other, &err), CATERVA_EEXIST,
                "not a group");
        refused(caterva_tree_create_array(tree, "/p", &o, &other, &err), CATERVA_EEXIST,
                "is a group");
        refused(caterva_tree_create_array(tree, "/t", &o, &other, &err), CATERVA_EEXIST,
                "is a group");
        refused(caterva_tree_create_array(tree, "/t/u", &o, &other, &err), CATERVA_EEXIST,
                "is a group");
    }
    o.overwrite = 0;
    refused(caterva_tree_create_array(tree, "/n", &o, &other, &err), CATERVA_EEXIST,
            "exists");
    refused(caterva_tree_create_group(tree, "/n", &err), CATERVA_EEXIST, "exists");
    refused(caterva_tree_create_group(tree, "/n/g", &err), CATERVA_EEXIST, "not a group");
    refused(caterva_tree_move(tree, "/a", "/n", &err), CATERVA_EEXIST, "exists");
    refused(caterva_tree_move(tree, "/a", "/p", &err), CATERVA_EEXIST, "is a group");
    refused(caterva_tree_attr_set(tree, "/n", "a", "\x01", 1, &err), CATERVA_EEXIST,
            "exists");
    refused(caterva_tree_attr_set(tree, "/n/g", "a", "\x01", 1, &err), CATERVA_EEXIST,
            "not a group");
    CHECK_OK(caterva_tree_create_array(tree, "/nb", &o, &other, &err), err);
    caterva_discard(other);
    caterva_discard(n);
    caterva_discard(x);
    CHECK_OK(caterva_tree_rollback(tree, &err), err);
    put("/n/b", 1, 0);
    put("/p", 1, 0);
    put("/t", 1, 0);
    CHECK_OK(caterva_tree_delete(tree, "/n", &err), err);
    CHECK_OK(caterva_tree_delete(tree, "/p", &err), err);
    CHECK_OK(caterva_tree_delete(tree, "/t", &err), err);
    CHECK(rmdir(scratch_path(folder, "t.b2d/p")) == 0,
          "the folder of what was discarded is not empty");
    check_list(tree, "/a /empty/ /g/ /g/h/ /g/h/x ");
}

/* An array that is not committed yet can be neither deleted nor moved, nor can its group. */
static void test_pending_stays(void)
{
    CHECK_OK(caterva_tree_create_group(tree, "/p/g", &err), err);
    put("/p/old", 1, 0);
    caterva_array *x = begin("/p/g/x", 5, 0), *old = begin("/p/old", 6, 1);
    static const char *const keys[] = {"/p", "/p/g", "/p/g/x", "/p/old"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        refused(caterva_tree_delete(tree, keys[i], &err), CATERVA_EBUSY, "open for writing");
        refused(caterva_tree_move(tree, keys[i], "/r", &err), CATERVA_EBUSY,
                "open for writing");
    }
    refused(caterva_tree_delete(tree, "/p/g/y", &err), CATERVA_ENOTFOUND, "not exist");
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_first(tree, "/p/g/x", 5);
    check_first(tree, "/p/old", 6);
    CHECK_OK(caterva_close(x, &err), err);
    refused(caterva_tree_delete(tree, "/p", &err), CATERVA_EBUSY, "open for writing");
    CHECK_OK(caterva_close(old, &err), err);
    CHECK_OK(caterva_tree_delete(tree, "/p", &err), err);
}

/* Two new arrays with one key could not be committed together. */
static void test_pending_twice(void)
{
    char folder[SCRATCH_PATH];
    caterva_array *array, *other;
    caterva_create_options o = create_options();
    o.overwrite = 1;
    for (int32_t i = 0; i < 2; i++) { /* a new key, then one that exists */
        array = begin("/w/x", 7 + i, 1);
        refused(caterva_tree_create_array(tree, "/w/x", &o, &other, &err), CATERVA_EBUSY,
                "open for writing");
        CHECK(!other, "a handle of an array that was not created");
        CHECK_OK(caterva_tree_commit(tree, &err), err);
        check_first(tree, "/w/x", 7 + i);
        refused(caterva_tree_create_array(tree, "/w/x", &o, &other, &err), CATERVA_EBUSY,
                "open for writing");
        CHECK_OK(caterva_close(array, &err), err);
    }
    CHECK_OK(caterva_tree_delete(tree, "/w/x", &err), err);
    CHECK(rmdir(scratch_path(folder, "t.b2d/w")) == 0, "a temporary file is left");
}

/* The directories that a discarded or deleted array leaves are no group: their names are free. */
static void test_empty_folders(void)
{
    char folder[SCRATCH_PATH], file[SCRATCH_PATH];
    caterva_discard(begin("/e/f/g/x", 1, 0));
    put("/d/x", 2, 0);
    CHECK_OK(caterva_tree_delete(tree, "/d/x", &err), err);
    put("/k/x", 3, 0);
    CHECK_OK(caterva_tree_move(tree, "/k", "/e", &err), err);
    CHECK_OK(caterva_tree_move(tree, "/e", "/d", &err), err);
    check_first(tree, "/d/x", 3);
    CHECK(rmdir(scratch_path(folder, "t.b2d/e")) < 0, "directories are left");
    CHECK(mkdir(folder, 0777) == 0, "mkdir");
    scratch_save(scratch_path(file, "t.b2d/e/.hidden"), "mine", 4);
    refused(caterva_tree_move(tree, "/d", "/e", &err), CATERVA_EIO, "exists");
    CHECK(unlink(file) == 0 && rmdir(folder) == 0, "a hidden file was deleted");
    CHECK_OK(caterva_tree_delete(tree, "/d", &err), err);
}

#ifdef __linux__
/* ---- What is on the medium ------------------------------------------------------------ */

static dev_t synced_device;
static ino_t synced[64];
static int n_synced;

/* Replaces the system's, whose calls a test cannot count. */
int fsync(int fd)
{
    struct stat info;
    CHECK(fstat(fd, &info) == 0, "what is synced");
    synced_device = info.st_dev;
    if (n_synced < 64) synced[n_synced++] = info.st_ino;
    return 0;
}

static bool was_synced(const char *name)
{
    char file[SCRATCH_PATH];
    struct stat info;
    CHECK(stat(scratch_path(file, name), &info) == 0, "%s", name);
    for (int i = 0; i < n_synced; i++)
        if (info.st_dev == synced_device && info.st_ino == synced[i]) return true;
    return false;
}

/* A name is on the medium when the folder that contains it was synced after it was
 * created. */
static void test_folders_are_synced(void)
{
    n_synced = 0;
    CHECK_OK(caterva_tree_create_group(tree, "/s/t", &err), err);
    CHECK(was_synced("t.b2d") && was_synced("t.b2d/s") && was_synced("t.b2d/s/t"),
          "a new group of %d syncs", n_synced);
    n_synced = 0;
    put("/s/u/v/x", 1, 0);
    CHECK(was_synced("t.b2d/s") && was_synced("t.b2d/s/u") && was_synced("t.b2d/s/u/v"),
          "an array in new groups of %d syncs", n_synced);
    n_synced = 0;
    CHECK_OK(caterva_tree_move(tree, "/s/u/v", "/s/w/v", &err), err);
    CHECK(was_synced("t.b2d/s") && was_synced("t.b2d/s/w") && was_synced("t.b2d/s/u"),
          "a move of %d syncs", n_synced);
    CHECK_OK(caterva_tree_delete(tree, "/s", &err), err);
}
#else
static void test_folders_are_synced(void) {}
#endif

static void test_moves(void)
{
    caterva_array *array;
    caterva_open_options writing = CATERVA_OPEN_INIT;
    writing.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_tree_move(tree, "/a", "/g/k/a", &err), err);
    CHECK_OK(caterva_tree_move(tree, "/g/h", "/m/n", &err), err);
    check_list(tree, "/empty/ /g/ /g/k/ /g/k/a /m/ /m/n/ /m/n/x ");
    check_first(tree, "/m/n/x", 2);
    refused(caterva_tree_move(tree, "/none", "/x", &err), CATERVA_ENOTFOUND, "/none");
    refused(caterva_tree_move(tree, "/m", "/g", &err), CATERVA_EEXIST, "group");
    refused(caterva_tree_move(tree, "/m", "/m/z", &err), CATERVA_EINVAL, "into itself");
    refused(caterva_tree_move(tree, "/m/n/x", "/g/k/a", &err), CATERVA_EEXIST, "exists");
    CHECK_OK(caterva_tree_open_array(tree, "/m/n/x", &writing, &array, &err), err);
    refused(caterva_tree_move(tree, "/m/n/x", "/q", &err), CATERVA_EBUSY, "open for writing");
    refused(caterva_tree_delete(tree, "/m", &err), CATERVA_EBUSY, "open for writing");
    caterva_discard(array);
    check_list(tree, "/empty/ /g/ /g/k/ /g/k/a /m/ /m/n/ /m/n/x ");
}

static void test_removals(void)
{
    char file[SCRATCH_PATH];
    caterva_array *array;
    caterva_open_options writing = CATERVA_OPEN_INIT;
    writing.mode = CATERVA_MODE_WRITE;
    put("/m/n/y", 3, 0);
    scratch_save(scratch_path(file, "t.b2d/m/notes.txt"), "mine", 4);
    refused(caterva_tree_delete(tree, "/m", &err), CATERVA_EEXIST, "notes.txt");
    CHECK_OK(caterva_tree_open_array(tree, "/m/n/x", &writing, &array, &err), err);
    refused(caterva_tree_delete(tree, "/m", &err), CATERVA_EEXIST, "notes.txt");
    caterva_discard(array);
    check_list(tree, "/empty/ /g/ /g/k/ /g/k/a /m/ /m/n/ /m/n/x /m/n/y /m/notes.txt ");
    unlink(file);
    CHECK_OK(caterva_tree_delete(tree, "/m/n/y", &err), err);
    CHECK_OK(caterva_tree_delete(tree, "/m", &err), err);
    CHECK_OK(caterva_tree_delete(tree, "/empty", &err), err);
    refused(caterva_tree_delete(tree, "/m", &err), CATERVA_ENOTFOUND, "/m");
    refused(caterva_tree_delete(tree, "/", &err), CATERVA_EINVAL, "is the tree itself");
    check_list(tree, "/g/ /g/k/ /g/k/a ");
    CHECK(count_files("t.b2d") == 2, "%d files", count_files("t.b2d"));
}

/* An array in a tree is one file, also the copy of a directory. */
static void test_copies(void)
{
    char url[SCRATCH_PATH + 20], directory[SCRATCH_PATH];
    caterva_array *array, *copy;
    caterva_create_options o = create_options();
    caterva_copy_options as_directory = CATERVA_COPY_INIT;
    o.layout = CATERVA_LAYOUT_SPARSE;
    as_directory.create = &o;
    CHECK_OK(caterva_create(scratch_path(directory, "sparse"), &o, &array, &err), err);
    fill(array, 20);
    CHECK_OK(caterva_commit(array, &err), err);
    snprintf(url, sizeof url, "%s::/u/copy", path);
    refused(caterva_copy(array, url, &as_directory, NULL, &err), CATERVA_EINVAL, "one file");
    CHECK_OK(caterva_copy(array, url, NULL, &copy, &err), err);
    CHECK_OK(caterva_close(copy, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    CHECK_OK(caterva_tree_open(path, NULL, &tree, &err), err);
    check_first(tree, "/u/copy", 20);
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

/* The URL of an array that does not exist yet. */
static void test_urls(void)
{
    char url[SCRATCH_PATH + 20];
    caterva_array *array;
    caterva_create_options o = create_options();
    snprintf(url, sizeof url, "%s::/u/x", path);
    refused(caterva_create(url, &o, &array, &err), CATERVA_EBUSY, "elsewhere");
    CHECK_OK(caterva_tree_close(tree, &err), err);
    *(strstr(url, "::/") + 2) = 'x'; /* "t.b2d::xu/x" */
    refused(caterva_create(url, &o, &array, &err), CATERVA_EINVAL, "begin with a slash");
    snprintf(url, sizeof url, "%s::/u/x", path);
    o.layout = CATERVA_LAYOUT_SPARSE;
    refused(caterva_create(url, &o, &array, &err), CATERVA_EINVAL, "one file");
    o.layout = CATERVA_LAYOUT_CONTIGUOUS;
    CHECK_OK(caterva_create(url, &o, &array, &err), err);
    fill(array, 9);
    CHECK_OK(caterva_close(array, &err), err);
    CHECK_OK(caterva_compact(url, NULL, &err), err);
    CHECK_OK(caterva_seal(url, NULL, &err), err);
    CHECK_OK(caterva_tree_open(path, NULL, &tree, &err), err);
    check_first(tree, "/u/x", 9);
    CHECK_OK(caterva_delete(url, NULL, &err), err);
    check_list(tree, "/g/ /g/k/ /g/k/a ");
    refused(caterva_tree_delete(tree, "/g", &err), CATERVA_EREADONLY, "reading");
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

int main(void)
{
    test_create();
    test_keys_in_the_way();
    test_pending_in_the_way();
    test_pending_stays();
    test_pending_twice();
    test_empty_folders();
    test_folders_are_synced();
    test_moves();
    test_removals();
    test_urls();
    test_copies();
    return 0;
}
