/* Room: frame/repair. Where a chunk may begin is seen by its size, which all have in their
 * headers; that it is one, and which, its block table says. */
#include "frame/repair/refind.h"

#include "base/arith.h"
#include "base/heap.h"
#include "format/chunk_header.h"
#include "frame/lookup.h"
#include "frame/sealed.h"

#include <stdlib.h>
#include <string.h>

typedef struct wanted {
    uint32_t name;
    int64_t chunk;
    int64_t n_taken; /* in the first of a name: so many from here on have their chunk */
} wanted;

typedef struct refind {
    cv_snapshot *state;
    cv_store *store;
    cv_index index;
    cv_strays *strays; /* the index's, which would forget those of entries that it is given */
    wanted *wanted;    /* ascending by name */
    int64_t n_wanted, n_found;
    uint64_t left; /* bytes of tables that may still be looked at */
} refind;

/* ---- Names -------------------------------------------------------------- */

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

/* The first of this name that has no chunk yet: equal chunks have equal names. */
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

/* The entry in the index becomes that of the chunk with this name, if one is wanted. */
static cv_status place(refind *r, uint32_t name, int64_t entry, cv_error *err)
{
    wanted *w = name != 0 ? take_wanted(r, name) : NULL;
    if (!w) return CV_OK;
    r->n_found++;
    CV_TRY(cv_index_set(&r->index, w->chunk, entry, err));
    return cv_index_set_name(&r->index, w->chunk, name, err);
}

/* ---- Chunks ------------------------------------------------------------- */

cv_status cv_refind_table(cv_store *store, const cv_grid *grid, const cv_chunk_header *header,
                          cv_range range, cv_found_table *out, cv_error *err)
{
    cv_block_table table = {.n = cv_block_table_blocks(header, grid->n_blocks)};
    size_t size = cv_block_table_size(table.n);
    cv_buffer bytes = {0};
    *out = (cv_found_table){0};
    if (range.pos > range.end || range.end - range.pos < size) return CV_OK;
    cv_status status = cv_buffer_resize(&bytes, 2 * size, err); /* as stored; as numbers */
    if (status == CV_OK)
        status = cv_store_read(store, range.object, range.pos, bytes.data, size, err);
    table.blocks = (uint32_t *)(void *)(bytes.data + size);
    if (status == CV_OK && cv_block_table_read(bytes.data, &table))
        *out = (cv_found_table){size, cv_block_table_name(bytes.data, table.n)};
    cv_buffer_free(&bytes);
    return status;
}

/* The header of a chunk where `range` begins; false when there can be none. */
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

/* The table right behind the chunk at the range's beginning; its size is 0 when there is
 * none, or when looking for tables has cost enough. */
static cv_status table_behind(refind *r, cv_range range, cv_chunk_header *header,
                              cv_found_table *table, cv_error *err)
{
    uint64_t cost = cv_block_table_size(r->state->grid.n_blocks);
    *table = (cv_found_table){.size = 0};
    if (!read_header(r, range, header) || r->left < cost) return CV_OK;
    r->left -= cost;
    range.pos += (uint64_t)header->cbytes;
    return cv_refind_table(r->store, &r->state->grid, header, range, table, err);
}

/* *size: bytes of chunk and table; 0: there are none. */
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

/* Chunks that begin in `window`, which stands at `pos`; *next is where to go on. */
static cv_status search_window(refind *r, const cv_buffer *window, uint64_t pos, uint64_t end,
                               uint64_t *next, cv_error *err)
{
    enum { NBYTES_AT = 4 }; /* in a chunk's header, see format/chunk_header.h */
    uint8_t size_of_chunk[4];
    uint64_t origin = r->state->header.header_size;
    cv_store_le32(size_of_chunk, (uint32_t)r->state->grid.chunk_bytes);
    for (size_t at = 0; at + CV_CHUNK_HEADER_SIZE <= window->size;) {
        uint64_t size;
        const uint8_t *from = window->data + at + NBYTES_AT;
        size_t left = window->size - CV_CHUNK_HEADER_SIZE - at + sizeof size_of_chunk;
        const uint8_t *hit = memmem(from, left, size_of_chunk, sizeof size_of_chunk);
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
    r->left = 2 * (end - pos); /* a file made of headers could cost any time */
    cv_buffer window = {0};
    cv_status status = CV_OK;
    while (status == CV_OK && pos < end && end - pos >= CV_CHUNK_HEADER_SIZE) {
        uint64_t next = pos, size = end - pos < WINDOW ? end - pos : WINDOW;
        status = cv_buffer_resize(&window, (size_t)size, err);
        if (status == CV_OK &&
            cv_store_read(r->store, CV_FRAME_OBJECT, pos, window.data, window.size, NULL))
            next = pos + size; /* what cannot be read holds no chunk */
        else if (status == CV_OK)
            status = search_window(r, &window, pos, end, &next, err);
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

/* Chunks of another writer that were sealed where they lie: the seal says where both
 * chunk and table are. */
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
        CV_TRY(cv_refind_table(r->store, &r->state->grid, &header, range, &table, err));
        if (table.size > 0) CV_TRY(place(r, table.name, s.entry, err));
    }
    return CV_OK;
}

/* ---- All ---------------------------------------------------------------- */

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
                   "the index is lost, and no chunk of the seal's is there");
}

cv_status cv_refind_chunks(cv_snapshot *state, cv_store *store, cv_error *err)
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

/* ---- Names without a seal ----------------------------------------------- */

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

cv_status cv_refind_names(cv_snapshot *state, cv_store *store, cv_error *err)
{
    refind r = {.state = state, .store = store};
    const cv_index *index = &state->index;
    int64_t n = state->grid.n_chunks;
    if (!index->pages) return CV_OK; /* equal entries: special, or they overlap */
    if (cv_snapshot_check_room(state, store, cv_index_count_stored(index), NULL) != CV_OK)
        return CV_OK; /* they are all lost */
    r.left = store->has_chunk_objects ? UINT64_MAX
                                      : 2 * (state->index_pos - state->header.header_size);
    for (int64_t i = 0; i < n; i++) CV_TRY(refind_name(&r, i, err));
    return CV_OK;
}
