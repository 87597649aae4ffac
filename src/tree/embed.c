/* Room: tree. Parses the attributes of an embed.b2e, msgpack maps that python-blosc2
 * writes. Promises: every key is a good one, every leaf lies within the bytes there are.
 * What the leaves hold is for others. */
#include "tree/embed.h"

#include "base/arith.h"
#include "base/heap.h"
#include "format/msgpack.h"
#include "frame/attributes.h"
#include "frame/snapshot.h"
#include "tree/names.h"

#include <stdlib.h>
#include <string.h>

/* Of a list of 10^5 leaves as it is stored. */
enum { LONGEST = 16 << 20 };

/* ---- The list --------------------------------------------------------------------- */

static cv_status keep_text(cv_embed *e, const uint8_t *text, size_t size, cv_error *err)
{
    size_t place = e->names.size;
    CV_TRY(cv_buffer_append(&e->places, &place, sizeof place, err));
    CV_TRY(cv_buffer_append(&e->names, text, size, err));
    return cv_buffer_append(&e->names, "", 1, err);
}

/* Each has two texts: its key, and its kind or nothing. */
static cv_status add(cv_embed *e, const cv_embed_entry *entry, const cv_any *key,
                     const cv_any *kind, cv_error *err)
{
    if (e->n == e->room) {
        size_t room = e->room ? 2 * e->room : 16;
        cv_embed_entry *grown =
            cv_realloc(e->list, e->n * sizeof *grown, room * sizeof *grown);
        if (!grown) return cv_fail_memory(err, room * sizeof *grown, "the leaves of a tree");
        e->list = grown;
        e->room = room;
    }
    CV_TRY(keep_text(e, key->bytes, key->size, err));
    CV_TRY(keep_text(e, kind->bytes, kind->size, err));
    e->list[e->n++] = *entry;
    return CV_OK;
}

static int compare(const void *x, const void *y)
{
    const cv_embed_entry *a = x, *b = y;
    int order = (a->what > b->what) - (a->what < b->what);
    return order ? order : strcmp(a->key, b->key);
}

static void complete(cv_embed *e)
{
    const size_t *places = (const size_t *)e->places.data;
    for (size_t i = 0; i < e->n; i++) {
        e->list[i].key = (const char *)e->names.data + places[2 * i];
        e->list[i].kind = (const char *)e->names.data + places[2 * i + 1];
    }
    cv_buffer_free(&e->places);
    if (e->n > 1) qsort(e->list, e->n, sizeof e->list[0], compare);
}

const cv_embed_entry *cv_embed_find(const cv_embed *e, cv_embed_what what, const char *key)
{
    cv_embed_entry wanted = {.key = key, .what = what};
    return e->n ? bsearch(&wanted, e->list, e->n, sizeof e->list[0], compare) : NULL;
}

void cv_embed_free(cv_embed *e)
{
    cv_free(e->list);
    cv_buffer_free(&e->names);
    cv_buffer_free(&e->places);
    *e = (cv_embed){0};
}

/* ---- Its entries, as they are packed ---------------------------------------------- */

typedef struct fields {
    int64_t offset, size; /* -1: not given */
    bool is_remote;
    cv_any kind;
} fields;

/* The map that stands for one leaf or object; what else is in it is passed over. */
static void read_fields(cv_reader *r, fields *out)
{
    *out = (fields){.offset = -1, .size = -1};
    size_t at = r->at;
    cv_any map = cv_read_any(r, "an entry");
    if (map.kind != CV_ANY_MAP)
        cv_reader_fail(r, CATERVA_ECORRUPT, at, "an entry at byte %zu is no map", at);
    for (uint32_t i = 0; i < map.size && r->status == CV_OK; i++) {
        cv_any name = cv_read_any(r, "a field");
        cv_reader value = *r;
        cv_any any = cv_read_any(&value, "a value");
        cv_skip_any(r, "a value");
        bool is_count = any.kind == CV_ANY_INT && any.number >= 0;
        if (cv_any_is(&name, "offset") && is_count) out->offset = any.number;
        if (cv_any_is(&name, "length") && is_count) out->size = any.number;
        if (cv_any_is(&name, "urlbase")) out->is_remote = true;
        if (cv_any_is(&name, "kind") && any.kind == CV_ANY_TEXT) out->kind = any;
    }
}

static cv_status check_key(const cv_any *key, cv_error *err)
{
    const char *text = (const char *)key->bytes;
    if (key->kind == CV_ANY_TEXT && key->size > 1 && text[0] == '/')
        return cv_tree_check_path(text + 1, key->size - 1, err);
    return cv_fail(err, CATERVA_ECORRUPT, -1, "embed.b2e: a leaf without a key");
}

static cv_status add_leaf(cv_embed *e, const cv_any *key, const fields *f, cv_error *err)
{
    int64_t end;
    static const cv_any none;
    cv_embed_entry entry = {.what = f->is_remote ? CV_EMBED_REMOTE : CV_EMBED_LEAF};
    CV_TRY(check_key(key, err));
    if (f->is_remote) return add(e, &entry, key, &none, err);
    if (f->offset < 0 || f->size < 0 || !cv_add_i64(f->offset, f->size, &end) ||
        (uint64_t)end > e->size)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "embed.b2e: leaf %.*s of %lld bytes at %lld does not lie in the %llu "
                       "bytes that it holds",
                       (int)cv_min_i64(key->size, 100), (const char *)key->bytes,
                       (long long)f->size, (long long)f->offset, (unsigned long long)e->size);
    entry.offset = (uint64_t)f->offset;
    entry.size = (uint64_t)f->size;
    return add(e, &entry, key, &none, err);
}

static cv_status add_object(cv_embed *e, const cv_any *key, const fields *f, cv_error *err)
{
    static const cv_any unknown = {
        .kind = CV_ANY_TEXT, .bytes = (const uint8_t *)"object", .size = 6};
    cv_embed_entry entry = {.what = CV_EMBED_OBJECT};
    CV_TRY(check_key(key, err));
    return add(e, &entry, key, f->kind.size > 0 ? &f->kind : &unknown, err);
}

/* A map of keys to entries. */
static cv_status read_map(cv_reader *r, cv_embed *e,
                          cv_status (*take)(cv_embed *, const cv_any *, const fields *,
                                            cv_error *),
                          cv_error *err)
{
    cv_any map = cv_read_any(r, "the map of leaves");
    if (map.kind != CV_ANY_MAP)
        cv_reader_fail(r, CATERVA_ECORRUPT, 0, "the leaves are no map");
    for (uint32_t i = 0; i < map.size && r->status == CV_OK; i++) {
        fields f;
        cv_any key = cv_read_any(r, "a key");
        read_fields(r, &f);
        if (r->status == CV_OK) CV_TRY(take(e, &key, &f, err));
    }
    return cv_reader_check(r, err);
}

/* {"embed_map": {key: entry, ...}, "current_offset": n} */
static cv_status read_leaves(cv_reader *r, cv_embed *e, cv_error *err)
{
    cv_any map = cv_read_any(r, "the metadata");
    if (map.kind != CV_ANY_MAP)
        cv_reader_fail(r, CATERVA_ECORRUPT, 0, "the metadata are no map");
    for (uint32_t i = 0; i < map.size && r->status == CV_OK; i++) {
        cv_any name = cv_read_any(r, "a field");
        if (cv_any_is(&name, "embed_map"))
            CV_TRY(read_map(r, e, add_leaf, err));
        else
            cv_skip_any(r, "a value");
    }
    return cv_reader_check(r, err);
}

static cv_status read_objects(cv_reader *r, cv_embed *e, cv_error *err)
{
    return read_map(r, e, add_object, err);
}

/* ---- Its attributes --------------------------------------------------------------- */

typedef cv_status (*parse_fn)(cv_reader *, cv_embed *, cv_error *);

static cv_status read_attribute(const cv_trailer *trailer, const char *name, parse_fn parse,
                                cv_embed *e, cv_error *err)
{
    int64_t size;
    cv_buffer value = {0};
    const cv_metalayer *attribute =
        cv_metalayers_find(trailer->attributes, trailer->n_attributes, name);
    if (!attribute) return CV_OK;
    CV_TRY(cv_frame_attribute_size(attribute, &size, err));
    if (size > LONGEST)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "embed.b2e: %s has %lld bytes, %d can be read", name, (long long)size,
                       LONGEST);
    cv_status status = cv_frame_attribute(attribute, &value, NULL, err);
    if (status == CV_OK) {
        cv_reader r = cv_reader_open(value.data, value.size, 0, name);
        status = parse(&r, e, err);
    }
    cv_buffer_free(&value);
    return status;
}

static bool is_store(const cv_frame_header *h)
{
    static const char *const names[] = {"b2tree", "b2dict", "b2embed"};
    for (int i = 0; i < 3; i++)
        if (cv_metalayers_find(h->metalayers, h->n_metalayers, names[i])) return true;
    return false;
}

cv_status cv_embed_read(cv_store *store, cv_embed *out, cv_error *err)
{
    cv_snapshot *s = NULL;
    cv_embed embed = {0};
    cv_status status = cv_snapshot_load_any(store, &s, err);
    if (status == CV_OK) {
        embed.size = (uint64_t)s->header.nbytes;
        embed.is_store = is_store(&s->header);
        status = read_attribute(&s->trailer, "estore_metadata", read_leaves, &embed, err);
    }
    if (status == CV_OK)
        status = read_attribute(&s->trailer, "_object_registry", read_objects, &embed, err);
    cv_snapshot_release(s);
    cv_store_close(store);
    if (status != CV_OK) {
        cv_embed_free(&embed);
        return status;
    }
    complete(&embed);
    *out = embed;
    return CV_OK;
}
