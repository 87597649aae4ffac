/* Room: tree. Attributes of groups on their way to the directory. What is in the leaves is
 * decided elsewhere. */
#include "tree/groups.h"

#include "base/heap.h"
#include "store/descriptors.h"
#include "tree/find.h"
#include "tree/make.h"
#include "tree/names.h"

#include <stdio.h>
#include <string.h>

/* ---- The list ------------------------------------------------------------- */

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
    if (g->n == g->room) {
        size_t room = g->room ? 2 * g->room : 8;
        cv_group_change *grown =
            cv_realloc(g->list, g->n * sizeof *grown, room * sizeof *grown);
        if (!grown) return cv_fail_memory(err, room * sizeof *grown, "groups of a tree");
        g->list = grown;
        g->room = room;
    }
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

static void drop(cv_groups *g, size_t i)
{
    free_change(&g->list[i]);
    g->list[i] = g->list[--g->n];
}

/* "/a/b" of "/x/b" when "/x" moves to "/a". */
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
        if (renamed != CV_OK) drop(g, i);
        if (to && renamed != CV_OK) status = renamed;
    }
    return status;
}

void cv_groups_clear(cv_groups *g)
{
    for (size_t i = 0; i < g->n; i++) free_change(&g->list[i]);
    cv_free(g->list);
    *g = (cv_groups){.n = 0};
}

/* ---- The commit ----------------------------------------------------------- */

cv_status cv_groups_prepare(cv_groups *g, const cv_tree *tree, bool durable, cv_error *err)
{
    for (size_t i = 0; i < g->n; i++) {
        cv_group_change *change = &g->list[i];
        CV_TRY(cv_make_temp(tree->dir, change->path, &change->frame, durable, change->temp,
                            err));
        CV_TRY(cv_watch_tick(tree->watch, 1, err));
    }
    return CV_OK;
}

/* The directory of the leaf. */
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
    return cv_fail_sys(err, error, "cannot put %.80s of %s in place", change->path,
                       tree->shown.text);
}

cv_status cv_groups_complete(const cv_groups *g, const cv_tree *tree, bool durable,
                             cv_error *err)
{
    cv_status status = CV_OK;
    for (size_t i = 0; i < g->n; i++) {
        cv_status one = complete(&g->list[i], tree, durable, status == CV_OK ? err : NULL);
        if (status == CV_OK) status = one;
        (void)cv_watch_tick(tree->watch, 1, NULL); /* too late to stop */
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
