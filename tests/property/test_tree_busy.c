/* Commits of trees while another process writes to a file that the commit would replace:
 * refused before anything is changed, with all pending changes kept for another try. */
#include "small_tree.h"

#include <caterva_jobs.h>
#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <stdio.h>

static void set_number(const char *group, const char *name, uint8_t value)
{
    CHECK_OK(caterva_tree_attr_set(tree, group, name, &value, 1, &err), err);
}

/* As a reader of the tree finds it; -1: it does not exist. */
static int stored_number(const char *group, const char *name)
{
    void *value;
    size_t size;
    caterva_tree *reader;
    CHECK_OK(caterva_tree_open(path, NULL, &reader, &err), err);
    caterva_status status = caterva_tree_attr_get(reader, group, name, &value, &size, &err);
    int number = status == CATERVA_OK ? *(uint8_t *)value : -1;
    CHECK(status == CATERVA_OK || status == CATERVA_ENOTFOUND, "%s", err.message);
    if (status == CATERVA_OK) caterva_free(value);
    CHECK_OK(caterva_tree_close(reader, &err), err);
    return number;
}

static void check_stored(const char *key, int32_t first)
{
    caterva_tree *reader;
    CHECK_OK(caterva_tree_open(path, NULL, &reader, &err), err);
    check_first(reader, key, first);
    CHECK_OK(caterva_tree_close(reader, &err), err);
}

/* As another program does: a lock belongs to the open file. */
static caterva_array *write_elsewhere(const char *name)
{
    char file[SCRATCH_PATH + 40];
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    snprintf(file, sizeof file, "%s/%s", path, name);
    CHECK_OK(caterva_open(file, &o, &array, &err), err);
    return array;
}

static void check_old(void)
{
    check_stored("/a", 10);
    check_stored("/g/b", 20);
    CHECK(stored_number("/g", "n") == 1, "attributes: %d", stored_number("/g", "n"));
}

static void make(void)
{
    CHECK_OK(caterva_tree_create(scratch_path(path, "t.b2d"), NULL, &tree, &err), err);
    put("/a", 10, 0);
    put("/g/b", 20, 0);
    set_number("/g", "n", 1);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_old();
}

static void test_again(void)
{
    caterva_array *b = begin("/g/b", 21, 1), *c = begin("/c", 31, 0);
    set_number("/g", "n", 2);
    caterva_array *other = write_elsewhere("g/b.b2nd");
    for (int i = 0; i < 2; i++) {
        refused(caterva_tree_commit(tree, &err), CATERVA_EBUSY, "open for writing");
        check_old();
        check_list(tree, "/a /g/ /g/b ");
    }
    fill(other, 22); /* it may still commit */
    CHECK_OK(caterva_close(other, &err), err);
    check_stored("/g/b", 22);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_stored("/a", 10);
    check_stored("/g/b", 21);
    check_stored("/c", 31);
    CHECK(stored_number("/g", "n") == 2, "attributes are lost");
    CHECK_OK(caterva_close(b, &err), err);
    CHECK_OK(caterva_close(c, &err), err);
}

/* A failed commit keeps no lock of a file. */
static void test_lets_go(void)
{
    caterva_array *a = begin("/a", 11, 1), *b = begin("/g/b", 23, 1);
    caterva_array *other = write_elsewhere("g/b.b2nd");
    refused(caterva_tree_commit(tree, &err), CATERVA_EBUSY, "open for writing");
    caterva_array *another = write_elsewhere("a.b2nd");
    caterva_discard(other);
    refused(caterva_tree_commit(tree, &err), CATERVA_EBUSY, "open for writing");
    CHECK_OK(caterva_close(write_elsewhere("g/b.b2nd"), &err), err);
    caterva_discard(another);
    CHECK_OK(caterva_tree_rollback(tree, &err), err);
    caterva_discard(a);
    caterva_discard(b);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_stored("/a", 10);
    check_stored("/g/b", 21);
}

/* A name that was taken meanwhile. */
static void test_taken(void)
{
    char file[SCRATCH_PATH + 40];
    caterva_array *array, *d = begin("/d", 40, 0), *e = begin("/e", 50, 0);
    caterva_create_options o = create_options();
    snprintf(file, sizeof file, "%s/d.b2nd", path);
    CHECK_OK(caterva_create(file, &o, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    refused(caterva_tree_commit(tree, &err), CATERVA_EEXIST, "exists already");
    check_list(tree, "/a /c /d /g/ /g/b ");
    caterva_discard(d);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_stored("/e", 50);
    CHECK_OK(caterva_close(e, &err), err);
}

/* The parts of a job are beside their array, which can neither be moved nor deleted until
 * they are merged. */
static void test_move_with_job(void)
{
    char file[SCRATCH_PATH + 40];
    void *job, *token;
    size_t job_size, token_size;
    caterva_array *part, *b = write_elsewhere("g/b.b2nd");
    snprintf(file, sizeof file, "%s/g/b.b2nd", path);
    CHECK_OK(caterva_job_begin(b, NULL, &job, &job_size, &err), err);
    CHECK_OK(caterva_part_open(file, job, job_size, NULL, &part, &err), err);
    fill(part, 24);
    CHECK_OK(caterva_part_finish(part, &token, &token_size, &err), err);
    caterva_discard(b);
    refused(caterva_tree_move(tree, "/g/b", "/moved", &err), CATERVA_EBUSY, "open job");
    refused(caterva_tree_move(tree, "/g", "/moved", &err), CATERVA_EBUSY, "open job");
    refused(caterva_tree_delete(tree, "/g/b", &err), CATERVA_EBUSY, "open job");
    refused(caterva_tree_delete(tree, "/g", &err), CATERVA_EBUSY, "open job");
    check_stored("/g/b", 21);
    b = write_elsewhere("g/b.b2nd");
    const void *const tokens[] = {token};
    CHECK_OK(caterva_merge(b, tokens, &token_size, 1, NULL, NULL, &err), err);
    CHECK_OK(caterva_close(b, &err), err);
    check_stored("/g/b", 24);
    CHECK_OK(caterva_tree_move(tree, "/g/b", "/moved", &err), err);
    CHECK_OK(caterva_tree_move(tree, "/moved", "/g/b", &err), err);
    put("/g/b", 21, 1);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    caterva_free(job);
    caterva_free(token);
}

static void on_damage(void *context, const char *key, const caterva_damage *damage)
{
    (void)context;
    CHECK(0, "%s: %s", key, damage->message);
}

/* The writer deletes one array after the first, moves another and creates a third again. */
static int on_member(void *context, const caterva_tree_member *member)
{
    char *keys = context;
    strcat(strcat(keys, member->key), " ");
    if (strcmp(member->key, "/a") != 0) return 0;
    CHECK_OK(caterva_tree_delete(tree, "/c", &err), err);
    CHECK_OK(caterva_tree_move(tree, "/d", "/moved", &err), err);
    CHECK_OK(caterva_tree_delete(tree, "/e", &err), err);
    put("/e", 60, 0);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    return 0;
}

static void test_removed_while_verified(void)
{
    char keys[200] = "";
    caterva_tree *reader;
    caterva_tree_verify_options o = CATERVA_TREE_VERIFY_INIT;
    caterva_tree_verify_result result = CATERVA_TREE_VERIFY_RESULT_INIT;
    o.on_damage = on_damage;
    o.on_member = on_member;
    o.context = keys;
    CHECK_OK(caterva_tree_open(path, NULL, &reader, &err), err);
    CHECK_OK(caterva_tree_verify(reader, NULL, &o, &result, &err), err);
    CHECK(strcmp(keys, "/ /a /e /g/__vlmeta__ /g/b ") == 0, "looked at: %s", keys);
    CHECK(result.members == 5 && result.damages == 0, "members, damages");
    check_list(reader, "/a /e /g/ /g/b /moved ");
    CHECK_OK(caterva_tree_close(reader, &err), err);
}

/* Closing the tree without another try reports what is discarded. */
static void test_close(void)
{
    caterva_array *b = begin("/g/b", 24, 1), *other = write_elsewhere("g/b.b2nd");
    set_number("/g", "n", 3);
    refused(caterva_tree_commit(tree, &err), CATERVA_EBUSY, "open for writing");
    caterva_discard(b);
    caterva_discard(other);
    refused(caterva_tree_close(tree, &err), CATERVA_EBUSY, "attributes of 1 groups");
    check_stored("/g/b", 21);
    CHECK(stored_number("/g", "n") == 2, "attributes");
}

int main(void)
{
    make();
    test_again();
    test_lets_go();
    test_taken();
    test_move_with_job();
    test_removed_while_verified();
    test_close();
    return 0;
}
