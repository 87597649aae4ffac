/* Room: frame. Attributes found in both of their places and merged. Promises: whatever the
 * bytes say, the names are texts, each is there once, and memory is in proportion to what
 * is stored. */
#include "frame/attributes.h"

#include "base/heap.h"
#include "base/status.h"
#include "format/array_meta.h"
#include "frame/attribute.h"
#include "value/json_read.h"
#include "value/token.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MAP_BYTES = 64 << 20, MAX_MAP_NAMES = 1 << 20 };

/* ---- One attribute ------------------------------------------------------- */

static cv_metalayer layer_of(const cv_attribute *a)
{
    cv_metalayer layer = {.data = a->data, .size = (uint32_t)a->size};
    memcpy(layer.name, a->name, strnlen(a->name, CV_MAX_NAME));
    return layer;
}

cv_status cv_attribute_value(const cv_attribute *a, cv_buffer *out, cv_watch *watch,
                             cv_error *err)
{
    if (a->form != CV_ATTRIBUTE_CHUNK) return cv_buffer_append(out, a->data, a->size, err);
    cv_metalayer layer = layer_of(a);
    return cv_frame_attribute(&layer, out, watch, err);
}

cv_status cv_attribute_size(const cv_attribute *a, int64_t *size, cv_error *err)
{
    *size = (int64_t)a->size;
    if (a->form != CV_ATTRIBUTE_CHUNK) return CV_OK;
    cv_metalayer layer = layer_of(a);
    return cv_frame_attribute_size(&layer, size, err);
}

cv_status cv_attribute_read(const cv_attribute *a, int64_t start, void *dst, int64_t size,
                            cv_error *err)
{
    if (a->form == CV_ATTRIBUTE_CHUNK) {
        cv_metalayer layer = layer_of(a);
        return cv_frame_attribute_read(&layer, start, dst, size, err);
    }
    if (size > 0) memcpy(dst, a->data + start, (size_t)size);
    return CV_OK;
}

/* ---- The map ------------------------------------------------------------- */

static bool is_name(const cv_token *key)
{
    if (key->kind != CV_TOKEN_TEXT || key->number == 0) return false;
    for (uint64_t at = 0; at < key->number;) {
        const char *c = (const char *)key->bytes + at;
        size_t length = cv_utf8_length(c, (size_t)(key->number - at));
        if (length == 0 || *c == '\0') return false;
        at += length;
    }
    return true;
}

/* How many names the map has; -1 when it is no map of names. */
static int64_t count_names(const cv_buffer *map)
{
    cv_tokens t = cv_tokens_of(map->data, map->size);
    cv_token head = cv_token_next(&t);
    if (head.kind != CV_TOKEN_MAP || head.number > MAX_MAP_NAMES) return -1;
    for (uint64_t i = 0; i < head.number; i++) {
        cv_token key = cv_token_next(&t);
        if (!is_name(&key)) return -1;
        cv_tokens_skip(&t);
    }
    return !t.bad && t.at == t.end ? (int64_t)head.number : -1;
}

/* JSON of such a map, bare or as a text: in its place comes the map. */
static cv_status convert_json(cv_buffer *map, cv_error *err)
{
    cv_tokens t = cv_tokens_of(map->data, map->size);
    cv_token text = cv_token_next(&t);
    bool is_text = text.kind == CV_TOKEN_TEXT && t.at == t.end && !t.bad;
    if (!is_text) text = (cv_token){.bytes = map->data, .number = map->size};
    if (text.number < 2 || text.bytes[0] != '{') return CV_OK;
    cv_buffer converted = {0};
    cv_status status =
        cv_json_read((const char *)text.bytes, (size_t)text.number, NULL, &converted, err);
    if (status == CV_OK) {
        cv_buffer_free(map);
        *map = converted;
        return CV_OK;
    }
    cv_buffer_free(&converted);
    return status == CATERVA_ENOMEM ? status : CV_OK;
}

/* *n is how many names it has, -1 when the attribute is none. */
static cv_status decode_map(const cv_metalayer *layer, cv_buffer *map, int64_t *n,
                            cv_error *err)
{
    int64_t size;
    CV_TRY(cv_frame_attribute_size(layer, &size, err));
    if (size > MAX_MAP_BYTES)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "attribute \"%s\" has %lld bytes: of names at most %d are read",
                       layer->name, (long long)size, MAX_MAP_BYTES);
    CV_TRY(cv_frame_attribute(layer, map, NULL, err));
    *n = count_names(map);
    if (*n >= 0) return CV_OK;
    CV_TRY(convert_json(map, err));
    *n = count_names(map);
    return CV_OK;
}

static cv_status load_map(cv_attributes *all, const cv_trailer *t, int64_t *n, cv_error *err)
{
    *n = -1;
    const cv_metalayer *layer =
        cv_metalayers_find(t->attributes, t->n_attributes, CV_ATTRIBUTES_MAP);
    if (!layer) return CV_OK;
    cv_error why = {.code = CV_OK};
    cv_status status = decode_map(layer, &all->map, n, &why);
    if (status == CATERVA_ENOMEM && err) *err = why;
    if (status == CATERVA_ENOMEM) return status;
    all->map_status = status;
    all->map_error = why;
    return CV_OK;
}

/* ---- The list ------------------------------------------------------------ */

static bool is_listed(const char *name, bool map_is_read)
{
    return strcmp(name, CV_OWN_ATTRIBUTE) != 0 &&
           (!map_is_read || strcmp(name, CV_ATTRIBUTES_MAP) != 0);
}

/* There is room for all names: they do not move any more. */
static void add(cv_attributes *all, const void *name, size_t size, cv_attribute a)
{
    char *kept = (char *)all->names.data + all->names.size;
    memcpy(kept, name, size);
    kept[size] = '\0';
    all->names.size += size + 1;
    a.name = kept;
    all->list[all->n++] = a;
}

static void add_keys(cv_attributes *all, const cv_trailer *t, bool map_is_read)
{
    for (int i = 0; i < t->n_attributes; i++) {
        const cv_metalayer *layer = &t->attributes[i];
        if (!is_listed(layer->name, map_is_read)) continue;
        cv_attribute a = {.data = layer->data, .size = layer->size};
        add(all, layer->name, strlen(layer->name), a);
    }
}

static void add_map(cv_attributes *all)
{
    cv_tokens t = cv_tokens_of(all->map.data, all->map.size);
    cv_token head = cv_token_next(&t);
    for (uint64_t i = 0; i < head.number; i++) {
        cv_token key = cv_token_next(&t);
        cv_attribute a = {.form = CV_ATTRIBUTE_PACKED, .data = t.at};
        cv_tokens_skip(&t);
        a.size = (size_t)(t.at - a.data);
        if (cv_token_is_text(&key, CV_OWN_ATTRIBUTE)) continue;
        add(all, key.bytes, (size_t)key.number, a);
    }
}

/* ---- Each name once ------------------------------------------------------ */

typedef struct entry {
    const char *name;
    int at;
} entry;

/* Of one name: a key of its own first, then, as in Python, the last of the map. `at` is
 * negative in the map's entries, so that smaller is better in both. */
static int compare_entries(const void *a, const void *b)
{
    const entry *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order ? order : (one->at > other->at) - (one->at < other->at);
}

/* A rank for each place: keys count up from INT_MIN, the map's down. */
static int rank_of(const cv_attributes *all, int i)
{
    return all->list[i].form == CV_ATTRIBUTE_CHUNK ? INT_MIN + i : -i;
}

static int place_of(int rank) { return rank < INT_MIN / 2 ? rank - INT_MIN : -rank; }

static void drop_losers(cv_attributes *all, const entry *entries, int *kept)
{
    int n = 0;
    for (int i = 0; i < all->n; i++) kept[i] = -1;
    for (int i = 0; i < all->n; i++)
        if (i == 0 || strcmp(entries[i].name, entries[i - 1].name) != 0)
            kept[place_of(entries[i].at)] = 0;
    for (int i = 0; i < all->n; i++) {
        if (kept[i] < 0) continue;
        kept[i] = n;
        all->list[n++] = all->list[i];
    }
}

static cv_status order(cv_attributes *all, cv_error *err)
{
    size_t n = (size_t)all->n + 1;
    entry *entries = cv_malloc(n * (sizeof *entries + sizeof(int)));
    all->by_name = cv_malloc(n * sizeof all->by_name[0]);
    if (!entries || !all->by_name) {
        cv_free(entries);
        return cv_fail_memory(err, n * sizeof *entries, "the attributes");
    }
    int *kept = (int *)(entries + n), unique = 0;
    for (int i = 0; i < all->n; i++) entries[i] = (entry){all->list[i].name, rank_of(all, i)};
    qsort(entries, (size_t)all->n, sizeof *entries, compare_entries);
    drop_losers(all, entries, kept);
    for (int i = 0; i < all->n; i++)
        if (i == 0 || strcmp(entries[i].name, entries[i - 1].name) != 0)
            all->by_name[unique++] = kept[place_of(entries[i].at)];
    all->n = unique;
    cv_free(entries);
    return CV_OK;
}

/* ---- All of it ----------------------------------------------------------- */

static cv_status load(cv_attributes *all, const cv_trailer *t, cv_error *err)
{
    int64_t in_map;
    CV_TRY(load_map(all, t, &in_map, err));
    size_t keys = (size_t)t->n_attributes, packed = (size_t)(in_map > 0 ? in_map : 0);
    size_t most = keys + packed + 1;
    all->list = cv_malloc(most * sizeof all->list[0]);
    if (!all->list) return cv_fail_memory(err, most * sizeof all->list[0], "the attributes");
    CV_TRY(cv_buffer_reserve(&all->names, keys * (CV_MAX_NAME + 1) + all->map.size + packed,
                             err));
    add_keys(all, t, in_map >= 0);
    if (in_map > 0) add_map(all);
    return order(all, err);
}

cv_status cv_attributes_load(const cv_trailer *trailer, cv_attributes **out, cv_error *err)
{
    cv_attributes *all = cv_calloc(1, sizeof *all);
    if (!all) return cv_fail_memory(err, sizeof *all, "the attributes");
    cv_status status = load(all, trailer, err);
    if (status != CV_OK) {
        cv_attributes_free(all);
        return status;
    }
    *out = all;
    return CV_OK;
}

void cv_attributes_free(cv_attributes *all)
{
    if (!all) return;
    cv_buffer_free(&all->names);
    cv_buffer_free(&all->map);
    cv_free(all->list);
    cv_free(all->by_name);
    cv_free(all);
}

static const cv_attribute *find(const cv_attributes *all, const char *name)
{
    int low = 0, high = all->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        const cv_attribute *attribute = &all->list[all->by_name[middle]];
        int found = strcmp(name, attribute->name);
        if (found == 0) return attribute;
        if (found < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

cv_status cv_attributes_find(const cv_attributes *all, const char *name,
                             const cv_attribute **out, cv_error *err)
{
    *out = find(all, name);
    if (*out) return CV_OK;
    if (all->map_status == CV_OK)
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "no attribute \"%.100s\"", name);
    if (err) *err = all->map_error;
    return all->map_status;
}

/* ---- One of them changed ------------------------------------------------- */

cv_status cv_attributes_replace(const cv_attributes *all, const char *name,
                                const cv_attribute *added, cv_attribute **list, int *n,
                                cv_error *err)
{
    static const cv_attributes none;
    if (!all) all = &none;
    const cv_attribute *old = find(all, name);
    if (!old && !added) return cv_attributes_find(all, name, &old, err);
    size_t size = ((size_t)all->n + 1) * sizeof(cv_attribute);
    *list = cv_malloc(size);
    if (!*list) return cv_fail_memory(err, size, "the attributes");
    *n = 0;
    for (int i = 0; i < all->n; i++) {
        if (&all->list[i] != old)
            (*list)[(*n)++] = all->list[i];
        else if (added)
            (*list)[(*n)++] = *added;
    }
    if (!old && added) (*list)[(*n)++] = *added;
    return CV_OK;
}

cv_status cv_attributes_check_name(const char *name, cv_error *err)
{
    if (!name || !name[0] || strlen(name) > CV_MAX_ATTRIBUTE_NAME)
        return cv_fail(err, CATERVA_EINVAL, -1, "an attribute's name has 1 to %d bytes",
                       CV_MAX_ATTRIBUTE_NAME);
    /* python-blosc2 decodes all names at once: one that is none hides every other. */
    if (!cv_is_utf8(name))
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "an attribute's name is UTF-8, \"%.100s\" is not", name);
    if (strcmp(name, CV_OWN_ATTRIBUTE) == 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "attribute \"%s\" is the library's own",
                       name);
    return CV_OK;
}
