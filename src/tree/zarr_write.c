/* Room: tree. Writes a tree as a hierarchy of Zarr v3 groups, whose arrays are those of
 * caterva_copy_options.zarr; tree/zarr.h draws it. Everything is written under a temporary name, and
 * then renamed. Also describes the groups of a tree that stays as it is. */
#include "tree/zarr_write.h"

#include "array/open.h"
#include "format/zarr_meta.h"
#include "store/descriptors.h"
#include "store/place.h"
#include "store/zarr.h"
#include "tree/leaf.h"
#include "tree/make.h"
#include "tree/names.h"
#include "tree/zarr.h"

#include <caterva_upkeep.h>
#include <stdio.h>
#include <string.h>

typedef struct hierarchy {
    caterva_tree *tree;
    const caterva_tree_list *list;
    const caterva_tree_pack_options *options;
    cv_place place;
    cv_dir dir;
    char *path;      /* of the temporary directory */
    cv_watch *watch; /* counts stored bytes; or NULL */
} hierarchy;

static cv_status fail_make(const hierarchy *h, int error, cv_error *err)
{
    return cv_fail_sys(err, error, "cannot create %s", h->place.shown.text);
}

/* Names of members, relative to the tree. */
static const char *name_of(const caterva_tree_entry *entry) { return entry->key + 1; }

/* ---- Groups ----------------------------------------------------------------------------- */

typedef struct values {
    const char **names;
    size_t n;
    cv_zarr_attribute *list;
    size_t n_read;
} values;

static cv_status read_values(caterva_tree *tree, const char *group, values *v, cv_error *err)
{
    CV_TRY(caterva_tree_attr_list(tree, group, &v->names, &v->n, err));
    v->list = cv_calloc(v->n + 1, sizeof v->list[0]);
    if (!v->list) return cv_fail_memory(err, v->n, "attributes");
    for (; v->n_read < v->n; v->n_read++) {
        void *value;
        cv_zarr_attribute *a = &v->list[v->n_read];
        CV_TRY(
            caterva_tree_attr_get(tree, group, v->names[v->n_read], &value, &a->size, err));
        a->name = v->names[v->n_read];
        a->value = value;
    }
    return CV_OK;
}

/* Appends the metadata of a group; `members` as in cv_zarr_group_write. */
static cv_status describe_group(caterva_tree *tree, const char *group,
                                const cv_buffer *members, cv_buffer *out, cv_error *err)
{
    values v = {.names = NULL};
    cv_status status = read_values(tree, group, &v, err);
    if (status == CV_OK)
        status = cv_zarr_group_write(v.list, (int)v.n_read, members, out, err);
    for (size_t i = 0; i < v.n_read; i++) caterva_free(cv_unconst(v.list[i].value));
    cv_free(v.list);
    caterva_free(v.names);
    return status;
}

/* Writes the metadata of a group; `members` is NULL except for the root. */
static cv_status write_group(hierarchy *h, const char *group, const cv_buffer *members,
                             cv_error *err)
{
    cv_buffer meta = {0};
    cv_status status = describe_group(h->tree, group, members, &meta, err);
    if (status == CV_OK)
        status = cv_zarr_write_meta(h->dir, group[1] ? group + 1 : ".", &meta, err);
    cv_buffer_free(&meta);
    return status;
}

static cv_status add_group(hierarchy *h, const caterva_tree_entry *entry, cv_error *err)
{
    int error = cv_dir_make(h->dir, name_of(entry), 0777);
    return error ? fail_make(h, error, err) : write_group(h, entry->key, NULL, err);
}

/* ---- Arrays ----------------------------------------------------------------------------- */

/* The share of one array in the progress of the whole. */
typedef struct share {
    cv_watch *watch;
    int64_t size, told; /* stored bytes */
} share;

static cv_status tell(share *s, int64_t done, cv_error *err)
{
    int64_t more = done > s->told ? done - s->told : 0;
    s->told += more;
    return cv_watch_tick(s->watch, more, err);
}

static int report(void *context, int64_t done, int64_t total)
{
    share *s = context;
    double part = total > 0 ? (double)done / (double)total : 0;
    return tell(s, (int64_t)(part * (double)s->size), NULL) != CV_OK;
}

static cv_status copy_array(const hierarchy *h, caterva_array *array, const char *name,
                            share *s, cv_error *err)
{
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_copy_options options = CATERVA_COPY_INIT;
    size_t size = strlen(h->path) + strlen(name) + 2;
    CV_TRY(cv_tree_check_file(name, err));
    char *path = cv_malloc(size);
    if (!path) return cv_fail_memory(err, size, "a path");
    (void)snprintf(path, size, "%s/%s", h->path, name);
    create.durability = CATERVA_DURABILITY_NONE; /* all are synced at the end */
    options.create = &create;
    options.zarr = 1;
    if (s->watch) options.progress = (caterva_progress){.report = report, .context = s};
    cv_status status = caterva_copy(array, path, &options, NULL, err);
    cv_free(path);
    return status;
}

static cv_status add_array(const hierarchy *h, const caterva_tree_entry *entry, cv_error *err)
{
    caterva_array *array;
    cv_error why = {.position = -1};
    share s = {.watch = h->watch, .size = entry->stored_bytes};
    caterva_open_options o;
    CV_TRY(cv_array_open_options(NULL, &o, err));
    CV_TRY(cv_array_open_leaf(h->tree->tree, entry->key, &o, &array, err));
    cv_status status = copy_array(h, array, name_of(entry), &s, &why);
    caterva_discard(array);
    if (status == CV_OK) return tell(&s, s.size, err);
    if (status == CATERVA_ESTOPPED || status == CATERVA_ENOMEM) {
        if (err) *err = why;
        return status;
    }
    (void)cv_fail(err, status, why.position, "%.80s: %.150s", entry->key, why.message);
    if (err) err->sys_errno = why.sys_errno;
    return status;
}

/* ---- The whole -------------------------------------------------------------------------- */

/* A member must not have a name that Zarr uses in the directory of its group. */
static cv_status check_entry(const caterva_tree_entry *entry, cv_error *err)
{
    if (entry->kind == CATERVA_TREE_OTHER)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%.150s is no array or group (%s), and cannot be in a Zarr group",
                       entry->key, entry->kind_name);
    if (strcmp(strrchr(entry->key, '/') + 1, CV_ZARR_META) == 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "%.150s has the name of Zarr's metadata",
                       entry->key);
    return CV_OK;
}

static cv_status add_members(hierarchy *h, cv_error *err)
{
    for (size_t i = 0; i < h->list->n; i++) {
        CV_TRY(check_entry(h->list->entries[i], err));
        cv_watch_expect(h->watch, h->list->entries[i]->stored_bytes);
    }
    for (size_t i = 0; i < h->list->n; i++) {
        const caterva_tree_entry *entry = h->list->entries[i];
        CV_TRY(entry->kind == CATERVA_TREE_ARRAY ? add_array(h, entry, err)
                                                 : add_group(h, entry, err));
        CV_TRY(cv_watch_tick(h->watch, 0, err));
    }
    return CV_OK;
}

static cv_status add_root(hierarchy *h, cv_error *err)
{
    cv_buffer members = {0};
    cv_status status = cv_zarr_consolidate(h->dir, h->list, &members, err);
    if (status == CV_OK) status = write_group(h, "/", &members, err);
    cv_buffer_free(&members);
    return status;
}

static cv_status begin(hierarchy *h, const char *path, cv_error *err)
{
    h->place.is_directory = true;
    int error = cv_place_create_directory(&h->place, &h->dir);
    if (error) return fail_make(h, error, err);
    cv_place_list(&h->place);
    return cv_place_path(&h->place, path, "", &h->path, err);
}

static cv_status install(hierarchy *h, cv_error *err)
{
    cv_file meta;
    bool moved = false, durable = h->options->durability != CATERVA_DURABILITY_NONE;
    size_t n_files = 4 * h->list->n; /* about */
    if (durable) CV_TRY(cv_sync_below(h->dir, h->place.shown.text, n_files, err));
    int error = cv_open_file(h->dir, CV_ZARR_META, CV_OPEN_BOTH, 0, &meta);
    if (error) return fail_make(h, error, err);
    cv_status status =
        cv_place_publish(&h->place, cv_dir_as_file(h->dir), meta, durable, &moved, err);
    cv_file_close(&meta);
    if (moved) h->place.temp[0] = '\0';
    return status;
}

static void end(hierarchy *h)
{
    if (h->place.temp[0] && !h->place.is_left) cv_place_remove_temp(&h->place);
    cv_place_close(&h->place);
    cv_dir_close(&h->dir);
    cv_free(h->path);
}

static cv_status write_held(hierarchy *h, const char *path, cv_error *err)
{
    CV_TRY(cv_tree_check_outside(h->tree->tree, path, err));
    CV_TRY(caterva_tree_get_list(h->tree, "/", &h->list, err));
    CV_TRY(cv_place_open(path, h->options->overwrite != 0, &h->place, err));
    cv_status status = begin(h, path, err);
    if (status == CV_OK) status = add_members(h, err);
    if (status == CV_OK) status = add_root(h, err);
    if (status == CV_OK) status = install(h, err);
    end(h);
    return status;
}

cv_status cv_tree_write_zarr(caterva_tree *tree, const char *path,
                             const caterva_tree_pack_options *options, cv_error *err)
{
    cv_watch watch;
    hierarchy h = {.tree = tree, .options = options};
    CV_TRY(cv_tree_hold(tree->tree, err));
    h.watch = cv_watch_open(&watch, &options->progress, NULL);
    cv_status status = cv_watch_close(&watch, write_held(&h, path, err));
    caterva_tree_list_release(h.list);
    cv_tree_let_go(tree->tree);
    return status;
}

/* ---- Trees as they are ------------------------------------------------------------------- */

static cv_status describe_array(caterva_tree *tree, const char *key, cv_buffer *out,
                                cv_error *err)
{
    caterva_array *array;
    caterva_open_options o;
    char *text;
    size_t size;
    CV_TRY(cv_array_open_options(NULL, &o, err));
    CV_TRY(cv_array_open_leaf(tree->tree, key, &o, &array, err));
    cv_status status = caterva_zarr_metadata(array, &text, &size, err);
    caterva_discard(array);
    CV_TRY(status);
    status = cv_buffer_append(out, text, size, err);
    caterva_free(text);
    return status;
}

/* Whether one member fails, and not the tree. */
static bool is_left_out(cv_status status)
{
    return status == CATERVA_EUNSUPPORTED || status == CATERVA_ECORRUPT ||
           status == CATERVA_ENOTFOUND;
}

/* Appends a member of the consolidated metadata, or nothing; `name` is relative to the group. */
static cv_status add_described(caterva_tree *tree, const caterva_tree_entry *entry,
                               const char *name, cv_buffer *out, cv_error *err)
{
    size_t before = out->size;
    if (before > 0) CV_TRY(cv_buffer_append(out, ",", 1, err));
    CV_TRY(cv_buffer_append(out, "\n", 1, err));
    CV_TRY(cv_zarr_string_write(name, out, err));
    CV_TRY(cv_buffer_append(out, ": ", 2, err));
    cv_status status = entry->kind == CATERVA_TREE_ARRAY
                           ? describe_array(tree, entry->key, out, err)
                           : describe_group(tree, entry->key, NULL, out, err);
    if (!is_left_out(status)) return status;
    out->size = before;
    return CV_OK;
}

cv_status cv_tree_describe_zarr(caterva_tree *tree, const char *group, cv_buffer *out,
                                cv_error *err)
{
    const caterva_tree_list *list;
    cv_buffer members = {0};
    size_t prefix = strcmp(group, "/") == 0 ? 1 : strlen(group) + 1;
    cv_status status = CV_OK;
    CV_TRY(caterva_tree_get_list(tree, group, &list, err));
    for (size_t i = 0; i < list->n && status == CV_OK; i++) {
        const caterva_tree_entry *entry = list->entries[i];
        if (entry->kind == CATERVA_TREE_OTHER || strlen(entry->key) < prefix) continue;
        status = add_described(tree, entry, entry->key + prefix, &members, err);
    }
    if (status == CV_OK) status = describe_group(tree, group, &members, out, err);
    cv_buffer_free(&members);
    caterva_tree_list_release(list);
    return status;
}
