/* Room: tree. Creates, deletes and moves keys of a tree. Looks at the directory first: whatever
 * prevents a change is reported before anything is changed. */
#include "tree/change.h"

#include "base/heap.h"
#include "store/descriptors.h"
#include "store/place.h"
#include "tree/make.h"
#include "tree/names.h"

#include <stdio.h>
#include <string.h>

/* ---- Pending attributes of groups ------------------------------------------------------ */

static cv_group_change *find(const cv_groups *g, const char *group)
{
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->list[i].group, group) == 0) return &g->list[i];
    return NULL;
}

const cv_buffer *cv_groups_find(const cv_groups *g, const char *group)
{
    const cv_group_change *change = find(g, group);
    return change ? &change->frame : NULL;
}

static void free_change(cv_group_change *change)
{
    cv_free(change->group);
    cv_free(change->path);
    cv_buffer_free(&change->frame);
}

static cv_status name(cv_group_change *change, const char *group, cv_error *err)
{
    *change = (cv_group_change){.group = cv_strdup(group)};
    if (!change->group) return cv_fail_memory(err, strlen(group), "a key");
    cv_status status = cv_tree_attributes_path(group, &change->path, err);
    if (status != CV_OK) cv_free(change->group);
    return status;
}

static cv_status add(cv_groups *g, const char *group, cv_group_change **out, cv_error *err)
{
    cv_group_change *grown = cv_grow(g->list, g->n, &g->room, sizeof *grown);
    if (!grown) return cv_fail_memory(err, g->room * sizeof *grown, "groups of a tree");
    g->list = grown;
    CV_TRY(name(&g->list[g->n], group, err));
    *out = &g->list[g->n++];
    return CV_OK;
}

cv_status cv_groups_set(cv_groups *g, const char *group, cv_buffer *frame, cv_error *err)
{
    cv_status status = CV_OK;
    cv_group_change *change = find(g, group);
    if (!change) status = add(g, group, &change, err);
    if (status != CV_OK) {
        cv_buffer_free(frame);
        return status;
    }
    cv_buffer_free(&change->frame);
    change->frame = *frame;
    *frame = (cv_buffer){0};
    return CV_OK;
}

/* Renames a pending change: "/x/b" becomes "/a/b" if "/x" moves to "/a". */
static cv_status rename_change(cv_group_change *change, const char *from, const char *to,
                               cv_error *err)
{
    cv_group_change renamed;
    const char *rest = change->group + strlen(from);
    size_t size = strlen(to) + strlen(rest) + 1;
    char *group = cv_malloc(size);
    if (!group) return cv_fail_memory(err, size, "a key");
    (void)snprintf(group, size, "%s%s", to, rest);
    cv_status status = name(&renamed, group, err);
    cv_free(group);
    CV_TRY(status);
    renamed.frame = change->frame;
    change->frame = (cv_buffer){0};
    free_change(change);
    *change = renamed;
    return CV_OK;
}

cv_status cv_groups_move(cv_groups *g, const char *from, const char *to, cv_error *err)
{
    cv_status status = CV_OK;
    for (size_t i = g->n; i-- > 0;) {
        cv_group_change *change = &g->list[i];
        if (strcmp(change->group, from) != 0 && !cv_tree_is_within(change->group, from))
            continue;
        cv_status renamed = to ? rename_change(change, from, to, err) : CATERVA_ENOTFOUND;
        if (renamed == CV_OK) continue;
        free_change(change);
        *change = g->list[--g->n];
        if (to) status = renamed;
    }
    return status;
}

void cv_groups_clear(cv_groups *g)
{
    for (size_t i = 0; i < g->n; i++) free_change(&g->list[i]);
    cv_free(g->list);
    *g = (cv_groups){.n = 0};
}

cv_status cv_groups_prepare(cv_groups *g, const cv_tree *tree, bool durable, cv_error *err)
{
    for (size_t i = 0; i < g->n; i++) {
        cv_group_change *change = &g->list[i];
        CV_TRY(cv_make_temp(tree->dir, change->path, &change->frame, durable, change->temp,
                            err));
        CV_TRY(cv_watch_tick(tree->watch, CV_FILE_BYTES, err));
    }
    return CV_OK;
}

static cv_status open_parent(const cv_tree *tree, const cv_group_change *change, cv_dir *out,
                             cv_error *err)
{
    const char *group = change->group[1] ? change->group + 1 : ".";
    int error = cv_open_dir(tree->dir, group, 0, out);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot open the group %.80s in %s", change->group,
                       tree->shown.text);
}

static cv_status complete(const cv_group_change *change, const cv_tree *tree, bool durable,
                          cv_error *err)
{
    cv_dir parent;
    CV_TRY(open_parent(tree, change, &parent, err));
    int error = cv_dir_rename(parent, change->temp, CV_TREE_ATTRIBUTES ".b2f");
    if (!error && durable) error = cv_dir_sync(parent);
    cv_dir_close(&parent);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot install %.80s in %s", change->path,
                       tree->shown.text);
}

cv_status cv_groups_complete(const cv_groups *g, const cv_tree *tree, bool durable,
                             cv_error *err)
{
    cv_status status = CV_OK;
    for (size_t i = 0; i < g->n; i++) {
        cv_status one = complete(&g->list[i], tree, durable, status == CV_OK ? err : NULL);
        if (status == CV_OK) status = one;
        (void)cv_watch_tick(tree->watch, CV_FILE_BYTES, NULL); /* too late to stop */
    }
    return status;
}

void cv_groups_abandon(cv_groups *g, const cv_tree *tree)
{
    for (size_t i = 0; i < g->n; i++) {
        cv_dir parent;
        cv_group_change *change = &g->list[i];
        if (!change->temp[0] || open_parent(tree, change, &parent, NULL) != CV_OK) continue;
        (void)cv_dir_remove(parent, change->temp);
        cv_dir_close(&parent);
        change->temp[0] = '\0';
    }
}

static const char *const own_names[] = {CV_TREE_ATTRIBUTES, "_meta", "_cols", "_valid_rows"};

/* ---- Keys ----------------------------------------------------------------------------- */

/* Checks a key that is neither the root nor one of python-blosc2's own names. */
static cv_status check_new_key(const char *key, cv_error *err)
{
    size_t size = strlen(key);
    CV_TRY(cv_tree_check_key(key, err));
    if (size == 1)
        return cv_fail(err, CATERVA_EINVAL, -1, "the key \"/\" is the tree itself");
    for (size_t i = 0; i < sizeof own_names / sizeof own_names[0]; i++)
        if (cv_tree_is_named(key, size, own_names[i]))
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "%.100s: python-blosc2 reserves the name %s", key, own_names[i]);
    return CV_OK;
}

/* Checks the key of a new array or group. Refuses names that begin with a dot, which lists omit. */
static cv_status check_free_key(const char *key, cv_error *err)
{
    CV_TRY(check_new_key(key, err));
    const char *hidden = strstr(key, "/.");
    if (!hidden) return cv_tree_check_groups(key + 1, false, err);
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "the name \"%.100s\" begins with a dot: lists of a tree omit hidden files",
                   hidden + 1);
}

static const cv_member *find_file(const cv_contents *c, const char *key, size_t size)
{
    for (size_t i = 0; i < c->members.n; i++) {
        const char *path = c->members.list[i].path;
        if (cv_tree_is_leaf(path) && cv_tree_stem(path) == size - 1 &&
            memcmp(path, key + 1, size - 1) == 0)
            return &c->members.list[i];
    }
    return NULL;
}

/* Checks that nothing at the key or below it is inside embed.b2e or registered there. */
static cv_status check_not_embedded(const cv_tree *tree, const cv_contents *c,
                                    const char *key, cv_error *err)
{
    for (size_t i = 0; i < c->embed.n; i++) {
        const cv_embed_entry *e = &c->embed.list[i];
        bool is_object = e->what == CV_EMBED_OBJECT;
        if (strcmp(e->key, key) != 0 && !cv_tree_is_within(e->key, key) &&
            !(is_object && cv_tree_is_within(key, e->key)))
            continue;
        if (is_object)
            return cv_fail(
                err, CATERVA_EREADONLY, -1,
                "%.80s in %s is an object of python-blosc2, a %.30s, which cannot be changed "
                "here",
                e->key, tree->shown.text, e->kind);
        return cv_fail(err, CATERVA_EREADONLY, -1,
                       "%.80s lies inside %s of %s, which cannot be changed here", e->key,
                       CV_TREE_EMBED, tree->shown.text);
    }
    return CV_OK;
}

static cv_status check_parents(const cv_contents *c, const char *key, cv_error *err)
{
    size_t size = strlen(key);
    while ((size = cv_tree_parent(key, size)) > 0) {
        const cv_member *file = find_file(c, key, size);
        for (size_t i = 0; i < c->members.n && !file; i++) /* "/q.b2nd/z": q.b2nd is a file */
            if (strlen(c->members.list[i].path) == size - 1 &&
                memcmp(c->members.list[i].path, key + 1, size - 1) == 0)
                file = &c->members.list[i];
        if (file)
            return cv_fail(err, CATERVA_EEXIST, -1,
                           "cannot create %.100s: %.100s is not a group", key, file->path);
    }
    return CV_OK;
}

static cv_status check_free(const cv_tree *tree, const cv_contents *c, const char *key,
                            bool overwrite, cv_error *err)
{
    const cv_member *file = find_file(c, key, strlen(key));
    CV_TRY(check_not_embedded(tree, c, key, err));
    CV_TRY(check_parents(c, key, err));
    if (cv_contents_has_group(c, key))
        return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s is a group", key,
                       tree->shown.text);
    if (!file) return CV_OK;
    const char *suffix = file->path + cv_tree_stem(file->path);
    if (overwrite && strcmp(suffix, CV_TREE_ARRAY_SUFFIX) == 0) return CV_OK;
    return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s exists already", key,
                   tree->shown.text);
}

/* Whether a file may prevent a new array at the key: a leaf at a parent key, anything with the
 * key's name, or a leaf of the key. Lists no directory. `overwrite`: the key may be an array. */
static bool may_be_taken(const cv_tree *tree, char *key, bool overwrite)
{
    cv_file_info info;
    size_t size = strlen(key), parent = size;
    if (cv_dir_get_link_info(tree->dir, key + 1, &info) != ENOENT) return true;
    if (cv_tree_has_leaf(tree, key, overwrite ? CV_TREE_ARRAY_SUFFIX : NULL)) return true;
    bool found = false;
    while (!found && (parent = cv_tree_parent(key, parent)) > 0) {
        key[parent] = '\0';
        found = cv_tree_has_leaf(tree, key, NULL);
        key[parent] = '/';
    }
    return found;
}

/* Sets *out if a few look-ups, without a listing, show that the key is free. False: not known. */
static cv_status find_free(const cv_tree *tree, const char *key, bool overwrite, bool *out,
                           cv_error *err)
{
    cv_journal journal;
    cv_contents known = {.has_embed = true};
    *out = false;
    CV_TRY(cv_journal_look(tree->dir, tree->shown.text, &journal, err));
    bool stands = journal.n > 0; /* the journal names files that are not renamed yet */
    cv_journal_free(&journal);
    if (stands) return CV_OK;
    char *copy = cv_strdup(key);
    if (!copy) return cv_fail_memory(err, strlen(key), "a key");
    bool taken = may_be_taken(tree, copy, overwrite);
    cv_free(copy);
    if (taken) return CV_OK;
    CV_TRY(cv_tree_read_embed(tree, &known, err));
    cv_status status = check_not_embedded(tree, &known, key, err);
    *out = status == CV_OK && !cv_contents_has_group(&known, key);
    cv_contents_free(&known);
    return status;
}

static cv_status look_and_check_free(const cv_tree *tree, const char *key, bool overwrite,
                                     cv_error *err)
{
    cv_contents own;
    const cv_contents *contents;
    bool is_free;
    CV_TRY(cv_tree_check_writable(tree, err));
    CV_TRY(check_free_key(key, err));
    CV_TRY(find_free(tree, key, overwrite, &is_free, err));
    if (is_free) return CV_OK;
    cv_status status = cv_tree_look(tree, &own, &contents, err);
    if (status == CV_OK) status = check_free(tree, contents, key, overwrite, err);
    cv_contents_free(&own);
    return status;
}

/* Makes "g/x" + suffix from "/g/x". Owned. */
static cv_status name_of(const char *key, const char *suffix, char **out, cv_error *err)
{
    size_t size = strlen(key), more = strlen(suffix) + 1;
    *out = cv_malloc(size + more);
    if (!*out) return cv_fail_memory(err, size + more, "a path");
    memcpy(*out, key + 1, size - 1);
    memcpy(*out + size - 1, suffix, more);
    return CV_OK;
}

/* ---- Groups with attributes ------------------------------------------------------------- */

static cv_status check_no_leaf(const cv_tree *tree, const cv_embed *embed, const char *key,
                               cv_error *err)
{
    cv_file_info info;
    bool is_file = key[1] && cv_dir_get_link_info(tree->dir, key + 1, &info) == 0 &&
                   info.kind == CV_KIND_FILE;
    const cv_embed_entry *object = cv_embed_find(embed, CV_EMBED_OBJECT, key);
    if (object)
        return cv_fail(
            err, CATERVA_EREADONLY, -1,
            "%.80s in %s is an object of python-blosc2, a %.30s, which cannot be changed "
            "here",
            key, tree->shown.text, object->kind);
    if (!is_file && !cv_embed_find(embed, CV_EMBED_LEAF, key) &&
        !cv_embed_find(embed, CV_EMBED_REMOTE, key) && !cv_tree_has_file(tree, key))
        return CV_OK;
    return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s is a leaf, not a group", key,
                   tree->shown.text);
}

static cv_status check_parts(const cv_tree *tree, const cv_embed *embed, const char *key,
                             cv_error *err)
{
    cv_status status = CV_OK;
    char *part = cv_strdup(key);
    if (!part) return cv_fail_memory(err, strlen(key), "a key");
    for (size_t size = strlen(key); size > 1 && status == CV_OK;) {
        part[size] = '\0';
        status = check_no_leaf(tree, embed, part, err);
        size = cv_tree_parent(key, size);
    }
    cv_free(part);
    return status;
}

cv_status cv_change_check_group(const cv_tree *tree, const char *key, cv_error *err)
{
    cv_store *store;
    cv_embed embed = {0};
    CV_TRY(cv_tree_check_writable(tree, err));
    if (strcmp(key, "/") != 0) CV_TRY(check_free_key(key, err));
    CV_TRY(cv_tree_check_groups(key + 1, true, err));
    CV_TRY(cv_check_spelling(tree->dir, key + 1, err));
    CV_TRY(cv_tree_embed_store(tree, &store, err));
    CV_TRY(cv_embed_read(store, &embed, err));
    cv_status status = check_parts(tree, &embed, key, err);
    cv_embed_free(&embed);
    return status;
}

cv_status cv_change_place(cv_tree *tree, const char *key, bool overwrite, char **path,
                          cv_error *err)
{
    char *name;
    CV_TRY(look_and_check_free(tree, key, overwrite, err));
    CV_TRY(name_of(key, CV_TREE_ARRAY_SUFFIX, &name, err));
    cv_status status = cv_make_parents(tree->dir, name, tree->durable, err);
    if (status == CV_OK) status = cv_tree_path(tree, name, path, err);
    cv_free(name);
    return status;
}

cv_status cv_change_group(cv_tree *tree, const char *key, cv_error *err)
{
    char *name;
    cv_buffer bytes = {0};
    CV_TRY(look_and_check_free(tree, key, false, err));
    CV_TRY(cv_tree_check_groups(key + 1, true, err));
    CV_TRY(name_of(key, "/" CV_TREE_ATTRIBUTES ".b2f", &name, err));
    cv_status status = cv_make_group(&bytes, err);
    if (status == CV_OK) status = cv_make_file(tree->dir, name, &bytes, tree->durable, err);
    cv_buffer_free(&bytes);
    cv_free(name);
    return status;
}

typedef struct thing {
    char *name;      /* owned */
    bool is_written; /* is or contains an array that the caller has open for writing */
    bool is_group;
    int64_t n_files; /* of a group */
} thing;

static cv_status check_not_written(const cv_tree *tree, const cv_member *member,
                                   cv_error *err)
{
    cv_file file;
    const char *name = member->path;
    if (member->is_unreadable) return CV_OK;
    int error = cv_open_file(tree->dir, name, CV_OPEN_READ, 0, &file);
    if (error) return cv_fail_open(err, error, name);
    error = cv_keeper_ask(tree->dir, file);
    cv_file_close(&file);
    return error ? cv_fail_lock(err, error, name) : CV_OK;
}

/* Checks that all files of the group are leaves and not open for writing. Checks writers last: then
 * CATERVA_EBUSY, which the caller's own writers may cause, means that nothing else is wrong. */
static cv_status check_group(const cv_tree *tree, const cv_contents *c, const char *key,
                             cv_error *err)
{
    for (size_t i = 0; i < c->members.n; i++) {
        const char *path = c->members.list[i].path;
        if (cv_tree_is_path_in(path, key + 1) && !cv_tree_is_leaf(path))
            return cv_fail(err, CATERVA_EEXIST, -1,
                           "%.80s in %s contains a file that is not part of a tree: %.60s",
                           key, tree->shown.text, path);
    }
    for (size_t i = 0; i < c->members.n; i++) {
        const char *path = c->members.list[i].path;
        if (!cv_tree_is_path_in(path, key + 1)) continue;
        CV_TRY(check_not_written(tree, &c->members.list[i], err));
        CV_TRY(cv_watch_tick(tree->watch, CV_FILE_BYTES, err));
    }
    return CV_OK;
}

/* Announces `passes` passes over the group's files to the watch, and counts the listing as done. */
static void announce(const cv_tree *tree, const cv_contents *c, const char *key, int passes,
                     thing *out)
{
    for (size_t i = 0; i < c->members.n; i++)
        out->n_files += cv_tree_is_path_in(c->members.list[i].path, key + 1);
    cv_watch_expect(tree->watch, passes * out->n_files * CV_FILE_BYTES);
    cv_watch_add(tree->watch, (int64_t)c->members.n * CV_FILE_BYTES);
}

static cv_status find_thing(const cv_tree *tree, const cv_contents *c, const char *key,
                            int passes, thing *out, cv_error *err)
{
    CV_TRY(check_not_embedded(tree, c, key, err));
    const cv_member *file = find_file(c, key, strlen(key));
    if (file) {
        CV_TRY(check_not_written(tree, file, err));
        out->name = cv_strdup(file->path);
    } else if (cv_contents_has_group(c, key)) {
        announce(tree, c, key, passes, out);
        CV_TRY(check_group(tree, c, key, err));
        out->name = cv_strdup(key + 1);
        out->is_group = true;
    } else if (!out->is_written) {
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "%.80s does not exist in %s", key,
                       tree->shown.text);
    }
    if (out->is_written)
        return cv_fail(err, CATERVA_EBUSY, -1,
                       "%.80s in %s is, or contains, an array open for writing", key,
                       tree->shown.text);
    return out->name ? CV_OK : cv_fail_memory(err, strlen(key), "a path");
}

/* Syncs the directory of the name if the tree is durable. */
static cv_status settle(const cv_tree *tree, const char *name, cv_error *err)
{
    cv_dir dir;
    size_t size = cv_tree_parent(name, strlen(name));
    if (!tree->durable) return CV_OK;
    char *parent = cv_strndup(name, size);
    if (!parent) return cv_fail_memory(err, size, "a path");
    int error = cv_open_dir(tree->dir, *parent ? parent : ".", 0, &dir);
    cv_free(parent);
    if (error == ENOENT) return CV_OK; /* the directory was deleted, too */
    if (!error) error = cv_dir_sync(dir);
    if (error) return cv_fail_sys(err, error, "cannot sync %s", tree->shown.text);
    cv_dir_close(&dir);
    return CV_OK;
}

static cv_status fail_change(const cv_tree *tree, const char *what, const thing *t, int error,
                             cv_error *err)
{
    return cv_fail_sys(err, error, "cannot %s %.60s in %s", what, t->name, tree->shown.text);
}

/* ---- Remaining files of deleted groups -------------------------------------------------- */

#define REST "group"
#define REST_TAG "deleted"

/* Deletes the files of a deleted group. `announced`: how many the watch expects already. */
static cv_status remove_rest(const cv_tree *tree, const char *name, int64_t announced,
                             cv_error *err)
{
    cv_dir dir;
    cv_status status = CV_OK;
    if (cv_open_dir(tree->dir, name, CV_OPEN_NO_LINK, &dir) == 0) {
        status = cv_remove_all(dir, tree->shown.text, tree->watch, announced, err);
        cv_dir_close(&dir);
    }
    if (status == CV_OK) (void)cv_dir_remove_directory(tree->dir, name);
    return status;
}

static cv_status sweep_listed(const cv_tree *tree, cv_listing *listing, cv_error *err)
{
    static const char begin[] = "." REST "." REST_TAG "-";
    const char *name;
    int error;
    while ((name = cv_listing_next(listing, &error)))
        if (strncmp(name, begin, sizeof begin - 1) == 0)
            CV_TRY(remove_rest(tree, name, 0, err));
    return CV_OK;
}

cv_status cv_change_sweep(const cv_tree *tree, cv_error *err)
{
    cv_dir again;
    cv_listing listing;
    if (cv_open_dir(tree->dir, ".", 0, &again) || cv_listing_open(again, &listing))
        return CV_OK;
    cv_status status = sweep_listed(tree, &listing, err);
    cv_listing_close(&listing);
    return status;
}

/* ---- Deleting --------------------------------------------------------------------------- */

/* Hides the group with one rename, then deletes its files. */
static cv_status remove_group(const cv_tree *tree, const thing *t, bool *gone, cv_error *err)
{
    char temp[CV_OS_TEMP_NAME];
    int error = EEXIST;
    CV_TRY(cv_watch_tick(tree->watch, 0, err));
    for (int i = 0; error == EEXIST && i < 100; i++) {
        cv_os_temp_name(REST, REST_TAG, temp);
        error = cv_dir_rename_new(tree->dir, t->name, temp);
    }
    if (error) return fail_change(tree, "delete", t, error, err);
    *gone = true;
    if (remove_rest(tree, temp, t->n_files, NULL) == CV_OK) return CV_OK;
    return cv_fail(
        err, CATERVA_ESTOPPED, -1,
        "stopped: the group %.60s is deleted from %.60s; its remaining files, in %s, are "
        "deleted by the next deletion or opening for writing",
        t->name, tree->shown.text, temp);
}

static cv_status remove_thing(const cv_tree *tree, const thing *t, bool *gone, cv_error *err)
{
    if (t->is_group) return remove_group(tree, t, gone, err);
    int error = cv_dir_remove(tree->dir, t->name);
    *gone = !error;
    return error ? fail_change(tree, "delete", t, error, err) : CV_OK;
}

/* Deletes a file or group. A group counts as deleted even if deleting its files failed. */
static cv_status remove_and_settle(const cv_tree *tree, const thing *t, bool *gone,
                                   cv_error *err)
{
    cv_status status = remove_thing(tree, t, gone, err);
    cv_status settled = *gone ? settle(tree, t->name, status == CV_OK ? err : NULL) : CV_OK;
    return status == CV_OK ? settled : status;
}

static cv_status check_no_job(const cv_tree *tree, const char *name, cv_error *err)
{
    char *path;
    if (!cv_wings.jobs) return CV_OK;
    CV_TRY(cv_tree_path(tree, name, &path, err));
    cv_status status = cv_wings.jobs->check_none(path, name, err);
    cv_free(path);
    return status;
}

/* Checks that no array has jobs. Their parts lie beside the array: workers would not find them. */
static cv_status check_no_jobs(const cv_tree *tree, const cv_contents *c, const thing *t,
                               cv_error *err)
{
    if (!t->is_group) return check_no_job(tree, t->name, err);
    for (size_t i = 0; i < c->members.n; i++) {
        const char *path = c->members.list[i].path;
        if (!cv_tree_is_path_in(path, t->name)) continue;
        CV_TRY(check_no_job(tree, path, err));
        CV_TRY(cv_watch_tick(tree->watch, CV_FILE_BYTES, err));
    }
    return CV_OK;
}

cv_status cv_change_remove(cv_tree *tree, const char *key, bool is_written, bool *gone,
                           cv_error *err)
{
    enum { PASSES = 3 }; /* looking for writers and for jobs, deleting the files */
    cv_contents own;
    thing t = {.is_written = is_written};
    *gone = false;
    CV_TRY(cv_tree_check_writable(tree, err));
    CV_TRY(check_new_key(key, err));
    CV_TRY(cv_change_sweep(tree, err));
    cv_status status = cv_tree_look_near(tree, key, false, &own, err);
    if (status == CV_OK) status = find_thing(tree, &own, key, PASSES, &t, err);
    if (status == CV_OK) status = check_no_jobs(tree, &own, &t, err);
    if (status == CV_OK) status = remove_and_settle(tree, &t, gone, err);
    cv_contents_free(&own);
    cv_free(t.name);
    return status;
}

static cv_status move_thing(const cv_tree *tree, const thing *t, const char *to,
                            cv_error *err)
{
    char *name;
    const char *suffix = t->is_group ? "" : t->name + cv_tree_stem(t->name);
    CV_TRY(name_of(to, suffix, &name, err));
    cv_status status = cv_make_parents(tree->dir, name, tree->durable, err);
    if (t->is_group) cv_remove_empty(tree->dir, name); /* checked: no files in it */
    int error = status == CV_OK ? cv_dir_rename_new(tree->dir, t->name, name) : 0;
    if (error) status = fail_change(tree, "move", t, error, err);
    if (status == CV_OK) status = settle(tree, name, err);
    if (status == CV_OK) status = settle(tree, t->name, err);
    cv_free(name);
    return status;
}

cv_status cv_change_move(cv_tree *tree, const char *from, const char *to, bool is_written,
                         cv_error *err)
{
    enum { PASSES = 2 }; /* looking for writers and for jobs */
    cv_contents own;
    thing t = {.is_written = is_written};
    CV_TRY(cv_tree_check_writable(tree, err));
    CV_TRY(check_new_key(from, err));
    CV_TRY(check_free_key(to, err));
    if (cv_tree_is_within(to, from))
        return cv_fail(err, CATERVA_EINVAL, -1, "%.80s cannot be moved into itself", from);
    cv_status status = cv_tree_look_near(tree, from, false, &own, err);
    if (status == CV_OK) status = find_thing(tree, &own, from, PASSES, &t, err);
    if (status == CV_OK) status = check_no_jobs(tree, &own, &t, err);
    if (status == CV_OK && t.is_group) status = cv_tree_check_groups(to + 1, true, err);
    if (status == CV_OK) status = look_and_check_free(tree, to, false, err);
    if (status == CV_OK) status = move_thing(tree, &t, to, err);
    cv_contents_free(&own);
    cv_free(t.name);
    return status;
}
