/* Room: tree. Commits several arrays and attributes of groups as one. Until the journal appears
 * nothing has changed; from then on everything is committed.
 *
 *   1. All arrays are locked. Each writes everything except its header, and syncs. Attributes of
 *      groups are written under temporary names. The names of new arrays are reserved.
 *   2. The journal, which contains the new headers and names, is published by a rename.
 *   3. Headers are written, files are renamed, and both are synced.
 *   4. The journal is deleted.
 *
 * A single array or group needs no journal. */
#include "array/array.h"
#include "array/wings.h"
#include "base/heap.h"
#include "engine/write/flush.h"
#include "format/json.h"
#include "format/values.h"
#include "frame/attributes.h"
#include "frame/snapshot.h"
#include "store/file.h"
#include "store/memory.h"
#include "store/zarr.h"
#include "tree/change.h"
#include "tree/handle.h"
#include "tree/leaf.h"
#include "tree/make.h"
#include "tree/names.h"

#include <caterva_tree.h>
#include <string.h>

/* An array that is open for writing, and its share of the commit. */
typedef struct part {
    caterva_array *array;
    const char *path;
    cv_commit *prepared; /* NULL: nothing was pending */
} part;

typedef struct commit {
    caterva_tree *tree;
    part *parts;
    size_t n;
    size_t n_closed, n_locked; /* first parts with closed gates; first parts with locks */
    size_t n_prepared;         /* prepared arrays and groups */
    bool durable;
    cv_journal_step *steps;
    size_t n_steps;
} commit;

/* ---- Members of a commit ---------------------------------------------------------------- */

static cv_status list_parts(commit *c, cv_error *err)
{
    const cv_writers *w = c->tree->writers;
    size_t n = w->n + c->tree->groups.n;
    c->parts = cv_calloc(w->n + 1, sizeof *c->parts);
    c->steps = cv_calloc(n + 1, sizeof *c->steps);
    if (!c->parts || !c->steps) return cv_fail_memory(err, n * sizeof *c->steps, "a commit");
    c->n = w->n;
    c->durable = c->tree->durability != CATERVA_DURABILITY_NONE;
    for (size_t i = 0; i < w->n; i++) {
        c->parts[i] = (part){.array = w->list[i]->array, .path = w->list[i]->path};
        if (c->parts[i].array->frame->durability != CATERVA_DURABILITY_NONE)
            c->durable = true;
    }
    return CV_OK;
}

/* Locks all parts, after closing all gates: a thread that verifies one array may read another. */
static cv_status lock_parts(commit *c, cv_error *err)
{
    for (size_t i = 0; i < c->n; i++) CV_TRY(cv_array_check_writable(c->parts[i].array, err));
    for (; c->n_closed < c->n; c->n_closed++)
        CV_TRY(cv_gate_close(&c->parts[c->n_closed].array->gate, err));
    for (; c->n_locked < c->n; c->n_locked++)
        cv_array_lock_alone(c->parts[c->n_locked].array);
    return CV_OK;
}

/* ---- Preparing -------------------------------------------------------------------------- */

/* Checks that the new file lies where the journal will look for it; a link may lead elsewhere. */
static cv_status check_temp(const commit *c, const cv_journal_step *step, cv_error *err)
{
    uint64_t size;
    if (cv_journal_has_file(c->tree->tree->dir, step, &size)) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "%.80s in %s is a link out of the tree: commit it separately", step->path,
                   c->tree->tree->shown.text);
}

static cv_status add_array(commit *c, const part *p, cv_error *err)
{
    cv_file_info info;
    cv_journal_step *step = &c->steps[c->n_steps++];
    const cv_snapshot *state = cv_commit_state(p->prepared);
    *step = (cv_journal_step){.path = p->path};
    if (cv_commit_is_first(p->prepared)) {
        step->file = cv_store_file_temp(p->array->frame->store);
        CV_TRY(cv_store_file_hold_place(p->array->frame->store, err));
        step->replaces = cv_dir_get_info(c->tree->tree->dir, p->path, &info) == 0;
        return check_temp(c, step, err);
    }
    step->commit = state->footer.commit;
    step->old_name = cv_snapshot_name(cv_commit_base(p->prepared));
    step->header = state->header_bytes.data;
    step->header_size = (uint32_t)state->header_bytes.size;
    return CV_OK;
}

/* Prepares an array. The tree's watch also counts the encoded bytes, and can stop the commit. */
static cv_status prepare_array(const commit *c, part *p, cv_error *err)
{
    cv_pending *pending = p->array->pending;
    cv_watch *own = pending->watch, **link = own ? &own->also : &pending->watch;
    *link = c->tree->tree->watch;
    cv_status status = cv_pending_prepare(pending, c->durable, &p->prepared, err);
    *link = NULL;
    return status;
}

static cv_status prepare_arrays(commit *c, cv_error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        part *p = &c->parts[i];
        if (!cv_pending_state(p->array->pending)) continue;
        CV_TRY(prepare_array(c, p, err));
        if (p->prepared) c->n_prepared++;
        CV_TRY(cv_watch_tick(c->tree->tree->watch, CV_FILE_BYTES, err));
    }
    return CV_OK;
}

/* Announces the work to the watch: each array counts once, each group twice (written, renamed). */
static void announce(const commit *c)
{
    int64_t n = 2 * (int64_t)c->tree->groups.n;
    for (size_t i = 0; i < c->n; i++)
        n += cv_pending_state(c->parts[i].array->pending) != NULL;
    cv_watch_expect(c->tree->tree->watch, n * CV_FILE_BYTES);
}

static cv_status prepare(commit *c, cv_error *err)
{
    cv_groups *groups = &c->tree->groups;
    announce(c);
    CV_TRY(prepare_arrays(c, err));
    CV_TRY(cv_groups_prepare(groups, c->tree->tree, c->durable, err));
    c->n_prepared += groups->n;
    for (size_t i = 0; i < c->n && c->n_prepared > 1; i++)
        if (c->parts[i].prepared) CV_TRY(add_array(c, &c->parts[i], err));
    for (size_t i = 0; i < groups->n; i++)
        c->steps[c->n_steps++] = (cv_journal_step){
            .path = groups->list[i].path, .file = groups->list[i].temp, .replaces = true};
    return CV_OK;
}

static void abandon(commit *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->parts[i].prepared) cv_store_file_let_place_go(c->parts[i].array->frame->store);
        cv_commit_drop(c->parts[i].prepared);
    }
    cv_groups_abandon(&c->tree->groups, c->tree->tree);
}

/* Sets whether new files stay when arrays are closed: true once the journal may name the files. */
static void leave_temps(const commit *c, bool leave)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->parts[i].prepared && cv_commit_is_first(c->parts[i].prepared))
            cv_store_file_leave_temp(c->parts[i].array->frame->store, leave);
}

static void doubt(commit *c)
{
    c->tree->unfinished = true;
    for (size_t i = 0; i < c->n; i++)
        if (c->parts[i].prepared) cv_commit_doubt(c->parts[i].prepared);
}

static cv_status publish(commit *c, cv_error *err)
{
    bool doubtful;
    const cv_tree *tree = c->tree->tree;
    if (c->n_prepared < 2) return CV_OK;
    leave_temps(c, true);
    cv_status status = cv_journal_publish(tree->dir, tree->shown.text, c->steps, c->n_steps,
                                          c->durable, &doubtful, err);
    if (status == CV_OK) return CV_OK;
    if (doubtful)
        doubt(c);
    else
        leave_temps(c, false);
    return status;
}

/* Completes all parts. Returns the first failure. */
static cv_status complete_parts(commit *c, cv_error *err)
{
    cv_status status = CV_OK;
    for (size_t i = 0; i < c->n; i++) {
        part *p = &c->parts[i];
        if (!p->prepared) continue;
        bool is_first = cv_commit_is_first(p->prepared);
        cv_status one = cv_commit_complete(p->prepared, status == CV_OK ? err : NULL);
        p->prepared = NULL;
        if (one == CV_OK) {
            cv_array_renew(p->array);
            if (cv_wings.jobs) cv_wings.jobs->committed(p->array, is_first);
        }
        if (status == CV_OK) status = one;
    }
    cv_status groups = cv_groups_complete(&c->tree->groups, c->tree->tree, c->durable,
                                          status == CV_OK ? err : NULL);
    return status == CV_OK ? groups : status;
}

static cv_status complete(commit *c, cv_error *err)
{
    cv_error reason = {0};
    const cv_tree *tree = c->tree->tree;
    cv_status status = complete_parts(c, &reason);
    if (c->n_prepared < 2) {
        if (status != CV_OK && err) *err = reason;
        if (status == CV_OK)
            cv_groups_clear(&c->tree->groups);
        else
            cv_groups_abandon(&c->tree->groups, tree);
        return status;
    }
    cv_groups_clear(&c->tree->groups);
    if (status == CV_OK) { /* a remaining journal does no harm */
        (void)cv_journal_remove(tree->dir, tree->shown.text, NULL);
        return CV_OK;
    }
    c->tree->unfinished = true;
    return cv_fail(err, CATERVA_EIO, -1,
                   "the commit to %.50s is published, and will be finished when the tree is "
                   "opened for writing again: %.100s",
                   tree->shown.text, reason.message);
}

static cv_status run(commit *c, cv_error *err)
{
    cv_status status = prepare(c, err);
    if (status == CV_OK) status = publish(c, err);
    if (status == CV_OK) return complete(c, err);
    if (c->tree->unfinished) { /* the changes may have been committed */
        for (size_t i = 0; i < c->n; i++) cv_commit_drop(c->parts[i].prepared);
        cv_groups_clear(&c->tree->groups);
    } else {
        abandon(c);
    }
    return status;
}

static cv_status commit_tree(caterva_tree *tree, cv_error *err)
{
    commit c = {.tree = tree};
    cv_mutex_lock(&tree->writers->lock);
    cv_status status = list_parts(&c, err);
    if (status == CV_OK) status = lock_parts(&c, err);
    if (status == CV_OK) status = run(&c, err);
    while (c.n_locked > 0) (void)cv_array_finish(c.parts[--c.n_locked].array, status);
    while (c.n_closed > 0) cv_gate_open(&c.parts[--c.n_closed].array->gate);
    cv_mutex_unlock(&tree->writers->lock);
    cv_free(c.parts);
    cv_free(c.steps);
    return status;
}

caterva_status caterva_tree_commit(caterva_tree *tree, caterva_error *err)
{
    CV_TRY(cv_tree_handle_check_writable(tree, err));
    cv_tree_handle_lock(tree);
    cv_status status = commit_tree(tree, err);
    tree->failed = status;
    return cv_tree_handle_unlock(tree, status);
}

/* ---- Attributes of groups without arrays ------------------------------------------------ */

static cv_status commit_groups(caterva_tree *tree, cv_error *err)
{
    commit c = {.tree = tree};
    if (tree->groups.n == 0) return CV_OK;
    CV_TRY(cv_tree_handle_check_writable(tree, err));
    if (tree->failed != CV_OK) /* the attributes belong to a commit that failed */
        return cv_fail(err, tree->failed, -1,
                       "attributes of %zu groups are dropped when %s is closed: their commit "
                       "failed, and was neither repeated nor rolled back",
                       tree->groups.n, tree->tree->shown.text);
    c.durable = tree->durability != CATERVA_DURABILITY_NONE;
    c.steps = cv_calloc(tree->groups.n, sizeof *c.steps);
    if (!c.steps) return cv_fail_memory(err, sizeof *c.steps, "a commit");
    cv_status status = run(&c, err);
    cv_free(c.steps);
    return status;
}

caterva_status caterva_tree_close(caterva_tree *tree, caterva_error *err)
{
    if (!tree) return CV_OK;
    cv_tree_handle_begin(tree);
    cv_status status = cv_tree_handle_finish(tree, commit_groups(tree, err));
    cv_groups_clear(&tree->groups);
    cv_writers_release(tree->writers);
    cv_keeper_release(tree->keeper);
    cv_tree_close(tree->tree);
    cv_watch_destroy(&tree->watch);
    cv_mutex_destroy(&tree->lock);
    cv_free(tree);
    return status;
}

static cv_status roll_back(caterva_tree *tree, cv_error *err)
{
    cv_status status = CV_OK;
    cv_groups_clear(&tree->groups);
    tree->failed = CV_OK;
    cv_mutex_lock(&tree->writers->lock);
    for (size_t i = 0; i < tree->writers->n; i++) {
        cv_status one = caterva_rollback(tree->writers->list[i]->array, err);
        if (status == CV_OK) status = one;
    }
    cv_mutex_unlock(&tree->writers->lock);
    return status;
}

caterva_status caterva_tree_rollback(caterva_tree *tree, caterva_error *err)
{
    CV_TRY(cv_tree_handle_check_writable(tree, err));
    cv_mutex_lock(&tree->lock);
    cv_status status = roll_back(tree, err);
    cv_mutex_unlock(&tree->lock);
    return status;
}

/* ---- Attributes of groups --------------------------------------------------------------- */

static cv_status open_stored(const cv_tree *tree, const char *group, cv_store **out,
                             cv_error *err)
{
    cv_leaf leaf;
    cv_status status = CV_OK;
    *out = NULL;
    CV_TRY(cv_tree_find_attributes(tree, group, &leaf, err));
    if (leaf.is_embedded)
        status = cv_embedded_store(tree, &leaf, out, err);
    else if (leaf.path)
        status = cv_tree_store(tree, &leaf.member, out, err);
    cv_leaf_free(&leaf);
    return status;
}

/* Gets the members of the map `attributes` in the metadata of a Zarr group. Borrows from `map`. */
static cv_status parse_attributes(const cv_buffer *map, cv_attribute **list, int *n,
                                  cv_error *err)
{
    cv_tokens t = cv_tokens_of(map->data, map->size);
    cv_token all = cv_token_next(&t), key = {.kind = CV_TOKEN_NIL};
    for (uint64_t i = 0; all.kind == CV_TOKEN_MAP && i < all.number; i++) {
        key = cv_token_next(&t);
        if (cv_token_is_text(&key, "attributes")) break;
        cv_tokens_skip(&t);
    }
    cv_token found = cv_token_next(&t);
    if (!cv_token_is_text(&key, "attributes") || found.kind != CV_TOKEN_MAP) return CV_OK;
    *list = cv_calloc((size_t)found.number + 1, sizeof **list);
    if (!*list) return cv_fail_memory(err, (size_t)found.number, "attributes");
    for (uint64_t i = 0; i < found.number; i++) {
        key = cv_token_next(&t);
        cv_attribute a = {.form = CV_ATTRIBUTE_RAW, .data = t.at};
        cv_tokens_skip(&t);
        a.size = (size_t)(t.at - a.data);
        char *name = cv_strndup((const char *)key.bytes, (size_t)key.number);
        if (!name) return cv_fail_memory(err, (size_t)key.number, "an attribute");
        a.name = name;
        if (cv_attributes_check_name(name, NULL) == CV_OK)
            (*list)[(*n)++] = a;
        else
            cv_free(name);
    }
    return CV_OK;
}

/* Makes the leaf that a Zarr group would have in another tree. */
static cv_status make_stored(const cv_tree *tree, const char *group, cv_buffer *out,
                             cv_error *err)
{
    int n = 0;
    cv_leaf leaf;
    cv_attribute *list = NULL;
    cv_buffer text = {0}, map = {0};
    cv_placed placed = {0};
    CV_TRY(cv_tree_find_attributes(tree, group, &leaf, err)); /* whether it is a group */
    bool has_meta = leaf.path != NULL;
    cv_leaf_free(&leaf);
    if (!has_meta) return cv_make_group(out, err);
    cv_status status = cv_zarr_read_meta(tree->dir, group[1] ? group + 1 : ".", &text, err);
    if (status == CV_OK)
        status = cv_json_to_msgpack((const char *)text.data, text.size, &map, err);
    if (status == CATERVA_EINVAL)
        status = cv_fail(err, CATERVA_ECORRUPT, -1,
                         "the metadata of group %.100s are not JSON", group);
    if (status == CV_OK) status = parse_attributes(&map, &list, &n, err);
    if (status == CV_OK) status = cv_attributes_place(list, n, NULL, 0, &placed, err);
    if (status == CV_OK) status = cv_make_group_with(placed.layers, placed.n, NULL, out, err);
    cv_placed_free(&placed);
    for (int i = 0; i < n; i++) cv_free(cv_unconst(list[i].name));
    cv_free(list);
    cv_buffer_free(&text);
    cv_buffer_free(&map);
    return status;
}

/* Opens the pending or stored leaf of the group. *out NULL: it has none. `made`: memory for it. */
static cv_status open_attributes(const caterva_tree *tree, const char *group, cv_buffer *made,
                                 cv_store **out, cv_error *err)
{
    const cv_buffer *frame = cv_groups_find(&tree->groups, group);
    if (tree->tree->form == CV_TREE_ZARR) {
        CV_TRY(make_stored(tree->tree, group, made, err));
        frame = made;
    }
    return frame ? cv_store_memory_borrow(frame->data, frame->size, out, err)
                 : open_stored(tree->tree, group, out, err);
}

/* Loads the attributes of a group from the pending or the stored leaf. *out NULL: the group has
 * none. CATERVA_ENOTFOUND: the group does not exist. */
static cv_status load(const caterva_tree *tree, const char *group, cv_snapshot **out,
                      cv_error *err)
{
    cv_store *store;
    cv_error reason = {0};
    cv_buffer made = {0};
    *out = NULL;
    cv_status status = open_attributes(tree, group, &made, &store, err);
    bool is_open = status == CV_OK && store;
    if (is_open) status = cv_snapshot_load_any(store, out, &reason);
    if (is_open) cv_store_close(store);
    cv_buffer_free(&made);
    if (status == CV_OK || !is_open) return status;
    (void)cv_fail(err, status, reason.position, "the attributes of %.60s in %.60s: %.120s",
                  group, tree->tree->shown.text, reason.message);
    if (err) err->sys_errno = reason.sys_errno;
    return status;
}

static cv_status check(const caterva_tree *tree, const char **group, cv_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!*group) *group = "/";
    return cv_tree_check_key(*group, err);
}

/* Copies names into one block of memory: first the pointers, then the names. */
static cv_status copy_names(const cv_attributes *all, const char ***names, size_t *n,
                            cv_error *err)
{
    size_t count = all ? (size_t)all->n : 0, size = (count + 1) * sizeof(char *);
    for (size_t i = 0; i < count; i++) size += strlen(all->list[i].name) + 1;
    const char **list = cv_malloc(size);
    if (!list) return cv_fail_memory(err, size, "names of attributes");
    char *at = (char *)(list + count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(all->list[i].name) + 1;
        memcpy(at, all->list[i].name, length);
        list[i] = at;
        at += length;
    }
    list[count] = NULL;
    *names = list;
    *n = count;
    return CV_OK;
}

static cv_status list(const caterva_tree *tree, const char *group, const char ***names,
                      size_t *n, cv_error *err)
{
    cv_snapshot *state;
    const cv_attributes *all = NULL;
    CV_TRY(load(tree, group, &state, err));
    cv_status status = state ? cv_snapshot_attributes(state, &all, err) : CV_OK;
    if (status == CV_OK) status = copy_names(all, names, n, err);
    cv_snapshot_release(state);
    return status;
}

caterva_status caterva_tree_attr_list(caterva_tree *tree, const char *group,
                                      const char ***names, size_t *n, caterva_error *err)
{
    CV_TRY(check(tree, &group, err));
    if (!names || !n) return cv_fail(err, CATERVA_EINVAL, -1, "names or n is NULL");
    cv_tree_handle_lock(tree);
    return cv_tree_handle_unlock(tree, list(tree, group, names, n, err));
}

static cv_status get(const caterva_tree *tree, const char *group, const char *name,
                     cv_buffer *value, cv_error *err)
{
    cv_snapshot *state;
    const cv_attributes *all;
    const cv_attribute *found;
    CV_TRY(load(tree, group, &state, err));
    if (!state) return cv_fail(err, CATERVA_ENOTFOUND, -1, "no attribute \"%.100s\"", name);
    cv_status status = cv_snapshot_attributes(state, &all, err);
    if (status == CV_OK) status = cv_attributes_find(all, name, &found, err);
    if (status == CV_OK) status = cv_attribute_value(found, value, tree->tree->watch, err);
    if (status == CV_OK) status = cv_buffer_reserve(value, 1, err); /* makes it non-NULL */
    cv_snapshot_release(state);
    return status;
}

caterva_status caterva_tree_attr_get(caterva_tree *tree, const char *group, const char *name,
                                     void **value, size_t *size, caterva_error *err)
{
    cv_buffer buffer = {0};
    CV_TRY(check(tree, &group, err));
    if (!name || !value || !size)
        return cv_fail(err, CATERVA_EINVAL, -1, "name, value or size is NULL");
    cv_tree_handle_lock(tree);
    cv_status status = cv_tree_handle_unlock(tree, get(tree, group, name, &buffer, err));
    if (status != CV_OK) {
        cv_buffer_free(&buffer);
        return status;
    }
    *value = buffer.data;
    *size = buffer.size;
    return CV_OK;
}

static cv_status put(caterva_tree *tree, const char *group, const cv_snapshot *old,
                     const cv_attribute *attributes, int n, cv_error *err)
{
    cv_placed placed = {.watch = tree->tree->watch};
    cv_buffer frame = {0};
    CV_TRY(cv_attributes_place(attributes, n, NULL, 0, &placed, err));
    cv_status status =
        cv_make_group_with(placed.layers, placed.n, old ? &old->header : NULL, &frame, err);
    cv_placed_free(&placed);
    if (status == CV_OK) return cv_groups_set(&tree->groups, group, &frame, err);
    cv_buffer_free(&frame);
    return status;
}

static cv_status replace(caterva_tree *tree, const char *group, const cv_snapshot *old,
                         const char *name, const cv_attribute *added, cv_error *err)
{
    int n;
    cv_attribute *attributes;
    const cv_attributes *all = NULL;
    if (old && old->grid.n_chunks > 0)
        return cv_fail(
            err, CATERVA_EUNSUPPORTED, -1,
            "the attributes of %.80s are stored in a frame with items, which cannot be "
            "changed here",
            group);
    if (old) CV_TRY(cv_snapshot_attributes(old, &all, err));
    CV_TRY(cv_attributes_replace(all, name, added, &attributes, &n, err));
    cv_status status = put(tree, group, old, attributes, n, err);
    cv_free(attributes);
    return status;
}

static cv_status change(caterva_tree *tree, const char *group, const char *name,
                        const cv_attribute *added, cv_error *err)
{
    cv_snapshot *old = NULL;
    cv_error why = {0};
    if (!cv_groups_find(&tree->groups, group)) {
        CV_TRY(cv_tree_handle_check_free(tree, group, CV_NEW_GROUP, err));
        CV_TRY(cv_change_check_group(tree->tree, group, err));
    }
    cv_status status = load(tree, group, &old, &why);
    if (status == CATERVA_ENOTFOUND && added) status = CV_OK; /* a new group */
    if (status != CV_OK && err) *err = why;
    if (status == CV_OK) status = replace(tree, group, old, name, added, err);
    cv_snapshot_release(old);
    return status;
}

caterva_status caterva_tree_attr_set(caterva_tree *tree, const char *group, const char *name,
                                     const void *value, size_t size, caterva_error *err)
{
    CV_TRY(check(tree, &group, err));
    CV_TRY(cv_tree_handle_check_writable(tree, err));
    CV_TRY(cv_attributes_check_name(name, err));
    if (!value && size > 0) return cv_fail(err, CATERVA_EINVAL, -1, "value is NULL");
    cv_attribute added = {
        .name = name, .form = CV_ATTRIBUTE_RAW, .data = value, .size = size};
    cv_tree_handle_lock(tree);
    return cv_tree_handle_unlock(tree, change(tree, group, name, &added, err));
}

caterva_status caterva_tree_attr_delete(caterva_tree *tree, const char *group,
                                        const char *name, caterva_error *err)
{
    CV_TRY(check(tree, &group, err));
    CV_TRY(cv_tree_handle_check_writable(tree, err));
    CV_TRY(cv_attributes_check_name(name, err));
    cv_tree_handle_lock(tree);
    return cv_tree_handle_unlock(tree, change(tree, group, name, NULL, err));
}
