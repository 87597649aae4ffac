/* Room: tree. Lists a tree: one entry for each leaf, object and group. Reads only the first bytes
 * of a leaf, which contain the frame's header.
 *
 * Several files or entries may have the same key. The one of the lowest rank counts, as in
 * python-blosc2, which looks for a file first. */
#include "base/heap.h"
#include "frame/attributes.h"
#include "frame/snapshot.h"
#include "store/reading.h"
#include "tree/handle.h"
#include "tree/leaf.h"
#include "tree/names.h"
#include "tree/zip.h"

#include <caterva_tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Beginnings of files ----------------------------------------------------------------
 *
 * The beginnings of many members of a remote archive are read ahead in one wave. */

typedef struct cv_heads {
    const cv_tree *tree; /* set by the owner, with its members; the rest is zero */
    const cv_members *members;
    size_t first, stop;
    cv_buffer bytes;
    cv_store *again; /* read from this store, not from the bytes read ahead; or NULL */
    bool is_lenient; /* as in cv_zip_source */
    size_t *places;  /* position of each in `bytes`; stop - first + 1 entries */
} cv_heads;

/* Bytes. EACH: a local header and most frame headers. EXTRA: extra fields. AT_ONCE: a wave. */
enum { EACH = 4096, EXTRA = 256, AT_ONCE = 4 << 20 };

static size_t bytes_ahead(const cv_member *member)
{
    uint64_t room = member->end - member->header_pos;
    bool is_closed = member->method != CV_ZIP_STORED || member->flags & CV_ZIP_ENCRYPTED;
    uint64_t header = CV_ZIP_LOCAL_SIZE + strlen(member->path) + EXTRA;
    uint64_t size = is_closed && header < EACH ? header : EACH;
    return room < size ? (size_t)room : (size_t)size;
}

static cv_status ignore(void *context, size_t range, cv_error *err)
{
    (void)context, (void)range, (void)err;
    return CV_OK;
}

static cv_status read_wave(cv_heads *h, cv_error *err)
{
    size_t n = 0;
    const cv_arrivals arrivals = {.arrived = ignore, .watch = h->tree->watch};
    cv_store_range *ranges = cv_calloc(h->stop - h->first, sizeof *ranges);
    if (!ranges) return cv_fail_memory(err, h->stop - h->first, "a list of ranges");
    for (size_t i = h->first; i < h->stop; i++) {
        size_t at = h->places[i - h->first], size = h->places[i - h->first + 1] - at;
        const cv_store_range range = {.object = CV_FRAME_OBJECT,
                                      .pos = h->members->list[i].header_pos,
                                      .size = size,
                                      .dst = h->bytes.data + at};
        if (size > 0) ranges[n++] = range;
    }
    cv_status status = cv_store_read_many(h->tree->store, ranges, n, &arrivals, err);
    cv_free(ranges);
    return status;
}

static void heads_free(cv_heads *h)
{
    cv_buffer_free(&h->bytes);
    cv_free(h->places);
    h->places = NULL;
    h->first = h->stop = 0;
}

static cv_status plan(cv_heads *h, size_t first, cv_error *err)
{
    enum { MOST = AT_ONCE / EACH };
    size_t n = h->members->n - first;
    if (n > MOST) n = MOST;
    heads_free(h);
    h->first = h->stop = first;
    h->places = cv_calloc(n + 1, sizeof *h->places);
    if (!h->places) return cv_fail_memory(err, n * sizeof *h->places, "heads of members");
    for (size_t i = 0; i < n; i++)
        h->places[i + 1] = h->places[i] + bytes_ahead(&h->members->list[first + i]);
    CV_TRY(cv_buffer_resize(&h->bytes, h->places[n], err));
    h->stop = first + n;
    return CV_OK;
}

/* Reads beginnings ahead. If this fails, each member is read alone and reports its own error. */
static cv_status read_ahead(cv_heads *h, size_t first, cv_error *err)
{
    cv_error reason = {0};
    CV_TRY(plan(h, first, err));
    cv_status status = read_wave(h, &reason);
    if (status == CV_OK) return CV_OK;
    for (size_t i = 0; i <= h->stop - h->first; i++) h->places[i] = 0;
    if (status != CATERVA_ENOMEM && status != CATERVA_ESTOPPED) return CV_OK;
    if (err) *err = reason;
    return status;
}

static cv_status heads_get(cv_heads *h, const cv_member *member, uint8_t *dst, size_t size,
                           size_t *done, cv_error *err)
{
    size_t i = (size_t)(member - h->members->list);
    cv_zip_source source = cv_tree_source(h->tree);
    source.is_lenient = h->is_lenient;
    if (h->tree->form != CV_TREE_ARCHIVE || !h->tree->store)
        return cv_tree_head(h->tree, member, dst, size, done, err);
    if (h->again) {
        source.store = h->again;
        return cv_zip_directory_head(&source, member, dst, size, done, err);
    }
    if (i < h->first || i >= h->stop) CV_TRY(read_ahead(h, i, err));
    size_t at = h->places[i - h->first], n = h->places[i - h->first + 1] - at;
    if (n > 0) {
        source.ahead = h->bytes.data + at;
        source.ahead_pos = member->header_pos;
        source.ahead_size = n;
    }
    return cv_zip_directory_head(&source, member, dst, size, done, err);
}

/* ---- The catalog --------------------------------------------------------------------- */

typedef enum rank {
    RANK_ARRAY_FILE,
    RANK_LEAF_FILE,
    RANK_OTHER_FILE,
    RANK_OBJECT,
    RANK_EMBEDDED,
    RANK_REMOTE,
    RANK_GROUP
} rank;

/* Until the list is complete, key and path are positions in the text. */
typedef struct item {
    caterva_tree_entry entry;
    char kind_name[CV_KIND_NAME];
    rank rank;
    size_t key_at, path_at; /* path_at 0: no path */
} item;

typedef struct catalog {
    caterva_tree_list list; /* first: the part that the program sees */
    const caterva_tree_entry **pointers;
    item *items;
    size_t n, room;
    cv_buffer text; /* begins with a NUL */
} catalog;

typedef struct work {
    catalog *made;
    const cv_tree *tree;
    const cv_contents *contents;
    const cv_embed_bytes *bytes;
    const char *group;
    cv_heads heads;
    cv_buffer head;
    bool is_gone;     /* a writer has deleted the file that was classified last */
    cv_store *again;  /* second store of the archive, for doubtful bytes; or NULL */
    bool has_doubted; /* the archive's directory was read again before */
} work;

static cv_status keep_text(catalog *c, const char *text, size_t size, size_t *at,
                           cv_error *err)
{
    *at = c->text.size;
    CV_TRY(cv_buffer_append(&c->text, text, size, err));
    return cv_buffer_append(&c->text, "", 1, err);
}

/* Adds the key "/" + name (or name, if it begins with a slash). *out NULL: outside the group. */
static cv_status add(work *w, const char *name, size_t size, const item *like, item **out,
                     cv_error *err)
{
    catalog *c = w->made;
    size_t start = c->text.size;
    *out = NULL;
    if (name[0] != '/') CV_TRY(cv_buffer_append(&c->text, "/", 1, err));
    size_t at;
    CV_TRY(keep_text(c, name, size, &at, err));
    if (!cv_tree_is_within((const char *)c->text.data + start, w->group)) {
        c->text.size = start;
        return CV_OK;
    }
    item *grown = cv_grow(c->items, c->n, &c->room, sizeof *grown);
    if (!grown) return cv_fail_memory(err, c->room * sizeof *grown, "the list of a tree");
    c->items = grown;
    *out = &c->items[c->n++];
    **out = *like;
    (*out)->key_at = start;
    return CV_OK;
}

static cv_status add_group(work *w, const char *key, size_t size, cv_error *err)
{
    item *made;
    item group = {
        .entry = {.kind = CATERVA_TREE_GROUP}, .kind_name = "group", .rank = RANK_GROUP};
    group.entry.read_only = w->tree->form != CV_TREE_DIRECTORY;
    bool is_root = size == 0 || (size == 1 && key[0] == '/');
    return is_root ? CV_OK : add(w, key, size, &group, &made, err);
}

/* ---- Kinds, by the first bytes ---------------------------------------------------------- */

static void set_kind(item *it, caterva_tree_kind kind, const char *name)
{
    it->entry.kind = kind;
    (void)snprintf(it->kind_name, sizeof it->kind_name, "%s", name);
}

/* A place to read a beginning from. */
typedef struct source {
    const cv_member *member; /* NULL: an embedded leaf */
    uint64_t pos, size;
} source;

static cv_status read_head(work *w, const source *from, size_t size, cv_error *err)
{
    size_t done = 0;
    CV_TRY(cv_buffer_resize(&w->head, size, err));
    cv_status status = CV_OK;
    if (from->member) {
        status = heads_get(&w->heads, from->member, w->head.data, size, &done, err);
    } else {
        done = from->size < size ? (size_t)from->size : size;
        status = w->bytes->read(w->bytes->context, from->pos, w->head.data, done, err);
    }
    w->head.size = done;
    return status;
}

static cv_status read_header(work *w, const source *from, cv_frame_header *out, cv_error *err)
{
    enum { FIRST = 3072, MOST = 4 << 20 };
    uint32_t size;
    CV_TRY(read_head(w, from, FIRST, err));
    CV_TRY(cv_frame_header_peek(w->head.data, w->head.size, &size, err));
    if (size > w->head.size && size <= MOST) CV_TRY(read_head(w, from, size, err));
    if (size > w->head.size)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "a header of %u bytes, but only %zu exist",
                       size, w->head.size);
    return cv_frame_header_parse(w->head.data, size, out, err);
}

static bool is_frame(const cv_buffer *head)
{
    return head->size >= CV_FRAME_MAGIC_SIZE && memcmp(head->data + 2, "b2frame", 8) == 0;
}

typedef struct classifying {
    work *work;
    const source *from;
    item *item;
    bool is_far;    /* a member of an archive behind a URL */
    bool is_leaf;   /* it is a frame, or is named like one */
    int n_looks;    /* the third look bypasses all caches */
    bool is_closed; /* a member that is compressed or encrypted */
    bool is_file;   /* neither a leaf nor closed */
} classifying;

static bool should_be_array(const cv_member *member)
{
    return strcmp(member->path + cv_tree_stem(member->path), CV_TREE_ARRAY_SUFFIX) == 0;
}

/* Fails if a member has an array's name, but another kind. Then the member is read again, because
 * no checksum covers the header alone. */
static cv_status check_kind(const classifying *c, cv_error *err)
{
    bool is_array = strcmp(c->item->kind_name, "array") == 0;
    if (is_array || !c->is_far || c->n_looks > 2 || !should_be_array(c->from->member))
        return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1, "a %.30s, not an array", c->item->kind_name);
}

/* Classifies by the header. Anything that is neither a frame nor named like one is a file. */
static cv_status look_at_head(void *context, cv_error *err)
{
    classifying *c = context;
    work *w = c->work;
    cv_frame_header header;
    bool readable;
    w->head.size = 0;
    c->n_looks++;
    w->heads.is_lenient = c->n_looks > 2;
    cv_status status = read_header(w, c->from, &header, err);
    c->is_closed = status == CATERVA_EUNSUPPORTED && c->from->member && w->head.size == 0;
    c->is_file =
        cv_is_doubtful(status) && w->head.size > 0 && !c->is_leaf && !is_frame(&w->head);
    if (c->is_closed) return c->n_looks == 2 ? status : CV_OK;
    if (c->is_file) return CV_OK;
    CV_TRY(status);
    c->is_leaf = true;
    cv_kind_name(&header, c->item->kind_name, &readable);
    c->item->entry.kind = readable ? CATERVA_TREE_ARRAY : CATERVA_TREE_OTHER;
    return check_kind(c, err);
}

/* Looks again through a separate store: the tree's store may go on using its wrong bytes. */
static cv_status look_again(classifying *c, cv_error *err)
{
    work *w = c->work;
    if (!w->again) {
        CV_TRY(cv_wings.remote->part(w->tree->store, 0, UINT64_MAX, &w->again, err));
        w->again->watch = w->tree->watch;
    }
    const cv_doubted twice = {.store = w->again, .read = look_at_head, .context = c};
    w->heads.again = w->again;
    cv_status status = cv_store_doubting(&twice, err);
    w->heads.again = NULL;
    return status;
}

static cv_status set_other_kind(const classifying *c, cv_error *err)
{
    work *w = c->work;
    const char *kind = c->is_leaf || is_frame(&w->head) ? "damaged" : "file";
    if (c->is_closed)
        kind = c->from->member->flags & CV_ZIP_ENCRYPTED ? "encrypted" : "deflated";
    set_kind(c->item, CATERVA_TREE_OTHER, kind);
    return c->from->member ? CV_OK : cv_tree_confirm(w->tree, err);
}

/* Fetches the archive's directory, which has no checksum, again if a far member contradicts it.
 * Does so once for each list. */
static cv_status check_members(const classifying *c, cv_error *err)
{
    work *w = c->work;
    if (c->n_looks < 3 || w->has_doubted) return CV_OK;
    w->has_doubted = true;
    return cv_tree_check_members(w->tree, w->again, err);
}

/* Classifies a file or embedded leaf. *is_leaf: it is a frame, or should be by its name. Wrong
 * bytes make it "damaged"; any other failure ends the list. */
static cv_status classify(work *w, const source *from, item *it, bool *is_leaf, cv_error *err)
{
    cv_error reason = {0};
    const cv_tree *tree = w->tree;
    classifying c = {.work = w, .from = from, .item = it, .is_leaf = *is_leaf};
    if (from->member && from->member->is_unreadable) {
        set_kind(it, CATERVA_TREE_OTHER, "unreadable");
        return CV_OK;
    }
    c.is_far = from->member && tree->form == CV_TREE_ARCHIVE && tree->store;
    cv_status status = look_at_head(&c, &reason);
    if (c.is_far && cv_is_doubtful(status)) status = look_again(&c, &reason);
    *is_leaf = c.is_leaf;
    w->is_gone = status == CATERVA_ENOTFOUND && from->member &&
                 tree->form == CV_TREE_DIRECTORY; /* an archive has all members it lists */
    if (w->is_gone) return CV_OK;
    if (status != CV_OK && !cv_is_doubtful(status)) {
        if (err) *err = reason;
        return status;
    }
    bool is_known = status == CV_OK && !c.is_closed && !c.is_file;
    if (!is_known) CV_TRY(set_other_kind(&c, err));
    return check_members(&c, err);
}

static cv_status add_file(work *w, const cv_member *member, cv_error *err)
{
    item it = {.entry = {.stored_bytes = (int64_t)member->size}}, *made;
    source from = {.member = member};
    bool is_leaf = cv_tree_is_leaf(member->path);
    size_t stem = cv_tree_stem(member->path), path_at;
    if (strcmp(member->path, CV_TREE_EMBED) == 0) return CV_OK;
    bool is_at_root = strlen(CV_TREE_ATTRIBUTES) == stem;
    is_at_root = is_at_root && memcmp(member->path, CV_TREE_ATTRIBUTES, stem) == 0;
    bool is_attributes =
        is_at_root || cv_tree_is_named(member->path, stem, CV_TREE_ATTRIBUTES);
    if (is_leaf && is_attributes && w->tree->store) /* the name may be damaged */
        CV_TRY(classify(w, &from, &it, &is_leaf, err));
    if (is_leaf && is_at_root) return CV_OK;
    if (is_leaf && is_attributes)
        return add_group(w, member->path, cv_tree_parent(member->path, stem), err);

    size_t text = w->made->text.size;
    CV_TRY(add(w, member->path, stem, &it, &made, err)); /* nothing, outside the group */
    if (!made) return CV_OK;
    CV_TRY(classify(w, &from, &it, &is_leaf, err));
    size_t key_size = is_leaf ? stem : strlen(member->path);
    w->made->n--;
    w->made->text.size = text;
    if (w->is_gone) return CV_OK;
    it.rank = RANK_OTHER_FILE;
    if (is_leaf && cv_tree_is_leaf(member->path)) it.rank = RANK_LEAF_FILE;
    if (strcmp(member->path + stem, CV_TREE_ARRAY_SUFFIX) == 0) it.rank = RANK_ARRAY_FILE;
    bool is_array = strcmp(it.kind_name, "array") == 0; /* plain items: read-only */
    it.entry.read_only = w->tree->form != CV_TREE_DIRECTORY || !is_array;
    CV_TRY(add(w, member->path, key_size, &it, &made, err));
    if (!made) return CV_OK;
    size_t path_size = w->tree->form == CV_TREE_ZARR ? stem : strlen(member->path);
    CV_TRY(keep_text(w->made, member->path, path_size, &path_at, err));
    made->path_at = path_at;
    return CV_OK;
}

/* ---- Embedded leaves, references and objects ---------------------------------------- */

static cv_status add_embedded(work *w, const cv_embed_entry *e, cv_error *err)
{
    item it = {.entry = {.read_only = 1, .embedded = 1}, .rank = RANK_EMBEDDED}, *made;
    source from = {.pos = e->offset, .size = e->size};
    bool is_leaf = true;
    size_t size = strlen(e->key);
    if (cv_tree_is_named(e->key, size, CV_TREE_ATTRIBUTES))
        return add_group(w, e->key, cv_tree_parent(e->key, size), err);
    it.entry.stored_bytes = (int64_t)e->size;
    if (cv_tree_is_within(e->key, w->group)) CV_TRY(classify(w, &from, &it, &is_leaf, err));
    return add(w, e->key, size, &it, &made, err);
}

static cv_status add_entry(work *w, const cv_embed_entry *e, cv_error *err)
{
    item it = {.entry = {.read_only = 1}}, *made;
    if (e->what == CV_EMBED_LEAF) return add_embedded(w, e, err);
    bool is_object = e->what == CV_EMBED_OBJECT;
    it.rank = is_object ? RANK_OBJECT : RANK_REMOTE;
    it.entry.embedded = !is_object;
    set_kind(&it, CATERVA_TREE_OTHER, is_object ? e->kind : "remote");
    return add(w, e->key, strlen(e->key), &it, &made, err);
}

static cv_status says_table(const cv_snapshot *s, bool *found, cv_error *err)
{
    static const char ctable[] = "\xa6"
                                 "ctable";
    int64_t size = 0;
    cv_buffer value = {0};
    const cv_metalayer *kind =
        cv_metalayers_find(s->trailer.attributes, s->trailer.n_attributes, "kind");
    if (!kind) return CV_OK;
    CV_TRY(cv_frame_attribute_size(kind, &size, err));
    if (size != sizeof ctable - 1) return CV_OK;
    cv_status status = cv_frame_attribute(kind, &value, NULL, err);
    *found = status == CV_OK && memcmp(value.data, ctable, sizeof ctable - 1) == 0;
    cv_buffer_free(&value);
    return status;
}

/* Whether the member is the manifest of a table. In old trees, which have no registry of objects,
 * the manifest's kind states that a group is a table. A damaged manifest does not count. */
static cv_status is_table(const work *w, const cv_member *member, bool *found, cv_error *err)
{
    cv_store *store;
    cv_snapshot *s = NULL;
    cv_error why = {0};
    *found = false;
    cv_status status = cv_tree_store(w->tree, member, &store, &why);
    if (status == CV_OK) {
        status = cv_snapshot_load_any(store, &s, &why);
        if (status == CV_OK) status = says_table(s, found, &why);
        cv_snapshot_release(s);
        cv_store_close(store);
    }
    bool is_gone = status == CATERVA_ENOTFOUND && w->tree->form == CV_TREE_DIRECTORY;
    if (status == CV_OK || cv_is_doubtful(status) || is_gone) return CV_OK;
    if (err) *err = why;
    return status;
}

static cv_status add_old_table(work *w, const cv_member *member, cv_error *err)
{
    item it = {.entry = {.read_only = 1}, .rank = RANK_OBJECT}, *made;
    size_t stem = cv_tree_stem(member->path);
    bool found;
    if (!cv_tree_is_named(member->path, stem, "_meta")) return CV_OK;
    CV_TRY(is_table(w, member, &found, err));
    if (!found) return CV_OK;
    set_kind(&it, CATERVA_TREE_OTHER, "ctable");
    return add(w, member->path, cv_tree_parent(member->path, stem), &it, &made, err);
}

static cv_status add_all(work *w, cv_error *err)
{
    const cv_contents *c = w->contents;
    bool has_registry = false;
    size_t n_listed = w->tree->form == CV_TREE_DIRECTORY ? 0 : c->members.n;
    cv_watch_expect(w->tree->watch, (int64_t)(c->embed.n + n_listed) * CV_FILE_BYTES);
    for (size_t i = 0; i < c->members.n; i++) {
        CV_TRY(add_file(w, &c->members.list[i], err));
        CV_TRY(cv_watch_tick(w->tree->watch, CV_FILE_BYTES, err));
    }
    for (size_t i = 0; i < c->embed.n; i++) {
        CV_TRY(add_entry(w, &c->embed.list[i], err));
        CV_TRY(cv_watch_tick(w->tree->watch, CV_FILE_BYTES, err));
        has_registry = has_registry || c->embed.list[i].what == CV_EMBED_OBJECT;
    }
    for (size_t i = 0; i < c->members.n && !has_registry; i++)
        CV_TRY(add_old_table(w, &c->members.list[i], err));
    return CV_OK;
}

/* ---- The list ----------------------------------------------------------------------- */

/* Adds the groups of an entry, except those that also contain the entry before it. */
static cv_status add_parents_of(work *w, const char *key, size_t before_at, cv_error *err)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): an entry has its key */
    size_t size = strlen(key);
    while ((size = cv_tree_parent(key, size)) > 0) {
        const char *before = (const char *)w->made->text.data + before_at; /* text moves */
        if (strncmp(before, key, size) == 0 && before[size] == '/') break;
        CV_TRY(add_group(w, key, size, err));
    }
    return CV_OK;
}

static cv_status add_parents(work *w, cv_error *err)
{
    catalog *c = w->made;
    size_t n = c->n, before = 0;
    cv_buffer key = {0};
    cv_status status = CV_OK;
    for (size_t i = 0; i < n && status == CV_OK; i++) {
        size_t at = c->items[i].key_at;
        const char *text = (const char *)c->text.data + at;
        key.size = 0;
        status = cv_buffer_append(&key, text, strlen(text) + 1, err);
        if (status == CV_OK) status = add_parents_of(w, (const char *)key.data, before, err);
        before = at;
    }
    cv_buffer_free(&key);
    return status;
}

static void set_texts(catalog *c)
{
    for (size_t i = 0; i < c->n; i++) {
        item *it = &c->items[i];
        it->entry.key = (const char *)c->text.data + it->key_at;
        it->entry.path = it->path_at ? (const char *)c->text.data + it->path_at : NULL;
    }
}

static int compare(const void *x, const void *y)
{
    const item *a = x, *b = y;
    int order = cv_tree_compare(a->entry.key, b->entry.key);
    return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

/* Keeps one entry for each key. The inside of an object is read-only; its manifest is omitted. */
static void settle(catalog *c)
{
    size_t kept = 0;
    const char *object = NULL;
    if (c->n > 1) qsort(c->items, c->n, sizeof c->items[0], compare);
    for (size_t i = 0; i < c->n; i++) {
        item *it = &c->items[i];
        const char *key = it->entry.key;
        if (kept > 0 && strcmp(c->items[kept - 1].entry.key, key) == 0) continue;
        bool is_inside = object && cv_tree_is_within(key, object);
        if (is_inside && cv_tree_is_named(key, strlen(key), "_meta")) continue;
        if (is_inside) it->entry.read_only = 1;
        if (!is_inside) object = it->rank == RANK_OBJECT ? key : NULL;
        c->items[kept++] = *it;
    }
    c->n = kept;
}

static cv_status publish(catalog *c, cv_error *err)
{
    c->pointers = cv_malloc((c->n + 1) * sizeof *c->pointers);
    if (!c->pointers) return cv_fail_memory(err, c->n * sizeof *c->pointers, "a list");
    for (size_t i = 0; i < c->n; i++) {
        c->items[i].entry.struct_size = sizeof c->items[i].entry;
        c->items[i].entry.kind_name = c->items[i].kind_name;
        c->pointers[i] = &c->items[i].entry;
    }
    c->list.struct_size = sizeof c->list;
    c->list.n = c->n;
    c->list.entries = c->pointers;
    return CV_OK;
}

/* Whether members may be missing, because of a flipped bit in the directory or in embed.b2e. */
static bool is_suspect(const cv_tree *tree, const cv_contents *c)
{
    bool lacks_embed = tree->form == CV_TREE_ARCHIVE && !c->has_embed;
    bool is_empty = c->embed.n == 0 && c->members.n <= (c->has_embed ? 1 : 0);
    return lacks_embed || is_empty || c->members.n_replaced > 0;
}

/* Lists the group and everything below it; "" is the whole tree. CATERVA_ENOTFOUND: the group does
 * not exist. The tree's watch counts files and entries of embed.b2e. */
static cv_status make_catalog(const cv_tree *tree, const cv_contents *contents,
                              const cv_embed_bytes *bytes, const char *group,
                              const caterva_tree_list **out, cv_error *err)
{
    if (is_suspect(tree, contents)) CV_TRY(cv_tree_confirm(tree, err));
    catalog *c = cv_calloc(1, sizeof *c);
    if (!c) return cv_fail_memory(err, sizeof *c, "the list of a tree");
    work w = {.made = c, .tree = tree, .contents = contents, .bytes = bytes, .group = group};
    w.heads = (cv_heads){.tree = tree, .members = &contents->members};
    cv_status status = cv_buffer_append(&c->text, "", 1, err);
    if (status == CV_OK) status = add_all(&w, err);
    if (status == CV_OK) status = add_parents(&w, err);
    if (status == CV_OK) set_texts(c);
    if (status == CV_OK) settle(c);
    if (status == CV_OK) status = publish(c, err);
    cv_buffer_free(&w.head);
    heads_free(&w.heads);
    cv_store_close(w.again);
    if (status != CV_OK) {
        caterva_tree_list_release(&c->list);
        return status;
    }
    *out = &c->list;
    return CV_OK;
}

void caterva_tree_list_release(const caterva_tree_list *list)
{
    catalog *c = cv_unconst(list);
    if (!c) return;
    cv_buffer_free(&c->text);
    cv_free(c->items);
    cv_free(c->pointers);
    cv_free(c);
}

static bool has_embedded(const cv_contents *c)
{
    for (size_t i = 0; i < c->embed.n; i++)
        if (c->embed.list[i].what == CV_EMBED_LEAF) return true;
    return false;
}

static cv_status list(const cv_tree *tree, const cv_contents *contents, const char *group,
                      const caterva_tree_list **out, cv_error *err)
{
    cv_embed_bytes bytes = {0};
    if (!cv_contents_has_group(contents, group))
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "there is no group %.80s in %s", group,
                       tree->shown.text);
    if (has_embedded(contents)) CV_TRY(cv_embedded_open(tree, &bytes, err));
    cv_status status = make_catalog(tree, contents, &bytes, group, out, err);
    cv_embedded_close(&bytes);
    return status;
}

static cv_status look_and_list(const cv_tree *tree, const char *group,
                               const caterva_tree_list **out, cv_error *err)
{
    cv_contents own;
    const cv_contents *contents;
    cv_status status = cv_tree_look(tree, &own, &contents, err);
    if (status == CV_OK) status = list(tree, contents, group, out, err);
    cv_contents_free(&own);
    return status;
}

caterva_status caterva_tree_get_list(caterva_tree *tree, const char *group,
                                     const caterva_tree_list **out, caterva_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "out is NULL");
    *out = NULL;
    if (!group) group = "/";
    CV_TRY(cv_tree_check_key(group, err));
    cv_tree_handle_begin(tree);
    return cv_tree_handle_finish(tree, look_and_list(tree->tree, group, out, err));
}
