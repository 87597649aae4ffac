/* Room: upkeep. The search for a state of a damaged frame, see rescue.h. Copies of headers have
 * checksums, headers have none. is_torn and is_older decide which of the two is right. */
#include "upkeep/rescue.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/os.h"
#include "format/frame_header.h"
#include "frame/lookup.h"
#include "frame/txn.h"

#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

/* ---- Header copies and seals ------------------------------------------------------- */

/* The newest copies and seals are kept, at most this many of each, the newest first. */
enum { CV_MAX_COPIES = 16 };

typedef struct cv_found_copy {
    uint64_t commit;
    cv_buffer header;
    uint64_t frame_size;
    uint64_t end; /* end of the copy or of its frame, whichever is larger */
    int64_t cbytes;
} cv_found_copy;

typedef struct cv_found_seal {
    cv_seal_footer footer; /* as stored, not verified */
    uint64_t pos;
} cv_found_seal;

typedef struct cv_copies {
    cv_found_copy items[CV_MAX_COPIES];
    int n;
    cv_found_seal seals[CV_MAX_COPIES];
    int n_seals;
} cv_copies;

static void drop(cv_found_copy *copy) { cv_buffer_free(&copy->header); }

static cv_status add_copy(cv_copies *c, const cv_header_copy *copy, cv_error *err)
{
    int at = c->n;
    while (at > 0 && c->items[at - 1].commit < copy->commit) at--;
    if (at == CV_MAX_COPIES) return CV_OK;
    cv_frame_header header;
    CV_TRY(cv_frame_header_parse(copy->header, copy->header_size, &header, err));
    cv_found_copy added = {
        .commit = copy->commit, .frame_size = header.frame_size, .cbytes = header.cbytes};
    added.end = copy->pos + copy->size;
    if (added.end < header.frame_size) added.end = header.frame_size;
    CV_TRY(cv_buffer_append(&added.header, copy->header, copy->header_size, err));
    if (c->n == CV_MAX_COPIES) drop(&c->items[--c->n]);
    memmove(c->items + at + 1, c->items + at, (size_t)(c->n - at) * sizeof c->items[0]);
    c->items[at] = added;
    c->n++;
    return CV_OK;
}

static void add_seal(cv_copies *c, const cv_found_seal *seal)
{
    int at = c->n_seals;
    while (at > 0 && c->seals[at - 1].footer.commit < seal->footer.commit) at--;
    if (at == CV_MAX_COPIES) return;
    if (c->n_seals == CV_MAX_COPIES) c->n_seals--;
    memmove(c->seals + at + 1, c->seals + at, (size_t)(c->n_seals - at) * sizeof c->seals[0]);
    c->seals[at] = *seal;
    c->n_seals++;
}

/* Finds seals that begin in the first `fresh` bytes of the window, which is at `pos`. */
static void find_seals(cv_copies *c, const cv_buffer *window, uint64_t pos, size_t fresh)
{
    cv_found_seal seal;
    for (size_t at = 0; at < fresh && window->size - at >= CV_SEAL_FOOTER; at++) {
        if (!cv_seal_footer_find(window->data, window->size, &at, &seal.footer)) return;
        seal.pos = pos + at;
        if (at < fresh && seal.footer.size <= seal.pos + CV_SEAL_FOOTER) add_seal(c, &seal);
    }
}

static cv_status search_window(cv_copies *c, const cv_buffer *window, uint64_t pos,
                               size_t fresh, cv_error *err)
{
    cv_header_copy copy;
    find_seals(c, window, pos, fresh);
    for (size_t at = fresh;
         cv_header_copy_before(window->data, window->size, pos, &at, &copy);)
        CV_TRY(add_copy(c, &copy, err));
    return CV_OK;
}

/* Searches the file backwards, in windows that overlap by the size of the largest copy. */
static cv_status copies_find(cv_store *store, cv_copies *out, cv_error *err)
{
    enum { STEP = 1 << 20 };
    uint64_t overlap = cv_header_copy_size(CV_HEADER_COPY_MAX), end;
    if (cv_store_size(store, CV_FRAME_OBJECT, &end, NULL) != CV_OK) return CV_OK;
    cv_buffer window = {0};
    cv_status status = CV_OK;
    for (uint64_t stored = end; end > 0 && status == CV_OK;) {
        uint64_t start = end > STEP ? end - STEP : 0;
        uint64_t stop = end + overlap < stored ? end + overlap : stored;
        status = cv_buffer_resize(&window, (size_t)(stop - start), err);
        if (status == CV_OK && cv_store_read(store, CV_FRAME_OBJECT, start, window.data,
                                             window.size, NULL) == CV_OK)
            status = search_window(out, &window, start, (size_t)(end - start), err);
        end = start;
    }
    cv_buffer_free(&window);
    return status;
}

/* Returns whether a frame begins at byte `pos`, because it was appended to the file. */
static bool is_frame_at(cv_store *store, uint64_t pos)
{
    uint8_t bytes[CV_FRAME_HEADER_MIN];
    uint32_t size;
    return cv_store_read(store, CV_FRAME_OBJECT, pos, bytes, sizeof bytes, NULL) == CV_OK &&
           cv_frame_header_peek(bytes, sizeof bytes, &size, NULL) == CV_OK;
}

static bool has_later_seal(const cv_copies *c, cv_store *store)
{
    const cv_found_copy *newest = &c->items[0];
    uint64_t end = is_frame_at(store, newest->end) ? newest->end : UINT64_MAX;
    for (int i = 0; i < c->n_seals && c->seals[i].footer.commit > newest->commit; i++)
        if (c->seals[i].pos < end) return true;
    return false;
}

typedef enum agreement { NEITHER, ONE_SIZE, BOTH_SIZES } agreement;

static agreement agree(const cv_found_copy *copy, uint64_t frame_size, int64_t cbytes)
{
    return (agreement)((copy->frame_size == frame_size) + (copy->cbytes == cbytes));
}

/* Compares the sizes in the stored header, which may be damaged, with those of the newest copy.
 * *is_other: they are not those of any copy. */
static agreement ask_header(const cv_copies *c, cv_store *store, bool *is_other)
{
    uint8_t bytes[CV_FRAME_HEADER_MIN];
    uint64_t frame_size;
    int64_t cbytes;
    *is_other = false;
    if (cv_store_read(store, CV_FRAME_OBJECT, 0, bytes, sizeof bytes, NULL) != CV_OK)
        return NEITHER;
    if (!cv_frame_header_peek_sizes(bytes, sizeof bytes, &frame_size, &cbytes))
        return NEITHER;
    *is_other = true;
    for (int i = 0; i < c->n; i++) /* a torn write leaves an older copy's sizes */
        if (agree(&c->items[i], frame_size, cbytes) == BOTH_SIZES) *is_other = false;
    return agree(&c->items[0], frame_size, cbytes);
}

/* Returns whether the end of the file belongs to an older commit, whose copy was overwritten. A
 * commit leaves the previous tail intact, and writes copy, index, seal and trailer in one write. So
 * the end is older if it overlaps the newest copy's frame, if there is no room after this frame for
 * the parts of a tail, or if a seal in it has an older number. */
static bool is_older_rest(const cv_found_copy *newest, cv_store *store, uint64_t stored)
{
    uint8_t tail[CV_TRAILER_TAIL], bytes[CV_SEAL_FOOTER];
    uint32_t size;
    cv_seal_footer footer;
    uint64_t room = stored - newest->end;
    if (room < cv_header_copy_size((uint32_t)newest->header.size) + CV_TRAILER_MIN)
        return true;
    uint64_t at = stored - sizeof tail;
    if (cv_store_read(store, CV_FRAME_OBJECT, at, tail, sizeof tail, NULL) != CV_OK ||
        cv_trailer_peek(tail, (int64_t)at, &size, NULL) != CV_OK)
        return false;
    if (size + sizeof bytes > room) return true;
    at = stored - size - sizeof bytes;
    return cv_store_read(store, CV_FRAME_OBJECT, at, bytes, sizeof bytes, NULL) == CV_OK &&
           cv_seal_footer_read(bytes, &footer) && footer.commit <= newest->commit;
}

/* Returns whether bytes of no older commit or appended frame follow the newest copy's frame. */
static bool has_more(const cv_copies *c, cv_store *store)
{
    uint64_t stored;
    if (cv_store_size(store, CV_FRAME_OBJECT, &stored, NULL) != CV_OK) return true;
    for (int i = 0; i < c->n; i++)
        if (c->items[i].end >= stored) return false;
    return !is_older_rest(&c->items[0], store, stored) &&
           !is_frame_at(store, c->items[0].end);
}

/* Returns whether the newest copy is that of the last commit. A later commit is indicated by a seal
 * with a higher number, by sizes in the header that no copy has, or by bytes that follow the copy's
 * frame (has_more). False in case of doubt. Call with at least one copy. */
static bool copies_have_last(const cv_copies *c, cv_store *store)
{
    bool is_other;
    if (has_later_seal(c, store)) return false;
    if (ask_header(c, store, &is_other) != NEITHER) return true;
    return !is_other && !has_more(c, store);
}

/* ---- Chunks without an index ------------------------------------------------------------
 *
 * All chunk headers contain the same number of decoded bytes, which shows where a chunk may begin.
 * The block table after it confirms that it is a chunk, and has its name. */

/* Bytes [pos, end) of an object. */
typedef struct cv_range {
    cv_object object;
    uint64_t pos, end;
} cv_range;

typedef struct cv_found_table {
    size_t size; /* bytes; 0: the chunk has no table */
    uint32_t name;
} cv_found_table;

typedef struct wanted {
    uint32_t name;
    int64_t chunk;
    int64_t n_taken; /* in the first of a name: entries that have their chunk */
} wanted;

typedef struct refind {
    cv_snapshot *state;
    cv_store *store;
    cv_index index;
    cv_strays *strays; /* the index's strays: cv_index_set drops some of them */
    wanted *wanted;    /* ascending by name */
    int64_t n_wanted, n_found;
    uint64_t left; /* how many bytes of tables may still be read */
} refind;

static int by_name(const void *a, const void *b)
{
    const wanted *x = a, *y = b;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

static cv_status list_wanted(refind *r, cv_error *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->index.n; i++) n += cv_index_name(&r->index, i) != 0;
    if (n == 0)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)r->state->index_pos,
                       "the index is lost, and the seal names no chunk");
    r->wanted = cv_malloc((size_t)n * sizeof r->wanted[0]);
    if (!r->wanted) return cv_fail_memory(err, (size_t)n * sizeof r->wanted[0], "names");
    for (int64_t i = 0; i < r->index.n; i++) {
        uint32_t name = cv_index_name(&r->index, i);
        if (name != 0) r->wanted[r->n_wanted++] = (wanted){.name = name, .chunk = i};
    }
    qsort(r->wanted, (size_t)n, sizeof r->wanted[0], by_name);
    return CV_OK;
}

/* Returns the first entry of this name that has no chunk yet. Equal chunks have equal names. */
static wanted *take_wanted(refind *r, uint32_t name)
{
    int64_t low = 0, high = r->n_wanted;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (r->wanted[middle].name < name)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == r->n_wanted || r->wanted[low].name != name) return NULL;
    int64_t next = low + r->wanted[low].n_taken;
    if (next == r->n_wanted || r->wanted[next].name != name) return NULL;
    r->wanted[low].n_taken++;
    return &r->wanted[next];
}

/* Puts the position `entry` into the index for a chunk of this name, if such a chunk is missing. */
static cv_status place(refind *r, uint32_t name, int64_t entry, cv_error *err)
{
    wanted *w = name != 0 ? take_wanted(r, name) : NULL;
    if (!w) return CV_OK;
    r->n_found++;
    CV_TRY(cv_index_set(&r->index, w->chunk, entry, 0, err));
    return cv_index_set_name(&r->index, w->chunk, name, err);
}

/* Reads the table at the beginning of `range`, which is that of the chunk with this header. */
static cv_status refind_table(cv_store *store, const cv_grid *grid,
                              const cv_chunk_header *header, cv_range range,
                              cv_found_table *out, cv_error *err)
{
    cv_block_table table = {.n = cv_block_table_blocks(header, grid->n_blocks)};
    size_t size = cv_block_table_size(table.n);
    cv_buffer bytes = {0};
    *out = (cv_found_table){0};
    if (range.pos > range.end || range.end - range.pos < size) return CV_OK;
    cv_status status = cv_buffer_resize(&bytes, 2 * size, err); /* stored and parsed */
    if (status == CV_OK)
        status = cv_store_read(store, range.object, range.pos, bytes.data, size, err);
    table.blocks = (uint32_t *)(void *)(bytes.data + size);
    if (status == CV_OK && cv_block_table_read(bytes.data, &table))
        *out = (cv_found_table){size, cv_block_table_name(bytes.data, table.n)};
    cv_buffer_free(&bytes);
    return status;
}

/* Reads the chunk header at the beginning of `range`. False if there is no valid header. */
static bool read_header(const refind *r, cv_range range, cv_chunk_header *out)
{
    const cv_grid *g = &r->state->grid;
    uint8_t bytes[CV_CHUNK_HEADER_SIZE];
    if (range.pos > range.end || range.end - range.pos < sizeof bytes) return false;
    cv_chunk_expect expect = {.pos = (int64_t)range.pos,
                              .nbytes = g->chunk_bytes,
                              .block_size = g->block_bytes,
                              .item_size = g->item_size,
                              .max_cbytes =
                                  cv_min_i64((int64_t)(range.end - range.pos), INT32_MAX)};
    return cv_store_read(r->store, range.object, range.pos, bytes, sizeof bytes, NULL) ==
               CV_OK &&
           cv_chunk_header_parse(bytes, &expect, out, NULL) == CV_OK;
}

/* Reads the chunk header at the beginning of `range` and the table after the chunk. Its size is 0
 * if there is no table, or if r->left does not suffice. */
static cv_status table_behind(refind *r, cv_range range, cv_chunk_header *header,
                              cv_found_table *table, cv_error *err)
{
    uint64_t cost = cv_block_table_size(r->state->grid.n_blocks);
    *table = (cv_found_table){.size = 0};
    if (!read_header(r, range, header) || r->left < cost) return CV_OK;
    r->left -= cost;
    range.pos += (uint64_t)header->cbytes;
    return refind_table(r->store, &r->state->grid, header, range, table, err);
}

/* Places the chunk that begins `range`. *size: bytes of chunk and table; 0: there is no chunk. */
static cv_status look_at(refind *r, cv_range range, int64_t entry, uint64_t *size,
                         cv_error *err)
{
    cv_chunk_header header;
    cv_found_table table;
    *size = 0;
    CV_TRY(table_behind(r, range, &header, &table, err));
    if (table.size == 0) return CV_OK;
    *size = (uint64_t)header.cbytes + table.size;
    return place(r, table.name, entry, err);
}

/* Places chunks that begin in the window, which is at `pos`. *next is where to continue. */
static cv_status refind_search_window(refind *r, const cv_buffer *window, uint64_t pos,
                                      uint64_t end, uint64_t *next, cv_error *err)
{
    enum { NBYTES_AT = 4 }; /* offset in a chunk header, see format/chunk_header.h */
    uint8_t size_of_chunk[4];
    uint64_t origin = r->state->header.header_size;
    cv_store_le32(size_of_chunk, (uint32_t)r->state->grid.chunk_bytes);
    for (size_t at = 0; at + CV_CHUNK_HEADER_SIZE <= window->size;) {
        uint64_t size;
        const uint8_t *from = window->data + at + NBYTES_AT;
        size_t left = window->size - CV_CHUNK_HEADER_SIZE - at + sizeof size_of_chunk;
        const uint8_t *hit = cv_os_find(from, left, size_of_chunk, sizeof size_of_chunk);
        if (!hit) break;
        at = (size_t)(hit - window->data) - NBYTES_AT;
        uint64_t chunk = pos + at;
        cv_range range = {CV_FRAME_OBJECT, chunk, end};
        CV_TRY(look_at(r, range, (int64_t)(chunk - origin), &size, err));
        *next = chunk + (size > 0 ? size : 1);
        if (*next - pos >= window->size) return CV_OK;
        at = (size_t)(*next - pos);
    }
    uint64_t searched = pos + window->size - CV_CHUNK_HEADER_SIZE + 1;
    if (*next < searched) *next = searched;
    return CV_OK;
}

static cv_status search_area(refind *r, cv_error *err)
{
    enum { WINDOW = 1 << 20 };
    uint64_t end = r->state->index_pos, pos = r->state->header.header_size;
    r->left = 2 * (end - pos); /* bounds the time if a file consists of headers */
    cv_buffer window = {0};
    cv_status status = CV_OK;
    while (status == CV_OK && pos < end && end - pos >= CV_CHUNK_HEADER_SIZE) {
        uint64_t next = pos, size = end - pos < WINDOW ? end - pos : WINDOW;
        status = cv_buffer_resize(&window, (size_t)size, err);
        if (status == CV_OK &&
            cv_store_read(r->store, CV_FRAME_OBJECT, pos, window.data, window.size, NULL))
            next = pos + size; /* an unreadable range has no chunk */
        else if (status == CV_OK)
            status = refind_search_window(r, &window, pos, end, &next, err);
        pos = next;
    }
    cv_buffer_free(&window);
    return status;
}

static cv_status search_files(refind *r, cv_error *err)
{
    cv_object *files;
    size_t n;
    cv_status status = CV_OK;
    r->left = UINT64_MAX;
    CV_TRY(cv_store_list(r->store, &files, &n, err));
    for (size_t i = 0; i < n && status == CV_OK; i++) {
        uint64_t size, end;
        if (cv_store_size(r->store, files[i], &end, NULL) == CV_OK)
            status = look_at(r, (cv_range){files[i], 0, end}, files[i], &size, err);
    }
    cv_free(files);
    return status;
}

/* Places chunks of other writers: the seal has the positions of these chunks and their tables. */
static cv_status place_strays(refind *r, cv_error *err)
{
    const cv_strays *strays = r->strays;
    cv_range range = {.object = CV_FRAME_OBJECT};
    CV_TRY(cv_store_size(r->store, CV_FRAME_OBJECT, &range.end, err));
    for (int64_t i = 0; strays && i < strays->n; i++) {
        cv_seal_stray s = strays->items[i];
        cv_chunk_header header;
        cv_found_table table;
        if (s.entry < 0) continue;
        range.pos = r->state->header.header_size + (uint64_t)s.entry;
        if (!read_header(r, range, &header)) continue;
        range.pos = s.pos;
        CV_TRY(refind_table(r->store, &r->state->grid, &header, range, &table, err));
        if (table.size > 0) CV_TRY(place(r, table.name, s.entry, err));
    }
    return CV_OK;
}

static cv_status search(refind *r, cv_error *err)
{
    const cv_seal_head *head;
    const cv_index zeros = {.n = r->state->grid.n_chunks,
                            .same = cv_offset_of_kind(CV_REF_ZEROS)};
    CV_TRY(cv_sealed_head(r->state, r->store, &head, err));
    if (!head)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)r->state->index_pos,
                       "the index is lost, and there is no seal");
    CV_TRY(cv_index_share(&zeros, &r->index, err));
    CV_TRY(cv_sealed_read_names(r->state, r->store, head, &r->index, err));
    r->strays = r->index.strays;
    r->index.strays = NULL;
    CV_TRY(list_wanted(r, err));
    CV_TRY(place_strays(r, err));
    CV_TRY(r->store->has_chunk_objects ? search_files(r, err) : search_area(r, err));
    if (r->n_found > 0) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)r->state->index_pos,
                   "the index is lost, and no chunk named by the seal was found");
}

/* Gives `state`, which has trailer and seal, an index of chunks found by their names. Other chunks
 * become zeros. Reads all chunks through a window. CATERVA_ECORRUPT if no chunk is found. */
static cv_status refind_chunks(cv_snapshot *state, cv_store *store, cv_error *err)
{
    refind r = {.state = state, .store = store};
    cv_status status = search(&r, err);
    if (r.strays) r.index.strays = r.strays;
    cv_free(r.wanted);
    if (status != CV_OK) {
        cv_index_free(&r.index);
        return status;
    }
    state->index = r.index;
    atomic_store(&state->index_ready, true);
    return CV_OK;
}

/* ---- Names without a seal ------------------------------------------------ */

static cv_status refind_name(refind *r, int64_t chunk, cv_error *err)
{
    cv_chunk_ref ref;
    cv_chunk_header header;
    cv_found_table table;
    int64_t entry = cv_index_get(&r->state->index, chunk);
    if (cv_offset_is_special(entry)) return CV_OK;
    if (cv_chunk_ref_make(r->state, chunk, entry, &ref, NULL) != CV_OK) return CV_OK;
    cv_range range = {ref.object, ref.pos, r->state->index_pos};
    if (ref.object != CV_FRAME_OBJECT &&
        cv_store_size(r->store, ref.object, &range.end, NULL) != CV_OK)
        return CV_OK;
    CV_TRY(table_behind(r, range, &header, &table, err));
    if (table.size == 0 || table.name == 0) return CV_OK;
    return cv_index_set_name(&r->state->index, chunk, table.name, err);
}

/* Takes the names of chunks from the tables after them, so that their checksums are verified. For a
 * private state that this library wrote, whose seal is lost and whose index is decoded. */
static cv_status refind_names(cv_snapshot *state, cv_store *store, cv_error *err)
{
    refind r = {.state = state, .store = store};
    const cv_index *index = &state->index;
    int64_t n = state->grid.n_chunks;
    if (!index->pages) return CV_OK; /* equal entries: special, or overlapping */
    if (cv_snapshot_check_room(state, store, cv_index_count_stored(index), NULL) != CV_OK)
        return CV_OK; /* all chunks are lost */
    r.left = store->has_chunk_objects ? UINT64_MAX
                                      : 2 * (state->index_pos - state->header.header_size);
    for (int64_t i = 0; i < n; i++) CV_TRY(refind_name(&r, i, err));
    return CV_OK;
}

/* ---- The search for a state -------------------------------------------------------- */

typedef struct rescue_search {
    cv_store *store;
    cv_snapshot *standing; /* the header at the beginning of the frame, or NULL */
    cv_copies copies;
    bool has_last;  /* nothing indicates a commit after the newest copy's */
    bool condemned; /* the seal shows that the standing header is damaged */
} rescue_search;

static cv_status find_copies(rescue_search *s, cv_error *err)
{
    CV_TRY(copies_find(s->store, &s->copies, err));
    s->has_last = s->copies.n > 0 && copies_have_last(&s->copies, s->store);
    return CV_OK;
}

/* Returns whether copy `i` is that of the last commit or of an older one. */
static caterva_found found_by(const rescue_search *s, int i)
{
    return i == 0 && s->has_last ? CATERVA_FOUND_COPY : CATERVA_FOUND_OLDER;
}

static bool is_ours(const cv_snapshot *state)
{
    return state->header.encode_threads == 0 && state->header.decode_threads == 0;
}

/* Returns whether a write of the header was torn. A header that this library wrote has a copy of
 * its own. If it has none, but another copy has the same cbytes, or the newest copy has the same
 * frame size, the header is a mix. If its own copy is only damaged, no other copy matches. */
static bool is_torn(const rescue_search *s, const cv_snapshot *state)
{
    const cv_frame_header *h = &state->header;
    if (!is_ours(state)) return false;
    for (int i = 0; i < s->copies.n; i++) {
        const cv_found_copy *c = &s->copies.items[i];
        bool is_it = c->header.size == state->header_bytes.size &&
                     memcmp(c->header.data, state->header_bytes.data, c->header.size) == 0;
        if (is_it) return false;
    }
    for (int i = 0; i < s->copies.n; i++) {
        const cv_found_copy *c = &s->copies.items[i];
        if (c->cbytes == h->cbytes || (i == 0 && c->frame_size == h->frame_size)) return true;
    }
    return false;
}

/* Returns whether all copies are older than the header, whose own copy is lost: no copy has one of
 * its sizes, or the file indicates a later commit. */
static bool is_older(const rescue_search *s)
{
    if (!s->standing) return false;
    if (s->copies.n > 0 && !s->has_last) return true;
    const cv_frame_header *h = &s->standing->header;
    for (int i = 0; i < s->copies.n; i++)
        if (s->copies.items[i].cbytes == h->cbytes ||
            s->copies.items[i].frame_size == h->frame_size)
            return false;
    return true;
}

/* What must be valid of a state. Without the index, the seal still has the chunks' names. */
typedef enum required { ALL_OF_IT, NO_INDEX, NO_TRAILER, NO_SEAL } required;

/* Loads the trailer, or finds the index without it. */
static cv_status load_end(const rescue_search *s, cv_snapshot *state, required what,
                          cv_error *err)
{
    if (what < NO_TRAILER) return cv_snapshot_load_tail(state, s->store, err);
    CV_TRY(cv_snapshot_find_index(state, s->store, err));
    return what == NO_TRAILER ? cv_sealed_find(state, s->store, err) : CV_OK;
}

/* Loads the end of the state, and its index, decoded. */
static cv_status complete(const rescue_search *s, cv_snapshot *state, required what,
                          cv_error *err)
{
    CV_TRY(load_end(s, state, what, err));
    const cv_index *index;
    if (state->grid.n_chunks == 0) return CV_OK;
    state->refound = what == NO_INDEX;
    if (what == NO_INDEX) return refind_chunks(state, s->store, err);
    CV_TRY(cv_snapshot_index(state, s->store, &index, err));
    return what == NO_SEAL && is_ours(state) ? refind_names(state, s->store, err) : CV_OK;
}

/* Loads the state of these header bytes. A failure leaves nothing behind. */
static cv_status try_header(const rescue_search *s, const cv_buffer *header, required what,
                            cv_snapshot **out, cv_error *err)
{
    cv_snapshot *state;
    CV_TRY(cv_snapshot_from_header(header->data, header->size, &state, err));
    cv_status status = complete(s, state, what, err);
    if (status == CV_OK)
        *out = state;
    else
        cv_snapshot_release(state);
    return status;
}

static void take(cv_rescue *out, cv_snapshot *state, caterva_found found, required what)
{
    out->state = state;
    out->found = found;
    out->trailer_lost = what >= NO_TRAILER;
    out->refound = what == NO_INDEX;
    out->unverified = what == NO_SEAL && is_ours(state) && state->grid.n_chunks > 0;
    out->n_known = state->grid.n_chunks;
}

/* Returns whether the failure (of a read, of memory, or a stop) ends the search. */
static bool is_no_answer(cv_status status)
{
    return status == CATERVA_ENOMEM || status == CATERVA_EIO || status == CATERVA_ESTOPPED;
}

/* Returns the first state of these header bytes that loads, from requirement `first` to `last`. */
static cv_status try_all(const rescue_search *s, const cv_buffer *header, caterva_found found,
                         required first, required last, cv_rescue *out, cv_error *err)
{
    cv_snapshot *state;
    cv_status status = CATERVA_ECORRUPT;
    for (int what = (int)first; what <= (int)last; what++) {
        status = try_header(s, header, (required)what, &state, err);
        if (status == CV_OK) take(out, state, found, (required)what);
        if (status == CV_OK || is_no_answer(status)) break;
    }
    return status;
}

/* Tries the headers in the order given in rescue.h. */
static cv_status try_states(const rescue_search *s, required first, required last,
                            cv_rescue *out, cv_error *err)
{
    bool older = is_older(s); /* the copies are older than the header */
    cv_status status = CATERVA_ECORRUPT;
    int n = s->copies.n + 1, standing = older || s->copies.n == 0 ? 0 : 1;
    for (int i = 0; i < n && status != CV_OK && !is_no_answer(status); i++) {
        int copy = i < standing ? i : i - 1;
        if (i != standing)
            status = try_all(s, &s->copies.items[copy].header,
                             older ? CATERVA_FOUND_OLDER : found_by(s, copy), first, last,
                             out, err);
        else if (s->standing && !s->condemned)
            status = try_all(s, &s->standing->header_bytes, CATERVA_FOUND_STANDING, first,
                             last, out, err);
    }
    return status;
}

/* Tries states of any age that a seal verifies, then those without a seal. */
static cv_status try_all_states(const rescue_search *s, cv_rescue *out, cv_error *err)
{
    cv_status status = try_states(s, ALL_OF_IT, NO_TRAILER, out, err);
    if (status == CV_OK || is_no_answer(status)) return status;
    return try_states(s, NO_SEAL, NO_SEAL, out, err);
}

/* ---- Without an index ------------------------------------------------------- */

/* Makes an index of zeros. The caller has checked that the file has room for the chunks. */
static cv_status own_index(cv_snapshot *state, cv_error *err)
{
    const cv_index zeros = {.n = state->grid.n_chunks,
                            .same = cv_offset_of_kind(CV_REF_ZEROS)};
    return cv_index_share(&zeros, &state->index, err);
}

/* Numbers chunks as in an array written in order, where each follows the last, up to a gap. */
static cv_status number_chunks(cv_store *store, cv_snapshot *state, int64_t *n_known,
                               cv_error *err)
{
    const cv_grid *g = &state->grid;
    uint64_t stored, at = state->header.header_size, end;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    if (!cv_add_u64(at, (uint64_t)state->header.cbytes, &end) || end > stored) end = stored;
    *n_known = 0;
    if ((uint64_t)g->n_chunks > stored * 2) return CV_OK;
    CV_TRY(own_index(state, err));
    while (*n_known < g->n_chunks && at + CV_CHUNK_HEADER_SIZE <= end) {
        uint8_t bytes[CV_CHUNK_HEADER_SIZE];
        cv_chunk_header header;
        cv_chunk_expect expect = {.chunk = *n_known,
                                  .pos = (int64_t)at,
                                  .nbytes = g->chunk_bytes,
                                  .block_size = g->block_bytes,
                                  .item_size = g->item_size,
                                  .max_cbytes = cv_min_i64((int64_t)(end - at), INT32_MAX)};
        CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, at, bytes, sizeof bytes, err));
        if (cv_chunk_header_parse(bytes, &expect, &header, NULL) != CV_OK) break;
        int64_t offset = (int64_t)(at - state->header.header_size);
        cv_found_table table; /* after the chunk */
        CV_TRY(cv_index_set(&state->index, (*n_known)++, offset, 0, err));
        at += (uint64_t)header.cbytes;
        cv_range behind = {CV_FRAME_OBJECT, at, end};
        CV_TRY(refind_table(store, g, &header, behind, &table, err));
        at += table.size;
    }
    return CV_OK;
}

/* Numbers files as in a directory written in order, where they have the numbers of their chunks. */
static cv_status number_files(cv_store *store, cv_snapshot *state, int64_t *n_known,
                              cv_error *err)
{
    cv_object *files;
    size_t n_files;
    CV_TRY(cv_store_list(store, &files, &n_files, err));
    int64_t last = -1;
    for (size_t i = 0; i < n_files; i++) last = cv_max_i64(last, files[i]);
    cv_free(files);
    *n_known = 0;
    if (last + 1 != state->grid.n_chunks || n_files < (size_t)last / 64) return CV_OK;
    CV_TRY(own_index(state, err));
    for (; *n_known <= last; ++*n_known)
        CV_TRY(cv_index_set(&state->index, *n_known, *n_known, 0, err));
    return CV_OK;
}

/* Makes a state from the order of stored chunks. This is a guess, because it is unknown how many
 * special chunks, which are not stored, are missing between two others. */
static cv_status guess_order(rescue_search *s, cv_rescue *out, cv_error *err)
{
    cv_snapshot *state = s->standing;
    int64_t n_known = 0;
    if (state->header.sparse != s->store->has_chunk_objects)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "the header does not fit the file");
    CV_TRY(state->header.sparse ? number_files(s->store, state, &n_known, err)
                                : number_chunks(s->store, state, &n_known, err));
    if (n_known == 0)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "there is no chunk at the position of the first one");
    atomic_store(&state->index_ready, true);
    cv_snapshot_retain(state);
    take(out, state, CATERVA_FOUND_ORDER, NO_SEAL);
    out->n_known = n_known;
    return CV_OK;
}

/* Loads the state of the header, with the checks that opening the frame makes. */
static cv_status try_standing(rescue_search *s, cv_rescue *out)
{
    cv_snapshot *state;
    CV_TRY(cv_snapshot_load_header(s->store, &s->standing, &out->reason));
    CV_TRY(try_header(s, &s->standing->header_bytes, ALL_OF_IT, &state, &out->reason));
    take(out, state, CATERVA_FOUND_STANDING, ALL_OF_IT);
    return CV_OK;
}

static bool has_own_copy(const cv_snapshot *state, cv_store *store)
{
    cv_buffer bytes = {0};
    cv_header_copy copy;
    bool found = false;
    (void)cv_tail_read_copy(state, store, &bytes, &copy, &found, NULL);
    cv_buffer_free(&bytes);
    return found;
}

/* If the header of the state is a mix of two, replaces the state, although it loads. */
static cv_status doubt_standing(rescue_search *s, cv_rescue *out, cv_error *err)
{
    cv_snapshot *state = out->state;
    cv_rescue other = {0};
    if (cv_tail_copy_size(state) == 0 || has_own_copy(state, s->store)) return CV_OK;
    CV_TRY(find_copies(s, err));
    if (!is_torn(s, state)) return CV_OK;
    for (int i = 0; i < s->copies.n; i++) {
        cv_status status = try_all(s, &s->copies.items[i].header, found_by(s, i), ALL_OF_IT,
                                   NO_SEAL, &other, err);
        if (is_no_answer(status)) return status;
        if (status != CV_OK) continue;
        *out = other;
        cv_snapshot_release(state);
        (void)cv_fail(&out->reason, CATERVA_ECORRUPT, 0,
                      "the header is a mix of two, as an interrupted write leaves it");
        break;
    }
    return CV_OK;
}

/* Returns whether a guess would find a state. */
static bool would_guess(rescue_search *s)
{
    cv_rescue out = {0};
    if (!s->standing || guess_order(s, &out, NULL) != CV_OK) return false;
    cv_snapshot_release(out.state);
    return true;
}

static cv_status find(rescue_search *s, bool guess, cv_rescue *out, cv_error *err)
{
    cv_status status = try_standing(s, out);
    if (status == CV_OK) {
        status = doubt_standing(s, out, err);
        if (status == CV_OK) return CV_OK;
        cv_snapshot_release(out->state);
        out->state = NULL; /* after a failure the caller releases nothing */
        return status;
    }
    if (is_no_answer(status)) {
        *err = out->reason;
        return status;
    }
    /* If a header was readable, only its checksum can be wrong at byte 0. */
    s->condemned = s->standing && out->reason.position == 0;
    status = find_copies(s, err);
    if (status == CV_OK) status = try_all_states(s, out, err);
    if (status != CV_OK && !is_no_answer(status) && guess && s->standing)
        status = guess_order(s, out, err);
    if (status == CV_OK || is_no_answer(status)) return status;
    /* Reports the damage, not the reason why the last attempt failed. */
    (void)cv_fail(
        err, out->reason.code, out->reason.position, "%.150s; no other state was found%s",
        out->reason.message,
        !guess && would_guess(s) ? ", but a guess at the chunks' order would find one" : "");
    err->sys_errno = out->reason.sys_errno;
    return out->reason.code;
}

cv_status cv_rescue_find(cv_store *store, bool guess, cv_rescue *out, cv_error *err)
{
    rescue_search s = {.store = store};
    cv_error error = {0};
    *out = (cv_rescue){.reason.position = -1};
    cv_status status = find(&s, guess, out, &error);
    if (status != CV_OK && err) *err = error;
    cv_snapshot_release(s.standing);
    for (int i = 0; i < s.copies.n; i++) drop(&s.copies.items[i]);
    return status;
}

/* In a directory, replaces the whole frame by one with the new header. */
static cv_status replace_header(cv_store *store, const cv_buffer *header, bool durable,
                                cv_error *err)
{
    cv_buffer frame = {0};
    uint64_t size;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &size, err));
    if (size < header->size) /* the frame was longer when the header was found */
        return cv_fail(err, CATERVA_EIO, (int64_t)size, "the frame was truncated meanwhile");
    cv_status status = cv_buffer_resize(&frame, cv_size((int64_t)size), err);
    if (status == CV_OK)
        status = cv_store_read(store, CV_FRAME_OBJECT, 0, frame.data, frame.size, err);
    if (status == CV_OK) {
        memcpy(frame.data, header->data, header->size);
        status = cv_store_replace(store, frame.data, frame.size, durable, err);
    }
    cv_buffer_free(&frame);
    return status;
}

cv_status cv_rescue_write_header(cv_store *store, const cv_snapshot *state, bool durable,
                                 cv_error *err)
{
    const cv_buffer *header = &state->header_bytes;
    CV_TRY(cv_store_check_name(store, err));
    if (store->has_chunk_objects)
        CV_TRY(replace_header(store, header, durable, err));
    else
        CV_TRY(cv_store_write(store, CV_FRAME_OBJECT, 0, header->data, header->size, err));
    if (durable) CV_TRY(cv_store_sync(store, CV_FRAME_OBJECT, err));
    return cv_store_check_name(store, err);
}

/* Appends a copy of the header. Without chunks there is no commit number: the only copy has 1. */
static cv_status make_copy(const cv_snapshot *state, uint64_t size, cv_buffer *out,
                           cv_error *err)
{
    const cv_buffer *header = &state->header_bytes;
    size_t at = out->size;
    CV_TRY(cv_buffer_resize(out, at + (size_t)size, err));
    cv_header_copy_write(state->footer.commit ? state->footer.commit : 1, header->data,
                         (uint32_t)header->size, out->data + at);
    return CV_OK;
}

cv_status cv_rescue_write_copy(cv_store *store, const cv_snapshot *state, bool durable,
                               cv_error *err)
{
    uint64_t pos, size;
    cv_buffer bytes = {0};
    CV_TRY(cv_store_check_name(store, err));
    CV_TRY(cv_tail_own_copy(state, store, &pos, &size, err));
    cv_status status = CV_OK;
    if (store->has_chunk_objects) { /* the frame is replaced as a whole */
        status = cv_buffer_resize(&bytes, cv_size((int64_t)pos), err);
        if (status == CV_OK)
            status = cv_store_read(store, CV_FRAME_OBJECT, 0, bytes.data, bytes.size, err);
    }
    if (status == CV_OK) status = make_copy(state, size, &bytes, err);
    if (status == CV_OK && store->has_chunk_objects)
        status = cv_store_replace(store, bytes.data, bytes.size, durable, err);
    else if (status == CV_OK)
        status = cv_store_write(store, CV_FRAME_OBJECT, pos, bytes.data, bytes.size, err);
    cv_buffer_free(&bytes);
    if (status == CV_OK && durable) status = cv_store_sync(store, CV_FRAME_OBJECT, err);
    return status == CV_OK ? cv_store_check_name(store, err) : status;
}
