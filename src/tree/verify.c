/* Room: tree. Verifies trees, each member separately: arrays like any array, other frames by their
 * structure, members of an archive also by checksum. Checks archives before they are published. */
#include "array/array.h"
#include "base/heap.h"
#include "frame/snapshot.h"
#include "store/file.h"
#include "store/zarr.h"
#include "tree/handle.h"
#include "tree/leaf.h"
#include "tree/make.h"
#include "tree/names.h"
#include "tree/tree.h"
#include "tree/zarr.h"

#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORED = 0 }; /* compression method of uncompressed members */

typedef struct verification {
    caterva_tree *tree;
    caterva_tree_verify_options options;
    caterva_tree_verify_result result;
    const cv_contents *contents; /* archive only */
    bool *seen;                  /* whether each member in `contents` was verified; or NULL */
    cv_watch watch;
    cv_watch *reporting;         /* &watch, the handle's watch, or NULL */
    caterva_tree_member member;  /* the current member */
    caterva_verify_result array; /* result of the current member, if it is an array */
    int tries;                   /* attempts left before a missing file counts as damage */
    bool is_missing;             /* the file was missing in this attempt */
} verification;

static void on_damage(void *context, const caterva_damage *damage)
{
    verification *v = context;
    v->member.damages++;
    v->result.damages++;
    if (v->options.on_damage) v->options.on_damage(v->options.context, v->member.key, damage);
}

/* Whether the status means damage: wrong bytes, or a missing file that was listed. After other
 * failures the member may be sound. */
static bool is_damage(const verification *v, cv_status status)
{
    bool is_missing = status == CATERVA_ENOTFOUND && v->tree->tree->form == CV_TREE_DIRECTORY;
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED || is_missing;
}

static void report(verification *v, const cv_error *err)
{
    caterva_damage damage = {
        .chunk = -1, .position = err->position, .code = err->code, .message = err->message};
    on_damage(v, &damage);
}

/* Reports damage, and returns CV_OK so that the verification continues. Returns other failures. */
static cv_status settle(verification *v, cv_status status, const cv_error *why, cv_error *err)
{
    if (status == CV_OK) return CV_OK;
    v->is_missing = v->is_missing || (status == CATERVA_ENOTFOUND && v->tries > 0);
    if (v->is_missing) return CV_OK;
    if (is_damage(v, status)) {
        report(v, why);
        return CV_OK;
    }
    if (err) *err = *why;
    return status;
}

static void begin(verification *v, const char *key, const char *kind_name)
{
    v->array = (caterva_verify_result)CATERVA_VERIFY_RESULT_INIT;
    v->member = (caterva_tree_member){.struct_size = sizeof v->member,
                                      .key = key,
                                      .kind_name = kind_name,
                                      .result = &v->array};
}

static cv_status finish(verification *v, cv_error *err)
{
    v->result.members++;
    v->result.damaged_members += v->member.damages > 0;
    v->result.unsealed_members += !v->member.sealed;
    v->result.skipped_members += v->member.skipped;
    if (!v->options.on_member || v->options.on_member(v->options.context, &v->member) == 0)
        return CV_OK;
    return cv_fail(err, CATERVA_ESTOPPED, -1, "stopped after %lld members",
                   (long long)v->result.members);
}

/* Lets the watch stop the verification of a large array. */
static int on_progress(void *context, int64_t done, int64_t total)
{
    const verification *v = context;
    (void)done, (void)total;
    return cv_watch_tick(v->reporting, 0, NULL) != CV_OK;
}

static cv_status verify_handle(verification *v, caterva_array *array, cv_error *err)
{
    caterva_verify_options o = CATERVA_VERIFY_INIT;
    o.quick = v->options.quick;
    o.on_damage = on_damage;
    o.context = v;
    if (v->reporting) o.progress = (caterva_progress){.report = on_progress, .context = v};
    v->member.sealed = array->snapshot->seal == CV_SEAL_WHOLE;
    v->member.ndim = array->snapshot->grid.ndim;
    return caterva_verify(array, &o, &v->array, err);
}

static cv_status verify_other(verification *v, const char *key, cv_error *err);

/* Whether the member is another kind of frame, which is accepted even if it cannot be read here.
 * Arrays, attributes and trees that cannot be read are not accepted. */
static bool is_other_kind(const verification *v)
{
    static const char *const own[] = {"array", "attributes", "tree", "damaged"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(own[i], v->member.kind_name) == 0) return false;
    return true;
}

static cv_status verify_array(verification *v, const char *key, cv_error *err)
{
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    cv_error why = {.position = -1};
    o.threads = v->options.threads;
    o.cache_bytes = -1;
    cv_status status = caterva_tree_open_array(v->tree, key, &o, &array, &why);
    if (status == CATERVA_EUNSUPPORTED && is_other_kind(v)) return verify_other(v, key, err);
    if (status != CV_OK) return settle(v, status, &why, err);
    status = verify_handle(v, array, &why);
    cv_array_free(array);
    return settle(v, status, &why, err);
}

/* Verifies the structure of a frame without decoding its items. */
static cv_status verify_store(verification *v, cv_store *store, cv_error *err)
{
    cv_snapshot *s = NULL;
    cv_error why = {.position = -1};
    cv_status status = cv_snapshot_load_any(store, &s, &why);
    if (status == CV_OK) v->member.sealed = s->seal == CV_SEAL_WHOLE;
    if (status == CV_OK) status = cv_snapshot_check_header(s, &why);
    if (status == CV_OK && !v->options.quick) status = cv_snapshot_check_attributes(s, &why);
    cv_snapshot_release(s);
    if (status == CATERVA_EUNSUPPORTED && is_other_kind(v)) return CV_OK;
    return settle(v, status, &why, err);
}

static cv_status verify_leaf(verification *v, const cv_leaf *leaf, cv_error *err)
{
    cv_store *store;
    cv_error why = {.position = -1};
    const cv_tree *tree = v->tree->tree;
    cv_status status = leaf->is_embedded ? cv_embedded_store(tree, leaf, &store, &why)
                                         : cv_tree_store(tree, &leaf->member, &store, &why);
    if (status != CV_OK) return settle(v, status, &why, err);
    status = verify_store(v, store, err);
    cv_store_close(store);
    return status;
}

static cv_status verify_other(verification *v, const char *key, cv_error *err)
{
    cv_leaf leaf;
    cv_error why = {.position = -1};
    cv_status status = cv_tree_find(v->tree->tree, key, &leaf, &why);
    if (status != CV_OK) return settle(v, status, &why, err);
    status = verify_leaf(v, &leaf, err);
    cv_leaf_free(&leaf);
    return status;
}

/* Checks a member's local header against the directory. Does not report the same damage twice. */
static cv_status verify_header(verification *v, const cv_member *member, cv_error *err)
{
    cv_error why = {.position = -1};
    const cv_zip_source source = cv_tree_source(v->tree->tree);
    cv_status status = cv_zip_directory_check(&source, member, &why);
    bool is_told = v->member.damages > 0 && is_damage(v, status);
    return is_told ? CV_OK : settle(v, status, &why, err);
}

/* Checks the headers of members replaced by others of the same name. */
static cv_status verify_replaced(verification *v, cv_error *err)
{
    if (!v->contents) return CV_OK;
    const cv_members *m = &v->contents->members;
    for (size_t i = 0; i < m->n_replaced; i++)
        CV_TRY(verify_header(v, &m->list[m->n + i], err));
    return CV_OK;
}

/* Compares a member with its record in the directory. Checks only the header of a remote member. */
static cv_status verify_checksum(verification *v, const char *path, cv_error *err)
{
    cv_copy_source source;
    cv_error why = {.position = -1};
    const cv_tree *tree = v->tree->tree;
    if (tree->form != CV_TREE_ARCHIVE || !path) return CV_OK;
    const cv_member *member = cv_members_find(&v->contents->members, path);
    if (!member) return CV_OK;
    if (v->seen) v->seen[member - v->contents->members.list] = true;
    CV_TRY(verify_header(v, member, err));
    if (v->options.quick || tree->store || member->method != STORED) return CV_OK;
    cv_status status = cv_copy_source_open(v->tree->tree, member, &source, &why);
    if (v->member.damages > 0 && is_damage(v, status)) return CV_OK; /* reported already */
    if (status == CV_OK) {
        status = cv_copy_check(&source, v->reporting, &why);
        cv_copy_source_close(&source);
    }
    return settle(v, status, &why, err);
}

/* Whether the contents are unknown or stored elsewhere. */
static bool is_closed(const char *kind_name)
{
    static const char *const kinds[] = {"deflated", "encrypted", "remote"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i], kind_name) == 0) return true;
    return false;
}

/* Checks that the metadata of a Zarr group can be read. They have no checksum, but all except those
 * of the root are twice in the hierarchy: see verify_consolidated. */
static cv_status verify_metadata(verification *v, const char *group, cv_error *err)
{
    size_t n;
    const char **names = NULL;
    cv_error why = {.position = -1};
    cv_status status = caterva_tree_attr_list(v->tree, group, &names, &n, &why);
    caterva_free(names);
    v->member.sealed = group[1] != '\0';
    CV_TRY(settle(v, status, &why, err));
    return finish(v, err);
}

/* Checks that the metadata of the root end with those of all members. */
static cv_status verify_consolidated(verification *v, const caterva_tree_list *list,
                                     cv_error *err)
{
    static const char end[] = "}}\n}\n";
    cv_error why = {.position = -1};
    cv_buffer root = {0}, all = {0};
    cv_dir dir = v->tree->tree->dir;
    if (v->tree->tree->form != CV_TREE_ZARR) return CV_OK;
    begin(v, "/", "tree");
    v->member.sealed = 1;
    cv_status status = cv_zarr_consolidate(dir, list, &all, &why);
    if (status == CV_OK) status = cv_buffer_append(&all, end, sizeof end - 1, &why);
    if (status == CV_OK) status = cv_zarr_read_meta(dir, ".", &root, &why);
    if (status == CV_OK && (root.size < all.size || memcmp(root.data + root.size - all.size,
                                                           all.data, all.size) != 0))
        status = cv_fail(&why, CATERVA_ECORRUPT, -1,
                         "the metadata of all members in zarr.json differ from those of the "
                         "members: damaged, or changed by another program");
    cv_buffer_free(&root);
    cv_buffer_free(&all);
    CV_TRY(settle(v, status, &why, err));
    return finish(v, err);
}

static cv_status verify_attributes(verification *v, const char *group, cv_error *err)
{
    cv_leaf leaf;
    cv_error why = {.position = -1};
    char key[4200];
    (void)snprintf(key, sizeof key, "%s/%s", group[1] ? group : "", CV_TREE_ATTRIBUTES);
    cv_status status = cv_tree_find_attributes(v->tree->tree, group, &leaf, &why);
    bool has_some = status == CV_OK && (leaf.path || leaf.is_embedded);
    if (status == CATERVA_ENOTFOUND || (status == CV_OK && !has_some)) return CV_OK;
    begin(v, key, "attributes");
    if (v->tree->tree->form == CV_TREE_ZARR) {
        if (has_some) cv_leaf_free(&leaf);
        return verify_metadata(v, group, err);
    }
    v->tries = v->tree->tree->form == CV_TREE_DIRECTORY;
    status = status == CV_OK ? verify_leaf(v, &leaf, err) : settle(v, status, &why, err);
    if (status == CV_OK && has_some) status = verify_checksum(v, leaf.path, err);
    if (has_some) cv_leaf_free(&leaf);
    bool is_gone = v->is_missing;
    v->tries = 0;
    v->is_missing = false;
    return status == CV_OK && !is_gone ? finish(v, err) : status;
}

static cv_status verify_leaf_of(verification *v, const caterva_tree_entry *entry,
                                cv_error *err)
{
    cv_error why = {.position = -1};
    begin(v, entry->key, entry->kind_name);
    if (strcmp(entry->kind_name, "unreadable") == 0) {
        (void)cv_fail_unreadable(entry->path, &why);
        report(v, &why);
        return CV_OK;
    }
    if (entry->kind == CATERVA_TREE_ARRAY) return verify_array(v, entry->key, err);
    if (is_closed(entry->kind_name) || strcmp(entry->kind_name, "file") == 0) return CV_OK;
    return verify_other(v, entry->key, err);
}

static bool is_there(const verification *v, const char *key)
{
    cv_leaf leaf;
    cv_status status = cv_tree_find(v->tree->tree, key, &leaf, NULL);
    if (status == CV_OK) cv_leaf_free(&leaf);
    return status != CATERVA_ENOTFOUND;
}

/* Verifies a listed entry. A concurrent writer may delete the file meanwhile, which is not damage
 * (*gone), or replace it; then the new file is checked. */
static cv_status verify_listed(verification *v, const caterva_tree_entry *entry, bool *gone,
                               cv_error *err)
{
    enum { TRIES = 3 };
    cv_status status = CV_OK;
    v->tries = v->tree->tree->form == CV_TREE_DIRECTORY ? TRIES : 0;
    do {
        v->is_missing = false;
        status = verify_leaf_of(v, entry, err);
        *gone = v->is_missing && !is_there(v, entry->key);
        v->tries--;
    } while (status == CV_OK && v->is_missing && !*gone);
    v->tries = 0;
    v->is_missing = false;
    return status;
}

static cv_status verify_entry(verification *v, const caterva_tree_entry *entry, cv_error *err)
{
    bool is_gone;
    if (entry->kind == CATERVA_TREE_GROUP) return verify_attributes(v, entry->key, err);
    if (entry->kind == CATERVA_TREE_OTHER && !entry->path && !entry->embedded) return CV_OK;
    CV_TRY(verify_listed(v, entry, &is_gone, err));
    if (is_gone) return cv_watch_tick(v->reporting, entry->stored_bytes, err);
    CV_TRY(verify_checksum(v, entry->path, err));
    v->member.skipped = is_closed(entry->kind_name) && v->member.damages == 0;
    CV_TRY(finish(v, err));
    return cv_watch_tick(v->reporting, entry->stored_bytes, err);
}

/* Verifies members without an entry, such as parts of objects. Reports only damaged members. */
static cv_status verify_unseen(verification *v, cv_error *err)
{
    char key[4200];
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): with `seen` there are contents */
    for (size_t i = 0; v->seen && i < v->contents->members.n; i++) {
        const char *path = v->contents->members.list[i].path;
        size_t size = cv_tree_is_leaf(path) ? cv_tree_stem(path) : strlen(path);
        if (v->seen[i]) continue;
        (void)snprintf(key, sizeof key, "/%.*s", (int)size, path);
        begin(v, key, "file");
        CV_TRY(verify_checksum(v, path, err));
        if (v->member.damages > 0) CV_TRY(finish(v, err));
    }
    return CV_OK;
}

static cv_status verify_embed(verification *v, cv_error *err)
{
    cv_embed_bytes bytes;
    cv_error why = {.position = -1};
    begin(v, "/", "tree");
    CV_TRY(verify_replaced(v, err));
    if (v->contents && !v->contents->has_embed) /* an archive made by another program */
        return v->member.damages > 0 ? finish(v, err) : CV_OK;
    cv_status status = cv_embedded_open(v->tree->tree, &bytes, &why);
    if (status == CV_OK) {
        status = verify_handle(v, bytes.context, &why);
        cv_embedded_close(&bytes);
    }
    CV_TRY(settle(v, status, &why, err));
    CV_TRY(verify_checksum(v, CV_TREE_EMBED, err));
    return finish(v, err);
}

/* Returns the bytes of the members below a group whose checksums in the archive are compared. */
static int64_t count_checksums(const verification *v, const char *group)
{
    int64_t bytes = 0;
    const char *below = group + 1;
    size_t size = strlen(below);
    const cv_tree *tree = v->tree->tree;
    if (tree->form != CV_TREE_ARCHIVE || tree->store || v->options.quick) return 0;
    for (size_t i = 0; i < v->contents->members.n; i++) {
        const cv_member *member = &v->contents->members.list[i];
        bool is_below = strncmp(member->path, below, size) == 0 &&
                        (size == 0 || member->path[size] == '/');
        if (is_below && member->method == STORED) bytes += (int64_t)member->size;
    }
    return bytes;
}

/* ---- Keys that differ only in case ------------------------------------------------------ */

static int lower(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c; }

static int compare_ignoring_case(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) a++, b++;
    return (lower(*a) > lower(*b)) - (lower(*a) < lower(*b));
}

static bool is_group(const caterva_tree_entry *entry)
{
    return entry->kind == CATERVA_TREE_GROUP;
}

/* Groups and leaves apart: a directory and a file "x.b2nd" have different names. */
static int by_key(const void *a, const void *b)
{
    const caterva_tree_entry *x = *(const caterva_tree_entry *const *)a;
    const caterva_tree_entry *y = *(const caterva_tree_entry *const *)b;
    if (is_group(x) != is_group(y)) return is_group(x) - is_group(y);
    int order = compare_ignoring_case(x->key, y->key);
    return order ? order : strcmp(x->key, y->key);
}

/* Whether also the last names differ. Otherwise the groups of the keys are reported. */
static bool collides(const caterva_tree_entry *x, const caterva_tree_entry *y)
{
    const char *name = strrchr(x->key, '/');
    return is_group(x) == is_group(y) && compare_ignoring_case(x->key, y->key) == 0 &&
           strcmp(name, y->key + (name - x->key)) != 0;
}

static cv_status report_collisions(verification *v, const caterva_tree_list *list,
                                   cv_error *err)
{
    size_t n = 0;
    if (list->n < 2) return CV_OK;
    const caterva_tree_entry **sorted = cv_malloc(list->n * sizeof *sorted);
    if (!sorted) return cv_fail_memory(err, list->n * sizeof *sorted, "a list of keys");
    for (size_t i = 0; i < list->n; i++)
        if (!list->entries[i]->embedded) sorted[n++] = list->entries[i];
    qsort(sorted, n, sizeof *sorted, by_key);
    for (size_t i = 1; i < n; i++) {
        if (!collides(sorted[i], sorted[i - 1])) continue;
        v->result.case_collisions++;
        if (v->options.on_case_collision)
            v->options.on_case_collision(v->options.context, sorted[i]->key,
                                         sorted[i - 1]->key);
    }
    cv_free(sorted);
    return CV_OK;
}

static cv_status verify_list(verification *v, const caterva_tree_list *list,
                             const char *group, cv_error *err)
{
    CV_TRY(report_collisions(v, list, err));
    for (size_t i = 0; i < list->n; i++)
        cv_watch_expect(v->reporting, list->entries[i]->stored_bytes);
    cv_watch_expect(v->reporting, count_checksums(v, group));
    if (!group[1]) CV_TRY(verify_embed(v, err));
    if (!group[1]) CV_TRY(verify_consolidated(v, list, err));
    CV_TRY(verify_attributes(v, group, err));
    for (size_t i = 0; i < list->n; i++) CV_TRY(verify_entry(v, list->entries[i], err));
    return verify_unseen(v, err);
}

/* Verifies all members of an archive, listed or not, if the group is the whole tree. */
static cv_status verify_contents(verification *v, const caterva_tree_list *list,
                                 const char *group, cv_error *err)
{
    const cv_tree *tree = v->tree->tree;
    size_t n = tree->contents.members.n;
    if (tree->form != CV_TREE_DIRECTORY) v->contents = &tree->contents;
    if (v->contents && !group[1] && n > 0) {
        v->seen = cv_calloc(n, sizeof *v->seen);
        if (!v->seen) return cv_fail_memory(err, n, "the members of a tree");
    }
    cv_status status = verify_list(v, list, group, err);
    cv_free(v->seen);
    return status;
}

/* Verifies the group. A tree that cannot be listed counts as one damaged member. */
static cv_status verify(verification *v, const char *group, cv_error *err)
{
    cv_error why = {.position = -1};
    const caterva_tree_list *list;
    CV_TRY(cv_tree_confirm(v->tree->tree, err));
    cv_status status = caterva_tree_get_list(v->tree, group, &list, &why);
    bool is_unknown = status == CATERVA_ENOTFOUND && group[1];
    if (is_unknown || status == CATERVA_EUNSUPPORTED) {
        if (err) *err = why;
        return status;
    }
    if (status != CV_OK) {
        begin(v, "/", "tree");
        CV_TRY(settle(v, status, &why, err));
        return finish(v, err);
    }
    status = verify_contents(v, list, group, err);
    caterva_tree_list_release(list);
    return status;
}

caterva_status caterva_tree_verify(caterva_tree *tree, const char *group,
                                   const caterva_tree_verify_options *options,
                                   caterva_tree_verify_result *result, caterva_error *err)
{
    verification v = {.tree = tree};
    CV_TRY(cv_tree_handle_check(tree, err));
    CV_TRY(cv_output_check(result, sizeof *result, "tree verify result", err));
    CV_TRY(
        cv_options_read(&v.options, sizeof v.options, options, "tree verify options", err));
    CV_TRY(cv_progress_check(&v.options.progress, err));
    if (!group) group = "/";
    CV_TRY(cv_tree_check_key(group, err));
    cv_tree_handle_begin(tree);
    v.reporting = cv_watch_open(&v.watch, &v.options.progress, tree->tree->watch);
    cv_status status = cv_watch_close(&v.watch, verify(&v, group, err));
    status = cv_tree_handle_finish(tree, status);
    cv_output_fill(result, &v.result, sizeof v.result);
    return status;
}

/* ---- Archives that are published ------------------------------------------------------ */

bool cv_is_tree(const char *path)
{
    cv_tree *tree;
    bool is_tree = cv_tree_open(path, NULL, NULL, &tree, NULL) == CV_OK;
    if (is_tree) cv_tree_close(tree);
    return is_tree;
}

/* Returns the end of the last member. The directory follows, with a checksum of each member. */
static uint64_t end_of_members(const cv_members *members)
{
    uint64_t end = 0;
    for (size_t i = 0; i < members->n + members->n_replaced; i++)
        if (members->list[i].end > end) end = members->list[i].end;
    return end;
}

static cv_status measure(const char *path, cv_archive *a, cv_error *err)
{
    if (a->tree->form != CV_TREE_ARCHIVE)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%s is not an archive",
                       a->tree->shown.text);
    CV_TRY(cv_store_file_part(a->tree->file, path, 0, UINT64_MAX, &a->store, err));
    CV_TRY(cv_store_size(a->store, CV_FRAME_OBJECT, &a->size, err));
    a->vouching = a->size - end_of_members(&a->tree->contents.members);
    return CV_OK;
}

cv_status cv_archive_open(const char *path, cv_archive *out, cv_error *err)
{
    *out = (cv_archive){.tree = NULL};
    CV_TRY(cv_tree_open(path, NULL, NULL, &out->tree, err));
    cv_status status = measure(path, out, err);
    if (status != CV_OK) cv_archive_close(out);
    return status;
}

cv_status cv_archive_check(const cv_archive *archive, cv_watch *watch, cv_error *err)
{
    const cv_members *members = &archive->tree->contents.members;
    const cv_zip_source source = cv_tree_source(archive->tree);
    for (size_t i = 0; i < members->n + members->n_replaced; i++) {
        cv_copy_source member;
        CV_TRY(cv_zip_directory_check(&source, &members->list[i], err));
        if (i >= members->n || members->list[i].method != STORED) continue;
        CV_TRY(cv_copy_source_open(archive->tree, &members->list[i], &member, err));
        cv_status status = cv_copy_check(&member, watch, err);
        cv_copy_source_close(&member);
        CV_TRY(status);
    }
    return CV_OK;
}

void cv_archive_close(cv_archive *archive)
{
    cv_store_close(archive->store);
    cv_tree_close(archive->tree);
    *archive = (cv_archive){.tree = NULL};
}
