/* Room: cli/server. Searches directories for arrays and trees, and gives them names. */
#include "server/shelf.h"

#include <caterva_tree.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { DEEPEST = 16, DEEPEST_INSIDE = 64 /* of an array or tree */ };

static const char *const array_suffixes[] = {".b2nd", ".b2frame"};
static const char *const tree_suffixes[] = {".b2z", ".b2d", ".b2e"};
static const char zarr_suffix[] = ".zarr";

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), size = strlen(end);
    return n > size && strcmp(text + n - size, end) == 0;
}

/* Returns the suffix of a name, without those of `list` NULL; or NULL. */
static const char *suffix_in(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ends_with(name, list[i])) return list[i];
    return NULL;
}

static const char *array_suffix(const char *name)
{
    return suffix_in(name, array_suffixes, sizeof array_suffixes / sizeof array_suffixes[0]);
}

static const char *tree_suffix(const char *name)
{
    return suffix_in(name, tree_suffixes, sizeof tree_suffixes / sizeof tree_suffixes[0]);
}

static const char *any_suffix(const char *name)
{
    const char *suffix = array_suffix(name);
    if (!suffix) suffix = tree_suffix(name);
    return suffix || !ends_with(name, zarr_suffix) ? suffix : zarr_suffix;
}

/* Returns "first" "between" "second", to be freed; NULL after a reported lack of memory. */
static char *joined(const char *first, const char *between, const char *second)
{
    size_t size = strlen(first) + strlen(between) + strlen(second) + 1;
    char *text = cli_alloc(size);
    if (text) (void)snprintf(text, size, "%s%s%s", first, between, second);
    return text;
}

/* ---- Adding ---------------------------------------------------------------------------- */

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Whether a directory has a symbolic link in it, at any depth, or cannot be searched. */
static bool has_links(const char *path, int depth)
{
    const struct dirent *entry;
    bool found = depth == DEEPEST_INSIDE;
    DIR *dir = found ? NULL : opendir(path);
    if (!dir) return true;
    while (!found && (entry = readdir(dir))) {
        struct stat st;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char *inner = joined(path, "/", entry->d_name);
        found = !inner;
        if (inner && lstat(inner, &st) == 0)
            found =
                S_ISLNK(st.st_mode) || (S_ISDIR(st.st_mode) && has_links(inner, depth + 1));
        free(inner);
    }
    closedir(dir);
    return found;
}

/* Returns the path of the frame in the directory of a Zarr array: "c", "c/0", "c/0/0", ...; to be
 * freed. NULL if it does not exist, or after a reported lack of memory. */
static char *find_frame(const char *path)
{
    char *frame = joined(path, "", "/c");
    for (int d = 0; frame && !is_file(frame) && d < CATERVA_MAX_DIMS; d++) {
        char *next = joined(frame, "", "/0");
        free(frame);
        frame = next;
    }
    if (frame && is_file(frame)) return frame;
    free(frame);
    return NULL;
}

/* A file keeps its name; the frame of "x.zarr", and a file without a suffix, get one. */
static bool set_raw(shelf_item *item, const char *name, const char *stem, const char *suffix)
{
    bool is_zarr = suffix && strcmp(suffix, zarr_suffix) == 0;
    if (is_zarr && item->is_tree) return true;
    item->raw_path = is_zarr ? find_frame(item->path) : joined(item->path, "", "");
    if (!item->raw_path) return is_zarr;
    if (is_file(item->raw_path)) {
        item->raw_name =
            suffix && !is_zarr ? joined(name, "", "") : joined(stem, "", ".b2nd");
        return item->raw_name != NULL;
    }
    free(item->raw_path);
    item->raw_path = NULL;
    return true;
}

/* Whether an item before the last one has the name. */
static bool is_taken(const shelf *all, const char *name)
{
    for (size_t i = 0; i + 1 < all->n; i++)
        if (strcmp(all->items[i].name, name) == 0) return true;
    return false;
}

/* Adds "sub/x.b2nd" as "sub/x.zarr", or as "sub/x.b2nd.zarr" if that name is taken. A directory with
 * links in it is left out: they may point anywhere. */
static cli_exit add(shelf *all, const char *name, const char *path, bool is_tree)
{
    const char *suffix = any_suffix(name);
    if (all->n == SHELF_MOST) {
        all->is_cut = true;
        return CLI_OK;
    }
    if (is_directory(path) && has_links(path, 0)) {
        all->n_linked++;
        return CLI_OK;
    }
    if (all->n == all->room) {
        size_t room = all->room ? 2 * all->room : 16;
        shelf_item *items = realloc(all->items, room * sizeof *items);
        if (!items) return cli_fail(CLI_IO, "out of memory");
        all->items = items;
        all->room = room;
    }
    shelf_item *item = &all->items[all->n++];
    *item = (shelf_item){.is_tree = is_tree};
    char *stem = joined(name, "", "");
    if (!stem) return CLI_IO;
    if (suffix) stem[strlen(stem) - strlen(suffix)] = '\0';
    item->name = joined(stem, "", zarr_suffix);
    if (item->name && is_taken(all, item->name)) {
        free(item->name);
        item->name = joined(name, "", zarr_suffix);
        (void)snprintf(stem, strlen(name) + 1, "%s", name);
    }
    item->path = joined(path, "", "");
    bool good = item->name && item->path && set_raw(item, name, stem, suffix);
    free(stem);
    return good ? CLI_OK : CLI_IO;
}

static bool is_tree(const char *path)
{
    caterva_tree *tree;
    if (caterva_tree_open(path, NULL, &tree, NULL) != CATERVA_OK) return false;
    (void)caterva_tree_close(tree, NULL);
    return true;
}

/* ---- Directories ----------------------------------------------------------------------- */

static cli_exit search(shelf *all, const char *path, const char *name, int depth);

static cli_exit look(shelf *all, const char *path, const char *name, int depth)
{
    struct stat st;
    if (lstat(path, &st) != 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return CLI_OK;
    if (ends_with(name, zarr_suffix) && S_ISDIR(st.st_mode))
        return add(all, name, path, is_tree(path));
    if (array_suffix(name)) return add(all, name, path, false);
    if (tree_suffix(name)) return add(all, name, path, true);
    return S_ISDIR(st.st_mode) ? search(all, path, name, depth) : CLI_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the names in the directory, sorted, so that equal directories get equal lists. */
static cli_exit list_names(const char *path, char ***names, size_t *n)
{
    size_t room = 0;
    const struct dirent *entry;
    cli_exit code = CLI_OK;
    DIR *dir = opendir(path);
    if (!dir) return errno == EACCES || errno == ENOENT ? CLI_OK : cli_fail_sys("%s", path);
    while (code == CLI_OK && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.') continue;
        if (*n == room) {
            room = room ? 2 * room : 64;
            char **longer = realloc(*names, room * sizeof *longer);
            if (!longer) code = cli_fail(CLI_IO, "out of memory");
            if (!longer) break;
            *names = longer;
        }
        (*names)[*n] = joined(entry->d_name, "", "");
        if ((*names)[*n])
            ++*n;
        else
            code = CLI_IO;
    }
    closedir(dir);
    if (*n > 0) qsort(*names, *n, sizeof **names, by_text);
    return code;
}

static cli_exit search(shelf *all, const char *path, const char *name, int depth)
{
    char **names = NULL;
    size_t n = 0;
    if (depth == DEEPEST) return CLI_OK;
    cli_exit code = list_names(path, &names, &n);
    for (size_t i = 0; i < n; i++) {
        char *inner = joined(path, "/", names[i]);
        char *full = joined(name, name[0] ? "/" : "", names[i]);
        if (code == CLI_OK && !all->is_cut)
            code = inner && full ? look(all, inner, full, depth + 1) : CLI_IO;
        if (cli_interrupted()) code = CLI_INTERRUPTED;
        free(inner);
        free(full);
        free(names[i]);
    }
    free(names);
    return code;
}

/* ---- The list -------------------------------------------------------------------------- */

/* `path` is absolute, without links. */
static cli_exit add_real_path(shelf *all, const char *path, const char *shown)
{
    caterva_array *array;
    caterva_error err;
    const char *name = strrchr(path, '/') + 1;
    if (caterva_open(path, NULL, &array, &err) == CATERVA_OK) {
        caterva_discard(array);
        return add(all, name, path, false);
    }
    if (is_directory(path) && !any_suffix(name)) return search(all, path, "", 0);
    return is_tree(path) ? add(all, name, path, true) : cli_fail_array(shown, &err);
}

/* An argument: an array, a tree, or a directory to be searched. */
static cli_exit add_path(shelf *all, const char *path)
{
    if (cli_is_url(path))
        return cli_fail(CLI_USAGE, "%s is a URL: its own server serves it",
                        cli_show_place(path).text);
    char *real = realpath(path, NULL);
    if (!real) return cli_fail_sys("cannot open %s", cli_show_place(path).text);
    cli_exit code = add_real_path(all, real, path);
    free(real);
    return code;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const shelf_item *)a)->name, ((const shelf_item *)b)->name);
}

static int by_raw_name(const void *a, const void *b)
{
    return strcmp((*(const shelf_item *const *)a)->raw_name,
                  (*(const shelf_item *const *)b)->raw_name);
}

static cli_exit fill(char *const *paths, int n, shelf *out)
{
    for (int i = 0; i < n; i++) CLI_TRY(add_path(out, paths[i]));
    if (out->n == 0) return CLI_OK;
    qsort(out->items, out->n, sizeof out->items[0], by_name);
    out->raw = cli_alloc(out->n * sizeof *out->raw);
    if (!out->raw) return CLI_IO;
    for (size_t i = 0; i < out->n; i++)
        if (out->items[i].raw_name) out->raw[out->n_raw++] = &out->items[i];
    if (out->n_raw > 0) qsort(out->raw, out->n_raw, sizeof *out->raw, by_raw_name);
    return CLI_OK;
}

static void free_shelf(shelf *all)
{
    if (!all) return;
    for (size_t i = 0; i < all->n; i++) {
        free(all->items[i].name);
        free(all->items[i].path);
        free(all->items[i].raw_name);
        free(all->items[i].raw_path);
    }
    free(all->items);
    free(all->raw);
    free(all);
}

static cli_exit make_shelf(char *const *paths, int n, shelf **out)
{
    *out = cli_alloc(sizeof **out);
    if (!*out) return CLI_IO;
    **out = (shelf){.items = NULL};
    cli_exit code = fill(paths, n, *out);
    if (code == CLI_OK) return CLI_OK;
    free_shelf(*out);
    *out = NULL;
    return code;
}

/* ---- The list of now ------------------------------------------------------------------- */

enum {
    PAUSE = 2000 /* ms */,
    SHARE = 10 /* a search takes this part of the time, at most */
};

struct shelves {
    char *const *paths;
    int n_paths;
    pthread_mutex_t lock; /* guards what follows, and the numbers of users */
    shelf *current;
    int64_t next_at; /* ms: not before then */
    bool is_searching;
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

cli_exit shelves_new(char *const *paths, int n, shelves **out)
{
    shelf *first;
    int64_t start = now();
    *out = NULL;
    CLI_TRY(make_shelf(paths, n, &first));
    *out = cli_alloc(sizeof **out);
    if (!*out) {
        free_shelf(first);
        return CLI_IO;
    }
    **out = (shelves){.paths = paths, .n_paths = n, .current = first};
    (*out)->next_at = now() + PAUSE + SHARE * (now() - start);
    pthread_mutex_init(&(*out)->lock, NULL);
    return CLI_OK;
}

void shelves_free(shelves *s)
{
    if (!s) return;
    free_shelf(s->current);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* With the lock held, which is released meanwhile: other threads use the old list. */
static void search_again(shelves *s)
{
    shelf *fresh, *old = NULL;
    int64_t start = now();
    s->is_searching = true;
    pthread_mutex_unlock(&s->lock);
    cli_exit code = make_shelf(s->paths, s->n_paths, &fresh);
    pthread_mutex_lock(&s->lock);
    s->is_searching = false;
    s->next_at = now() + PAUSE + SHARE * (now() - start);
    if (code != CLI_OK) return;
    if (s->current->users == 0) old = s->current;
    s->current = fresh;
    free_shelf(old);
}

const shelf *shelves_take(shelves *s, bool again)
{
    pthread_mutex_lock(&s->lock);
    if (again && !s->is_searching && now() >= s->next_at) search_again(s);
    shelf *taken = s->current;
    taken->users++;
    pthread_mutex_unlock(&s->lock);
    return taken;
}

void shelves_give(shelves *s, const shelf *used)
{
    shelf *given = (shelf *)used;
    pthread_mutex_lock(&s->lock);
    bool is_last = --given->users == 0 && given != s->current;
    pthread_mutex_unlock(&s->lock);
    if (is_last) free_shelf(given);
}

/* ---- Requests -------------------------------------------------------------------------- */

bool shelf_has_link(const shelf_item *item, const char *node)
{
    static const char *const ends[] = {"", ".b2nd", ".b2frame"};
    struct stat st;
    if (lstat(item->path, &st) != 0) return false;
    bool found = S_ISLNK(st.st_mode);
    for (size_t i = 0; *node && !found && i < sizeof ends / sizeof ends[0]; i++) {
        char *stem = joined(item->path, "/", node);
        char *path = stem ? joined(stem, "", ends[i]) : NULL;
        found = !path || (lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
        free(path);
        free(stem);
    }
    return found;
}

/* Compares a name with the first `size` bytes of a text. */
static int compare(const char *name, const char *text, size_t size)
{
    int order = strncmp(name, text, size);
    return order ? order : name[size] != '\0';
}

static const shelf_item *find_exactly(const shelf *all, const char *text, size_t size)
{
    size_t low = 0, high = all->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(all->items[middle].name, text, size);
        if (order == 0) return &all->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const shelf_item *shelf_find(const shelf *all, const char *path, const char **rest)
{
    for (const char *at = path;; at++) {
        at += strcspn(at, "/");
        const shelf_item *item = find_exactly(all, path, (size_t)(at - path));
        if (item) *rest = *at ? at + 1 : at;
        if (item || !*at) return item;
    }
}

const shelf_item *shelf_find_raw(const shelf *all, const char *path)
{
    for (size_t low = 0, high = all->n_raw; low < high;) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(all->raw[middle]->raw_name, path);
        if (order == 0) return all->raw[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
