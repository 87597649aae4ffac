/* Room: tree. Opens trees, their files and embed.b2e, and finds leaves by key, in a directory
 * mostly without a listing. catalog.c determines the kind of a leaf. */
#include "tree/opened.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "format/frame_header.h"
#include "format/values.h"
#include "frame/attributes.h"
#include "frame/snapshot.h"
#include "store/descriptors.h"
#include "store/file.h"
#include "store/reading.h"
#include "store/zarr.h"
#include "tree/archive.h"
#include "tree/names.h"
#include "tree/zarr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- embed.b2e -----------------------------------------------------------------------------
 *
 * Its attributes are msgpack maps written by python-blosc2. Reading them checks every key, and that
 * every leaf lies within the existing bytes, but not what the leaves contain. */

/* Maximum bytes of a stored list; enough for 10^5 leaves. */
enum { LONGEST = 16 << 20 };

static cv_status keep_text(cv_embed *e, const uint8_t *text, size_t size, cv_error *err)
{
    size_t place = e->names.size;
    CV_TRY(cv_buffer_append(&e->places, &place, sizeof place, err));
    CV_TRY(cv_buffer_append(&e->names, text, size, err));
    return cv_buffer_append(&e->names, "", 1, err);
}

/* Adds an entry with two strings: its key, and its kind or "". */
static cv_status add(cv_embed *e, const cv_embed_entry *entry, const cv_token *key,
                     const cv_token *kind, cv_error *err)
{
    cv_embed_entry *grown = cv_grow(e->list, e->n, &e->room, sizeof *grown);
    if (!grown) return cv_fail_memory(err, e->room * sizeof *grown, "the leaves of a tree");
    e->list = grown;
    CV_TRY(keep_text(e, key->bytes, (size_t)key->number, err));
    CV_TRY(keep_text(e, kind->bytes, (size_t)kind->number, err));
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

typedef struct fields {
    int64_t offset, size; /* -1: missing */
    bool is_remote;
    cv_token kind;
} fields;

static cv_status fail_map(cv_error *err)
{
    return cv_fail(err, CATERVA_ECORRUPT, -1, "embed.b2e: the map of its leaves is damaged");
}

static int64_t byte_count(const cv_token *token)
{
    bool is_number = token->kind == CV_TOKEN_INT || token->kind == CV_TOKEN_UINT;
    return is_number && token->number <= INT64_MAX ? (int64_t)token->number : -1;
}

/* Reads the map of one leaf or object. Unknown fields are skipped. */
static cv_status read_fields(cv_tokens *t, fields *out, cv_error *err)
{
    *out = (fields){.offset = -1, .size = -1};
    cv_token map = cv_token_next(t);
    if (map.kind != CV_TOKEN_MAP) return fail_map(err);
    for (uint64_t i = 0; i < map.number && !t->bad; i++) {
        cv_token name = cv_token_next(t);
        cv_tokens at = *t;
        cv_token value = cv_token_next(&at);
        int64_t count = byte_count(&value);
        cv_tokens_skip(t);
        if (cv_token_is_text(&name, "offset") && count >= 0) out->offset = count;
        if (cv_token_is_text(&name, "length") && count >= 0) out->size = count;
        if (cv_token_is_text(&name, "urlbase")) out->is_remote = true;
        if (cv_token_is_text(&name, "kind") && value.kind == CV_TOKEN_TEXT) out->kind = value;
    }
    return t->bad ? fail_map(err) : CV_OK;
}

static cv_status check_key(const cv_token *key, cv_error *err)
{
    const char *text = (const char *)key->bytes;
    if (key->kind == CV_TOKEN_TEXT && key->number > 1 && text[0] == '/')
        return cv_tree_check_path(text + 1, (size_t)key->number - 1, err);
    return cv_fail(err, CATERVA_ECORRUPT, -1, "embed.b2e: a leaf without a key");
}

static cv_status add_leaf(cv_embed *e, const cv_token *key, const fields *f, cv_error *err)
{
    int64_t end;
    static const cv_token none;
    cv_embed_entry entry = {.what = f->is_remote ? CV_EMBED_REMOTE : CV_EMBED_LEAF};
    CV_TRY(check_key(key, err));
    if (f->is_remote) return add(e, &entry, key, &none, err);
    if (f->offset < 0 || f->size < 0 || !cv_add_i64(f->offset, f->size, &end) ||
        (uint64_t)end > e->size)
        return cv_fail(
            err, CATERVA_ECORRUPT, -1,
            "embed.b2e: leaf %.*s of %lld bytes at %lld does not lie within its %llu "
            "bytes",
            (int)cv_min_i64((int64_t)key->number, 100), (const char *)key->bytes,
            (long long)f->size, (long long)f->offset, (unsigned long long)e->size);
    entry.offset = (uint64_t)f->offset;
    entry.size = (uint64_t)f->size;
    return add(e, &entry, key, &none, err);
}

static cv_status add_object(cv_embed *e, const cv_token *key, const fields *f, cv_error *err)
{
    static const cv_token unknown = {
        .kind = CV_TOKEN_TEXT, .bytes = (const uint8_t *)"object", .number = 6};
    cv_embed_entry entry = {.what = CV_EMBED_OBJECT};
    CV_TRY(check_key(key, err));
    return add(e, &entry, key, f->kind.number > 0 ? &f->kind : &unknown, err);
}

static cv_status read_map(cv_tokens *t, cv_embed *e,
                          cv_status (*take)(cv_embed *, const cv_token *, const fields *,
                                            cv_error *),
                          cv_error *err)
{
    cv_token map = cv_token_next(t);
    if (map.kind != CV_TOKEN_MAP) return fail_map(err);
    for (uint64_t i = 0; i < map.number; i++) {
        fields f;
        cv_token key = cv_token_next(t);
        CV_TRY(read_fields(t, &f, err));
        CV_TRY(take(e, &key, &f, err));
    }
    return CV_OK;
}

/* Reads {"embed_map": {key: entry, ...}, "current_offset": n}. */
static cv_status read_leaves(cv_tokens *t, cv_embed *e, cv_error *err)
{
    cv_token map = cv_token_next(t);
    if (map.kind != CV_TOKEN_MAP) return fail_map(err);
    for (uint64_t i = 0; i < map.number && !t->bad; i++) {
        cv_token name = cv_token_next(t);
        if (cv_token_is_text(&name, "embed_map"))
            CV_TRY(read_map(t, e, add_leaf, err));
        else
            cv_tokens_skip(t);
    }
    return t->bad ? fail_map(err) : CV_OK;
}

static cv_status read_objects(cv_tokens *t, cv_embed *e, cv_error *err)
{
    return read_map(t, e, add_object, err);
}

typedef cv_status (*parse_fn)(cv_tokens *, cv_embed *, cv_error *);

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
                       "embed.b2e: %s has %lld bytes, but at most %d can be read", name,
                       (long long)size, LONGEST);
    cv_status status = cv_frame_attribute(attribute, &value, NULL, err);
    if (status == CV_OK) {
        cv_tokens tokens = cv_tokens_of(value.data, value.size);
        status = parse(&tokens, e, err);
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

/* ---- The bytes of a tree ------------------------------------------------------------- */

cv_zip_source cv_tree_source(const cv_tree *tree)
{
    return (cv_zip_source){.file = tree->file, .store = tree->store, .watch = tree->watch};
}

cv_status cv_tree_path(const cv_tree *tree, const char *member, char **out, cv_error *err)
{
    size_t size = strlen(tree->path) + strlen(member) + 2;
    *out = NULL;
    CV_TRY(cv_tree_check_file(member, err));
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%s/%s", tree->path, member);
    return CV_OK;
}

/* Fetches a small member behind a URL as a whole, together with its local header. */
static cv_status bring_small(cv_store *store, const cv_member *member, cv_error *err)
{
    enum { SMALL = 64 * 1024 };
    uint64_t size = member->end - member->header_pos;
    return size <= SMALL ? cv_store_bring(store, member->header_pos, size, err) : CV_OK;
}

/* Locates a member's data. If header and directory contradict each other, and cv_tree_confirm finds
 * the directory undamaged, the directory counts. While a tree is opened, the caller tries again. */
static cv_status locate(const cv_tree *tree, const cv_member *member, uint64_t *pos,
                        cv_error *err)
{
    size_t done;
    cv_error why = {.position = -1};
    cv_zip_source source = cv_tree_source(tree);
    source.is_once = tree->n_openings > 0;
    source.is_lenient = tree->n_openings > 1;
    cv_status status = cv_zip_directory_locate(&source, member, pos, NULL, 0, &done, &why);
    if (tree->store && cv_is_doubtful(status) && !source.is_once) {
        CV_TRY(cv_tree_confirm(tree, err));
        source.is_lenient = true;
        status = cv_zip_directory_locate(&source, member, pos, NULL, 0, &done, &why);
    }
    if (status != CV_OK && err) *err = why;
    return status;
}

static cv_status open_part(const cv_tree *tree, const cv_member *member, cv_store **out,
                           cv_error *err)
{
    uint64_t pos;
    if (tree->store) CV_TRY(bring_small(tree->store, member, err));
    CV_TRY(locate(tree, member, &pos, err));
    if (tree->store) return cv_wings.remote->part(tree->store, pos, member->size, out, err);
    return cv_store_file_part(tree->file, tree->path, pos, member->size, out, err);
}

static cv_status open_frame(const cv_tree *tree, const cv_member *member, cv_store **out,
                            cv_error *err)
{
    char *frame, *path;
    CV_TRY(cv_zarr_member_path(tree->dir, member->path, &frame, err));
    cv_status status = cv_tree_path(tree, frame, &path, err);
    cv_free(frame);
    CV_TRY(status);
    status = cv_store_file_open(path, 0, false, out, err);
    cv_free(path);
    return status;
}

cv_status cv_tree_store(const cv_tree *tree, const cv_member *member, cv_store **out,
                        cv_error *err)
{
    cv_journal journal = {.n = 0};
    if (tree->form == CV_TREE_ARCHIVE) return open_part(tree, member, out, err);
    if (tree->form == CV_TREE_ZARR) return open_frame(tree, member, out, err);
    if (!tree->skips_journal)
        CV_TRY(cv_journal_look(tree->dir, tree->shown.text, &journal, err));
    cv_status status = cv_journal_open(&journal, tree->path, member->path, out, err);
    cv_journal_free(&journal);
    return status;
}

cv_status cv_tree_embed_store(const cv_tree *tree, cv_store **out, cv_error *err)
{
    static const cv_member embed = {.path = CV_TREE_EMBED};
    if (tree->form == CV_TREE_FILE && tree->store)
        return cv_wings.remote->part(tree->store, 0, UINT64_MAX, out, err);
    if (tree->form == CV_TREE_FILE)
        return cv_store_file_part(tree->file, tree->path, 0, UINT64_MAX, out, err);
    if (tree->form == CV_TREE_DIRECTORY) return cv_tree_store(tree, &embed, out, err);
    const cv_member *member = cv_members_find(&tree->contents.members, CV_TREE_EMBED);
    if (member) return open_part(tree, member, out, err);
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "%s has no %s", tree->shown.text,
                   CV_TREE_EMBED);
}

static cv_status head_of_file(const cv_tree *tree, const cv_member *member, uint8_t *dst,
                              size_t size, size_t *done, cv_error *err)
{
    cv_file file;
    char *name = NULL;
    if (member->step) CV_TRY(cv_journal_file(member->step, &name, err));
    if (tree->form == CV_TREE_ZARR)
        CV_TRY(cv_zarr_member_path(tree->dir, member->path, &name, err));
    int error = cv_open_file(tree->dir, name ? name : member->path, CV_OPEN_READ, 0, &file);
    if (name && error == ENOENT) /* renamed meanwhile */
        error = cv_open_file(tree->dir, member->path, CV_OPEN_READ, 0, &file);
    cv_free(name);
    if (error) return cv_fail_open(err, error, member->path);
    error = cv_file_read(file, dst, size, 0, done);
    cv_file_close(&file);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot read %s", cv_show_path(member->path).text);
}

cv_status cv_tree_head(const cv_tree *tree, const cv_member *member, uint8_t *dst,
                       size_t size, size_t *done, cv_error *err)
{
    *done = 0;
    if (tree->form == CV_TREE_DIRECTORY || tree->form == CV_TREE_ZARR)
        return head_of_file(tree, member, dst, size, done, err);
    const cv_zip_source source = cv_tree_source(tree);
    return cv_zip_directory_head(&source, member, dst, size, done, err);
}

void cv_contents_free(cv_contents *contents)
{
    cv_members_free(&contents->members);
    cv_embed_free(&contents->embed);
    cv_journal_free(&contents->journal);
}

/* Compares embed.b2e with the checksum in the directory when a server first sends it, because the
 * lists in embed.b2e decide which leaves the tree has. */
static cv_status check_embed(const cv_tree *tree, cv_store *store, cv_error *err)
{
    enum { MOST = 1 << 20 };
    if (tree->form != CV_TREE_ARCHIVE || tree->n_openings != 1) return CV_OK;
    const cv_member *member = cv_members_find(&tree->contents.members, CV_TREE_EMBED);
    size_t size = (size_t)member->size;
    if (member->size > MOST) return CV_OK;
    uint8_t *bytes = cv_malloc(size + 1);
    if (!bytes) return cv_fail_memory(err, size, CV_TREE_EMBED);
    cv_status status =
        size > 0 ? cv_store_read(store, CV_FRAME_OBJECT, 0, bytes, size, err) : CV_OK;
    if (status == CV_OK && cv_crc32(0, bytes, size) != member->crc)
        status = cv_fail(err, CATERVA_ECORRUPT, (int64_t)member->header_pos,
                         "its checksum differs from that in the zip archive's directory");
    cv_free(bytes);
    return status;
}

/* Reads embed.b2e. The error names the file before the reason. */
cv_status cv_tree_read_embed(const cv_tree *tree, cv_contents *contents, cv_error *err)
{
    cv_store *store;
    cv_error reason = {0};
    cv_status status = cv_tree_embed_store(tree, &store, &reason);
    if (status == CV_OK) {
        status = check_embed(tree, store, &reason);
        if (status == CV_OK)
            status = cv_embed_read(store, &contents->embed, &reason);
        else
            cv_store_close(store);
    }
    contents->has_embed = status == CV_OK;
    if (status == CV_OK) return CV_OK;
    if (tree->form == CV_TREE_FILE) /* the file may be damaged data of any kind */
        (void)cv_fail(err, status, reason.position, "%s: %.200s", tree->shown.text,
                      reason.message);
    else
        (void)cv_fail(err, status, reason.position, "%s in %s: %.200s", CV_TREE_EMBED,
                      tree->shown.text, reason.message);
    if (err) err->sys_errno = reason.sys_errno;
    return status;
}

static bool is_embed(const cv_contents *contents)
{
    return cv_members_find(&contents->members, CV_TREE_EMBED) != NULL;
}

/* Adds committed files that do not have their names yet. Called before the listing, so that a file
 * renamed meanwhile is not missed. */
static cv_status add_committed(const cv_tree *tree, cv_contents *out, cv_error *err)
{
    for (size_t i = 0; i < out->journal.n; i++) {
        cv_member member = {0};
        const cv_journal_step *step = &out->journal.steps[i];
        if (cv_journal_has_file(tree->dir, step, &member.size))
            CV_TRY(
                cv_members_add(&out->members, &member, step->path, strlen(step->path), err));
    }
    return CV_OK;
}

static void set_steps(const cv_tree *tree, cv_contents *contents)
{
    for (size_t i = 0; i < contents->journal.n; i++) {
        uint64_t size;
        const cv_journal_step *step = &contents->journal.steps[i];
        const cv_member *found = cv_members_find(&contents->members, step->path);
        if (!found || !cv_journal_has_file(tree->dir, step, &size)) continue;
        cv_member *member = &contents->members.list[found - contents->members.list];
        member->step = step;
        member->size = size;
    }
}

static cv_status look_at_directory(const cv_tree *tree, cv_contents *out, cv_error *err)
{
    CV_TRY(cv_journal_look(tree->dir, tree->shown.text, &out->journal, err));
    CV_TRY(add_committed(tree, out, err));
    CV_TRY(cv_files_below(tree->dir, tree->shown.text, tree->watch, &out->members, err));
    cv_members_complete(&out->members);
    set_steps(tree, out);
    if (is_embed(out)) return cv_tree_read_embed(tree, out, err);
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "the directory %s is not a tree: it has no %s",
                   tree->shown.text, CV_TREE_EMBED);
}

cv_status cv_tree_look_near(const cv_tree *tree, const char *key, bool is_first,
                            cv_contents *own, cv_error *err)
{
    *own = (cv_contents){0};
    bool is_hidden = strstr(key, "/.") || cv_tree_check_groups(key + 1, true, NULL) != CV_OK;
    if (is_hidden || !key[1]) return look_at_directory(tree, own, err);
    CV_TRY(cv_journal_look(tree->dir, tree->shown.text, &own->journal, err));
    bool stands = own->journal.n > 0; /* the journal names files that are not renamed yet */
    cv_journal_free(&own->journal);
    own->journal = (cv_journal){.n = 0};
    if (stands) return look_at_directory(tree, own, err);
    CV_TRY(cv_files_near(tree->dir, tree->shown.text, tree->watch, key + 1, is_first,
                         &own->members, err));
    cv_members_complete(&own->members);
    return cv_tree_read_embed(tree, own, err);
}

cv_status cv_tree_look(const cv_tree *tree, cv_contents *own, const cv_contents **out,
                       cv_error *err)
{
    *own = (cv_contents){0};
    *out = &tree->contents;
    if (tree->form != CV_TREE_DIRECTORY) return CV_OK;
    *out = own;
    return look_at_directory(tree, own, err);
}

static bool is_same_member(const cv_member *a, const cv_member *b)
{
    return strcmp(a->path, b->path) == 0 && a->size == b->size &&
           a->header_pos == b->header_pos && a->flags == b->flags && a->method == b->method &&
           a->crc == b->crc;
}

/* Reads the members of the archive's directory, without hidden ones. */
static cv_status read_members(const cv_tree *tree, const cv_zip_source *source,
                              cv_members *out, cv_error *err)
{
    CV_TRY(cv_zip_directory_read(source, &tree->shown, out, err));
    cv_members_hide(out);
    return CV_OK;
}

cv_status cv_tree_check_members(const cv_tree *tree, cv_store *store, cv_error *err)
{
    cv_members now = {0};
    const cv_members *then = &tree->contents.members;
    const cv_zip_source source = {.store = store, .watch = tree->watch};
    cv_status status = read_members(tree, &source, &now, err);
    bool is_same = status == CV_OK && now.n == then->n && now.n_replaced == then->n_replaced;
    for (size_t i = 0; is_same && i < now.n; i++)
        is_same = is_same_member(&now.list[i], &then->list[i]);
    cv_members_free(&now);
    if (is_same || (status != CV_OK && !cv_is_doubtful(status))) return status;
    return cv_fail(err, CATERVA_EIO, -1,
                   "%s: the archive's directory was damaged in transit, or the archive was "
                   "replaced: open it again",
                   tree->shown.text);
}

static bool is_same_entry(const cv_embed_entry *a, const cv_embed_entry *b)
{
    return a->what == b->what && strcmp(a->key, b->key) == 0 && a->offset == b->offset &&
           a->size == b->size && strcmp(a->kind, b->kind) == 0;
}

/* As cv_tree_check_members, for the lists of a tree that is one file. */
static cv_status check_entries(const cv_tree *tree, cv_store *store, cv_error *err)
{
    cv_store *own;
    cv_embed now = {0};
    const cv_embed *then = &tree->contents.embed;
    CV_TRY(cv_wings.remote->part(store, 0, UINT64_MAX, &own, err));
    cv_status status = cv_embed_read(own, &now, err);
    bool is_same = status == CV_OK && now.n == then->n;
    for (size_t i = 0; is_same && i < now.n; i++)
        is_same = is_same_entry(&now.list[i], &then->list[i]);
    cv_embed_free(&now);
    if (is_same || (status != CV_OK && !cv_is_doubtful(status))) return status;
    return cv_fail(err, CATERVA_EIO, -1,
                   "%s: its list of arrays was damaged in transit, or the file was replaced: "
                   "open it again",
                   tree->shown.text);
}

typedef struct confirmation {
    const cv_tree *tree;
    cv_store *store; /* separate, because the tree's store keeps using its own bytes */
} confirmation;

static cv_status check_contents(void *context, cv_error *err)
{
    const confirmation *c = context;
    return (c->tree->form == CV_TREE_FILE ? check_entries
                                          : cv_tree_check_members)(c->tree, c->store, err);
}

cv_status cv_tree_confirm(const cv_tree *tree, cv_error *err)
{
    confirmation c = {.tree = tree};
    cv_tree *known = cv_unconst(tree);
    if (!tree->store || atomic_load(&known->is_confirmed)) return CV_OK;
    CV_TRY(cv_wings.remote->part(tree->store, 0, UINT64_MAX, &c.store, err));
    c.store->watch = tree->watch;
    const cv_doubted again = {
        .store = c.store, .read = check_contents, .context = &c, .begins = true};
    cv_status status = cv_store_read_again(&again, err);
    cv_store_close(c.store);
    if (status == CV_OK) atomic_store(&known->is_confirmed, true);
    return status;
}

/* ---- Opening ---------------------------------------------------------------------- */

/* Opens an archive. An archive of another program lacks embed.b2e. */
static cv_status open_archive(cv_tree *tree, cv_error *err)
{
    tree->form = CV_TREE_ARCHIVE;
    const cv_zip_source source = cv_tree_source(tree);
    CV_TRY(read_members(tree, &source, &tree->contents.members, err));
    return is_embed(&tree->contents) ? cv_tree_read_embed(tree, &tree->contents, err) : CV_OK;
}

/* Whether the path ends with ".b2z". The name counts, because other bytes may precede an archive,
 * or its first bytes may be lost. */
static bool has_archive_name(const char *path)
{
    size_t size = strlen(path);
    if (cv_is_url(path)) size = strcspn(path, "?");
    return size > 4 && memcmp(path + size - 4, ".b2z", 4) == 0;
}

static cv_status open_file(cv_tree *tree, cv_error *err)
{
    uint8_t head[CV_FRAME_MAGIC_SIZE];
    size_t done;
    const cv_zip_source source = cv_tree_source(tree);
    if (tree->store && has_archive_name(tree->path)) return open_archive(tree, err);
    CV_TRY(cv_zip_source_read(&source, 0, head, sizeof head, &done, err));
    bool is_frame = done == sizeof head && memcmp(head + 2, "b2frame", 8) == 0;
    bool is_archive = done >= 4 && head[0] == 'P' && head[1] == 'K';
    if (!is_frame && (is_archive || has_archive_name(tree->path)))
        return open_archive(tree, err);
    tree->form = CV_TREE_FILE;
    if (is_frame) {
        CV_TRY(cv_tree_read_embed(tree, &tree->contents, err));
        if (tree->contents.embed.is_store) return CV_OK;
    }
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "%s is not a tree: neither a zip archive (.b2z), a directory (.b2d) nor a "
                   "store of arrays (.b2e)",
                   tree->shown.text);
}

static cv_status open_directory(cv_tree *tree, cv_error *err)
{
    cv_file_info info;
    cv_zarr_name shard;
    tree->form = CV_TREE_DIRECTORY;
    int error = cv_open_dir(cv_dir_here, tree->path, 0, &tree->dir);
    if (error) return cv_fail_open(err, error, tree->path);
    cv_zarr_node node = cv_zarr_look(tree->dir, ".", &shard);
    if (node == CV_ZARR_ARRAY)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%s is an array, not a tree",
                       tree->shown.text);
    if (node == CV_ZARR_GROUP) {
        tree->form = CV_TREE_ZARR;
        return cv_zarr_members(tree->dir, tree->shown.text, &tree->contents.members, err);
    }
    error = cv_dir_get_info(tree->dir, CV_TREE_EMBED, &info);
    if (!error) return CV_OK;
    if (error != ENOENT)
        return cv_fail_sys(err, error, "cannot examine %s in %s", CV_TREE_EMBED,
                           tree->shown.text);
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "the directory %s is not a tree: it has no %s", tree->shown.text,
                   CV_TREE_EMBED);
}

static cv_status open_any(cv_tree *tree, cv_error *err)
{
    cv_file_info info;
    int error = cv_dir_get_info(cv_dir_here, tree->path, &info);
    if (error) return cv_fail_open(err, error, tree->shown.text);
    if (info.kind == CV_KIND_DIRECTORY) return open_directory(tree, err);
    if (info.kind != CV_KIND_FILE)
        return cv_fail(err, CATERVA_EIO, -1, "%s is not a regular file", tree->shown.text);
    error = cv_open_file(cv_dir_here, tree->path, CV_OPEN_READ, 0, &tree->file);
    return error ? cv_fail_open(err, error, tree->path) : open_file(tree, err);
}

static cv_status open_file_anew(void *context, cv_error *err)
{
    cv_tree *tree = context;
    cv_contents_free(&tree->contents);
    tree->contents = (cv_contents){0};
    tree->n_openings++;
    return open_file(tree, err);
}

/* Opens an archive or a single file at a URL; a remote directory cannot be listed. */
static cv_status open_url(cv_tree *tree, cv_session *session, cv_error *err)
{
    const cv_remote_calls *remote = cv_wings.remote;
    cv_session *own = NULL;
    CV_TRY(cv_check_built(remote, "CATERVA_REMOTE", err));
    if (!session) CV_TRY(remote->begin(tree->path, NULL, &own, err));
    cv_status status =
        remote->open(session ? session : own, tree->path, 0, tree->watch, &tree->store, err);
    if (own) remote->release(own);
    CV_TRY(status);
    tree->store->watch = tree->watch;
    const cv_doubted file = {
        .store = tree->store, .read = open_file_anew, .context = tree, .begins = true};
    if (!tree->store->has_chunk_objects) return cv_store_doubting(&file, err);
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "%s is a directory, not the archive of a tree", tree->shown.text);
}

static void name(cv_tree *tree, const char *path)
{
    tree->opened = cv_os_now();
    tree->path = cv_is_url(path) ? cv_strdup(path) : cv_os_absolute(path);
    tree->shown = cv_show_path(path);
}

cv_status cv_tree_open(const char *path, cv_session *session, cv_watch *watch, cv_tree **out,
                       cv_error *err)
{
    cv_tree *tree = cv_calloc(1, sizeof *tree);
    if (!tree) return cv_fail_memory(err, sizeof *tree, "a tree");
    name(tree, path);
    tree->watch = watch;
    cv_status status = !tree->path       ? cv_fail_memory(err, strlen(path), "a path")
                       : cv_is_url(path) ? open_url(tree, session, err)
                                         : open_any(tree, err);
    if (status != CV_OK) {
        cv_tree_close(tree);
        return status;
    }
    tree->watch = NULL;
    tree->n_openings = 0;
    if (tree->store) tree->store->watch = NULL;
    *out = tree;
    return CV_OK;
}

/* Opens an archive, known by its first bytes or its name, that may have lost its directory. */
static cv_status open_damaged_file(cv_tree *tree, cv_error *reason, cv_error *err)
{
    uint8_t head[2] = {0};
    size_t done;
    const cv_zip_source source = cv_tree_source(tree);
    tree->form = CV_TREE_ARCHIVE;
    CV_TRY(cv_zip_source_read(&source, 0, head, sizeof head, &done, err));
    if (!has_archive_name(tree->path) && (head[0] != 'P' || head[1] != 'K'))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%s is not a zip archive (.b2z)",
                       tree->shown.text);
    cv_members *members = &tree->contents.members;
    cv_status status = cv_zip_directory_read(&source, &tree->shown, members, reason);
    if (status == CV_OK) return cv_zip_settle(&source, members, err);
    bool is_all = false;
    if (status == CATERVA_ECORRUPT) CV_TRY(cv_zip_rescue(&source, members, &is_all, err));
    tree->lacks_members = !is_all;
    if (members->n > 0) return CV_OK;
    if (err) *err = *reason;
    return status;
}

static cv_status open_damaged(cv_tree *tree, cv_error *reason, cv_error *err)
{
    cv_file_info info;
    int error = cv_dir_get_info(cv_dir_here, tree->path, &info);
    if (error) return cv_fail_open(err, error, tree->path);
    if (info.kind != CV_KIND_DIRECTORY) {
        error = cv_open_file(cv_dir_here, tree->path, CV_OPEN_READ, 0, &tree->file);
        if (error) return cv_fail_open(err, error, tree->path);
        return open_damaged_file(tree, reason, err);
    }
    cv_status status = open_directory(tree, reason);
    if (tree->form == CV_TREE_ZARR)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%s is a Zarr group: repair the tree from which it was made, and make "
                       "it again",
                       tree->shown.text);
    if (status == CV_OK || status == CATERVA_EUNSUPPORTED) return CV_OK;
    if (err) *err = *reason;
    return status;
}

cv_status cv_tree_open_damaged(const char *path, cv_tree **out, cv_error *reason,
                               cv_error *err)
{
    *reason = (cv_error){.code = CATERVA_OK, .position = -1};
    CV_TRY(cv_refuse_url(path, err));
    cv_tree *tree = cv_calloc(1, sizeof *tree);
    if (!tree) return cv_fail_memory(err, sizeof *tree, "a tree");
    name(tree, path);
    cv_status status = tree->path ? open_damaged(tree, reason, err)
                                  : cv_fail_memory(err, strlen(path), "a path");
    if (status != CV_OK) {
        cv_tree_close(tree);
        return status;
    }
    *out = tree;
    return CV_OK;
}

cv_status cv_tree_lock(cv_tree *tree, cv_error *err)
{
    if (tree->form == CV_TREE_ZARR)
        return cv_fail(err, CATERVA_EREADONLY, -1,
                       "%s is a Zarr group, which is only read: write the tree from which it "
                       "was made",
                       tree->shown.text);
    if (tree->form != CV_TREE_DIRECTORY)
        return cv_fail(err, CATERVA_EREADONLY, -1,
                       "%s never changes in place: unpack it to write", tree->shown.text);
    int error = cv_file_lock(cv_dir_as_file(tree->dir));
    if (error) return cv_fail_lock(err, error, tree->path);
    tree->writable = true;
    return cv_journal_finish(tree->dir, tree->path, tree->shown.text, err);
}

cv_status cv_tree_check_writable(const cv_tree *tree, cv_error *err)
{
    if (!tree->writable)
        return cv_fail(err, CATERVA_EREADONLY, -1, "the tree %s is open for reading only",
                       tree->shown.text);
    if (!cv_os_is_other_process(tree->opened)) return CV_OK;
    return cv_fail(err, CATERVA_EBUSY, -1,
                   "the tree %s is open for writing in the process that forked this one",
                   tree->shown.text);
}

static cv_status add_member(cv_buffer *all, const cv_member *m, cv_error *err)
{
    const uint64_t numbers[] = {m->size, m->header_pos, m->crc};
    CV_TRY(cv_buffer_append(all, m->path, strlen(m->path) + 1, err));
    return cv_buffer_append(all, numbers, sizeof numbers, err);
}

/* Returns a stamp that differs if a one-file tree, whose leaves have no checksums, is replaced. */
static cv_stamp stamp_of(const cv_tree *tree)
{
    cv_file_info info;
    if (tree->form == CV_TREE_ARCHIVE) return (cv_stamp){0};
    if (tree->store) return cv_store_stamp(tree->store);
    if (cv_file_get_info(tree->file, &info)) return (cv_stamp){0};
    return (cv_stamp){.object = info.inode, .time = info.changed_ns, .size = info.size};
}

cv_status cv_tree_identify(const cv_tree *tree, uint8_t out[CV_STATE_ID], cv_error *err)
{
    memset(out, 0, CV_STATE_ID);
    if (tree->form == CV_TREE_DIRECTORY || tree->form == CV_TREE_ZARR) return CV_OK;
    cv_buffer all = {0};
    cv_stamp stamp = stamp_of(tree);
    const cv_members *members = &tree->contents.members;
    cv_status status = cv_buffer_append(&all, &stamp, sizeof stamp, err);
    for (size_t i = 0; i < members->n && status == CV_OK; i++)
        status = add_member(&all, &members->list[i], err);
    const cv_state_part part = {all.data, all.size};
    if (status == CV_OK) cv_state_id(&part, 1, out);
    cv_buffer_free(&all);
    return status;
}

void cv_tree_close(cv_tree *tree)
{
    if (!tree) return;
    if (tree->writable && cv_os_has_forked(tree->opened)) /* children share the open file */
        cv_file_unlock(cv_dir_as_file(tree->dir));
    cv_contents_free(&tree->contents);
    cv_store_close(tree->store);
    cv_file_close(&tree->file);
    cv_dir_close(&tree->dir);
    cv_free(tree->path);
    cv_free(tree);
}

/* ---- Finding leaves by key -------------------------------------------------------------- */

/* Makes "g/x.b2nd" from "/g/x". Owned. */
static cv_status file_of(const char *key, const char *suffix, char **out, cv_error *err)
{
    size_t size = strlen(key) + CV_TREE_LONGEST_SUFFIX + 1;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%s%s", key + 1, suffix);
    return CV_OK;
}

static cv_status take_path(cv_leaf *out, char *path, const cv_member *member)
{
    *out = (cv_leaf){.path = path, .member = *member};
    out->member.path = path;
    return CV_OK;
}

static bool is_path_of(const char *path, const char *key)
{
    size_t stem = cv_tree_stem(path);
    return strlen(key + 1) == stem && memcmp(key + 1, path, stem) == 0;
}

static cv_status look_at_file(const cv_tree *tree, const char *path, cv_file_info *info,
                              bool *found, cv_error *err)
{
    int error = cv_dir_get_info(tree->dir, path, info);
    if (!error && !cv_dir_is_spelled(tree->dir, path)) error = ENOENT;
    bool is_none =
        error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG;
    *found = !error && info->kind == CV_KIND_FILE;
    if (is_none) { /* missing, or a broken link */
        bool is_link =
            cv_dir_get_link_info(tree->dir, path, info) == 0 && info->kind == CV_KIND_LINK;
        return is_link ? cv_fail_unreadable(path, err) : CV_OK;
    }
    if (!error && !*found && info->kind != CV_KIND_DIRECTORY)
        return cv_fail_unreadable(path, err);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot examine %.80s in %.136s", path, tree->shown.text);
}

/* Whether a symbolic link is among the directories of the path: such are not followed. */
static bool is_behind_link(const cv_tree *tree, char *path)
{
    bool is_link = false;
    cv_file_info info;
    for (char *slash = path; !is_link && (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        is_link =
            cv_dir_get_link_info(tree->dir, path, &info) == 0 && info.kind == CV_KIND_LINK;
    }
    return is_link;
}

static cv_status find_in_directory(const cv_tree *tree, const char *key, cv_leaf *out,
                                   cv_error *err)
{
    for (int i = 0; i < CV_TREE_SUFFIXES; i++) {
        char *path;
        cv_file_info info;
        bool found;
        CV_TRY(file_of(key, cv_tree_suffixes[i], &path, err));
        if (i == 0 && is_behind_link(tree, path)) {
            cv_free(path);
            return CATERVA_ENOTFOUND;
        }
        cv_status status = look_at_file(tree, path, &info, &found, err);
        if (status == CV_OK && found) {
            cv_member member = {.size = info.size};
            return take_path(out, path, &member);
        }
        cv_free(path);
        CV_TRY(status);
    }
    return CATERVA_ENOTFOUND;
}

/* Finds a file of an unfinished commit by its new name. */
static cv_status find_committed(const cv_tree *tree, const char *key, cv_leaf *out,
                                cv_error *err)
{
    cv_journal journal;
    cv_status status = CATERVA_ENOTFOUND;
    CV_TRY(cv_journal_look(tree->dir, tree->shown.text, &journal, err));
    for (size_t i = 0; i < journal.n && status == CATERVA_ENOTFOUND; i++) {
        cv_member member = {0};
        const cv_journal_step *step = &journal.steps[i];
        if (!is_path_of(step->path, key)) continue;
        if (!cv_journal_has_file(tree->dir, step, &member.size)) continue;
        char *path = cv_strdup(step->path);
        status = path ? take_path(out, path, &member)
                      : cv_fail_memory(err, strlen(step->path), "a path");
    }
    cv_journal_free(&journal);
    return status;
}

/* Sets *out to the member of the key, or to NULL. */
static cv_status find_member(const cv_contents *contents, const char *key,
                             const cv_member **out, cv_error *err)
{
    char *path;
    const cv_member *found = NULL;
    for (int i = 0; i < CV_TREE_SUFFIXES && !found; i++) {
        CV_TRY(file_of(key, cv_tree_suffixes[i], &path, err));
        found = cv_members_find(&contents->members, path);
        cv_free(path);
    }
    for (size_t i = 0; i < contents->members.n && !found; i++) {
        /* A leaf may have another suffix. Opening it checks whether it is a frame. */
        const cv_member *other = &contents->members.list[i];
        if (is_path_of(other->path, key) && strcmp(other->path, CV_TREE_EMBED) != 0)
            found = other;
    }
    *out = found;
    return CV_OK;
}

bool cv_contents_has_group(const cv_contents *c, const char *key)
{
    for (size_t i = 0; i < c->members.n; i++)
        if (cv_tree_is_path_in(c->members.list[i].path, key + 1)) return true;
    for (size_t i = 0; i < c->embed.n; i++)
        if (cv_tree_is_within(c->embed.list[i].key, key)) return true;
    return !key[1];
}

static cv_status refuse(const cv_tree *tree, const cv_contents *c, const char *key,
                        cv_error *err)
{
    const char *name = tree->shown.text;
    const cv_embed_entry *object = cv_embed_find(&c->embed, CV_EMBED_OBJECT, key);
    if (object)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%.80s in %s is a %.30s, not an array",
                       key, name, object->kind);
    if (cv_embed_find(&c->embed, CV_EMBED_REMOTE, key))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%.80s in %s is a reference to an array elsewhere", key, name);
    if (cv_contents_has_group(c, key))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%.80s in %s is a group, not an array",
                       key, name);
    if (cv_members_find(&c->members, key + 1))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%.80s in %s is a file, not an array",
                       key, name);
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "%.80s does not exist in %s", key, name);
}

/* Finds the member or embedded leaf of the key. If none exists, *out has no path, not embedded. */
static cv_status find_stored(const cv_contents *c, const char *key, cv_leaf *out,
                             cv_error *err)
{
    const cv_member *member;
    *out = (cv_leaf){.is_embedded = false};
    CV_TRY(find_member(c, key, &member, err));
    if (member) {
        char *path = cv_strdup(member->path);
        if (!path) return cv_fail_memory(err, strlen(member->path), "a path");
        return take_path(out, path, member);
    }
    const cv_embed_entry *leaf = cv_embed_find(&c->embed, CV_EMBED_LEAF, key);
    if (leaf)
        *out = (cv_leaf){.is_embedded = true, .offset = leaf->offset, .size = leaf->size};
    return CV_OK;
}

cv_status cv_tree_find(const cv_tree *tree, const char *key, cv_leaf *out, cv_error *err)
{
    cv_contents own;
    const cv_contents *contents;
    CV_TRY(cv_tree_check_key(key, err));
    if (tree->form == CV_TREE_DIRECTORY && key[1]) {
        cv_status status = find_in_directory(tree, key, out, err);
        if (status == CATERVA_ENOTFOUND) status = find_committed(tree, key, out, err);
        if (status != CATERVA_ENOTFOUND) return status;
    }
    cv_error why = {.position = -1};
    bool is_directory = tree->form == CV_TREE_DIRECTORY;
    cv_status status = is_directory ? cv_tree_look_near(tree, key, true, &own, &why)
                                    : cv_tree_look(tree, &own, &contents, &why);
    if (is_directory) contents = &own;
    if (status == CV_OK) status = find_stored(contents, key, out, &why);
    if (status == CV_OK && !out->path && !out->is_embedded)
        status = refuse(tree, contents, key, &why);
    cv_contents_free(&own);
    if (status == CV_OK) return CV_OK;
    if (status == CATERVA_ENOTFOUND || cv_is_doubtful(status))
        CV_TRY(cv_tree_confirm(tree, err));
    if (err) *err = why;
    return status;
}

cv_status cv_tree_check_own(const cv_tree *tree, const char *key, cv_error *err)
{
    cv_store *store;
    cv_embed embed = {0};
    CV_TRY(cv_tree_embed_store(tree, &store, err));
    cv_status status = cv_embed_read(store, &embed, err);
    for (size_t i = 0; i < embed.n && status == CV_OK; i++) {
        const cv_embed_entry *e = &embed.list[i];
        if (e->what == CV_EMBED_OBJECT && cv_tree_is_within(key, e->key))
            status = cv_fail(err, CATERVA_EREADONLY, -1,
                             "%.80s is part of a %.30s in %s and is read-only", key, e->kind,
                             tree->shown.text);
    }
    cv_embed_free(&embed);
    return status;
}

void cv_leaf_free(cv_leaf *leaf) { cv_free(leaf->path); }

/* ---- Attributes of groups ----------------------------------------------------------- */

bool cv_tree_has_file(const cv_tree *tree, const char *key)
{
    cv_leaf leaf = {0};
    bool found = find_in_directory(tree, key, &leaf, NULL) == CV_OK;
    cv_leaf_free(&leaf);
    return found;
}

bool cv_tree_has_leaf(const cv_tree *tree, const char *key, const char *but)
{
    bool found = false;
    for (int i = 0; i < CV_TREE_SUFFIXES && !found; i++) {
        char *path;
        cv_file_info info;
        if (but && strcmp(cv_tree_suffixes[i], but) == 0) continue;
        if (file_of(key, cv_tree_suffixes[i], &path, NULL) != CV_OK) return true;
        found = cv_dir_get_link_info(tree->dir, path, &info) != ENOENT;
        cv_free(path);
    }
    return found;
}

/* Makes "/g/__vlmeta__". */
static cv_status attributes_key(const char *group, char **out, cv_error *err)
{
    size_t size = strlen(group) + sizeof CV_TREE_ATTRIBUTES + 1;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a key");
    (void)snprintf(*out, size, "%s/%s", group[1] ? group : "", CV_TREE_ATTRIBUTES);
    return CV_OK;
}

cv_status cv_tree_attributes_path(const char *group, char **out, cv_error *err)
{
    char *key;
    CV_TRY(attributes_key(group, &key, err));
    cv_status status = file_of(key, ".b2f", out, err);
    cv_free(key);
    return status;
}

/* Finds a file by its name, also one that a commit has not renamed yet. */
static cv_status find_path(const cv_tree *tree, char *path, bool *found, cv_leaf *out,
                           cv_error *err)
{
    cv_file_info info;
    cv_journal journal;
    cv_member member = {0};
    CV_TRY(look_at_file(tree, path, &info, found, err));
    member.size = *found ? info.size : 0;
    if (!*found) {
        CV_TRY(cv_journal_look(tree->dir, tree->shown.text, &journal, err));
        const cv_journal_step *step = cv_journal_find(&journal, path);
        *found = step && cv_journal_has_file(tree->dir, step, &member.size);
        cv_journal_free(&journal);
    }
    return *found ? take_path(out, path, &member) : CV_OK;
}

static bool has_group(const cv_tree *tree, const cv_contents *c, const char *group)
{
    cv_file_info info;
    if (cv_contents_has_group(c, group)) return true;
    return tree->form == CV_TREE_DIRECTORY &&
           cv_dir_get_link_info(tree->dir, group + 1, &info) == 0 &&
           info.kind == CV_KIND_DIRECTORY && cv_dir_is_spelled(tree->dir, group + 1);
}

static cv_status find_attributes(const cv_tree *tree, const char *group, const char *key,
                                 cv_leaf *out, cv_error *err)
{
    cv_contents own = {.has_embed = false};
    const cv_contents *contents = &tree->contents;
    if (tree->form == CV_TREE_DIRECTORY) { /* avoids listing all files */
        cv_store *store;
        CV_TRY(cv_tree_embed_store(tree, &store, err));
        CV_TRY(cv_embed_read(store, &own.embed, err));
        contents = &own;
    }
    cv_status status = find_stored(contents, key, out, err);
    if (status == CV_OK && !out->path && !out->is_embedded &&
        !has_group(tree, contents, group))
        status = cv_fail(err, CATERVA_ENOTFOUND, -1, "there is no group %.80s in %s", group,
                         tree->shown.text);
    cv_contents_free(&own);
    return status;
}

cv_status cv_tree_find_attributes(const cv_tree *tree, const char *group, cv_leaf *out,
                                  cv_error *err)
{
    char *key, *path = NULL;
    bool found = false;
    *out = (cv_leaf){.is_embedded = false};
    CV_TRY(cv_tree_check_key(group, err));
    if (tree->form == CV_TREE_DIRECTORY) {
        CV_TRY(cv_tree_attributes_path(group, &path, err));
        cv_status status = find_path(tree, path, &found, out, err);
        if (!found) cv_free(path);
        if (status != CV_OK || found) return status;
    }
    CV_TRY(attributes_key(group, &key, err));
    cv_error why = {.position = -1};
    cv_status status = find_attributes(tree, group, key, out, &why);
    cv_free(key);
    bool is_none = status == CV_OK && !out->path && !out->is_embedded;
    if (is_none || status == CATERVA_ENOTFOUND) CV_TRY(cv_tree_confirm(tree, err));
    if (status != CV_OK && err) *err = why;
    return status;
}
