/* Keys that differ only in case. Where the file system tells them apart, they are different arrays and
 * groups. Where it ignores case (Windows, macOS), one of them is refused, and never taken for the other
 * one. Archives have both everywhere, and verify reports them. */
#include "small_tree.h"
#include "zip_made.h"

#include <caterva_tree.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool ignores_case(void)
{
    struct stat st;
    char other[SCRATCH_PATH];
    return stat(scratch_path(other, "t.b2d/EMBED.B2E"), &st) == 0;
}

static caterva_status create(const char *key, int overwrite)
{
    caterva_array *array;
    caterva_create_options o = create_options();
    o.overwrite = overwrite;
    caterva_status status = caterva_tree_create_array(tree, key, &o, &array, &err);
    if (status == CATERVA_OK) caterva_discard(array);
    return status;
}

static void test_refused(void)
{
    size_t n;
    const char **names;
    caterva_array *array;
    const char *words = "differs only in case";
    refused(create("/T", 0), CATERVA_EEXIST, words);
    refused(create("/T", 1), CATERVA_EEXIST, words);
    refused(create("/G/y", 0), CATERVA_EEXIST, words);
    refused(create("/g/H/y", 0), CATERVA_EEXIST, words);
    refused(create("/g/h/X", 1), CATERVA_EEXIST, words);
    refused(caterva_tree_create_group(tree, "/G", &err), CATERVA_EEXIST, words);
    refused(caterva_tree_create_group(tree, "/G/new", &err), CATERVA_EEXIST, words);
    refused(caterva_tree_move(tree, "/g/h/x", "/T", &err), CATERVA_EEXIST, words);
    refused(caterva_tree_attr_set(tree, "/G", "a", "\1", 1, &err), CATERVA_EEXIST, words);
    refused(caterva_tree_open_array(tree, "/T", NULL, &array, &err), CATERVA_ENOTFOUND, "/T");
    refused(caterva_tree_open_array(tree, "/G/h/x", NULL, &array, &err), CATERVA_ENOTFOUND,
            "/G");
    refused(caterva_tree_delete(tree, "/T", &err), CATERVA_ENOTFOUND, "/T");
    refused(caterva_tree_delete(tree, "/G", &err), CATERVA_ENOTFOUND, "/G");
    refused(caterva_tree_delete(tree, "/g/H", &err), CATERVA_ENOTFOUND, "/g/H");
    refused(caterva_tree_move(tree, "/T", "/u", &err), CATERVA_ENOTFOUND, "/T");
    refused(caterva_tree_attr_list(tree, "/G", &names, &n, &err), CATERVA_ENOTFOUND, "/G");
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_list(tree, "/g/ /g/h/ /g/h/x /t ");
    check_first(tree, "/t", 1);
    check_first(tree, "/g/h/x", 2);
}

static void test_apart(void)
{
    put("/T", 11, 0);
    put("/G/h/x", 12, 0);
    check_list(tree, "/G/ /G/h/ /G/h/x /T /g/ /g/h/ /g/h/x /t ");
    check_first(tree, "/T", 11);
    check_first(tree, "/t", 1);
    check_first(tree, "/G/h/x", 12);
    check_first(tree, "/g/h/x", 2);
    CHECK_OK(caterva_tree_delete(tree, "/T", &err), err);
    CHECK_OK(caterva_tree_delete(tree, "/G", &err), err);
}

/* ---- Archives --------------------------------------------------------------------------- */

static char seen[500]; /* the pairs that verify reports */

static void on_case_collision(void *context, const char *key, const char *other)
{
    (void)context;
    strcat(strcat(strcat(strcat(seen, other), " "), key), "; ");
}

static void on_damage(void *context, const char *key, const caterva_damage *damage)
{
    (void)context;
    CHECK(false, "%s: %s", key, damage->message);
}

static void check_verify(caterva_tree *t, const char *expected, int n)
{
    caterva_tree_verify_options o = CATERVA_TREE_VERIFY_INIT;
    caterva_tree_verify_result r = CATERVA_TREE_VERIFY_RESULT_INIT;
    o.on_case_collision = on_case_collision;
    o.on_damage = on_damage;
    seen[0] = '\0';
    CHECK_OK(caterva_tree_verify(t, NULL, &o, &r, &err), err);
    CHECK(strcmp(seen, expected) == 0 && r.case_collisions == n, "%s", seen);
}

static void test_archive(const char *const *names, size_t n, const char *reported,
                         bool can_unpack)
{
    size_t size, whole;
    zip_made zip = {.n = (int)n};
    char file[SCRATCH_PATH], out[SCRATCH_PATH];
    caterva_tree *t;
    uint8_t *bytes = scratch_load(scratch_path(file, "t.b2d/t.b2nd"), &size);
    for (size_t i = 0; i < n; i++)
        zip.members[i] =
            (zip_made_member){.name = names[i], .data = bytes, .size = (uint32_t)size};
    uint8_t *archive = zip_made_bytes(&zip, &whole);
    scratch_save(scratch_path(file, "both.b2z"), archive, whole);
    free(archive);
    free(bytes);
    CHECK_OK(caterva_tree_open(file, NULL, &t, &err), err);
    int pairs = 0;
    for (const char *at = reported; (at = strchr(at, ';')); at++) pairs++;
    check_verify(t, reported, pairs);
    scratch_path(out, "out.b2d");
    if (can_unpack) {
        CHECK_OK(caterva_tree_unpack(t, out, NULL, &err), err);
        CHECK_OK(caterva_tree_close(t, &err), err);
        CHECK_OK(caterva_tree_open(out, NULL, &t, &err), err);
        check_verify(t, reported, pairs);
    } else {
        struct stat st;
        refused(caterva_tree_unpack(t, out, NULL, &err), CATERVA_EEXIST, "only in case");
        CHECK(stat(out, &st) != 0, "%s was left", out);
    }
    CHECK_OK(caterva_tree_close(t, &err), err);
    scratch_remove(out);
}

static void test_archives(bool ignores)
{
    static const char *const arrays[] = {"T.b2nd", "t.b2nd"};
    static const char *const groups[] = {"G/h/x.b2nd", "g/h/x.b2nd", "g/H/y.b2nd"};
    static const char *const apart[] = {"x.b2nd", "X/y.b2nd", "g/z.b2nd", "h/Z.b2nd"};
    test_archive(arrays, 2, "/T /t; ", !ignores);
    test_archive(groups, 3, "/G /g; /G/h /g/H; /g/H /g/h; ", !ignores);
    test_archive(apart, 4, "", true);
}

int main(void)
{
    CHECK_OK(caterva_tree_create(scratch_path(path, "t.b2d"), NULL, &tree, &err), err);
    put("/t", 1, 0);
    put("/g/h/x", 2, 0);
    bool ignores = ignores_case();
    printf("the file system %s case\n", ignores ? "ignores" : "does not ignore");
    if (ignores)
        test_refused();
    else
        test_apart();
    test_archives(ignores);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    return 0;
}
