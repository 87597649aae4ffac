/* Archives as other programs make them, and hostile ones: what is listed, opened and refused,
 * with which messages and within which memory. */
#include "check.h"
#include "sanitized.h"
#include "scratch.h"
#include "zip_made.h"

#include <caterva.h>
#include <caterva_store.h>
#include <caterva_tree.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static caterva_error err;

/* ---- What the archives hold --------------------------------------------------------- */

static void *frame;
static size_t frame_size;

/* The numbers 0 to 11, as a frame. */
static void make_frame(void)
{
    int64_t shape[] = {3, 4};
    int32_t items[12];
    for (int i = 0; i < 12; i++) items[i] = i;
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *array;
    o.ndim = 2;
    o.shape = shape;
    o.dtype = "<i4";
    CHECK_OK(caterva_create_from_memory("mem:", &o, items, sizeof items, &array, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    CHECK_OK(caterva_frame_copy(array, &frame, &frame_size, &err), err);
    caterva_discard(array);
}

static zip_made_member member(const char *name)
{
    return (zip_made_member){.name = name, .data = frame, .size = (uint32_t)frame_size};
}

static char path[SCRATCH_PATH];

static void save(const zip_made *zip)
{
    size_t size;
    uint8_t *bytes = zip_made_bytes(zip, &size);
    scratch_save(scratch_path(path, "t.b2z"), bytes, size);
    free(bytes);
}

/* ---- What is good ------------------------------------------------------------------- */

static void check_items(caterva_array *array)
{
    int64_t start[] = {0, 0}, stop[] = {3, 4};
    int32_t items[12];
    CHECK_OK(caterva_read(array, start, stop, items, sizeof items, &err), err);
    for (int i = 0; i < 12; i++) CHECK(items[i] == i, "item %d is %d", i, items[i]);
}

static void check_opens(caterva_tree *tree, const char *key)
{
    caterva_array *array;
    char url[SCRATCH_PATH + 64];
    CHECK_OK(caterva_tree_open_array(tree, key, NULL, &array, &err), err);
    check_items(array);
    CHECK_OK(caterva_refresh(array, &err), err);
    check_items(array);
    caterva_discard(array);
    snprintf(url, sizeof url, "%s::%s", path, key);
    CHECK_OK(caterva_open(url, NULL, &array, &err), err);
    const caterva_info *info;
    CHECK_OK(caterva_info_get(array, &info, &err), err);
    CHECK(strcmp(info->url, url) == 0, "%s is %s", url, info->url);
    caterva_info_release(info);
    check_items(array);
    caterva_discard(array);
}

/* "key kind ..." of all listed members. */
static void check_list(caterva_tree *tree, const char *group, const char *expected)
{
    char text[2000] = "";
    const caterva_tree_list *list;
    CHECK_OK(caterva_tree_get_list(tree, group, &list, &err), err);
    for (size_t i = 0; i < list->n; i++) {
        strcat(strcat(text, list->entries[i]->key), " ");
        strcat(strcat(text, list->entries[i]->kind_name), " ");
    }
    caterva_tree_list_release(list);
    CHECK(strcmp(text, expected) == 0, "listed: %s\nnot:    %s", text, expected);
}

static caterva_tree *open_made(const zip_made *zip)
{
    caterva_tree *tree;
    save(zip);
    CHECK_OK(caterva_tree_open(path, NULL, &tree, &err), err);
    return tree;
}

static void test_forms(void)
{
    zip_made zip = {.n = 5, .comment = "made by PK\5\6 hand", .before = "#!/bin/sh\n"};
    zip.members[0] = member("b/x.b2nd");
    zip.members[0].extra = 4001; /* as aligned members have */
    zip.members[1] = (zip_made_member){.name = "a.b2nd", .data = "old", .size = 3};
    zip.members[2] = member("a.b2nd"); /* the last of a name counts */
    zip.members[3] = member("b.b2nd"); /* beside the group of that name */
    zip.members[4] = (zip_made_member){.name = "b/c/"};
    for (int wide = 0; wide < 2; wide++) {
        zip.wide = wide;
        caterva_tree *tree = open_made(&zip);
        check_list(tree, NULL, "/a array /b array /b/x array ");
        check_list(tree, "/b", "/b/x array ");
        check_opens(tree, "/a");
        check_opens(tree, "/b");
        check_opens(tree, "/b/x");
        CHECK_OK(caterva_tree_close(tree, &err), err);
    }
}

/* The member may be longer than its frame, and never shorter. */
static void test_slack(void)
{
    uint8_t *longer = check_alloc(frame_size + 100);
    memset(longer, 7, frame_size + 100);
    memcpy(longer, frame, frame_size);
    zip_made zip = {.n = 2};
    zip.members[0] = member("x.b2nd");
    zip.members[0].data = longer;
    zip.members[0].size += 100;
    zip.members[1] = member("y.b2nd");
    zip.members[1].size -= 1;
    caterva_tree *tree = open_made(&zip);
    caterva_array *array;
    check_opens(tree, "/x");
    caterva_status status = caterva_tree_open_array(tree, "/y", NULL, &array, &err);
    CHECK(status == CATERVA_ECORRUPT, "a frame that was cut: %s", err.message);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    free(longer);
}

/* One is listed and cannot be opened, the others can. */
static void test_refused_members(void)
{
    zip_made zip = {.n = 4};
    zip.members[0] = member("good.b2nd");
    zip.members[1] = member("deflated.b2nd");
    zip.members[1].method = 8;
    zip.members[2] = member("secret.b2nd");
    zip.members[2].flags = 1;
    zip.members[3] = (zip_made_member){.name = "notes.txt", .data = "hello", .size = 5};
    caterva_tree *tree = open_made(&zip);
    caterva_array *array;
    check_list(tree, "/",
               "/deflated deflated /good array /notes.txt file /secret encrypted ");
    check_opens(tree, "/good");
    const char *keys[] = {"/deflated", "/secret", "/notes.txt"};
    for (int i = 0; i < 3; i++) {
        caterva_status status = caterva_tree_open_array(tree, keys[i], NULL, &array, &err);
        CHECK(status == CATERVA_EUNSUPPORTED && strstr(err.message, keys[i] + 1), "%s: %s",
              keys[i], err.message);
    }
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

/* Open handles of the tree continue to use the file that they opened. */
static void test_replaced(void)
{
    zip_made zip = {.n = 1};
    zip.members[0] = member("x.b2nd");
    caterva_tree *tree = open_made(&zip);
    caterva_array *array;
    CHECK_OK(caterva_tree_open_array(tree, "/x", NULL, &array, &err), err);
    char aside[SCRATCH_PATH];
    rename(path, scratch_path(aside, "aside"));
    zip.before = "moves all that follows";
    save(&zip);
    caterva_array *other;
    CHECK_OK(caterva_tree_open_array(tree, "/x", NULL, &other, &err), err);
    check_items(other);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    check_items(array);
    CHECK_OK(caterva_refresh(array, &err), err); /* finds it at its new position */
    check_items(array);
    caterva_discard(array);
    caterva_discard(other);
}

static void test_answers(void)
{
    zip_made zip = {.n = 2};
    zip.members[0] = member("g/x.b2nd");
    zip.members[1] = (zip_made_member){.name = "bad.b2nd", .data = "no frame", .size = 8};
    caterva_tree *tree = open_made(&zip);
    static const struct {
        const char *key;
        caterva_status status;
        const char *words;
    } cases[] = {
        {"/g", CATERVA_EUNSUPPORTED, "is a group"},
        {"/", CATERVA_EUNSUPPORTED, "is a group"},
        {"/y", CATERVA_ENOTFOUND, "/y does not exist in"},
        {"x", CATERVA_EINVAL, "slash"},
        {"/g/../g/x", CATERVA_EINVAL, "\"..\""},
        {"/g//x", CATERVA_EINVAL, "empty"},
        {"/bad", CATERVA_ECORRUPT, "frame"},
        {"", CATERVA_EINVAL, "slash"},
    };
    caterva_array *array;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        caterva_status status =
            caterva_tree_open_array(tree, cases[i].key, NULL, &array, &err);
        CHECK(status == cases[i].status && strstr(err.message, cases[i].words), "%s: %s %s",
              cases[i].key, caterva_status_name(status), err.message);
    }
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    caterva_status status = caterva_tree_open_array(tree, "/g/x", &o, &array, &err);
    CHECK(status == CATERVA_EREADONLY, "%s", err.message);
    const caterva_tree_list *list;
    status = caterva_tree_get_list(tree, "/none", &list, &err);
    CHECK(status == CATERVA_ENOTFOUND, "%s", err.message);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    status = caterva_open(path, NULL, &array, &err);
    CHECK(status == CATERVA_ECORRUPT, "an archive is no array: %s", err.message);
}

/* A name with "::" in it is found before a tree is searched. */
static void test_colons(void)
{
    char odd[SCRATCH_PATH];
    caterva_array *array;
    if (getenv("CATERVA_WINDOWS")) return; /* names have no colons there */
    scratch_save(scratch_path(odd, "t.b2z::"), frame, frame_size);
    CHECK_OK(caterva_open(odd, NULL, &array, &err), err);
    check_items(array);
    caterva_discard(array);
    scratch_remove(odd);
}

/* ---- What is not -------------------------------------------------------------------- */

static void refuse(const zip_made *zip, caterva_status expected, const char *words)
{
    caterva_tree *tree;
    save(zip);
    caterva_status status = caterva_tree_open(path, NULL, &tree, &err);
    CHECK(status == expected && strstr(err.message, words), "%s instead of \"%s\": %s",
          caterva_status_name(status), words, status ? err.message : "");
}

static void test_bad_names(void)
{
    static const char *const names[] = {
        "../x.b2nd",    "g/../../x.b2nd", "/x.b2nd",
        "g//x.b2nd",    "./x.b2nd",       "g/./x.b2nd",
        "..",           "a\nb.b2nd",      "",
        "\x1b[2J.b2nd", "\xff\xfe.b2nd",  "g/..",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        zip_made zip = {.n = 1};
        zip.members[0] = member(names[i]);
        refuse(&zip, CATERVA_ECORRUPT, "the name");
    }
    char deep[400] = "";
    for (int i = 0; i < 70; i++) strcat(deep, "g/");
    zip_made zip = {.n = 1};
    zip.members[0] = member(strcat(deep, "x.b2nd"));
    refuse(&zip, CATERVA_ECORRUPT, "64 parts");
}

static void test_lies(void)
{
    zip_made good = {.n = 2}, zip;
    good.members[0] = member("x.b2nd");
    good.members[1] = member("y.b2nd");
    zip = good;
    zip.says_n = (uint64_t)1 << 32;
    refuse(&zip, CATERVA_ECORRUPT, "claims 4294967296 members");
    zip = good;
    zip.says_n = 1;
    refuse(&zip, CATERVA_ECORRUPT, "after its 1 members");
    zip = good;
    zip.says_directory_size = UINT64_MAX - 3;
    refuse(&zip, CATERVA_ECORRUPT, "does not fit");
    zip = good;
    zip.says_directory_pos = (uint64_t)1 << 60;
    refuse(&zip, CATERVA_ECORRUPT, "does not fit");
    zip = good;
    zip.members[1].says_size = (uint64_t)1 << 62;
    refuse(&zip, CATERVA_ECORRUPT, "does not lie before");
    zip = good;
    zip.members[1].says_pos = UINT64_MAX - 5;
    refuse(&zip, CATERVA_ECORRUPT, "does not lie before");
    zip = good;
    zip.members[1].at_of = 1;
    refuse(&zip, CATERVA_ECORRUPT, "overlap");
    zip = good;
    zip.members[0].says_size = frame_size + 60;
    refuse(&zip, CATERVA_ECORRUPT, "overlap");
}

/* What the directory does not say is found at the member. */
static void test_local_lies(void)
{
    zip_made zip = {.n = 2};
    zip.members[0] = member("x.b2nd");
    zip.members[0].local = "z.b2nd";
    zip.members[1] = member("y.b2nd");
    caterva_tree *tree = open_made(&zip);
    caterva_array *array;
    caterva_status status = caterva_tree_open_array(tree, "/x", NULL, &array, &err);
    CHECK(status == CATERVA_ECORRUPT && strstr(err.message, "no member begins"), "%s",
          err.message);
    check_list(tree, NULL, "/x damaged /y array ");
    check_opens(tree, "/y");
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

/* Truncated anywhere, and any byte of the end changed: a status, and never a wrong item. */
static void test_cut(void)
{
    zip_made zip = {.n = 2};
    size_t size;
    caterva_tree *tree;
    zip.members[0] = member("x.b2nd");
    zip.members[1] = member("y.b2nd");
    uint8_t *bytes = zip_made_bytes(&zip, &size);
    for (size_t n = 0; n < size; n++) {
        scratch_save(scratch_path(path, "cut.b2z"), bytes, n);
        caterva_status status = caterva_tree_open(path, NULL, &tree, &err);
        CHECK(status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED,
              "cut to %zu bytes: %s", n, caterva_status_name(status));
    }
    free(bytes);
}

/* As many members as bytes allow: memory for those that exist, and no more. */
static void test_memory(void)
{
    zip_made zip = {.n = 1, .says_n = (uint64_t)1 << 40};
    zip.members[0] = member("x.b2nd");
    save(&zip);
    if (SANITIZED) return; /* sanitizers use the whole address space */
    pid_t child = fork();
    if (child == 0) {
        caterva_tree *tree;
        struct rlimit limit;
        getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = (rlim_t)512 << 20;
        if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
        _exit(caterva_tree_open(path, NULL, &tree, &err) == CATERVA_ECORRUPT ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}

/* ---- Directories -------------------------------------------------------------------- */

static void test_directories(void)
{
    char dir[SCRATCH_PATH];
    caterva_tree *tree;
    scratch_path(dir, "plain");
    CHECK(mkdir(dir, 0777) == 0, "mkdir");
    caterva_status status = caterva_tree_open(dir, NULL, &tree, &err);
    CHECK(status == CATERVA_EUNSUPPORTED && strstr(err.message, "embed.b2e"), "%s",
          err.message);
    status = caterva_tree_open("/nowhere/at all.b2z", NULL, &tree, &err);
    CHECK(status == CATERVA_ENOTFOUND, "%s", err.message);
    char file[SCRATCH_PATH];
    scratch_save(scratch_path(file, "plain/embed.b2e"), "none", 4);
    CHECK_OK(caterva_tree_open(dir, NULL, &tree, &err), err);
    const caterva_tree_list *list;
    status = caterva_tree_get_list(tree, NULL, &list, &err);
    CHECK(status == CATERVA_ECORRUPT && strstr(err.message, "embed.b2e in "), "%s",
          err.message);
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

int main(void)
{
    make_frame();
    test_forms();
    test_slack();
    test_refused_members();
    test_replaced();
    test_answers();
    test_colons();
    test_bad_names();
    test_lies();
    test_local_lies();
    test_cut();
    test_directories();
    test_memory(); /* last, as it forks */
    caterva_free(frame);
    return 0;
}
