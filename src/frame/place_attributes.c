/* Room: frame. The places of attributes. A frame that C-Blosc2 can change has at most 16
 * keys; the map takes one of them as soon as there is one.
 *
 * Of those that fit a key the first have one: those that have it already stand in front.
 * Before them all come long values and bytes that are no MessagePack, because a map that
 * holds them would be slow to change or not be read, and what says how items are meant,
 * because programs look for it that do not know the map. */
#include "frame/place_attributes.h"

#include "base/heap.h"
#include "codec/encode.h"
#include "value/pack.h"

#include <string.h>

enum { LONG_VALUE = 1 << 20, MAX_MAP_BYTES = 64 << 20 };

/* An attribute while it is placed. */
typedef struct item {
    const cv_attribute *from;
    bool keyed;
    bool comes_first;
    cv_buffer value; /* decoded, of those that go into the map */
} item;

typedef struct placing {
    item *items;
    int n;
    int slots; /* keys for them, the map's not counted */
    bool has_map;
} placing;

/* Where others have put something else under the map's name, it may stay until there is
 * a map. */
static bool fits_key(const placing *p, const cv_attribute *a)
{
    if (strcmp(a->name, CV_ATTRIBUTES_MAP) == 0)
        return a->form == CV_ATTRIBUTE_CHUNK && !p->has_map;
    return strlen(a->name) <= CV_MAX_NAME;
}

/* What other readers look for. */
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
        /* What cannot be measured is damaged, and stays as it is. */
        it->comes_first = cv_attribute_size(&list[i], &length, NULL) != CV_OK ||
                          length > LONG_VALUE || is_sought(list[i].name);
    }
    if (p->has_map) p->slots--;
    return CV_OK;
}

/* Gives keys in order, to those that come first or to the others, while there are some. */
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

/* The last of those with a key that may stand in the map, or NULL. */
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

/* What is no value changes places with one that is. */
static cv_status settle(placing *p, item *it, cv_error *err)
{
    bool is_value;
    item *guest = NULL;
    CV_TRY(fetch(it, &is_value, err));
    if (is_value) return CV_OK;
    if (fits_key(p, it->from)) CV_TRY(find_guest(p, &guest, err));
    if (!guest)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "attribute \"%.60s\" is no MessagePack value, and has no room but "
                       "among others in \"%s\"",
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
                       "the attributes in \"%s\" have %zu bytes, %d is the most",
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

static cv_status add_map(cv_placed *out, const placing *p, cv_error *err)
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
    return p->has_map ? add_map(out, p, err) : CV_OK;
}

static cv_status place(placing *p, cv_error *err)
{
    give_keys(p, true);
    give_keys(p, false);
    cv_status status = CV_OK;
    for (int i = 0; i < p->n && status == CV_OK; i++)
        if (!p->items[i].keyed) status = settle(p, &p->items[i], err);
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
