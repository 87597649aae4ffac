/* Trees packed and unpacked: archives appear complete, and damage in one is refused, or does
 * not matter. */
#include "small_tree.h"
#include "support/every_step.h"

#include "random.h"

#include <caterva_tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static rng random_numbers;

/* ---- Archives ------------------------------------------------------------------------- */

static void set_attribute(void)
{
    CHECK_OK(caterva_tree_attr_set(tree, "/g", "title", "\xa8sixteen!", 9, &err), err);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
}

/* The position of a member's frame is reported. */
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
    CHECK_OK(caterva_tree_pack(tree, scratch_path(archive, "t.b2z"), NULL, &err), err);
    CHECK_OK(caterva_tree_open(archive, NULL, &packed, &err), err);
    check_list(packed, "/Größe/ /Größe/été /g/ /g/k/ /g/k/a ");
    check_first(packed, "/Größe/été", 7);
    check_place(packed, archive);
    refused(caterva_tree_pack(tree, archive, NULL, &err), CATERVA_EEXIST, "exists");
    put("/g/k/a", 50, 1);
    o.overwrite = 1;
    o.progress = every_step(stop_soon, NULL);
    refused(caterva_tree_pack(tree, archive, &o, &err), CATERVA_ESTOPPED, "stopped");
    CHECK(count_files("") == 2, "%d files", count_files(""));
    o.progress = every_step(NULL, NULL);
    CHECK_OK(caterva_tree_pack(tree, archive, &o, &err), err);
    check_first(packed, "/g/k/a", 100); /* goes on in the old one */
    CHECK_OK(caterva_tree_unpack(packed, scratch_path(copy, "old.b2d"), NULL, &err), err);
    refused(caterva_tree_unpack(packed, copy, &o, &err), CATERVA_EEXIST, "exists already");
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

/* A wrong checksum is reported, and nothing is created. */
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

/* Returns whether the array, which is sealed, can still be read; then it must be as
 * written. */
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

/* The same for a group's attributes, which are sealed, too. */
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

static void test_mode(void)
{
    char archive[SCRATCH_PATH];
    struct stat st;
    umask(027);
    CHECK_OK(caterva_tree_pack(tree, scratch_path(archive, "mode.b2z"), NULL, &err), err);
    CHECK(stat(archive, &st) == 0 && (st.st_mode & 0777) == 0640, "mode %o", st.st_mode);
}

int main(int argc, char **argv)
{
    random_numbers = rng_from_seed(seed_argument(argc, argv, 1));
    CHECK_OK(caterva_tree_create(scratch_path(path, "t.b2d"), NULL, &tree, &err), err);
    put("/g/k/a", 100, 0);
    test_pack();
    test_mutations();
    test_damaged_member();
    test_mode();
    CHECK_OK(caterva_tree_close(tree, &err), err);
    return 0;
}
