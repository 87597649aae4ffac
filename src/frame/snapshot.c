/* Room: frame. One committed state of a frame, loaded and checked once: header, metalayer, grid,
 * trailer, position of the index; and states derived from it with another shape, attributes or
 * metalayers. Later code trusts a snapshot. Reads neither chunks nor the index. */
#include "frame/snapshot.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/os.h"
#include "format/chunk_header.h"
#include "frame/attributes.h"
#include "store/reading.h"

#include <assert.h>
#include <string.h>

/* ---- Which frames are arrays ----
 *
 * A frame is an array if it has the array's metalayer and none that says its items are elsewhere
 * (expressions, proxies), or if it is a plain frame of fixed-size items. Others are refused with
 * their name. */

typedef struct kind {
    const char *metalayer;
    const char *what;
} kind;

/* Objects with b2nd whose chunks are empty or partly missing. */
static const kind stand_ins[] = {
    {"b2o", "an object without items of its own"},
    {"LazyArray", "a lazy expression"},
    {"proxy-source", "a proxy"},
};

/* Objects without b2nd, the outer one first: a remote store is also a tree, and a listarray is also
 * a batcharray or a vlarray. */
static const kind objects[] = {
    {"b2remote_store", "a remote store"},         {"b2tree", "a tree of arrays"},
    {"b2dict", "a dictionary of arrays"},         {"b2embed", "a store of arrays"},
    {"listarray", "an array of lists"},           {"batcharray", "an array of batches"},
    {"vlarray", "an array of items of any size"}, {"__pack_tensor__", "a packed tensor"},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Gets python-blosc2's name, the text behind "kind" in a `b2o`. Returns the text's length. */
static int find_name(const cv_metalayer *layer, const char **out)
{
    static const char key[] = "\xa4kind";
    enum { KEY = sizeof key - 1, FIXSTR = 0xa0, LONGEST = 0x1f };
    for (uint32_t i = 0; i + KEY < layer->size; i++) {
        if (memcmp(layer->data + i, key, KEY) != 0) continue;
        uint8_t marker = layer->data[i + KEY];
        int size = marker & LONGEST;
        if ((marker & ~LONGEST) != FIXSTR || layer->size - i - KEY - 1 < (uint32_t)size)
            break;
        *out = (const char *)layer->data + i + KEY + 1;
        return size;
    }
    return 0;
}

static cv_status refuse(const kind *k, const cv_metalayer *layer, cv_error *err)
{
    const char *name = "";
    int size = find_name(layer, &name);
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "%s (python-blosc2's \"%s\"%s%.*s), not an n-d array", k->what,
                   k->metalayer, size > 0 ? ": " : "", size, name);
}

static cv_status check(const kind *kinds, size_t n_kinds, const cv_metalayer *layers, int n,
                       cv_error *err)
{
    for (size_t i = 0; i < n_kinds; i++) {
        const cv_metalayer *layer = cv_metalayers_find(layers, n, kinds[i].metalayer);
        if (layer) return refuse(&kinds[i], layer, err);
    }
    return CV_OK;
}

/* CATERVA_EUNSUPPORTED, with the name, if a metalayer marks another object. `is_array`: the header
 * also has the array's metalayer. */
static cv_status kind_check(const cv_frame_header *header, bool is_array, cv_error *err)
{
    const cv_metalayer *layers = header->metalayers;
    int n = header->n_metalayers;
    CV_TRY(check(stand_ins, COUNT(stand_ins), layers, n, err));
    return is_array ? CV_OK : check(objects, COUNT(objects), layers, n, err);
}

static cv_status check_plain(const cv_frame_header *h, cv_error *err)
{
    if (h->vl_blocks)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "a Blosc2 frame of variable-length blocks, not an n-d array");
    if (h->nbytes > 0 && (h->variable_chunks || h->chunk_size == 0))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "a Blosc2 frame of variable-size chunks, not an n-d array");
    if (h->nbytes % h->type_size != 0 || h->chunk_size % h->type_size != 0)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "a Blosc2 frame of %lld bytes in chunks of %d, not multiples of the "
                       "item size %d",
                       (long long)h->nbytes, h->chunk_size, h->type_size);
    if (h->chunk_size > CV_MAX_BLOCK_BYTES)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "a Blosc2 frame with chunks of %d bytes, at most %lld can be read",
                       h->chunk_size, (long long)CV_MAX_BLOCK_BYTES);
    return CV_OK;
}

static const cv_metalayer *find_kind(const kind *kinds, size_t n_kinds,
                                     const cv_frame_header *h)
{
    const cv_metalayer *found = NULL;
    for (size_t i = 0; i < n_kinds && !found; i++)
        found = cv_metalayers_find(h->metalayers, h->n_metalayers, kinds[i].metalayer);
    return found;
}

void cv_kind_name(const cv_frame_header *h, char name[CV_KIND_NAME], bool *readable)
{
    const char *word = NULL;
    int size = 0;
    bool is_array = cv_metalayers_find(h->metalayers, h->n_metalayers, "b2nd") ||
                    cv_metalayers_find(h->metalayers, h->n_metalayers, "caterva");
    const cv_metalayer *layer = find_kind(stand_ins, COUNT(stand_ins), h);
    if (!layer && !is_array) layer = find_kind(objects, COUNT(objects), h);
    if (layer) size = find_name(layer, &word);
    if (size == 0) word = layer ? layer->name : is_array ? "array" : "schunk";
    if (size == 0) size = (int)strlen(word);
    memcpy(name, word, (size_t)size); /* at most 31 bytes */
    name[size] = 0;
    *readable = !layer && (is_array || check_plain(h, NULL) == CV_OK);
}

/* Describes a plain frame, of equal chunks of fixed-size items, as a 1-d array. Each chunk counts
 * as one block, because the real blocks differ between chunks. CATERVA_EUNSUPPORTED, with the
 * reason, for other frames. */
static cv_status kind_plain(const cv_frame_header *h, cv_array_meta *out, cv_error *err)
{
    CV_TRY(check_plain(h, err));
    int32_t chunk = h->chunk_size / h->type_size;
    if (chunk == 0) chunk = 1; /* a frame without chunks */
    *out = (cv_array_meta){
        .plain = true,
        .ndim = 1,
        .shape = {h->nbytes / h->type_size},
        .chunk_shape = {chunk},
        .block_shape = {chunk},
    };
    return CV_OK;
}

/* ---- The header of a far frame ----
 *
 * One request fetches the end of a far frame with everything needed for opening; reading the
 * beginning would take another round trip. */

enum { MOST_TAIL = 64 * 1024 };

/* Whether the fingerprint of trailer and footer at the frame's end fits this header. */
static bool is_vouched(const uint8_t *tail, size_t size, int64_t pos,
                       const cv_header_copy *copy)
{
    uint32_t trailer_size;
    cv_frame_header header;
    cv_trailer trailer = {0};
    cv_seal_state state = CV_SEAL_NONE;
    if (cv_trailer_peek(tail + size - CV_TRAILER_TAIL, pos, &trailer_size, NULL) != CV_OK ||
        trailer_size > size - CV_SEAL_FOOTER ||
        cv_frame_header_parse(copy->header, copy->header_size, &header, NULL) != CV_OK)
        return false;
    const uint8_t *at = tail + size - trailer_size;
    if (cv_trailer_parse(at, trailer_size, 0, &trailer, NULL) == CV_OK)
        (void)cv_seal_root_check(at - CV_SEAL_FOOTER, trailer_size + CV_SEAL_FOOTER, &trailer,
                                 copy->header, &header, &state, NULL);
    cv_trailer_free(&trailer);
    return state == CV_SEAL_WHOLE;
}

/* Takes the header from the copy before the index, if the end of the `stored` bytes is in memory,
 * the frame ends there, and the trailer's fingerprint matches the header. Otherwise *found is
 * false. */
static cv_status far_header(cv_store *store, uint64_t stored, cv_buffer *out, bool *found,
                            cv_error *err)
{
    size_t size = stored < MOST_TAIL ? (size_t)stored : MOST_TAIL, at = size;
    const uint8_t *tail = cv_store_view(store, CV_FRAME_OBJECT, stored - size, size);
    cv_header_copy copy;
    *found = false;
    if (!store->is_pinned || !tail || size < CV_TRAILER_MIN + CV_SEAL_FOOTER) return CV_OK;
    while (!*found && cv_header_copy_before(tail, size, stored - size, &at, &copy)) {
        cv_frame_header header;
        *found =
            cv_frame_header_parse(copy.header, copy.header_size, &header, NULL) == CV_OK &&
            header.frame_size == stored &&
            is_vouched(tail, size, (int64_t)stored - CV_TRAILER_TAIL, &copy);
    }
    return *found ? cv_buffer_append(out, copy.header, copy.header_size, err) : CV_OK;
}

/* ---- The snapshot ---- */

cv_snapshot *cv_snapshot_new(void)
{
    cv_snapshot *snapshot = cv_calloc(1, sizeof *snapshot);
    if (!snapshot) return NULL;
    atomic_init(&snapshot->references, 1);
    atomic_init(&snapshot->index_ready, false);
    atomic_init(&snapshot->index_lookups, 0);
    atomic_init(&snapshot->head_ready, false);
    atomic_init(&snapshot->attributes, NULL);
    cv_mutex_init(&snapshot->index_lock);
    cv_mutex_init(&snapshot->head_lock);
    return snapshot;
}

void cv_snapshot_retain(cv_snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
}

void cv_snapshot_release(cv_snapshot *snapshot)
{
    if (!snapshot) return;
    if (atomic_fetch_sub_explicit(&snapshot->references, 1, memory_order_acq_rel) > 1) return;
    cv_buffer_free(&snapshot->header_bytes);
    cv_buffer_free(&snapshot->trailer_bytes);
    cv_attributes_free(atomic_load(&snapshot->attributes));
    cv_trailer_free(&snapshot->trailer);
    cv_index_free(&snapshot->index);
    cv_seal_head_free(&snapshot->head);
    cv_mutex_destroy(&snapshot->index_lock);
    cv_mutex_destroy(&snapshot->head_lock);
    cv_free(snapshot);
}

/* ---- Attributes --------------------------------------------------------- */

uint32_t cv_snapshot_name(const cv_snapshot *s)
{
    uint32_t name = cv_crc32c(0, s->header_bytes.data, s->header_bytes.size);
    return cv_crc32c(name, s->trailer_bytes.data, s->trailer_bytes.size);
}

/* If threads race, all use the attributes that were loaded first. */
cv_status cv_snapshot_attributes(const cv_snapshot *snapshot, const cv_attributes **out,
                                 cv_error *err)
{
    static const cv_attributes none;
    cv_snapshot *s = cv_unconst(snapshot);
    *out = &none;
    if (s->trailer.n_attributes == 0) return CV_OK;
    cv_attributes *known = atomic_load_explicit(&s->attributes, memory_order_acquire);
    cv_attributes *loaded = NULL;
    if (!known) CV_TRY(cv_attributes_load(&s->trailer, &loaded, err));
    if (loaded && atomic_compare_exchange_strong(&s->attributes, &known, loaded))
        known = loaded;
    else
        cv_attributes_free(loaded);
    *out = known;
    return CV_OK;
}

/* ---- Header ------------------------------------------------------------- */

static cv_status parse_meta(cv_snapshot *s, cv_error *err)
{
    const cv_frame_header *h = &s->header;
    const cv_metalayer *layer = cv_metalayers_find(h->metalayers, h->n_metalayers, "b2nd");
    bool legacy = !layer;
    if (legacy) layer = cv_metalayers_find(h->metalayers, h->n_metalayers, "caterva");
    if (!s->any_kind) CV_TRY(kind_check(h, layer != NULL, err));
    if (!layer) return kind_plain(h, &s->meta, err);
    return cv_array_meta_parse(layer->data, layer->size, legacy,
                               layer->data - s->header_bytes.data, &s->meta, err);
}

/* The sizes in the header must match shape and partition. A frame without chunks may have 0, as
 * C-Blosc2 writes it. */
static cv_status check_sizes(const cv_snapshot *s, cv_error *err)
{
    const cv_frame_header *h = &s->header;
    const cv_grid *g = &s->grid;
    if (s->meta.plain) return CV_OK;               /* the shape was derived from them */
    int64_t nbytes = g->n_chunks * g->chunk_bytes; /* no overflow: the grid limits both */
    if (h->nbytes != nbytes)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "the header says %lld bytes of chunks, the shape needs %lld",
                       (long long)h->nbytes, (long long)nbytes);
    if (nbytes == 0) return CV_OK;
    if (h->vl_blocks || h->variable_chunks)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "an n-d array with %s, which is not supported",
                       h->vl_blocks ? "variable-length blocks" : "variable-size chunks");
    if (h->chunk_size != g->chunk_bytes)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "the header says chunks of %d bytes, the chunk shape needs %lld",
                       h->chunk_size, (long long)g->chunk_bytes);
    return CV_OK;
}

cv_status cv_snapshot_parse(cv_snapshot *s, cv_error *err)
{
    CV_TRY(
        cv_frame_header_parse(s->header_bytes.data, s->header_bytes.size, &s->header, err));
    CV_TRY(parse_meta(s, err));

    cv_error reason = {0};
    const cv_array_meta *m = &s->meta;
    cv_status status = cv_grid_init(&s->grid, m->ndim, m->shape, m->chunk_shape,
                                    m->block_shape, s->header.type_size, &reason);
    if (status == CATERVA_EUNSUPPORTED) return cv_fail(err, status, -1, "%s", reason.message);
    if (status != CV_OK)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "not a valid array: %s", reason.message);
    return check_sizes(s, err);
}

int64_t cv_snapshot_chunk_bytes(const cv_snapshot *s, int64_t chunk)
{
    int64_t bytes = s->grid.chunk_bytes;
    return s->meta.plain ? cv_min_i64(bytes, s->header.nbytes - chunk * bytes) : bytes;
}

cv_status cv_snapshot_check_header(const cv_snapshot *s, cv_error *err)
{
    if (s->seal != CV_SEAL_NO_HEADER || s->header.n_metalayers > 0) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, 0, "the header is damaged: checksum differs");
}

cv_status cv_snapshot_check_attributes(const cv_snapshot *s, cv_error *err)
{
    for (int i = 0; i < s->trailer.n_attributes; i++)
        CV_TRY(cv_frame_attribute_check(&s->trailer.attributes[i], err));
    return CV_OK;
}

/* ---- Identity ------------------------------------------------------------- */

void cv_snapshot_identify(const cv_snapshot *s, uint8_t out[CV_STATE_ID])
{
    cv_stamp stamp = s->seal == CV_SEAL_WHOLE ? (cv_stamp){0} : s->stamp;
    const cv_state_part parts[] = {
        {s->header_bytes.data, s->header_bytes.size},
        {s->trailer_bytes.data, s->trailer_bytes.size},
        {&stamp, sizeof stamp},
    };
    cv_state_id(parts, sizeof parts / sizeof parts[0], out);
}

/* ---- Readers -------------------------------------------------------------- */

/* The number of the commit; 0 without a valid seal, or if another program changed the frame. */
static uint64_t number_of(const cv_snapshot *s)
{
    return s->seal == CV_SEAL_WHOLE ? s->footer.commit : 0;
}

bool cv_snapshot_has_older_readers(const cv_snapshot *s, cv_store *store)
{
    uint64_t number = number_of(s);
    return number ? cv_store_has_others(store, number) : cv_store_has_readers(store);
}

/* Records which state is read. A state without chunks is completely in memory now. */
static void snapshot_note_reader(const cv_snapshot *s, cv_store *store)
{
    uint64_t number = s->grid.n_chunks > 0 ? number_of(s) : 0;
    if (number || s->grid.n_chunks == 0) cv_store_reads_state(store, number);
}

/* ---- Loading: the header ------------------------------------------------ */

enum { FIRST_READ = 4096 };

/* Repeats until two reads in a row are equal, because a read may see part of another process's
 * header write. Not needed with the writer's lock. */
static cv_status read_header_twice(cv_snapshot *s, cv_store *store, cv_error *err)
{
    enum { TRIES = 100 };
    if (store->writable || store->in_memory || store->has_chunk_objects || store->is_pinned)
        return CV_OK;
    cv_buffer again = {0};
    cv_status status = cv_buffer_resize(&again, s->header_bytes.size, err);
    bool same = false;
    for (int i = 0; status == CV_OK && !same && i < TRIES; i++) {
        status = cv_store_read(store, CV_FRAME_OBJECT, 0, again.data, again.size, err);
        if (status != CV_OK) break;
        same = memcmp(again.data, s->header_bytes.data, again.size) == 0;
        memcpy(s->header_bytes.data, again.data, again.size);
    }
    cv_buffer_free(&again);
    return status;
}

/* Reads the beginning of the frame. If a writer elsewhere truncates the file after its size was
 * read, repeats: the rest contains the header. */
static cv_status read_first(cv_snapshot *s, cv_store *store, uint64_t *stored, cv_error *err)
{
    for (;;) {
        cv_error error = {0};
        uint64_t had = *stored;
        size_t first = had < FIRST_READ ? (size_t)had : FIRST_READ;
        if (first == 0)
            return cv_fail(err, CATERVA_ECORRUPT, 0, "the file is empty, not a frame");
        CV_TRY(cv_buffer_resize(&s->header_bytes, first, err));
        cv_status status =
            cv_store_read(store, CV_FRAME_OBJECT, 0, s->header_bytes.data, first, &error);
        if (status == CATERVA_ECORRUPT)
            CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, stored, err));
        if (status == CATERVA_ECORRUPT && *stored < had) continue;
        if (status != CV_OK && err) *err = error;
        return status;
    }
}

static cv_status read_header(cv_snapshot *s, cv_store *store, uint64_t stored, cv_error *err)
{
    bool is_found = false;
    uint32_t header_size;
    if (stored > 0) CV_TRY(far_header(store, stored, &s->header_bytes, &is_found, err));
    if (is_found) return CV_OK;
    CV_TRY(read_first(s, store, &stored, err));
    size_t first = s->header_bytes.size;
    CV_TRY(cv_frame_header_peek(s->header_bytes.data, first, &header_size, err));
    if (header_size > stored)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)stored,
                       "the file ends at byte %llu, inside the header of %u bytes",
                       (unsigned long long)stored, header_size);
    CV_TRY(cv_buffer_resize(&s->header_bytes, header_size, err));
    if (header_size > first)
        CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, first, s->header_bytes.data + first,
                             header_size - first, err));
    return read_header_twice(s, store, err);
}

/* ---- Trailer ------------------------------------------------------------ */

static cv_status read_end(const cv_snapshot *s, cv_store *store, uint64_t size,
                          cv_buffer *out, cv_error *err)
{
    CV_TRY(cv_buffer_resize(out, cv_size((int64_t)size), err));
    return cv_store_read(store, CV_FRAME_OBJECT, s->header.frame_size - size, out->data,
                         out->size, err);
}

/* Reads the trailer and the seal's footer, if any, mostly in one read. */
static cv_status read_tail(const cv_snapshot *s, cv_store *store, cv_buffer *tail,
                           uint32_t *trailer_size, cv_error *err)
{
    const cv_frame_header *h = &s->header;
    uint64_t room = h->frame_size - h->header_size;
    if (room < CV_TRAILER_MIN)
        return cv_fail(err, CATERVA_ECORRUPT, h->header_size,
                       "the frame of %llu bytes has no room for a trailer",
                       (unsigned long long)h->frame_size);
    CV_TRY(read_end(s, store, room < FIRST_READ ? room : FIRST_READ, tail, err));

    uint64_t last_pos = h->frame_size - CV_TRAILER_TAIL;
    const uint8_t *last = tail->data + tail->size - CV_TRAILER_TAIL;
    CV_TRY(cv_trailer_peek(last, (int64_t)last_pos, trailer_size, err));
    if (*trailer_size > room)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)last_pos,
                       "a trailer of %u bytes in a frame with room for %llu", *trailer_size,
                       (unsigned long long)room);
    uint64_t wanted = (uint64_t)*trailer_size + CV_SEAL_FOOTER;
    if (wanted > room) wanted = room;
    return wanted > tail->size ? read_end(s, store, wanted, tail, err) : CV_OK;
}

/* Checks the seal's root. Only frames with chunks have a footer. */
static cv_status check_root(cv_snapshot *s, const cv_buffer *tail, cv_error *err)
{
    size_t size = s->trailer.size;
    int64_t pos = (int64_t)(s->header.frame_size - size);
    bool has_footer = s->grid.n_chunks > 0 && s->trailer.fingerprint_type != 0;
    if (has_footer) {
        size += CV_SEAL_FOOTER;
        if (size > tail->size ||
            !cv_seal_footer_read(tail->data + tail->size - size, &s->footer))
            return cv_fail(err, CATERVA_ECORRUPT, pos,
                           "the seal before the trailer at byte %lld is damaged",
                           (long long)pos);
    }
    return cv_seal_root_check(tail->data + tail->size - size, size, &s->trailer,
                              s->header_bytes.data, &s->header, &s->seal, err);
}

static cv_status read_trailer(cv_snapshot *s, cv_store *store, cv_buffer *tail, cv_error *err)
{
    uint32_t size;
    CV_TRY(read_tail(s, store, tail, &size, err));
    const uint8_t *trailer = tail->data + tail->size - size;
    CV_TRY(cv_buffer_append(&s->trailer_bytes, trailer, size, err));
    CV_TRY(cv_trailer_parse(s->trailer_bytes.data, size,
                            (int64_t)(s->header.frame_size - size), &s->trailer, err));
    if (s->meta.plain && !s->any_kind)
        CV_TRY(check(objects, COUNT(objects), s->trailer.attributes, s->trailer.n_attributes,
                     err));
    cv_status status = check_root(s, tail, s->unchecked ? NULL : err);
    if (status != CV_OK) s->seal = CV_SEAL_NONE;
    if (s->seal == CV_SEAL_NONE) s->footer = (cv_seal_footer){0};
    if (s->seal != CV_SEAL_WHOLE) s->stamp = cv_store_stamp(store);
    if (s->seal == CV_SEAL_WHOLE && store->is_pinned) store->is_vouched = true;
    return s->unchecked ? CV_OK : status;
}

/* Finds the index between chunk area and trailer. In a directory it is right behind the header. A
 * frame without chunks has none. */
static cv_status place_index(cv_snapshot *s, cv_error *err)
{
    const cv_frame_header *h = &s->header;
    if (s->grid.n_chunks == 0) return CV_OK;

    uint64_t trailer_pos = h->frame_size - s->trailer.size;
    uint64_t pos = h->header_size;
    if (!h->sparse) pos += (uint64_t)h->cbytes; /* no overflow: 31 and 63 bits */
    if (pos > trailer_pos || trailer_pos - pos < CV_CHUNK_HEADER_SIZE ||
        trailer_pos - pos - CV_CHUNK_HEADER_SIZE < s->footer.size)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)h->header_size,
            "%lld bytes of chunks leave no room for the index before the trailer at "
            "byte %llu",
            (long long)h->cbytes, (unsigned long long)trailer_pos);
    s->index_pos = pos;
    s->index_size = trailer_pos - pos - s->footer.size;
    return CV_OK;
}

/* Another process's commit may have extended the file after its size was read: reads the size again
 * before it refuses the header. */
static cv_status check_frame_size(const cv_snapshot *s, cv_store *store, cv_error *err)
{
    uint64_t stored;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    if (s->header.frame_size > stored)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)stored,
                       "the file ends at byte %llu, the frame should have %llu: truncated",
                       (unsigned long long)stored, (unsigned long long)s->header.frame_size);
    return CV_OK;
}

static cv_status check_kind(const cv_snapshot *s, const cv_store *store, cv_error *err)
{
    if (s->header.sparse == store->has_chunk_objects) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1,
                   s->header.sparse
                       ? "the frame belongs in a directory of chunk files, but is not in one"
                       : "the directory contains a contiguous frame, not one of chunk files");
}

static cv_status load_tail(cv_snapshot *s, cv_store *store, uint64_t stored, cv_error *err)
{
    if (s->header.frame_size > stored) CV_TRY(check_frame_size(s, store, err));
    CV_TRY(check_kind(s, store, err));
    cv_buffer tail = {0};
    cv_status status = read_trailer(s, store, &tail, err);
    cv_buffer_free(&tail);
    return status == CV_OK ? place_index(s, err) : status;
}

static cv_status load(cv_snapshot *s, cv_store *store, bool header_only, cv_error *err)
{
    uint64_t stored;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    CV_TRY(read_header(s, store, stored, err));
    CV_TRY(cv_snapshot_parse(s, err));
    return header_only ? CV_OK : load_tail(s, store, stored, err);
}

/* ---- The whole state ------------------------------------------------------ */

typedef enum load_how { LOAD_WHOLE, LOAD_UNCHECKED, LOAD_ANY, LOAD_HEADER } load_how;

static cv_status load_once(cv_store *store, load_how how, cv_snapshot **out, cv_error *err)
{
    cv_snapshot *snapshot = cv_snapshot_new();
    if (!snapshot) return cv_fail_memory(err, sizeof *snapshot, "a snapshot");
    snapshot->unchecked = how == LOAD_UNCHECKED;
    snapshot->any_kind = how == LOAD_ANY;
    cv_status status = load(snapshot, store, how == LOAD_HEADER, err);
    if (status != CV_OK) {
        cv_snapshot_release(snapshot);
        return status;
    }
    if (how != LOAD_HEADER) snapshot_note_reader(snapshot, store);
    *out = snapshot;
    return CV_OK;
}

/* While a writer is preempted inside a header write, two equal reads may return a mix of two
 * headers (once in 1,500 runs of six threads on two processors). So damage is reported only after
 * retries for 2^TRIES ms, or at once if no process writes. */
static cv_status load_new(cv_store *store, load_how how, cv_snapshot **out, cv_error *err)
{
    enum { TRIES = 8, FIRST_WAIT_NS = 1000000 };
    cv_error why = {0};
    cv_status status = load_once(store, how, out, &why);
    bool is_over = !cv_store_may_have_writer(store);
    for (int i = 0; i < TRIES && status == CATERVA_ECORRUPT && !is_over; i++) {
        is_over = !cv_store_has_writer(store); /* if so, the next read is consistent */
        if (!is_over) cv_os_sleep_ns((uint64_t)FIRST_WAIT_NS << i);
        cv_store_read_anew(store);
        status = load_once(store, how, out, &why);
    }
    if (status != CV_OK && err) *err = why;
    return status;
}

typedef struct loading {
    cv_store *store;
    load_how how;
    cv_snapshot *out;
} loading;

static cv_status load_again(void *context, cv_error *err)
{
    loading *l = context;
    return load_new(l->store, l->how, &l->out, err);
}

static cv_status load_twice(cv_store *store, load_how how, cv_snapshot **out, cv_error *err)
{
    loading l = {.store = store, .how = how};
    const cv_doubted twice = {
        .store = store, .read = load_again, .context = &l, .begins = true};
    CV_TRY(cv_store_doubting(&twice, err));
    *out = l.out;
    return CV_OK;
}

cv_status cv_snapshot_load(cv_store *store, bool unchecked, cv_snapshot **out, cv_error *err)
{
    return load_twice(store, unchecked ? LOAD_UNCHECKED : LOAD_WHOLE, out, err);
}

cv_status cv_snapshot_load_any(cv_store *store, cv_snapshot **out, cv_error *err)
{
    return load_twice(store, LOAD_ANY, out, err);
}

cv_status cv_snapshot_load_kind(cv_store *store, char name[CV_KIND_NAME], cv_error *err)
{
    uint64_t stored;
    bool readable;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    cv_snapshot *s = cv_snapshot_new();
    if (!s) return cv_fail_memory(err, sizeof *s, "a snapshot");
    cv_status status = read_header(s, store, stored, err);
    if (status == CV_OK)
        status = cv_frame_header_parse(s->header_bytes.data, s->header_bytes.size, &s->header,
                                       err);
    if (status == CV_OK) cv_kind_name(&s->header, name, &readable);
    cv_snapshot_release(s);
    return status;
}

/* ---- Steps of loading, for repair ----------------------------------------- */

/* Repair needs the sizes that only an array's metalayer has. */
static cv_status check_is_array(cv_snapshot *snapshot, cv_error *err)
{
    if (!snapshot->meta.plain) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "a Blosc2 frame without the b2nd or caterva metalayer can be read, but "
                   "not repaired");
}

cv_status cv_snapshot_load_header(cv_store *store, cv_snapshot **out, cv_error *err)
{
    cv_snapshot *snapshot = NULL;
    CV_TRY(load_new(store, LOAD_HEADER, &snapshot, err));
    cv_status status = check_is_array(snapshot, err);
    if (status == CV_OK)
        *out = snapshot;
    else
        cv_snapshot_release(snapshot);
    return status;
}

cv_status cv_snapshot_from_header(const uint8_t *header, size_t size, cv_snapshot **out,
                                  cv_error *err)
{
    cv_snapshot *snapshot = cv_snapshot_new();
    if (!snapshot) return cv_fail_memory(err, sizeof *snapshot, "a snapshot");
    cv_status status = cv_buffer_append(&snapshot->header_bytes, header, size, err);
    if (status == CV_OK) status = cv_snapshot_parse(snapshot, err);
    if (status == CV_OK) status = check_is_array(snapshot, err);
    if (status != CV_OK) {
        cv_snapshot_release(snapshot);
        return status;
    }
    *out = snapshot;
    return CV_OK;
}

cv_status cv_snapshot_load_tail(cv_snapshot *snapshot, cv_store *store, cv_error *err)
{
    uint64_t stored;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    return load_tail(snapshot, store, stored, err);
}

/* The length of the index is in its own header. */
cv_status cv_snapshot_find_index(cv_snapshot *s, cv_store *store, cv_error *err)
{
    uint64_t stored, pos = s->header.header_size;
    CV_TRY(check_kind(s, store, err));
    if (s->grid.n_chunks == 0) return CV_OK;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    if (!s->header.sparse) pos += (uint64_t)s->header.cbytes; /* cannot overflow */
    if (pos >= stored || stored - pos < CV_CHUNK_HEADER_SIZE)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)stored,
                       "the file ends at byte %llu, its index should begin at byte %llu",
                       (unsigned long long)stored, (unsigned long long)pos);
    uint8_t bytes[CV_CHUNK_HEADER_SIZE];
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, pos, bytes, sizeof bytes, err));
    cv_chunk_expect expect = {
        .chunk = -1,
        .pos = (int64_t)pos,
        .nbytes = s->grid.n_chunks * (int64_t)sizeof(int64_t),
        .item_size = sizeof(int64_t),
        .max_cbytes = cv_min_i64((int64_t)(stored - pos), INT32_MAX),
    };
    cv_chunk_header header;
    CV_TRY(cv_chunk_header_parse(bytes, &expect, &header, err));
    s->index_pos = pos;
    s->index_size = (uint64_t)header.cbytes;
    return CV_OK;
}

/* ---- Deriving a state ----
 *
 * A change of attributes or metalayers is rare, and makes a new state. The shape changes with every
 * append: in place, in a state that the transaction owns. Chunks are not read. */

/* Requires the old size: old bytes that C-Blosc2 left behind shorter content must not be lost. */
static cv_status replace_content(cv_frame_header *header, const char *name,
                                 const cv_buffer *content, cv_error *err)
{
    for (int i = 0; i < header->n_metalayers; i++) {
        cv_metalayer *layer = &header->metalayers[i];
        if (strcmp(layer->name, name) != 0) continue;
        if (layer->size != content->size)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "metalayer \"%s\" has a fixed length of %u bytes, not %zu", name,
                           layer->size, content->size);
        layer->data = content->data;
        return CV_OK;
    }
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "no metalayer \"%.100s\"", name);
}

static cv_status derive(const cv_snapshot *from, const cv_change *change, cv_snapshot *to,
                        cv_error *err)
{
    cv_frame_header header = from->header;
    const cv_trailer *t = &from->trailer;
    int n = change->set_attributes ? change->n_attributes : t->n_attributes;
    CV_TRY(cv_trailer_write(change->set_attributes ? change->attributes : t->attributes, n,
                            &to->trailer_bytes, err));
    header.has_attributes = n > 0;
    const cv_metalayer *layer = change->metalayer;
    if (layer) {
        cv_buffer content = {.data = (uint8_t *)layer->data, .size = layer->size};
        CV_TRY(replace_content(&header, layer->name, &content, err));
    }

    /* This size is large enough until the commit sets the final one. Frames that C-Blosc2 emptied
     * keep their old chunk area. */
    uint64_t chunks_end = header.header_size + (uint64_t)header.cbytes;
    if (!header.sparse && header.frame_size < chunks_end) header.frame_size = chunks_end;
    header.frame_size += to->trailer_bytes.size;
    CV_TRY(cv_frame_header_write(&header, &to->header_bytes, err));
    assert(header.header_size == from->header.header_size); /* its fields have fixed widths */
    CV_TRY(cv_snapshot_parse(to, err));
    return cv_trailer_parse(to->trailer_bytes.data, to->trailer_bytes.size,
                            header.header_size, &to->trailer, err);
}

cv_status cv_snapshot_derive(const cv_snapshot *from, const cv_change *change,
                             cv_snapshot **out, cv_error *err)
{
    cv_snapshot *to = cv_snapshot_new();
    if (!to) return cv_fail_memory(err, sizeof *to, "a snapshot");
    to->unchecked = from->unchecked;
    cv_status status = derive(from, change, to, err);
    if (status != CV_OK) {
        cv_snapshot_release(to);
        return status;
    }
    *out = to;
    return CV_OK;
}

/* ---- The shape ---------------------------------------------------------- */

static const cv_metalayer *own_layer(const cv_snapshot *s)
{
    return cv_metalayers_find(s->header.metalayers, s->header.n_metalayers,
                              s->meta.legacy ? "caterva" : "b2nd");
}

static cv_status encode_shape(const cv_snapshot *s, const int64_t *shape, cv_buffer *meta,
                              cv_error *err)
{
    cv_array_meta changed = s->meta;
    memcpy(changed.shape, shape, (size_t)changed.ndim * sizeof shape[0]);
    CV_TRY(cv_array_meta_write(&changed, meta, err));
    assert(meta->size <= own_layer(s)->size); /* numbers have a fixed width */
    return CV_OK;
}

cv_status cv_new_shape_make(const cv_snapshot *state, const int64_t *shape, cv_new_shape *out,
                            cv_error *err)
{
    const cv_array_meta *m = &state->meta;
    *out = (cv_new_shape){.nbytes = 0};
    CV_TRY(cv_grid_init(&out->grid, m->ndim, shape, m->chunk_shape, m->block_shape,
                        state->grid.item_size, err));
    out->nbytes = out->grid.n_chunks * out->grid.chunk_bytes; /* the grid limits both */
    cv_status status = encode_shape(state, shape, &out->meta, err);
    if (status != CV_OK) cv_buffer_free(&out->meta);
    return status;
}

/* If the encoding is shorter than the metalayer, the bytes behind it, from another writer, stay. */
void cv_new_shape_apply(const cv_new_shape *change, cv_snapshot *state)
{
    size_t pos = (size_t)(own_layer(state)->data - state->header_bytes.data);
    memcpy(state->header_bytes.data + pos, change->meta.data, change->meta.size);
    memcpy(state->meta.shape, change->grid.shape,
           (size_t)state->meta.ndim * sizeof state->meta.shape[0]);
    state->grid = change->grid;
    state->header.nbytes = change->nbytes;
    state->header.chunk_size = (int32_t)change->grid.chunk_bytes;
    state->header.block_size = (int32_t)change->grid.block_bytes;
}

/* ---- The copy of the header ------------------------------------------------ */

uint64_t cv_tail_copy_size(const cv_snapshot *state)
{
    if (state->header.sparse || state->grid.n_chunks == 0) return 0;
    return cv_header_copy_size(state->header.header_size);
}

cv_status cv_tail_read_copy(const cv_snapshot *state, cv_store *store, cv_buffer *bytes,
                            cv_header_copy *copy, bool *found, cv_error *err)
{
    uint64_t size = cv_tail_copy_size(state);
    *found = false;
    if (size == 0 || (uint64_t)state->header.cbytes < size) return CV_OK;
    uint64_t pos = state->index_pos - size;
    CV_TRY(cv_buffer_resize(bytes, (size_t)size, err));
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, pos, bytes->data, bytes->size, err));
    *found = cv_header_copy_parse(bytes->data, bytes->size, pos, copy, NULL) == CV_OK &&
             copy->header_size == state->header_bytes.size &&
             memcmp(copy->header, state->header_bytes.data, copy->header_size) == 0;
    return CV_OK;
}

/* Reads bytes of the frame; *reaches is false if the frame ends before them. Does not query the
 * frame's size, because that switches a directory to the frame of a later commit. */
static cv_status read_if_there(cv_store *store, uint64_t pos, void *to, size_t size,
                               bool *reaches, cv_error *err)
{
    cv_error why;
    cv_status status = cv_store_read(store, CV_FRAME_OBJECT, pos, to, size, &why);
    *reaches = status == CV_OK;
    if (status == CV_OK || status == CATERVA_ECORRUPT) return CV_OK;
    if (err) *err = why;
    return status;
}

cv_status cv_tail_own_copy(const cv_snapshot *state, cv_store *store, uint64_t *pos,
                           uint64_t *size, cv_error *err)
{
    const cv_frame_header *h = &state->header;
    *pos = *size = 0;
    if (state->seal != CV_SEAL_WHOLE) return CV_OK;
    if (h->sparse) { /* at the end; older versions wrote none */
        uint8_t first;
        bool is_there;
        CV_TRY(read_if_there(store, h->frame_size, &first, 1, &is_there, err));
        if (is_there) *size = cv_header_copy_size(h->header_size);
        *pos = h->frame_size;
        return CV_OK;
    }
    *size = cv_tail_copy_size(state);
    if ((uint64_t)h->cbytes < *size) *size = 0;
    *pos = state->index_pos - *size;
    return CV_OK;
}

static bool is_copy_of(const cv_snapshot *state, const cv_buffer *bytes, uint64_t pos)
{
    cv_header_copy copy;
    return cv_header_copy_parse(bytes->data, bytes->size, pos, &copy, NULL) == CV_OK &&
           copy.header_size == state->header_bytes.size &&
           memcmp(copy.header, state->header_bytes.data, copy.header_size) == 0;
}

cv_status cv_tail_check_copy(const cv_snapshot *state, cv_store *store, cv_error *err)
{
    uint64_t pos, size;
    cv_buffer bytes = {0};
    CV_TRY(cv_tail_own_copy(state, store, &pos, &size, err));
    if (size == 0) return CV_OK;
    bool is_good = false;
    cv_status status = cv_buffer_resize(&bytes, (size_t)size, err);
    if (status == CV_OK)
        status = read_if_there(store, pos, bytes.data, bytes.size, &is_good, err);
    if (is_good) is_good = is_copy_of(state, &bytes, pos);
    cv_buffer_free(&bytes);
    if (status != CV_OK || is_good) return status;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                   "the copy of the header at byte %llu is damaged", (unsigned long long)pos);
}
