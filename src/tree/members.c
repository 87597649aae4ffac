/* Room: tree. The files of a tree: members of an archive, or files below a directory. All paths are
 * in one buffer, which moves as it grows: offsets stand for paths until the list is complete. */
#include "tree/members.h"

#include "base/heap.h"
#include "store/descriptors.h"
#include "store/path.h"
#include "tree/names.h"

#include <stdlib.h>
#include <string.h>

cv_status cv_members_add(cv_members *m, const cv_member *member, const char *path,
                         size_t path_size, cv_error *err)
{
    cv_member *grown = cv_grow(m->list, m->n, &m->room, sizeof *grown);
    if (!grown) return cv_fail_memory(err, m->room * sizeof *grown, "the members of a tree");
    m->list = grown;
    size_t place = m->names.size;
    CV_TRY(cv_buffer_append(&m->places, &place, sizeof place, err));
    CV_TRY(cv_buffer_append(&m->names, path, path_size, err));
    CV_TRY(cv_buffer_append(&m->names, "", 1, err));
    m->list[m->n++] = *member;
    return CV_OK;
}

cv_status cv_members_add_name(cv_members *m, const char *name, cv_error *err)
{
    size_t place = m->names.size; /* after a path, so not 0 */
    CV_TRY(cv_buffer_append(&m->names, name, strlen(name) + 1, err));
    m->list[m->n - 1].other_name = place;
    return CV_OK;
}

const char *cv_members_other_name(const cv_members *m, const cv_member *member)
{
    return member->other_name ? (const char *)m->names.data + member->other_name : NULL;
}

/* Compares paths. Among equal paths the one added last comes first. */
static int compare(const void *x, const void *y)
{
    const cv_member *a = x, *b = y;
    int order = strcmp(a->path, b->path);
    return order ? order : (a->path < b->path) - (a->path > b->path);
}

void cv_members_complete(cv_members *m)
{
    const size_t *places = (const size_t *)m->places.data;
    for (size_t i = 0; i < m->n; i++)
        m->list[i].path = (const char *)m->names.data + places[i];
    cv_buffer_free(&m->places);
    if (m->n > 1) qsort(m->list, m->n, sizeof m->list[0], compare);
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++) {
        const cv_member next = m->list[i];
        if (kept > 0 && strcmp(next.path, m->list[kept - 1].path) == 0) continue;
        m->list[i] = m->list[kept];
        m->list[kept++] = next;
    }
    m->n_replaced = m->n - kept;
    m->n = kept;
}

void cv_members_hide(cv_members *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++) {
        const cv_member next = m->list[i];
        if (next.path[0] == '.' || strstr(next.path, "/.")) continue;
        m->list[i] = m->list[kept];
        m->list[kept++] = next;
    }
    m->n_replaced += m->n - kept;
    m->n = kept;
}

const cv_member *cv_members_find(const cv_members *m, const char *path)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(path, m->list[middle].path);
        if (order == 0) return &m->list[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

cv_status cv_fail_unreadable(const char *path, cv_error *err)
{
    return cv_fail(err, CATERVA_EIO, -1,
                   "%s cannot be read: it is a broken link, or not a regular file",
                   cv_show_path(path).text);
}

void cv_members_free(cv_members *m)
{
    cv_free(m->list);
    cv_buffer_free(&m->names);
    cv_buffer_free(&m->places);
    *m = (cv_members){0};
}

/* ---- Files of a directory ------------------------------------------------------------ */

typedef struct walk {
    cv_dir root;
    const char *shown;
    cv_buffer queue; /* paths of directories, each with its NUL; that of the root is empty */
    size_t next;     /* offset in `queue` of the next directory to list */
    cv_buffer path;  /* path of the listed directory, joined with a name in it */
    cv_members *out;
    bool takes_all;
    const char *only; /* the only name to take in the first directory, see cv_files_near */
    bool is_first;
    size_t n_below;
    cv_watch *watch;
    int64_t announced; /* files announced to the watch and not found yet */
} walk;

/* Joins the directory and a name in it, as "a/b", in w->path. */
static cv_status join(walk *w, const char *name, cv_error *err)
{
    const char *parent = (const char *)w->queue.data + w->next;
    size_t size = strlen(parent);
    w->path.size = 0;
    CV_TRY(cv_buffer_append(&w->path, parent, size, err));
    if (size > 0) CV_TRY(cv_buffer_append(&w->path, "/", 1, err));
    return cv_buffer_append(&w->path, name, strlen(name) + 1, err);
}

static cv_status tell(walk *w, cv_error *err)
{
    if (w->announced > 0)
        w->announced--;
    else
        cv_watch_expect(w->watch, CV_FILE_BYTES);
    return cv_watch_tick(w->watch, 0, err);
}

static cv_status take(walk *w, const char *name, cv_error *err)
{
    cv_file_info info, target;
    cv_member member = {.size = 0};
    CV_TRY(join(w, name, err));
    const char *path = (const char *)w->path.data;
    int error = cv_dir_get_link_info(w->root, path, &info);
    if (error == ENOENT) return CV_OK; /* deleted meanwhile */
    if (!error && info.kind == CV_KIND_LINK && !w->takes_all) {
        error = cv_dir_get_info(w->root, path, &target);
        bool leads_nowhere = error == ENOENT || error == ENOTDIR || error == ELOOP;
        if (!error && target.kind == CV_KIND_DIRECTORY) return CV_OK;
        if (!error) info = target;
        if (leads_nowhere) error = 0;
    }
    if (error)
        return cv_fail_sys(err, error, "cannot examine %.80s in %.136s", path, w->shown);
    if (info.kind == CV_KIND_DIRECTORY && !w->takes_all &&
        cv_tree_is_job_folder(name, strlen(name)))
        return CV_OK;
    if (info.kind == CV_KIND_DIRECTORY && w->only && strcmp(name, w->only) != 0) return CV_OK;
    if (info.kind == CV_KIND_DIRECTORY)
        return cv_buffer_append(&w->queue, path, w->path.size, err);
    member.is_unreadable = info.kind != CV_KIND_FILE && !w->takes_all;
    if (member.is_unreadable && !cv_tree_is_leaf(path)) return CV_OK;
    if (!member.is_unreadable) member.size = info.size;
    CV_TRY(cv_members_add(w->out, &member, path, w->path.size - 1, err));
    w->n_below += !w->only;
    return tell(w, err);
}

static cv_status fail_listing(const walk *w, int error, cv_error *err)
{
    return cv_fail_sys(err, error, "cannot list %.80s in %.136s",
                       (const char *)w->queue.data + w->next, w->shown);
}

/* Checks a name. Fails only for lack of memory. */
static cv_status check_name(const char *name, bool *is_good, cv_error *err)
{
    cv_error reason = {0};
    cv_status status = cv_tree_check_path(name, strlen(name), &reason);
    *is_good = status == CV_OK;
    if (status != CATERVA_ENOMEM) return CV_OK;
    if (err) *err = reason;
    return status;
}

/* Whether the name is `only`, with or without a suffix. */
static bool is_called(const char *name, const char *only)
{
    size_t stem = cv_tree_stem(name);
    return strcmp(name, only) == 0 || (strlen(only) == stem && memcmp(name, only, stem) == 0);
}

static bool has_first(const walk *w) { return w->is_first && w->n_below > 0; }

static cv_status list(walk *w, cv_error *err)
{
    const char *path = (const char *)w->queue.data + w->next;
    cv_dir dir;
    cv_listing listing;
    cv_status status = CV_OK;
    int error = cv_open_dir(w->root, *path ? path : ".", *path ? CV_OPEN_NO_LINK : 0, &dir);
    if (error == ENOENT && *path) return CV_OK; /* deleted meanwhile */
    if (!error) error = cv_listing_open(dir, &listing);
    if (error) return fail_listing(w, error, err);
    const char *name;
    while (status == CV_OK && !has_first(w) &&
           (name = cv_listing_next(&listing, &error)) != NULL) {
        bool is_good = w->takes_all;
        if (w->only && !is_called(name, w->only)) continue;
        if (!is_good && name[0] != '.') status = check_name(name, &is_good, err);
        if (status == CV_OK && is_good) status = take(w, name, err);
    }
    cv_listing_close(&listing);
    if (status == CV_OK && error) status = fail_listing(w, error, err);
    return status;
}

/* Walks from the directory `start` on; "" is the root. */
static cv_status run(walk *w, const char *start, size_t size, cv_error *err)
{
    cv_status status = cv_buffer_append(&w->queue, start, size, err);
    if (status == CV_OK) status = cv_buffer_append(&w->queue, "", 1, err);
    while (status == CV_OK && w->next < w->queue.size && !has_first(w)) {
        status = list(w, err);
        w->next += strlen((const char *)w->queue.data + w->next) + 1;
        w->only = NULL;
    }
    cv_buffer_free(&w->path);
    return status;
}

cv_status cv_files_below(cv_dir dir, const char *shown, cv_watch *watch, cv_members *out,
                         cv_error *err)
{
    walk w = {.root = dir, .shown = shown, .out = out, .watch = watch};
    cv_status status = run(&w, "", 0, err);
    cv_buffer_free(&w.queue);
    return status;
}

/* Whether a walk, which follows no links, would reach the directory path[0, size). */
static cv_status is_reached(walk *w, const char *path, size_t size, bool *out, cv_error *err)
{
    cv_file_info info;
    *out = true;
    while (*out && size > 0) {
        w->path.size = 0;
        CV_TRY(cv_buffer_append(&w->path, path, size, err));
        CV_TRY(cv_buffer_append(&w->path, "", 1, err));
        const char *part = (const char *)w->path.data;
        int error = cv_dir_get_link_info(w->root, part, &info);
        if (error && error != ENOENT && error != ENOTDIR)
            return cv_fail_sys(err, error, "cannot examine %.80s in %.136s", part, w->shown);
        *out = !error && info.kind == CV_KIND_DIRECTORY && cv_dir_is_spelled(w->root, part);
        size = cv_tree_parent(path, size);
    }
    return CV_OK;
}

cv_status cv_files_near(cv_dir dir, const char *shown, cv_watch *watch, const char *path,
                        bool is_first, cv_members *out, cv_error *err)
{
    walk w = {.root = dir, .shown = shown, .out = out, .watch = watch, .is_first = is_first};
    bool reached;
    size_t size = cv_tree_parent(path, strlen(path));
    w.only = path + size + (size > 0);
    cv_status status = is_reached(&w, path, size, &reached, err);
    if (status == CV_OK && reached)
        status = run(&w, path, size, err);
    else
        cv_buffer_free(&w.path);
    cv_buffer_free(&w.queue);
    return status;
}

cv_status cv_all_files_below(cv_dir dir, const char *shown, cv_watch *watch,
                             int64_t announced, cv_members *out, cv_buffer *directories,
                             cv_error *err)
{
    walk w = {.root = dir, .shown = shown, .out = out, .takes_all = true};
    w.watch = watch;
    w.announced = announced;
    cv_status status = run(&w, "", 0, err);
    *directories = w.queue;
    return status;
}
