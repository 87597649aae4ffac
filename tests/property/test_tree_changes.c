/* Trees made, changed, packed and unpacked: what is there afterwards, and what is refused
 * with nothing changed. */
#include "check.h"
#include "random.h"
#include "scratch.h"

#include <caterva.h>

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static caterva_error err;
static char path[SCRATCH_PATH];
static caterva_tree *tree;
static rng random_numbers;

/* ---- Arrays and lists --------------------------------------------------------------- */

static caterva_create_options create_options(void)
{
    static const int64_t shape[] = {3, 4};
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.dtype = "<i4";
    return o;
}

static void fill(caterva_array *array, int32_t first)
{
    static const int64_t start[] = {0, 0}, stop[] = {3, 4};
    int32_t items[12];
    for (int i = 0; i < 12; i++) items[i] = first + i;
    CHECK_OK(caterva_write(array, start, stop, items, sizeof items, &err), err);
}

static void put(const char *key, int32_t first, int overwrite)
{
    caterva_array *array;
    caterva_create_options o = create_options();
    o.overwrite = overwrite;
    CHECK_OK(caterva_tree_create_array(tree, key, &o, &array, &err), err);
    fill(array, first);
    CHECK_OK(caterva_close(array, &err), err);
}

static void check_first(caterva_tree *t, const char *key, int32_t first)
{
    static const int64_t start[] = {0, 0}, stop[] = {3, 4};
    int32_t items[12];
    caterva_array *array;
    CHECK_OK(caterva_tree_open_array(t, key, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, start, stop, items, sizeof items, &err), err);
    for (int i = 0; i < 12; i++) CHECK(items[i] == first + i, "%s: %d", key, items[i]);
    caterva_discard(array);
}

static void check_list(caterva_tree *t, const char *expected)
{
    char text[2000] = "";
    const caterva_tree_list *list;
    CHECK_OK(caterva_tree_get_list(t, NULL, &list, &err), err);
    for (size_t i = 0; i < list->n; i++) {
        const caterva_tree_entry *entry = list->entries[i];
        strcat(strcat(text, entry->key), entry->kind == CATERVA_TREE_GROUP ? "/ " : " ");
    }
    caterva_tree_list_release(list);
    CHECK(strcmp(text, expected) == 0, "listed: %s\nnot:    %s", text, expected);
}

static void refused(caterva_status status, caterva_status expected, const char *words)
{
    CHECK(status == expected && strstr(err.message, words), "%s instead of %s \"%s\": %s",
          caterva_status_name(status), caterva_status_name(expected), words, err.message);
}

/* Nothing but what belongs there lies in a directory. */
static int count_files(const char *name)
{
    char where[SCRATCH_PATH];
    DIR *dir = opendir(scratch_path(where, name));
    int n = 0;
    CHECK(dir, "%s", where);
    for (struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

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
    refused(caterva_tree_create(path, NULL, &other, &err), CATERVA_EEXIST, "there already");
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
        {"/a/b", CATERVA_EEXIST, "no group"},
        {"/a/b/c/d", CATERVA_EEXIST, "no group"},
        {"/", CATERVA_EINVAL, "own"},
        {"/g/__vlmeta__", CATERVA_EINVAL, "name"},
        {"/g/../x", CATERVA_EINVAL, "\"..\""},
        {"x", CATERVA_EINVAL, "slash"},
        {"/g/", CATERVA_EINVAL, "empty"},
        {"/.x", CATERVA_EINVAL, "dot"},
        {"/g/.x/y", CATERVA_EINVAL, "dot"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        refused(caterva_tree_create_array(tree, cases[i].key, &o, &array, &err),
                cases[i].status, cases[i].words);
        refused(caterva_tree_create_group(tree, cases[i].key, &err), cases[i].status,
                cases[i].words);
    }
    refused(caterva_tree_move(tree, "/a", "/g/.a", &err), CATERVA_EINVAL, "dot");
    refused(caterva_tree_attr_set(tree, "/.h", "a", "\x01", 1, &err), CATERVA_EINVAL, "dot");
    put("/a", 100, 1);
    check_first(tree, "/a", 100);
    o.layout = CATERVA_LAYOUT_SPARSE;
    refused(caterva_tree_create_array(tree, "/s", &o, &array, &err), CATERVA_EINVAL,
            "one file");
    check_list(tree, "/a /empty/ /g/ /g/h/ /g/h/x ");
}

/* What is pending is in the way as if it were there. */
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
                "no group");
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
    refused(caterva_tree_create_group(tree, "/n/g", &err), CATERVA_EEXIST, "no group");
    refused(caterva_tree_move(tree, "/a", "/n", &err), CATERVA_EEXIST, "exists");
    refused(caterva_tree_move(tree, "/a", "/p", &err), CATERVA_EEXIST, "is a group");
    refused(caterva_tree_attr_set(tree, "/n", "a", "\x01", 1, &err), CATERVA_EEXIST,
            "exists");
    refused(caterva_tree_attr_set(tree, "/n/g", "a", "\x01", 1, &err), CATERVA_EEXIST,
            "no group");
    CHECK_OK(caterva_tree_create_array(tree, "/nb", &o, &other, &err), err);
    caterva_discard(other);
    caterva_discard(n);
    caterva_discard(x);
    CHECK_OK(caterva_tree_rollback(tree, &err), err);
    put("/n/b", 1, 0);
    put("/p", 1, 0);
    put("/t", 1, 0);
    CHECK_OK(caterva_tree_remove(tree, "/n", &err), err);
    CHECK_OK(caterva_tree_remove(tree, "/p", &err), err);
    CHECK_OK(caterva_tree_remove(tree, "/t", &err), err);
    CHECK(rmdir(scratch_path(folder, "t.b2d/p")) == 0,
          "the folder of what was discarded is not empty");
    check_list(tree, "/a /empty/ /g/ /g/h/ /g/h/x ");
}

#ifdef __linux__
/* ---- What is on the medium ------------------------------------------------------------ */

static dev_t synced_device;
static ino_t synced[64];
static int n_synced;

/* In the place of the system's, which a test cannot ask what it did. */
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

/* A name is on the medium when the folder that it is in was synced after it was made. */
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
    CHECK_OK(caterva_tree_remove(tree, "/s", &err), err);
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
    refused(caterva_tree_remove(tree, "/m", &err), CATERVA_EBUSY, "open for writing");
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
    refused(caterva_tree_remove(tree, "/m", &err), CATERVA_EEXIST, "notes.txt");
    CHECK_OK(caterva_tree_open_array(tree, "/m/n/x", &writing, &array, &err), err);
    refused(caterva_tree_remove(tree, "/m", &err), CATERVA_EEXIST, "notes.txt");
    caterva_discard(array);
    check_list(tree, "/empty/ /g/ /g/k/ /g/k/a /m/ /m/n/ /m/n/x /m/n/y /m/notes.txt ");
    unlink(file);
    CHECK_OK(caterva_tree_remove(tree, "/m/n/y", &err), err);
    CHECK_OK(caterva_tree_remove(tree, "/m", &err), err);
    CHECK_OK(caterva_tree_remove(tree, "/empty", &err), err);
    refused(caterva_tree_remove(tree, "/m", &err), CATERVA_ENOTFOUND, "/m");
    refused(caterva_tree_remove(tree, "/", &err), CATERVA_EINVAL, "own");
    check_list(tree, "/g/ /g/k/ /g/k/a ");
    CHECK(count_files("t.b2d") == 2, "%d files", count_files("t.b2d"));
}

/* ---- Archives ------------------------------------------------------------------------- */

static void set_attribute(void)
{
    CHECK_OK(caterva_tree_attr_set(tree, "/g", "title", "\xa8sixteen!", 9, &err), err);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
}

/* Where the frame of a member begins is told. */
static void check_place(caterva_tree *packed, const char *archive)
{
    size_t size;
    caterva_array *array;
    const caterva_info *info;
    uint8_t *bytes = scratch_load(archive, &size);
    CHECK_OK(caterva_tree_open_array(packed, "/g/k/a", NULL, &array, &err), err);
    CHECK_OK(caterva_info_get(array, &info, &err), err);
    CHECK(info->offset > 0 && info->offset + 10 < size &&
              memcmp(bytes + info->offset + 2, "b2frame", 8) == 0,
          "offset %llu", (unsigned long long)info->offset);
    caterva_info_release(info);
    caterva_discard(array);
    free(bytes);
}

static int stop_soon(void *context, int64_t done, int64_t total)
{
    (void)context, (void)total;
    return done > 0;
}

static void test_pack(void)
{
    char archive[SCRATCH_PATH], copy[SCRATCH_PATH], file[SCRATCH_PATH + 20];
    caterva_tree *packed;
    caterva_array *array;
    caterva_tree_pack_options o = CATERVA_TREE_PACK_INIT;
    put("/Größe/été", 7, 0);
    set_attribute();
    umask(027);
    CHECK_OK(caterva_tree_pack(tree, scratch_path(archive, "t.b2z"), NULL, &err), err);
    struct stat st;
    CHECK(stat(archive, &st) == 0 && (st.st_mode & 0777) == 0640, "mode %o", st.st_mode);
    CHECK_OK(caterva_tree_open(archive, NULL, &packed, &err), err);
    check_list(packed, "/Größe/ /Größe/été /g/ /g/k/ /g/k/a ");
    check_first(packed, "/Größe/été", 7);
    check_place(packed, archive);
    refused(caterva_tree_pack(tree, archive, NULL, &err), CATERVA_EEXIST, "exists");
    put("/g/k/a", 50, 1);
    o.overwrite = 1;
    o.on_progress = stop_soon;
    refused(caterva_tree_pack(tree, archive, &o, &err), CATERVA_ESTOPPED, "stopped");
    CHECK(count_files("") == 2, "%d files", count_files(""));
    o.on_progress = NULL;
    CHECK_OK(caterva_tree_pack(tree, archive, &o, &err), err);
    check_first(packed, "/g/k/a", 100); /* goes on in the old one */
    CHECK_OK(caterva_tree_unpack(packed, scratch_path(copy, "old.b2d"), NULL, &err), err);
    refused(caterva_tree_unpack(packed, copy, &o, &err), CATERVA_EEXIST, "there already");
    refused(caterva_tree_create_group(packed, "/x", &err), CATERVA_EREADONLY, "reading");
    CHECK_OK(caterva_tree_close(packed, &err), err);

    CHECK_OK(caterva_tree_open(copy, NULL, &packed, &err), err);
    check_list(packed, "/Größe/ /Größe/été /g/ /g/k/ /g/k/a ");
    check_first(packed, "/g/k/a", 100);
    caterva_open_options writing = CATERVA_OPEN_INIT;
    writing.mode = CATERVA_MODE_WRITE;
    refused(caterva_tree_open_array(packed, "/g/k/a", &writing, &array, &err),
            CATERVA_EREADONLY, "reading");
    snprintf(file, sizeof file, "%s::/g/k/a", copy);
    CHECK_OK(caterva_open(file, &writing, &array, &err), err);
    refused(caterva_tree_pack(packed, archive, &o, &err), CATERVA_EBUSY, "open for writing");
    caterva_discard(array);
    CHECK_OK(caterva_tree_pack(packed, archive, &o, &err), err);
    CHECK_OK(caterva_tree_close(packed, &err), err);
}

/* A checksum that is wrong is told of, and nothing is made. */
static void test_damaged_member(void)
{
    char archive[SCRATCH_PATH], copy[SCRATCH_PATH];
    size_t size;
    caterva_tree *packed;
    uint8_t *bytes = scratch_load(scratch_path(archive, "t.b2z"), &size);
    bytes[200] ^= 1;
    scratch_save(archive, bytes, size);
    free(bytes);
    CHECK_OK(caterva_tree_open(archive, NULL, &packed, &err), err);
    refused(caterva_tree_unpack(packed, scratch_path(copy, "new.b2d"), NULL, &err),
            CATERVA_ECORRUPT, "checksum");
    CHECK(access(copy, F_OK) != 0, "%s is there", copy);
    CHECK_OK(caterva_tree_close(packed, &err), err);
}

/* ---- Damage --------------------------------------------------------------------------- */

/* Whether the array, which is sealed, can still be read; then it is what was written. */
static int reads_right(caterva_tree *t, const char *key, int32_t first)
{
    static const int64_t start[] = {0, 0}, stop[] = {3, 4};
    int32_t items[12] = {0};
    caterva_array *array;
    if (caterva_tree_open_array(t, key, NULL, &array, &err) != CATERVA_OK) return 0;
    const caterva_info *info;
    CHECK_OK(caterva_info_get(array, &info, &err), err);
    int good = info->ndim == 2 && info->shape[0] == 3 && info->shape[1] == 4 &&
               strcmp(info->dtype, "<i4") == 0;
    caterva_info_release(info);
    CHECK(good, "%s has another shape or dtype", key);
    good = caterva_read(array, start, stop, items, sizeof items, &err) == CATERVA_OK;
    for (int i = 0; good && i < 12; i++)
        CHECK(items[i] == first + i, "%s: item %d is silently %d", key, i, items[i]);
    caterva_discard(array);
    return good;
}

/* The same of a group's attributes, which are sealed, too. */
static int reads_attributes(caterva_tree *t)
{
    void *value;
    size_t size;
    if (caterva_tree_attr_get(t, "/g", "title", &value, &size, &err) != CATERVA_OK) return 0;
    CHECK(size == 9 && memcmp(value, "\xa8sixteen!", 9) == 0,
          "an attribute is silently wrong");
    caterva_free(value);
    return 1;
}

/* A few bytes anywhere in an archive are changed: its arrays are refused, or right. */
static void test_mutations(void)
{
    const int rounds = getenv("CATERVA_TEST_LONG") ? 5000 : 400;
    char archive[SCRATCH_PATH], changed[SCRATCH_PATH];
    size_t size;
    int right = 0, refused_trees = 0;
    uint8_t *bytes = scratch_load(scratch_path(archive, "t.b2z"), &size);
    scratch_path(changed, "changed.b2z");
    for (int round = 0; round < rounds; round++) {
        size_t at[4];
        uint8_t was[4];
        caterva_tree *t;
        int n = 1 + (int)(rng_next(&random_numbers) % 4);
        for (int i = 0; i < n; i++) {
            at[i] = rng_next(&random_numbers) % size;
            was[i] = bytes[at[i]];
            bytes[at[i]] ^= (uint8_t)(1 + rng_next(&random_numbers) % 255);
        }
        scratch_save(changed, bytes, size);
        while (n-- > 0) bytes[at[n]] = was[n];
        if (caterva_tree_open(changed, NULL, &t, &err) != CATERVA_OK) {
            refused_trees++;
            continue;
        }
        right += reads_right(t, "/g/k/a", 100) + reads_right(t, "/Größe/été", 7);
        right += reads_attributes(t);
        CHECK_OK(caterva_tree_close(t, &err), err);
    }
    free(bytes);
    printf("%d rounds: %d archives refused, %d of the others' arrays and attributes right\n",
           rounds, refused_trees, right);
    CHECK(right > 0 && refused_trees > 0, "nothing was tried");
}

/* The URL of an array that is not there yet. */
static void test_urls(void)
{
    char url[SCRATCH_PATH + 20];
    caterva_array *array;
    caterva_create_options o = create_options();
    snprintf(url, sizeof url, "%s::/u/x", path);
    refused(caterva_create(url, &o, &array, &err), CATERVA_EBUSY, "elsewhere");
    CHECK_OK(caterva_tree_close(tree, &err), err);
    CHECK_OK(caterva_create(url, &o, &array, &err), err);
    fill(array, 9);
    CHECK_OK(caterva_close(array, &err), err);
    CHECK_OK(caterva_compact(url, NULL, &err), err);
    CHECK_OK(caterva_seal(url, NULL, &err), err);
    CHECK_OK(caterva_tree_open(path, NULL, &tree, &err), err);
    check_first(tree, "/u/x", 9);
    CHECK_OK(caterva_unlink(url, NULL, &err), err);
    check_list(tree, "/Größe/ /Größe/été /g/ /g/k/ /g/k/a ");
    refused(caterva_tree_remove(tree, "/g", &err), CATERVA_EREADONLY, "reading");
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

int main(int argc, char **argv)
{
    random_numbers = rng_from_seed(seed_argument(argc, argv, 1));
    test_create();
    test_keys_in_the_way();
    test_pending_in_the_way();
    test_folders_are_synced();
    test_moves();
    test_removals();
    test_pack();
    test_mutations();
    test_damaged_member();
    test_urls();
    return 0;
}
