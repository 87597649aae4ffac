/* Room: cli/server. A list of open handles, which requests share. A handle stays open while a
 * request uses it, also if a newer one has replaced it. */
#include "server/opened.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEPT = 16, FRESH = 1000 /* ms */, REPORTS = 256 };

/* An entry is free if it has no handle. */
typedef struct entry {
    char *place; /* NULL: replaced; to be closed after its last request */
    opened handle;
    int users;
    int64_t opened_at; /* ms */
} entry;

struct opened_list {
    pthread_mutex_t lock;
    entry *entries;
    size_t n;
    char *reports[REPORTS]; /* the latest; the oldest is replaced */
    size_t n_reports;       /* of all time */
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

opened_list *opened_list_new(void)
{
    opened_list *list = cli_alloc(sizeof *list);
    if (!list) return NULL;
    *list = (opened_list){.entries = NULL};
    pthread_mutex_init(&list->lock, NULL);
    return list;
}

static bool is_open(const entry *e) { return e->handle.array || e->handle.tree; }

static void close_handle(const opened *handle)
{
    caterva_discard(handle->array);
    (void)caterva_tree_close(handle->tree, NULL);
}

static void close_entry(entry *e)
{
    close_handle(&e->handle);
    free(e->place);
    *e = (entry){.place = NULL};
}

void opened_list_free(opened_list *list)
{
    if (!list) return;
    for (size_t i = 0; i < list->n; i++) close_entry(&list->entries[i]);
    for (size_t i = 0; i < REPORTS; i++) free(list->reports[i]);
    free(list->entries);
    pthread_mutex_destroy(&list->lock);
    free(list);
}

/* ---- With the lock held ---------------------------------------------------------------- */

static entry *find(opened_list *list, const char *place, bool is_tree)
{
    for (size_t i = 0; i < list->n; i++) {
        entry *e = &list->entries[i];
        if (e->place && strcmp(e->place, place) == 0 && (e->handle.tree != NULL) == is_tree)
            return e;
    }
    return NULL;
}

/* It is not found any more; its users keep it. */
static void retire(entry *e)
{
    free(e->place);
    e->place = NULL;
    if (e->users == 0) close_entry(e);
}

/* Closes the oldest unused entry if there are KEPT. */
static void make_room(opened_list *list)
{
    entry *oldest = NULL;
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        entry *e = &list->entries[i];
        n += is_open(e);
        if (is_open(e) && e->users == 0 && (!oldest || e->opened_at < oldest->opened_at))
            oldest = e;
    }
    if (n >= KEPT && oldest) close_entry(oldest);
}

/* Returns a free entry; NULL without memory. */
static entry *get_free(opened_list *list)
{
    make_room(list);
    for (size_t i = 0; i < list->n; i++)
        if (!is_open(&list->entries[i])) return &list->entries[i];
    size_t room = list->n + KEPT;
    entry *longer = realloc(list->entries, room * sizeof *longer);
    if (!longer) return NULL;
    for (size_t i = list->n; i < room; i++) longer[i] = (entry){.place = NULL};
    list->entries = longer;
    entry *first = &longer[list->n];
    list->n = room;
    return first;
}

static bool take_fresh(opened_list *list, const char *place, bool is_tree, opened *out)
{
    entry *e = find(list, place, is_tree);
    if (!e || now() - e->opened_at > FRESH) return false;
    e->users++;
    *out = e->handle;
    return true;
}

/* Whether both are arrays in the same state. The old one has its index in memory. */
static bool is_same_state(const opened *old, const opened *fresh)
{
    const caterva_info *a, *b;
    if (!old->array || !fresh->array) return false;
    if (caterva_info_get(old->array, &a, NULL) != CATERVA_OK) return false;
    bool same = caterva_info_get(fresh->array, &b, NULL) == CATERVA_OK;
    if (same) {
        same = memcmp(a->state_id, b->state_id, sizeof a->state_id) == 0;
        caterva_info_release(b);
    }
    caterva_info_release(a);
    return same;
}

/* Keeps the new handle, or closes it if the old one has the same state. */
static bool keep(opened_list *list, char *place, opened *handle)
{
    entry *e = find(list, place, handle->tree != NULL);
    if (e && is_same_state(&e->handle, handle)) {
        close_handle(handle);
        free(place);
        *handle = e->handle;
    } else {
        if (e) retire(e);
        e = get_free(list);
        if (!e) return false;
        *e = (entry){.place = place, .handle = *handle};
    }
    e->opened_at = now();
    e->users++;
    return true;
}

/* ---- Requests -------------------------------------------------------------------------- */

static caterva_status open_handle(const char *place, bool is_tree, opened *out,
                                  caterva_error *err)
{
    *out = (opened){.array = NULL};
    if (is_tree) return caterva_tree_open(place, NULL, &out->tree, err);
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = 1; /* requests are the tasks */
    options.keep_bytes = CATERVA_NONE;
    return caterva_open(place, &options, &out->array, err);
}

caterva_status opened_take(opened_list *list, const char *place, bool is_tree, opened *out,
                           caterva_error *err)
{
    pthread_mutex_lock(&list->lock);
    bool found = take_fresh(list, place, is_tree, out);
    pthread_mutex_unlock(&list->lock);
    if (found) return CATERVA_OK;
    caterva_status status = open_handle(place, is_tree, out, err);
    if (status != CATERVA_OK) return status;
    char *copy = cli_copy_text(place);
    pthread_mutex_lock(&list->lock);
    bool kept = copy && keep(list, copy, out);
    pthread_mutex_unlock(&list->lock);
    if (kept) return CATERVA_OK;
    free(copy);
    close_handle(out);
    *err =
        (caterva_error){.code = CATERVA_ENOMEM, .position = -1, .message = "out of memory"};
    return CATERVA_ENOMEM;
}

void opened_give(opened_list *list, const opened *used)
{
    pthread_mutex_lock(&list->lock);
    for (size_t i = 0; i < list->n; i++) {
        entry *e = &list->entries[i];
        if (!is_open(e) || e->handle.array != used->array || e->handle.tree != used->tree)
            continue;
        e->users--;
        if (e->users == 0 && !e->place) close_entry(e);
        break;
    }
    pthread_mutex_unlock(&list->lock);
}

/* Takes `text`, unless it is known. With the lock held. */
static bool is_new(opened_list *list, char *text)
{
    for (size_t i = 0; i < REPORTS && list->reports[i]; i++)
        if (strcmp(list->reports[i], text) == 0) return false;
    char **at = &list->reports[list->n_reports++ % REPORTS];
    free(*at);
    *at = text;
    return true;
}

void opened_report(opened_list *list, const char *place, const caterva_error *err)
{
    size_t size = strlen(place) + sizeof err->message + 2;
    char *text = cli_alloc(size);
    if (text) (void)snprintf(text, size, "%s: %s", place, err->message);
    pthread_mutex_lock(&list->lock);
    bool fresh = !text || is_new(list, text);
    pthread_mutex_unlock(&list->lock);
    if (fresh)
        (void)cli_fail_array(place, err);
    else
        free(text);
}
