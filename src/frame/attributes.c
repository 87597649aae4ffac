/* Room: frame. Reads the attributes of the trailer and those of its map, and merges them. Whatever
 * the bytes are, names are unique and memory is in proportion to the stored bytes. */
#include "frame/attributes.h"

#include "base/arith.h"
#include "base/status.h"
#include "codec/decode.h"
#include "codec/encode.h"
#include "format/array_meta.h"
#include "format/chunk_header.h"
#include "format/json.h"
#include "format/values.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- One attribute ----
 *
 * A value is a Blosc2 chunk whose header contains its length. It is read and checked in pieces, so
 * that memory depends on what is requested, not on what the header claims. */

/* PIECE: bytes of a piece. MOST_AT_ONCE: largest block or chunk decoded for a piece. */
enum { PIECE = 1 << 20, MOST_AT_ONCE = 32 << 20 };

static cv_status parse(const cv_metalayer *attribute, cv_chunk_header *out, cv_error *err)
{
    cv_chunk_expect expect = {
        .chunk = -2, .pos = -1, .nbytes = -1, .max_cbytes = attribute->size};
    if (attribute->size < CV_CHUNK_HEADER_SIZE)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "attribute \"%s\" is not a Blosc2 chunk",
                       attribute->name);
    return cv_chunk_header_parse(attribute->data, &expect, out, err);
}

static cv_status new_decoder(cv_decoder **out, cv_error *err)
{
    cv_codec_spec spec = {.item_size = 1};
    return cv_decoder_create(&spec, out, err);
}

/* Returns the size of a piece: some whole blocks if there is a watch and blocks can be decoded
 * alone, else the whole value. */
static int32_t piece_of(const cv_chunk_header *header, const cv_metalayer *attribute,
                        const cv_watch *watch)
{
    int32_t piece = header->block_size;
    if (!watch || header->special != CV_SPECIAL_NONE || piece <= 0 ||
        cv_codec_access(attribute->data) == CV_ACCESS_CHUNK)
        return header->nbytes;
    while (piece < PIECE) piece *= 2;
    return (int32_t)cv_min_i64(piece, header->nbytes);
}

static cv_status decode_with_progress(cv_decoder *decoder, const cv_chunk_header *header,
                                      const cv_metalayer *attribute, uint8_t *dst,
                                      cv_watch *watch, cv_error *err)
{
    int32_t piece = piece_of(header, attribute, watch);
    if (piece == header->nbytes) {
        CV_TRY(cv_decode_chunk(decoder, attribute->data, header->cbytes, dst, piece, err));
        return cv_watch_tick(watch, piece, err);
    }
    for (int64_t at = 0; at < header->nbytes; at += piece) {
        int32_t size = (int32_t)cv_min_i64(piece, header->nbytes - at);
        if (header->memcpyed)
            memcpy(dst + at, attribute->data + CV_CHUNK_HEADER_SIZE + at, (size_t)size);
        else
            CV_TRY(cv_decode_range(decoder, attribute->data, header->cbytes, (int32_t)at,
                                   size, dst + at, err));
        CV_TRY(cv_watch_tick(watch, size, err));
    }
    return CV_OK;
}

static cv_status decode_whole(const cv_chunk_header *header, const cv_metalayer *attribute,
                              uint8_t *dst, cv_watch *watch, cv_error *err)
{
    cv_decoder *decoder;
    CV_TRY(new_decoder(&decoder, err));
    cv_watch_expect(watch, header->nbytes);
    cv_status status = decode_with_progress(decoder, header, attribute, dst, watch, err);
    cv_decoder_free(decoder);
    return status;
}

cv_status cv_frame_attribute(const cv_metalayer *attribute, cv_buffer *out, cv_watch *watch,
                             cv_error *err)
{
    cv_chunk_header header;
    CV_TRY(parse(attribute, &header, err));
    CV_TRY(cv_buffer_resize(out, (size_t)header.nbytes, err));
    if (header.nbytes == 0) return CV_OK;
    return decode_whole(&header, attribute, out->data, watch, err);
}

cv_status cv_frame_attribute_size(const cv_metalayer *attribute, int64_t *size, cv_error *err)
{
    cv_chunk_header header;
    CV_TRY(parse(attribute, &header, err));
    *size = header.nbytes;
    return CV_OK;
}

/* ---- In pieces ---------------------------------------------------------- */

static void repeat(const cv_chunk_header *header, const uint8_t *item, int64_t start,
                   int64_t size, uint8_t *dst)
{
    int64_t length = header->cbytes - CV_CHUNK_HEADER_SIZE;
    for (int64_t i = 0; i < size; i++) dst[i] = item[(start + i) % length];
}

static cv_status fail_large(const cv_metalayer *attribute, int32_t size, cv_error *err)
{
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "attribute \"%s\" can only be decoded in pieces of %d bytes: too large",
                   attribute->name, size);
}

static cv_status decode_piece(const cv_chunk_header *header, const cv_metalayer *attribute,
                              int32_t start, int32_t size, uint8_t *dst, cv_error *err)
{
    bool by_block = cv_codec_access(attribute->data) != CV_ACCESS_CHUNK;
    int32_t at_once = by_block ? header->block_size : header->nbytes;
    cv_decoder *decoder;
    if (start == 0 && size == header->nbytes)
        return decode_whole(header, attribute, dst, NULL, err);
    if (at_once > MOST_AT_ONCE && !header->memcpyed)
        return fail_large(attribute, at_once, err);
    if (by_block) {
        CV_TRY(new_decoder(&decoder, err));
        cv_status status =
            cv_decode_range(decoder, attribute->data, header->cbytes, start, size, dst, err);
        cv_decoder_free(decoder);
        return status;
    }
    cv_buffer whole = {0};
    cv_status status = cv_frame_attribute(attribute, &whole, NULL, err);
    if (status == CV_OK) memcpy(dst, whole.data + start, (size_t)size);
    cv_buffer_free(&whole);
    return status;
}

static cv_status frame_attribute_read(const cv_metalayer *attribute, int64_t start, void *dst,
                                      int64_t size, cv_error *err)
{
    cv_chunk_header header;
    CV_TRY(parse(attribute, &header, err));
    if (size == 0) return CV_OK;
    switch (header.special) {
    case CV_SPECIAL_NONE:
        if (!header.memcpyed)
            return decode_piece(&header, attribute, (int32_t)start, (int32_t)size, dst, err);
        memcpy(dst, attribute->data + CV_CHUNK_HEADER_SIZE + start, (size_t)size);
        return CV_OK;
    case CV_SPECIAL_VALUE:
        repeat(&header, attribute->data + CV_CHUNK_HEADER_SIZE, start, size, dst);
        return CV_OK;
    case CV_SPECIAL_NAN: {
        cv_buffer whole = {0};
        cv_status status = header.nbytes > MOST_AT_ONCE
                               ? fail_large(attribute, header.nbytes, err)
                               : cv_frame_attribute(attribute, &whole, NULL, err);
        if (status == CV_OK) memcpy(dst, whole.data + start, (size_t)size);
        cv_buffer_free(&whole);
        return status;
    }
    default: memset(dst, 0, (size_t)size); return CV_OK;
    }
}

cv_status cv_frame_attribute_check(const cv_metalayer *attribute, cv_error *err)
{
    cv_chunk_header header;
    CV_TRY(parse(attribute, &header, err));
    if (header.special != CV_SPECIAL_NONE || header.memcpyed) return CV_OK;
    int32_t piece = header.block_size; /* decode each block only once */
    while (piece < PIECE) piece *= 2;
    if (piece > MOST_AT_ONCE && header.nbytes <= MOST_AT_ONCE) piece = header.nbytes;
    if (piece > header.nbytes || cv_codec_access(attribute->data) == CV_ACCESS_CHUNK)
        piece = header.nbytes;
    if (piece > MOST_AT_ONCE) return fail_large(attribute, piece, err);
    uint8_t *scratch = cv_malloc((size_t)piece);
    if (!scratch) return cv_fail_memory(err, (size_t)piece, "an attribute");
    cv_status status = CV_OK;
    for (int64_t at = 0; at < header.nbytes && status == CV_OK; at += piece)
        status = frame_attribute_read(attribute, at, scratch,
                                      cv_min_i64(piece, header.nbytes - at), err);
    cv_free(scratch);
    return status;
}

/* ---- Attributes ---- */

#define CV_ATTRIBUTES_MAP "attrs"

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
        return frame_attribute_read(&layer, start, dst, size, err);
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

/* Returns the number of names in the map, or -1 if it is not a map with names as keys. */
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

/* Converts the JSON text of an object, bare or in a MessagePack text, to a map. */
static cv_status convert_json(cv_buffer *map, cv_error *err)
{
    cv_tokens t = cv_tokens_of(map->data, map->size);
    cv_token text = cv_token_next(&t);
    bool is_text = text.kind == CV_TOKEN_TEXT && t.at == t.end && !t.bad;
    if (!is_text) text = (cv_token){.bytes = map->data, .number = map->size};
    if (text.number < 2 || text.bytes[0] != '{') return CV_OK;
    cv_buffer converted = {0};
    cv_status status =
        cv_json_to_msgpack((const char *)text.bytes, (size_t)text.number, &converted, err);
    if (status == CV_OK) {
        cv_buffer_free(map);
        *map = converted;
        return CV_OK;
    }
    cv_buffer_free(&converted);
    return status == CATERVA_ENOMEM ? status : CV_OK;
}

/* Sets *n to the number of names, or to -1 if the attribute is not a map of names. */
static cv_status decode_map(const cv_metalayer *layer, cv_buffer *map, int64_t *n,
                            cv_error *err)
{
    int64_t size;
    CV_TRY(cv_frame_attribute_size(layer, &size, err));
    if (size > MAX_MAP_BYTES)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "attribute \"%s\" has %lld bytes; an attribute map has at most %d",
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

/* Orders entries by name, and those of one name by rank: first the attribute with a key of its own,
 * then the map's last entry, which wins in Python, too. `at` is the rank. */
static int compare_entries(const void *a, const void *b)
{
    const entry *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order ? order : (one->at > other->at) - (one->at < other->at);
}

/* Returns the rank of list position `i`: keys count up from INT_MIN, map entries down from 0. */
static int rank_of(const cv_attributes *all, int i)
{
    return all->list[i].form == CV_ATTRIBUTE_CHUNK ? INT_MIN + i : -i;
}

static int place_of(int rank) { return rank < INT_MIN / 2 ? rank - INT_MIN : -rank; }

/* Keeps the first entry of each name. Sets kept[i] to the new position of list[i], or to -1. */
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
    /* python-blosc2 decodes all names at once: one invalid name hides all others. */
    if (!cv_is_utf8(name))
        return cv_fail(err, CATERVA_EINVAL, -1, "the attribute name \"%.100s\" is not UTF-8",
                       name);
    if (strcmp(name, CV_OWN_ATTRIBUTE) == 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "attribute \"%s\" is the library's own",
                       name);
    return CV_OK;
}

/* ---- Placing attributes ----
 *
 * A key is a vlmetalayer. A frame that C-Blosc2 can change has at most 16 keys; the map, once it
 * exists, takes one of them. Keys are assigned in the list's order, in which attributes that have
 * a key already come first. But before all others come long values, which would make the map slow,
 * and attributes that describe items, which other programs look for. Bytes that are not MessagePack
 * cannot be in the map, so they take the key of an attribute that can. */

enum { LONG_VALUE = 1 << 20 };

typedef struct item {
    const cv_attribute *from;
    bool keyed;
    bool comes_first;
    cv_buffer value; /* decoded, for the map */
} item;

typedef struct placing {
    item *items;
    int n;
    int slots; /* free keys, without the map's */
    bool has_map;
} placing;

/* Another program may have stored another value under the map's name. That value keeps the key
 * until there is a map. */
static bool fits_key(const placing *p, const cv_attribute *a)
{
    if (strcmp(a->name, CV_ATTRIBUTES_MAP) == 0)
        return a->form == CV_ATTRIBUTE_CHUNK && !p->has_map;
    return strlen(a->name) <= CV_MAX_NAME;
}

static bool is_sought(const char *name)
{
    static const char *const names[] = {"dims",       "dimension_names", "_ARRAY_DIMENSIONS",
                                        "_FillValue", "scale_factor",    "add_offset",
                                        "units",      "calendar",        "coordinates"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static cv_status begin(placing *p, const cv_attribute *list, int n, bool has_own,
                       cv_error *err)
{
    size_t size = ((size_t)n + 1) * sizeof p->items[0];
    p->items = cv_calloc((size_t)n + 1, sizeof p->items[0]);
    if (!p->items) return cv_fail_memory(err, size, "the attributes");
    p->n = n;
    p->slots = CV_MAX_METALAYERS - has_own;
    p->has_map = n > p->slots;
    for (int i = 0; i < n; i++) {
        int64_t length;
        item *it = &p->items[i];
        it->from = &list[i];
        if (!fits_key(p, &list[i])) p->has_map = true;
        /* an attribute that cannot be measured is damaged, and stays as it is */
        it->comes_first = cv_attribute_size(&list[i], &length, NULL) != CV_OK ||
                          length > LONG_VALUE || is_sought(list[i].name);
    }
    if (p->has_map) p->slots--;
    return CV_OK;
}

static void give_keys(placing *p, bool first)
{
    for (int i = 0; i < p->n && p->slots > 0; i++) {
        item *it = &p->items[i];
        if (it->keyed || it->comes_first != first || !fits_key(p, it->from)) continue;
        it->keyed = true;
        p->slots--;
    }
}

static cv_status fetch(item *it, bool *is_value, cv_error *err)
{
    if (it->value.size == 0) CV_TRY(cv_attribute_value(it->from, &it->value, NULL, err));
    *is_value = cv_is_value(it->value.data, it->value.size);
    return CV_OK;
}

/* Finds the last attribute that has a key but could be in the map, or NULL. */
static cv_status find_guest(placing *p, item **out, cv_error *err)
{
    *out = NULL;
    for (int i = p->n; i-- > 0 && !*out;) {
        item *it = &p->items[i];
        bool is_value;
        if (!it->keyed || it->comes_first) continue;
        CV_TRY(fetch(it, &is_value, err));
        if (is_value) *out = it;
    }
    return CV_OK;
}

/* An attribute that is not a MessagePack value exchanges places with one that is. */
static cv_status keep_out_of_map(placing *p, item *it, cv_error *err)
{
    bool is_value;
    item *guest = NULL;
    CV_TRY(fetch(it, &is_value, err));
    if (is_value) return CV_OK;
    if (fits_key(p, it->from)) CV_TRY(find_guest(p, &guest, err));
    if (!guest)
        return cv_fail(
            err, CATERVA_EINVAL, -1,
            "attribute \"%.60s\" is not a MessagePack value, and can only be stored "
            "in \"%s\"",
            it->from->name, CV_ATTRIBUTES_MAP);
    guest->keyed = false;
    it->keyed = true;
    return CV_OK;
}

static cv_status pack_map(const placing *p, cv_buffer *out, cv_error *err)
{
    cv_packer packer = {.status = CV_OK};
    cv_pack_begin(&packer, CV_PACK_MAP);
    for (int i = 0; i < p->n; i++) {
        const item *it = &p->items[i];
        if (it->keyed) continue;
        cv_pack_text(&packer, it->from->name, strlen(it->from->name));
        cv_pack_value(&packer, it->value.data, it->value.size);
    }
    cv_pack_end(&packer);
    CV_TRY(cv_pack_finish(&packer, out, err));
    if (out->size > MAX_MAP_BYTES)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the attributes in \"%s\" have %zu bytes, the maximum is %d",
                       CV_ATTRIBUTES_MAP, out->size, MAX_MAP_BYTES);
    return CV_OK;
}

/* ---- The trailer's list --------------------------------------------------- */

static cv_status add_layer(cv_placed *out, const char *name, const void *value, size_t size,
                           cv_error *err)
{
    cv_metalayer *layer = &out->layers[out->n];
    cv_buffer *encoded = &out->encoded[out->n];
    CV_TRY(cv_encode_plain(value, size, out->watch, encoded, err));
    *layer = (cv_metalayer){.data = encoded->data, .size = (uint32_t)encoded->size};
    memcpy(layer->name, name, strlen(name));
    out->n++;
    return CV_OK;
}

static cv_status add_item(cv_placed *out, const item *it, cv_error *err)
{
    const cv_attribute *a = it->from;
    if (a->form != CV_ATTRIBUTE_CHUNK) return add_layer(out, a->name, a->data, a->size, err);
    cv_metalayer *layer = &out->layers[out->n++];
    *layer = (cv_metalayer){.data = a->data, .size = (uint32_t)a->size};
    memcpy(layer->name, a->name, strlen(a->name));
    return CV_OK;
}

static cv_status add_map_attribute(cv_placed *out, const placing *p, cv_error *err)
{
    cv_buffer map = {0};
    cv_status status = pack_map(p, &map, err);
    if (status == CV_OK) status = add_layer(out, CV_ATTRIBUTES_MAP, map.data, map.size, err);
    cv_buffer_free(&map);
    return status;
}

static cv_status list_layers(const placing *p, const cv_metalayer *own, int own_at,
                             cv_placed *out, cv_error *err)
{
    out->layers = cv_calloc(CV_MAX_METALAYERS + 1, sizeof out->layers[0]);
    out->encoded = cv_calloc(CV_MAX_METALAYERS + 1, sizeof out->encoded[0]);
    if (!out->layers || !out->encoded)
        return cv_fail_memory(err, CV_MAX_METALAYERS * sizeof out->layers[0],
                              "the attributes");
    for (int i = 0; i <= p->n; i++) {
        bool last = i == p->n;
        if (own && (out->n == own_at || last)) {
            out->layers[out->n++] = *own;
            own = NULL;
        }
        if (!last && p->items[i].keyed) CV_TRY(add_item(out, &p->items[i], err));
    }
    return p->has_map ? add_map_attribute(out, p, err) : CV_OK;
}

static cv_status place(placing *p, cv_error *err)
{
    give_keys(p, true);
    give_keys(p, false);
    cv_status status = CV_OK;
    for (int i = 0; i < p->n && status == CV_OK; i++)
        if (!p->items[i].keyed) status = keep_out_of_map(p, &p->items[i], err);
    return status;
}

cv_status cv_attributes_place(const cv_attribute *list, int n, const cv_metalayer *own,
                              int own_at, cv_placed *out, cv_error *err)
{
    placing p = {.n = 0};
    *out = (cv_placed){.watch = out->watch};
    cv_status status = begin(&p, list, n, own != NULL, err);
    if (status == CV_OK) status = place(&p, err);
    if (status == CV_OK) status = list_layers(&p, own, own_at, out, err);
    for (int i = 0; i < p.n; i++) cv_buffer_free(&p.items[i].value);
    cv_free(p.items);
    if (status != CV_OK) cv_placed_free(out);
    return status;
}

void cv_placed_free(cv_placed *placed)
{
    for (int i = 0; placed->encoded && i <= CV_MAX_METALAYERS; i++)
        cv_buffer_free(&placed->encoded[i]);
    cv_free(placed->encoded);
    cv_free(placed->layers);
    *placed = (cv_placed){.n = 0};
}
