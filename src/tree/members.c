/* Room: tree. A list of files. Paths lie one behind the other in one run of bytes, which
 * moves while it grows: until the list is complete a member knows its place in it. */
#include "tree/members.h"

#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

cv_status cv_members_add(cv_members *m, const cv_member *member, const char *path,
                         size_t path_size, cv_error *err)
{
    if (m->n == m->room) {
        size_t room = m->room ? 2 * m->room : 64;
        cv_member *grown = cv_realloc(m->list, m->n * sizeof *grown, room * sizeof *grown);
        if (!grown) return cv_fail_memory(err, room * sizeof *grown, "the members of a tree");
        m->list = grown;
        m->room = room;
    }
    size_t place = m->names.size;
    CV_TRY(cv_buffer_append(&m->places, &place, sizeof place, err));
    CV_TRY(cv_buffer_append(&m->names, path, path_size, err));
    CV_TRY(cv_buffer_append(&m->names, "", 1, err));
    m->list[m->n++] = *member;
    return CV_OK;
}

cv_status cv_members_add_name(cv_members *m, const char *name, cv_error *err)
{
    size_t place = m->names.size; /* behind a path: not 0 */
    CV_TRY(cv_buffer_append(&m->names, name, strlen(name) + 1, err));
    m->list[m->n - 1].other_name = place;
    return CV_OK;
}

const char *cv_members_other_name(const cv_members *m, const cv_member *member)
{
    return member->other_name ? (const char *)m->names.data + member->other_name : NULL;
}

/* Of equal paths the one that was added last comes first. */
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

void cv_members_free(cv_members *m)
{
    cv_free(m->list);
    cv_buffer_free(&m->names);
    cv_buffer_free(&m->places);
    *m = (cv_members){0};
}
