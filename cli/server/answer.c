/* Room: cli/server. Finds what a path names, and makes its bytes:
 *
 *     /                   page: the list
 *     /index.json         the same as JSON
 *     /x.zarr/KEY         a key of the Zarr array or hierarchy
 *     /x.b2nd             the file
 *     /view/x.zarr[/g/y]  page: slices of the array
 *     /viewer.js, ...     what pages need
 *
 * A path is compared with names only: no path of the file system is made of it. */
#include "server/answer.h"

#include "server/page.h"
#include "server/viewer.h"

#include <caterva_upkeep.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct answerer {
    shelves *offered;
    opened_list *opened;
    atomic_llong reserved;
};

answerer *answerer_new(shelves *offered)
{
    answerer *a = cli_alloc(sizeof *a);
    if (!a) return NULL;
    *a = (answerer){.offered = offered, .opened = opened_list_new()};
    if (a->opened) return a;
    free(a);
    return NULL;
}

void answerer_free(answerer *a)
{
    if (!a) return;
    opened_list_free(a->opened);
    free(a);
}

/* Reserves memory for an answer; one that is larger than all is made alone. */
static bool reserve(answerer *a, int64_t size, answer *out)
{
    long long before = atomic_fetch_add(&a->reserved, size);
    out->reserved = size;
    return before == 0 || before + size <= ANSWER_MEMORY;
}

void answer_free(answerer *a, answer *out)
{
    if (out->file >= 0) close(out->file);
    free(out->bytes);
    atomic_fetch_sub(&a->reserved, out->reserved);
    *out = (answer){.file = -1};
}

/* ---- Answers ----------------------------------------------------------------------------- */

static void say(answer *out, int status, const char *sentence)
{
    free(out->bytes);
    out->status = status;
    out->type = "text/plain; charset=utf-8";
    out->etag[0] = '\0';
    out->bytes = cli_copy_text(sentence);
    out->size = out->bytes ? strlen(out->bytes) : 0;
}

/* FNV-1a. */
static uint64_t hash(const uint8_t *bytes, size_t size)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Takes `bytes`, of malloc. */
static void give(answer *out, const char *type, void *bytes, size_t size)
{
    out->status = 200;
    out->type = type;
    out->bytes = bytes;
    out->size = size;
    (void)snprintf(out->etag, sizeof out->etag, "\"%zx-%016" PRIx64 "\"", size,
                   hash(bytes, size));
}

/* The server's owner reads the reason, clients do not: it may name paths. */
static void fail(answerer *a, answer *out, const char *path, const caterva_error *err)
{
    opened_report(a->opened, path, err);
    if (err->code == CATERVA_ENOTFOUND)
        say(out, 404, "It does not exist any more.\n");
    else if (err->code == CATERVA_EUNSUPPORTED)
        say(out, 404, "It cannot be presented as Zarr.\n");
    else if (err->code == CATERVA_ENOMEM)
        say(out, 503, "The server has not enough memory now.\n");
    else
        say(out, 500,
            "It is damaged or cannot be read. The server has reported the reason.\n");
}

static void busy(answer *out)
{
    say(out, 503, "The server is busy.\n");
    out->is_busy = true;
}

static void not_found(answer *out) { say(out, 404, "There is nothing of that name.\n"); }

/* ---- Files ------------------------------------------------------------------------------- */

/* Header and trailer of a frame, or the directory of an archive. */
static uint64_t hash_ends(int file, int64_t size)
{
    enum { HEAD = 512, TAIL = 4096 };
    uint8_t bytes[HEAD + TAIL];
    ssize_t head = pread(file, bytes, HEAD, 0);
    ssize_t tail = pread(file, bytes + HEAD, TAIL, size > TAIL ? (off_t)size - TAIL : 0);
    return hash(bytes, head > 0 ? (size_t)head : 0) ^
           3 * hash(bytes + HEAD, tail > 0 ? (size_t)tail : 0);
}

static int64_t ns_of(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + (int64_t)t.tv_nsec;
}

/* False if it is no regular file. */
static bool get_state(int file, file_state *out)
{
#ifdef __APPLE__
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif
    struct stat st;
    if (fstat(file, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    *out = (file_state){.size = st.st_size,
                        .changed_at = {ns_of(st.st_mtim), ns_of(st.st_ctim)},
                        .number = st.st_ino,
                        .ends = hash_ends(file, st.st_size)};
    return true;
}

static bool is_same(const file_state *a, const file_state *b)
{
    return a->size == b->size && a->changed_at[0] == b->changed_at[0] &&
           a->changed_at[1] == b->changed_at[1] && a->ends == b->ends;
}

bool answer_read(const answer *a, int64_t start, void *out, size_t size)
{
    file_state after;
    for (size_t done = 0; done < size;) {
        ssize_t n =
            pread(a->file, (char *)out + done, size - done, (off_t)start + (off_t)done);
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return get_state(a->file, &after) && is_same(&a->state, &after);
}

static void give_file(const shelf_item *item, answer *out)
{
    file_state state;
    int file = open(item->raw_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0 || !get_state(file, &state)) {
        if (file >= 0) close(file);
        not_found(out);
        return;
    }
    out->status = 200;
    out->type = "application/octet-stream";
    out->file = file;
    out->state = state;
    (void)snprintf(out->etag, sizeof out->etag,
                   "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%016" PRIx64 "\"", state.number,
                   (uint64_t)state.size, (uint64_t)state.changed_at[0], state.ends);
}

/* ---- Zarr -------------------------------------------------------------------------------- */

typedef struct zarr_key {
    char node[1024]; /* "g/x", "" for the root */
    bool is_metadata;
    int64_t index[CATERVA_MAX_DIMS];
    int n;
} zarr_key;

/* Reads a number without leading zeros that ends the text and follows a slash. Returns its start, or
 * NULL. */
static const char *last_number(const char *text, const char *end, int64_t *out)
{
    enum { DIGITS = 18 };
    const char *at = end;
    *out = 0;
    for (int64_t unit = 1; at > text && at[-1] >= '0' && at[-1] <= '9' && end - at < DIGITS;
         unit *= 10)
        *out += (*--at - '0') * unit;
    bool good = at < end && at > text && at[-1] == '/' && (*at != '0' || end - at == 1);
    return good ? at : NULL;
}

static bool set_node(zarr_key *key, const char *text, const char *end)
{
    if (end > text && end[-1] != '/') return false;
    size_t size = end > text ? (size_t)(end - 1 - text) : 0;
    if (size >= sizeof key->node) return false;
    memcpy(key->node, text, size);
    key->node[size] = '\0';
    return true;
}

/* Parses "NODE/zarr.json" and "NODE/c/1/2". */
static bool parse_key(const char *text, zarr_key *key)
{
    static const char metadata[] = "zarr.json";
    const char *end = text + strlen(text), *number;
    int64_t reversed[CATERVA_MAX_DIMS];
    *key = (zarr_key){.n = 0};
    size_t size = sizeof metadata - 1;
    key->is_metadata = (size_t)(end - text) >= size && strcmp(end - size, metadata) == 0;
    if (key->is_metadata) return set_node(key, text, end - size);
    while (key->n < CATERVA_MAX_DIMS &&
           (number = last_number(text, end, &reversed[key->n]))) {
        end = number - 1;
        key->n++;
    }
    for (int i = 0; i < key->n; i++) key->index[i] = reversed[key->n - 1 - i];
    return end > text && end[-1] == 'c' && set_node(key, text, end - 1);
}

static bool is_inside(const caterva_info *info, const zarr_key *key)
{
    if (key->n != info->ndim) return false;
    for (int d = 0; d < key->n; d++)
        if (key->index[d] >=
            (info->shape[d] + info->block_shape[d] - 1) / info->block_shape[d])
            return false;
    return true;
}

/* Moves bytes of the library to memory of this program. */
static void give_owned(answer *out, const char *type, void *bytes, size_t size)
{
    void *copy = cli_alloc(size);
    if (copy) memcpy(copy, bytes, size);
    caterva_free(bytes);
    if (copy)
        give(out, type, copy, size);
    else
        busy(out);
}

static void give_chunk(answerer *a, caterva_array *array, const char *place,
                       const zarr_key *key, answer *out)
{
    enum { COPIES = 3, MORE = 4096 }; /* of a block at once, at most */
    const caterva_info *info;
    caterva_error err;
    void *bytes;
    size_t size;
    if (caterva_info_get(array, &info, &err) != CATERVA_OK) {
        fail(a, out, place, &err);
        return;
    }
    bool inside = is_inside(info, key);
    bool reserved = inside && reserve(a, COPIES * info->block_bytes + MORE, out);
    caterva_info_release(info);
    if (!inside)
        not_found(out);
    else if (!reserved)
        busy(out);
    else if (caterva_zarr_chunk(array, key->index, &bytes, &size, &err) != CATERVA_OK)
        fail(a, out, place, &err);
    else if (!bytes)
        say(out, 404, "All items of this chunk are the fill value.\n");
    else
        give_owned(out, "application/octet-stream", bytes, size);
    atomic_fetch_sub(&a->reserved, out->reserved - (int64_t)out->size);
    out->reserved = (int64_t)out->size;
}

static void give_metadata(answerer *a, opened *handle, const char *node, const char *place,
                          answer *out)
{
    char *text, group[sizeof((zarr_key *)0)->node + 1];
    size_t size;
    caterva_error err;
    (void)snprintf(group, sizeof group, "/%s", node);
    caterva_status status =
        handle->array ? caterva_zarr_metadata(handle->array, &text, &size, &err)
                      : caterva_tree_zarr_metadata(handle->tree, group, &text, &size, &err);
    if (status == CATERVA_OK)
        give_owned(out, "application/json", text, size);
    else if (status == CATERVA_ENOTFOUND || status == CATERVA_EINVAL)
        not_found(out); /* invalid: a name that no member has */
    else
        fail(a, out, place, &err);
}

/* Takes the array of a key. In a tree, an array is tried before a group. */
static caterva_status take_node(answerer *a, const shelf_item *item, const zarr_key *key,
                                char *place, size_t size, opened *handle, caterva_error *err)
{
    (void)snprintf(place, size, "%s", item->path);
    if (shelf_has_link(item, key->node)) return CATERVA_ENOTFOUND;
    if (!item->is_tree) return opened_take(a->opened, place, false, handle, err);
    if (key->node[0]) {
        (void)snprintf(place, size, "%s::/%s", item->path, key->node);
        caterva_status status = opened_take(a->opened, place, false, handle, err);
        if (status == CATERVA_OK || !key->is_metadata) return status;
    }
    (void)snprintf(place, size, "%s", item->path);
    return opened_take(a->opened, place, true, handle, err);
}

static void give_key(answerer *a, const shelf_item *item, const char *text, answer *out)
{
    zarr_key key;
    opened handle;
    caterva_error err;
    if (!*text) {
        say(out, 404,
            "This is Zarr: the metadata are at zarr.json below this address, and / lists "
            "pages that show arrays.\n");
        return;
    }
    if (!parse_key(text, &key) || (!item->is_tree && key.node[0]) ||
        (item->is_tree && !key.node[0] && !key.is_metadata)) {
        not_found(out);
        return;
    }
    size_t size = strlen(item->path) + sizeof key.node + 4;
    char *place = cli_alloc(size);
    if (!place) {
        busy(out);
        return;
    }
    caterva_status status = take_node(a, item, &key, place, size, &handle, &err);
    bool is_unknown = status == CATERVA_EUNSUPPORTED || status == CATERVA_EINVAL;
    if (status == CATERVA_ENOTFOUND || (is_unknown && key.node[0])) {
        not_found(out);
    } else if (status != CATERVA_OK) {
        fail(a, out, place, &err);
    } else {
        if (key.is_metadata)
            give_metadata(a, &handle, key.node, place, out);
        else
            give_chunk(a, handle.array, place, &key, out);
        opened_give(a->opened, &handle);
    }
    free(place);
}

/* ---- Pages ------------------------------------------------------------------------------- */

static void give_page(char *text, size_t size, const char *type, answer *out)
{
    out->is_page = true;
    if (text)
        give(out, type, text, size);
    else
        busy(out);
}

static void give_list(answerer *a, const shelf *all, bool is_json, answer *out)
{
    char *text;
    size_t size;
    if (!reserve(a, PAGE_MOST, out)) {
        busy(out);
        return;
    }
    text = page_list(all, a->opened, is_json, &size);
    give_page(text, size, is_json ? "application/json" : "text/html; charset=utf-8", out);
}

static void give_asset(const viewer_asset *asset, answer *out)
{
    void *copy = cli_alloc(asset->size);
    if (copy) memcpy(copy, asset->bytes, asset->size);
    give_page(copy, asset->size, asset->type, out);
}

static const viewer_asset *find_asset(const char *name)
{
    for (size_t i = 0; i < viewer_n_assets; i++)
        if (strcmp(viewer_assets[i].name, name) == 0) return &viewer_assets[i];
    return NULL;
}

/* The answer to a name that `all` has; false if it does not have it. */
static bool answer_from(answerer *a, const shelf *all, const char *name, answer *out)
{
    static const char view[] = "view/";
    const char *rest;
    const shelf_item *item;
    const viewer_asset *page = find_asset("view.html");
    bool is_view = strncmp(name, view, sizeof view - 1) == 0 &&
                   shelf_find(all, name + sizeof view - 1, &rest);
    if (!*name || strcmp(name, "index.json") == 0)
        give_list(a, all, *name != '\0', out);
    else if ((item = shelf_find(all, name, &rest))) /* also in a directory `view` */
        give_key(a, item, rest, out);
    else if (is_view && page)
        give_asset(page, out);
    else if ((item = shelf_find_raw(all, name)))
        give_file(item, out);
    else
        return false;
    return true;
}

void answer_make(answerer *a, const char *path, answer *out)
{
    const char *name = path + (path[0] == '/');
    const viewer_asset *asset = find_asset(name);
    bool is_list = !*name || strcmp(name, "index.json") == 0;
    *out = (answer){.file = -1};
    if (asset) {
        give_asset(asset, out);
        return;
    }
    const shelf *all = shelves_take(a->offered, is_list);
    bool found = answer_from(a, all, name, out);
    shelves_give(a->offered, all);
    if (found) return;
    all = shelves_take(a->offered, true); /* it may be new */
    if (!answer_from(a, all, name, out)) not_found(out);
    shelves_give(a->offered, all);
}
