/* Room: tree. Finds leaves. Promises: one in a directory is found without a look at the
 * others, where its name is as python-blosc2 writes it. */
#include "tree/find.h"

#include "base/heap.h"
#include "tree/names.h"

#include <stdio.h>
#include <string.h>

/* "g/x.b2nd" of "/g/x". Owned. */
static cv_status file_of(const char *key, const char *suffix, char **out, cv_error *err)
{
    size_t size = strlen(key) + CV_TREE_LONGEST_SUFFIX + 1;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%s%s", key + 1, suffix);
    return CV_OK;
}

static cv_status take_path(cv_leaf *out, char *path, const cv_member *member)
{
    *out = (cv_leaf){.path = path, .member = *member};
    out->member.path = path;
    return CV_OK;
}

static bool is_path_of(const char *path, const char *key)
{
    size_t stem = cv_tree_stem(path);
    return strlen(key + 1) == stem && memcmp(key + 1, path, stem) == 0;
}

/* *found: it is a file. Fails if the system does not say. */
static cv_status look_at_file(const cv_tree *tree, const char *path, cv_file_info *info,
                              bool *found, cv_error *err)
{
    int error = cv_dir_get_info(tree->dir, path, info);
    bool is_none =
        error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG;
    *found = !error && info->kind == CV_KIND_FILE;
    if (!error || is_none) return CV_OK;
    return cv_fail_sys(err, error, "cannot look at %.80s in %.136s", path, tree->shown.text);
}

/* CATERVA_ENOTFOUND, without a sentence, when there is none. */
static cv_status find_in_directory(const cv_tree *tree, const char *key, cv_leaf *out,
                                   cv_error *err)
{
    for (int i = 0; i < CV_TREE_SUFFIXES; i++) {
        char *path;
        cv_file_info info;
        bool found;
        CV_TRY(file_of(key, cv_tree_suffixes[i], &path, err));
        cv_status status = look_at_file(tree, path, &info, &found, err);
        if (status == CV_OK && found) {
            cv_member member = {.size = info.size};
            return take_path(out, path, &member);
        }
        cv_free(path);
        CV_TRY(status);
    }
    return CATERVA_ENOTFOUND;
}

/* What a commit has made that is not finished: with its new name, wherever it is. */
static cv_status find_committed(const cv_tree *tree, const char *key, cv_leaf *out,
                                cv_error *err)
{
    cv_journal journal;
    cv_status status = CATERVA_ENOTFOUND;
    CV_TRY(cv_journal_look(tree->dir, tree->shown.text, &journal, err));
    for (size_t i = 0; i < journal.n && status == CATERVA_ENOTFOUND; i++) {
        cv_member member = {0};
        const cv_journal_step *step = &journal.steps[i];
        if (!is_path_of(step->path, key)) continue;
        if (!cv_journal_has_file(tree->dir, step, &member.size)) continue;
        char *path = cv_strdup(step->path);
        status = path ? take_path(out, path, &member)
                      : cv_fail_memory(err, strlen(step->path), "a path");
    }
    cv_journal_free(&journal);
    return status;
}

/* Of another suffix: whether it holds a frame is seen when it is opened. */
static bool is_other_leaf(const cv_member *member, const char *key)
{
    return is_path_of(member->path, key) && strcmp(member->path, CV_TREE_EMBED) != 0;
}

static const cv_member *find_member(const cv_contents *contents, const char *key)
{
    char *path;
    const cv_member *found = NULL;
    for (int i = 0; i < CV_TREE_SUFFIXES && !found; i++) {
        if (file_of(key, cv_tree_suffixes[i], &path, NULL) != CV_OK) return NULL;
        found = cv_members_find(&contents->members, path);
        cv_free(path);
    }
    for (size_t i = 0; i < contents->members.n && !found; i++)
        if (is_other_leaf(&contents->members.list[i], key))
            found = &contents->members.list[i];
    return found;
}

/* ---- What is no leaf ---------------------------------------------------------------- */

bool cv_contents_has_group(const cv_contents *c, const char *key)
{
    for (size_t i = 0; i < c->members.n; i++)
        if (cv_tree_is_path_in(c->members.list[i].path, key + 1)) return true;
    for (size_t i = 0; i < c->embed.n; i++)
        if (cv_tree_is_within(c->embed.list[i].key, key)) return true;
    return !key[1];
}

static cv_status refuse(const cv_tree *tree, const cv_contents *c, const char *key,
                        cv_error *err)
{
    const char *name = tree->shown.text;
    const cv_embed_entry *object = cv_embed_find(&c->embed, CV_EMBED_OBJECT, key);
    if (object)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%.80s in %s is a %.30s, not an array",
                       key, name, object->kind);
    if (cv_embed_find(&c->embed, CV_EMBED_REMOTE, key))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%.80s in %s is a reference to an array elsewhere", key, name);
    if (cv_contents_has_group(c, key))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%.80s in %s is a group, not an array",
                       key, name);
    if (cv_members_find(&c->members, key + 1))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%.80s in %s is a file, not an array",
                       key, name);
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "there is no %.80s in %s", key, name);
}

/* ---- Finding ------------------------------------------------------------------------ */

static cv_status find_in(const cv_tree *tree, const cv_contents *c, const char *key,
                         cv_leaf *out, cv_error *err)
{
    const cv_member *member = find_member(c, key);
    if (member) {
        char *path = cv_strdup(member->path);
        if (!path) return cv_fail_memory(err, strlen(member->path), "a path");
        return take_path(out, path, member);
    }
    const cv_embed_entry *leaf = cv_embed_find(&c->embed, CV_EMBED_LEAF, key);
    if (!leaf) return refuse(tree, c, key, err);
    *out = (cv_leaf){.is_embedded = true, .offset = leaf->offset, .size = leaf->size};
    return CV_OK;
}

cv_status cv_tree_find(const cv_tree *tree, const char *key, cv_leaf *out, cv_error *err)
{
    cv_contents own;
    const cv_contents *contents;
    CV_TRY(cv_tree_check_key(key, err));
    if (tree->form == CV_TREE_DIRECTORY && key[1]) {
        cv_status status = find_in_directory(tree, key, out, err);
        if (status == CATERVA_ENOTFOUND) status = find_committed(tree, key, out, err);
        if (status != CATERVA_ENOTFOUND) return status;
    }
    cv_status status = cv_tree_look(tree, &own, &contents, err);
    if (status == CV_OK) status = find_in(tree, contents, key, out, err);
    cv_contents_free(&own);
    return status;
}

cv_status cv_tree_check_own(const cv_tree *tree, const char *key, cv_error *err)
{
    cv_store *store;
    cv_embed embed = {0};
    CV_TRY(cv_tree_embed_store(tree, &store, err));
    cv_status status = cv_embed_read(store, &embed, err);
    for (size_t i = 0; i < embed.n && status == CV_OK; i++) {
        const cv_embed_entry *e = &embed.list[i];
        if (e->what == CV_EMBED_OBJECT && cv_tree_is_within(key, e->key))
            status = cv_fail(err, CATERVA_EREADONLY, -1,
                             "%.80s is a part of a %.30s in %s and can be read only", key,
                             e->kind, tree->shown.text);
    }
    cv_embed_free(&embed);
    return status;
}

void cv_leaf_free(cv_leaf *leaf) { cv_free(leaf->path); }

/* ---- Attributes of groups ----------------------------------------------------------- */

bool cv_tree_has_file(const cv_tree *tree, const char *key)
{
    cv_leaf leaf = {0};
    bool found = find_in_directory(tree, key, &leaf, NULL) == CV_OK;
    cv_leaf_free(&leaf);
    return found;
}

bool cv_tree_has_leaf(const cv_tree *tree, const char *key, const char *but)
{
    bool found = false;
    for (int i = 0; i < CV_TREE_SUFFIXES && !found; i++) {
        char *path;
        cv_file_info info;
        if (but && strcmp(cv_tree_suffixes[i], but) == 0) continue;
        if (file_of(key, cv_tree_suffixes[i], &path, NULL) != CV_OK) return true;
        found = cv_dir_get_link_info(tree->dir, path, &info) != ENOENT;
        cv_free(path);
    }
    return found;
}

/* "/g/__vlmeta__" */
static cv_status attributes_key(const char *group, char **out, cv_error *err)
{
    size_t size = strlen(group) + sizeof CV_TREE_ATTRIBUTES + 1;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a key");
    (void)snprintf(*out, size, "%s/%s", group[1] ? group : "", CV_TREE_ATTRIBUTES);
    return CV_OK;
}

cv_status cv_tree_attributes_path(const char *group, char **out, cv_error *err)
{
    char *key;
    CV_TRY(attributes_key(group, &key, err));
    cv_status status = file_of(key, ".b2f", out, err);
    cv_free(key);
    return status;
}

/* A file by its name, also one that a commit has made and not renamed yet. */
static cv_status find_path(const cv_tree *tree, char *path, bool *found, cv_leaf *out,
                           cv_error *err)
{
    cv_file_info info;
    cv_journal journal;
    cv_member member = {0};
    CV_TRY(look_at_file(tree, path, &info, found, err));
    member.size = *found ? info.size : 0;
    if (!*found) {
        CV_TRY(cv_journal_look(tree->dir, tree->shown.text, &journal, err));
        const cv_journal_step *step = cv_journal_find(&journal, path);
        *found = step && cv_journal_has_file(tree->dir, step, &member.size);
        cv_journal_free(&journal);
    }
    return *found ? take_path(out, path, &member) : CV_OK;
}

static bool has_group(const cv_tree *tree, const cv_contents *c, const char *group)
{
    cv_file_info info;
    if (cv_contents_has_group(c, group)) return true;
    return tree->form == CV_TREE_DIRECTORY &&
           cv_dir_get_link_info(tree->dir, group + 1, &info) == 0 &&
           info.kind == CV_KIND_DIRECTORY;
}

/* What is inside embed.b2e, or a member of an archive. */
static cv_status find_in_contents(const cv_tree *tree, const cv_contents *c,
                                  const char *group, const char *key, cv_leaf *out,
                                  cv_error *err)
{
    const cv_member *member = find_member(c, key);
    const cv_embed_entry *leaf = cv_embed_find(&c->embed, CV_EMBED_LEAF, key);
    if (member) {
        char *path = cv_strdup(member->path);
        if (!path) return cv_fail_memory(err, strlen(member->path), "a path");
        return take_path(out, path, member);
    }
    if (leaf)
        *out = (cv_leaf){.is_embedded = true, .offset = leaf->offset, .size = leaf->size};
    if (leaf || has_group(tree, c, group)) return CV_OK;
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "there is no group %.80s in %s", group,
                   tree->shown.text);
}

static cv_status find_attributes(const cv_tree *tree, const char *group, const char *key,
                                 cv_leaf *out, cv_error *err)
{
    cv_contents own = {.has_embed = false};
    const cv_contents *contents = &tree->contents;
    if (tree->form == CV_TREE_DIRECTORY) { /* without a look at all its files */
        cv_store *store;
        CV_TRY(cv_tree_embed_store(tree, &store, err));
        CV_TRY(cv_embed_read(store, &own.embed, err));
        contents = &own;
    }
    cv_status status = find_in_contents(tree, contents, group, key, out, err);
    cv_contents_free(&own);
    return status;
}

cv_status cv_tree_find_attributes(const cv_tree *tree, const char *group, cv_leaf *out,
                                  cv_error *err)
{
    char *key, *path = NULL;
    bool found = false;
    *out = (cv_leaf){.is_embedded = false};
    CV_TRY(cv_tree_check_key(group, err));
    if (tree->form == CV_TREE_DIRECTORY) {
        CV_TRY(cv_tree_attributes_path(group, &path, err));
        cv_status status = find_path(tree, path, &found, out, err);
        if (!found) cv_free(path);
        if (status != CV_OK || found) return status;
    }
    CV_TRY(attributes_key(group, &key, err));
    cv_status status = find_attributes(tree, group, key, out, err);
    cv_free(key);
    return status;
}
