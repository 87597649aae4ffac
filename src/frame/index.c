/* Room: frame. The pages of a chunk index: created, shared, copied on change, encoded for a commit.
 * Knows neither the index's position in the file nor the meaning of entries. */
#include "frame/index.h"

#include "base/grid.h"
#include "base/heap.h"
#include "format/chunk_header.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST_ROOM = 16 };

static int64_t pages_for(int64_t n) { return cv_ceil_div(n, CV_INDEX_PAGE); }

/* ---- One page ----------------------------------------------------------- */

/* Allocates a page. The last page of a growing index doubles its capacity until it is full. The
 * caller fills entries and names. */
static cv_status bare_page(int64_t n, cv_index_page **out, cv_error *err)
{
    int room = SMALLEST_ROOM;
    while (room < n) room *= 2;
    size_t each = sizeof(int64_t) + CV_SEAL_NAME;
    size_t size = sizeof(cv_index_page) + (size_t)room * each;
    cv_index_page *page = cv_malloc(size);
    if (!page) return cv_fail_memory(err, size, "the chunk index");
    atomic_init(&page->references, 1);
    page->room = room;
    page->n_encoded = 0;
    page->streams = NULL;
    page->streams_size = 0;
    page->n_summed = 0;
    page->names = (uint8_t *)(page->entries + room);
    *out = page;
    return CV_OK;
}

static cv_status new_page(int64_t n, cv_index_page **out, cv_error *err)
{
    CV_TRY(bare_page(n, out, err));
    memset((*out)->names, 0, (size_t)(*out)->room * CV_SEAL_NAME);
    return CV_OK;
}

static void retain(cv_index_page *page, int n)
{
    atomic_fetch_add_explicit(&page->references, n, memory_order_relaxed);
}

static void release(cv_index_page *page)
{
    if (atomic_fetch_sub_explicit(&page->references, 1, memory_order_acq_rel) > 1) return;
    cv_free(page->streams);
    cv_free(page);
}

/* Makes page `p` the index's own, with room for `n` entries, and forgets how it was encoded. */
static cv_status own_page(cv_index *index, int64_t p, int64_t n, cv_error *err)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): make_room has allocated them */
    cv_index_page *old = index->pages[p];
    bool alone = atomic_load_explicit(&old->references, memory_order_acquire) == 1;
    if (!alone || old->room < n) {
        cv_index_page *page = NULL;
        CV_TRY(bare_page(n > old->room ? n : old->room, &page, err));
        size_t names = (size_t)old->room * CV_SEAL_NAME;
        memcpy(page->entries, old->entries, (size_t)old->room * sizeof(int64_t));
        memcpy(page->names, old->names, names);
        memset(page->names + names, 0, (size_t)page->room * CV_SEAL_NAME - names);
        index->pages[p] = page;
        release(old);
    }
    index->pages[p]->n_encoded = 0;
    index->pages[p]->n_summed = 0;
    return CV_OK;
}

/* ---- Strays ------------------------------------------------------------- */

static void release_strays(cv_strays *strays)
{
    if (!strays) return;
    if (atomic_fetch_sub_explicit(&strays->references, 1, memory_order_acq_rel) == 1)
        cv_free(strays);
}

static int64_t find_stray(const cv_strays *strays, int64_t entry)
{
    int64_t low = 0, high = strays ? strays->n : 0;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (strays->items[middle].entry == entry) return middle;
        if (strays->items[middle].entry < entry)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

uint64_t cv_index_table_pos(const cv_index *index, int64_t chunk)
{
    int64_t i = find_stray(index->strays, cv_index_get(index, chunk));
    return i < 0 ? 0 : index->strays->items[i].pos;
}

static cv_status new_strays(int64_t n, cv_strays **out, cv_error *err)
{
    size_t size = sizeof(cv_strays) + (size_t)n * sizeof(cv_seal_stray);
    cv_strays *strays = cv_malloc(size);
    if (!strays) return cv_fail_memory(err, size, "the list of block tables");
    atomic_init(&strays->references, 1);
    strays->n = n;
    *out = strays;
    return CV_OK;
}

static int by_entry(const void *a, const void *b)
{
    const cv_seal_stray *x = a, *y = b;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

cv_status cv_index_add_strays(cv_index *index, const cv_seal_stray *strays, int64_t n,
                              cv_error *err)
{
    cv_strays *old = index->strays, *all = NULL;
    int64_t n_old = old ? old->n : 0;
    CV_TRY(new_strays(n_old + n, &all, err));
    if (n_old > 0) memcpy(all->items, old->items, (size_t)n_old * sizeof all->items[0]);
    memcpy(all->items + n_old, strays, (size_t)n * sizeof all->items[0]);
    qsort(all->items, (size_t)all->n, sizeof all->items[0], by_entry);
    index->strays = all;
    release_strays(old);
    return CV_OK;
}

cv_status cv_index_prune_strays(cv_index *index, cv_error *err)
{
    cv_strays *old = index->strays, *left = NULL;
    bool *used = cv_calloc((size_t)old->n + 1, sizeof used[0]);
    if (!used) return cv_fail_memory(err, (size_t)old->n, "the list of block tables");
    cv_status status = new_strays(old->n, &left, err);
    for (int64_t i = 0; i < index->n && status == CV_OK; i++) {
        int64_t found = find_stray(old, cv_index_get(index, i));
        if (found >= 0) used[found] = true;
    }
    if (status == CV_OK) {
        left->n = 0;
        for (int64_t i = 0; i < old->n; i++)
            if (used[i]) left->items[left->n++] = old->items[i];
        index->strays = left;
        release_strays(old);
    }
    cv_free(used);
    return status;
}

/* Removes the stray of `entry`, if any: a new chunk there has its table right behind itself. */
static cv_status forget_stray(cv_index *index, int64_t entry, cv_error *err)
{
    cv_strays *old = index->strays, *left = NULL;
    int64_t i = find_stray(old, entry);
    if (i < 0) return CV_OK;
    CV_TRY(new_strays(old->n - 1, &left, err));
    memcpy(left->items, old->items, (size_t)i * sizeof left->items[0]);
    memcpy(left->items + i, old->items + i + 1,
           (size_t)(old->n - 1 - i) * sizeof left->items[0]);
    index->strays = left;
    release_strays(old);
    return CV_OK;
}

/* ---- The table ---------------------------------------------------------- */

/* Allocates twice the space needed, so that a series of appends rarely copies the table. */
static cv_status make_room(cv_index *index, int64_t n_pages, cv_error *err)
{
    if (index->pages && n_pages <= index->max_pages) return CV_OK;
    size_t size = ((size_t)n_pages + 1) * 2 * sizeof(cv_index_page *);
    size_t old = (size_t)index->max_pages * sizeof(cv_index_page *);
    cv_index_page **pages = cv_realloc(index->pages, old, size);
    if (!pages) return cv_fail_memory(err, size, "the chunk index");
    index->pages = pages;
    index->max_pages = (n_pages + 1) * 2;
    return CV_OK;
}

static void drop_pages(cv_index *index, int64_t n_pages)
{
    assert(n_pages >= 0);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): n_pages > 0 only with pages */
    while (index->n_pages > n_pages) release(index->pages[--index->n_pages]);
}

void cv_index_free(cv_index *index)
{
    drop_pages(index, 0);
    cv_free(index->pages);
    release_strays(index->strays);
    *index = (cv_index){0};
}

cv_status cv_index_add_page(cv_index *index, int64_t n, cv_index_page **out, cv_error *err)
{
    CV_TRY(make_room(index, index->n_pages + 1, err));
    CV_TRY(new_page(n, out, err));
    index->pages[index->n_pages++] = *out;
    return CV_OK;
}

/* Not memcmp: musl's compares byte by byte. */
static bool are_equal(const int64_t *a, const int64_t *b, int n)
{
    int i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i == n;
}

int64_t cv_index_join_page(cv_index *index, int n)
{
    cv_index_page **at = &index->pages[index->n_pages - 1], *page = *at;
    if (index->n_pages > 1 && n == CV_INDEX_PAGE &&
        are_equal(at[-1]->entries, page->entries, n)) {
        release(page);
        retain(at[-1], 1);
        *at = at[-1];
        return 0;
    }
    return (int64_t)sizeof *page + page->room * (int64_t)(sizeof(int64_t) + CV_SEAL_NAME);
}

cv_status cv_index_create(int64_t n, cv_index *out, cv_error *err)
{
    cv_index index = {.n = n};
    cv_status status = make_room(&index, pages_for(n), err);
    for (int64_t left = n; left > 0 && status == CV_OK; left -= CV_INDEX_PAGE) {
        status = new_page(cv_min_i64(left, CV_INDEX_PAGE), &index.pages[index.n_pages], err);
        if (status == CV_OK) index.n_pages++;
    }
    if (status != CV_OK) {
        cv_index_free(&index);
        return status;
    }
    *out = index;
    return CV_OK;
}

cv_status cv_index_share(const cv_index *from, cv_index *out, cv_error *err)
{
    cv_index index = {.n = 0};
    cv_status status = make_room(&index, pages_for(from->n), err);
    if (status == CV_OK && !from->pages)
        status = cv_index_resize(&index, from->n, from->same, err);
    if (status != CV_OK) {
        cv_index_free(&index);
        return status;
    }
    index.strays = from->strays;
    if (index.strays)
        atomic_fetch_add_explicit(&index.strays->references, 1, memory_order_relaxed);
    if (from->pages) {
        index.n = from->n;
        index.n_pages = from->n_pages;
        for (int64_t p = 0; p < from->n_pages; p++) {
            index.pages[p] = from->pages[p];
            retain(index.pages[p], 1);
        }
    }
    *out = index;
    return CV_OK;
}

/* ---- Changes ------------------------------------------------------------ */

cv_status cv_index_set(cv_index *index, int64_t chunk, int64_t entry, uint32_t name,
                       cv_error *err)
{
    int64_t p = chunk / CV_INDEX_PAGE;
    CV_TRY(own_page(index, p, 0, err));
    CV_TRY(forget_stray(index, entry, err));
    index->pages[p]->entries[chunk % CV_INDEX_PAGE] = entry;
    cv_page_set_name(index->pages[p], chunk % CV_INDEX_PAGE, name);
    return CV_OK;
}

cv_status cv_index_set_name(cv_index *index, int64_t chunk, uint32_t name, cv_error *err)
{
    int64_t p = chunk / CV_INDEX_PAGE;
    CV_TRY(own_page(index, p, 0, err));
    cv_page_set_name(index->pages[p], chunk % CV_INDEX_PAGE, name);
    return CV_OK;
}

cv_status cv_index_set_names(cv_index *index, int64_t p, const uint8_t *names, size_t size,
                             cv_error *err)
{
    if (!index->pages) {
        cv_index paged;
        CV_TRY(cv_index_share(index, &paged, err));
        cv_index_free(index);
        *index = paged;
    }
    CV_TRY(own_page(index, p, 0, err));
    memcpy(index->pages[p]->names, names, size);
    return CV_OK;
}

static void fill(cv_index_page *page, int64_t from, int64_t to, int64_t entry)
{
    for (int64_t i = from; i < to; i++) {
        page->entries[i] = entry;
        cv_page_set_name(page, i, 0);
    }
}

/* All pages of new entries are equal: the full ones share one page. */
static cv_status add_pages(cv_index *index, int64_t n, int64_t entry, cv_error *err)
{
    int64_t n_full = n / CV_INDEX_PAGE, rest = n % CV_INDEX_PAGE;
    cv_index_page *full = NULL, *last = NULL;
    if (n_full > index->n_pages) CV_TRY(new_page(CV_INDEX_PAGE, &full, err));
    cv_status status =
        rest > 0 && index->n_pages <= n_full ? new_page(rest, &last, err) : CV_OK;
    if (status != CV_OK) {
        if (full) release(full);
        return status;
    }
    if (full) {
        fill(full, 0, CV_INDEX_PAGE, entry);
        retain(full, (int)(n_full - index->n_pages - 1));
        while (index->n_pages < n_full) index->pages[index->n_pages++] = full;
    }
    if (last) {
        fill(last, 0, rest, entry);
        index->pages[index->n_pages++] = last;
    }
    return CV_OK;
}

cv_status cv_index_resize(cv_index *index, int64_t n, int64_t entry, cv_error *err)
{
    int64_t old = index->n, last = old / CV_INDEX_PAGE, used = old % CV_INDEX_PAGE;
    if (n <= old) {
        drop_pages(index, pages_for(n));
        index->n = n;
        return CV_OK;
    }
    int64_t in_last = cv_min_i64(n - last * CV_INDEX_PAGE, CV_INDEX_PAGE);
    CV_TRY(make_room(index, pages_for(n), err));
    if (used > 0) CV_TRY(own_page(index, last, in_last, err));
    CV_TRY(add_pages(index, n, entry, err));
    if (used > 0) fill(index->pages[last], used, in_last, entry);
    index->n = n;
    return CV_OK;
}

/* ---- Searching ------------------------------------------------------------ */

int64_t cv_index_count_stored(const cv_index *index)
{
    int64_t n = 0;
    if (!index->pages) return cv_offset_is_special(index->same) ? 0 : index->n;
    for (int64_t i = 0; i < index->n; i++) n += !cv_offset_is_special(cv_index_get(index, i));
    return n;
}

int64_t cv_index_next(const cv_index *index, int64_t chunk, int64_t same)
{
    if (!index->pages && index->same == same && cv_offset_is_special(same)) return index->n;
    while (chunk < index->n && cv_index_get(index, chunk) == same &&
           cv_offset_is_special(same))
        chunk++;
    return chunk;
}

/* ---- Encoding ----
 *
 * The encoded index is a chunk with a block for each page. A page that has not changed keeps its
 * streams.
 *
 *     | header | starts | streams of page 0 | page 1 | ... | last page | */

/* LZ4 encodes these blocks three times as fast as BloscLZ, to the same size. */
static const cv_codec_spec index_spec = {
    .codec = CATERVA_CODEC_LZ4,
    .level = 5,
    .split_mode = 2, /* never */
    .filters = {0, 0, 0, 0, 0, CATERVA_FILTER_SHUFFLE},
    .item_size = sizeof(int64_t),
    .block_bytes = CV_INDEX_PAGE_BYTES,
    .chunk_bytes = CV_INDEX_PAGE_BYTES,
};

/* Fewer entries are not worth a repeated value (LEAST_REPEATED) or blocks (LEAST_PAGED). */
enum { LEAST_REPEATED = 8, LEAST_PAGED = 16 };

typedef struct encoding {
    const cv_index *index;
    cv_encoder *encoder;
    cv_buffer *out;
    size_t origin; /* position of the chunk in `out` */
    bool possible; /* false: the index must be encoded as a whole */
} encoding;

/* ---- All entries at once ------------------------------------------------ */

static bool all_equal(const cv_index *index)
{
    int64_t first = cv_index_get(index, 0);
    for (int64_t p = 0; p < index->n_pages; p++) {
        const cv_index_page *page = index->pages[p];
        int64_t n = cv_min_i64(index->n - p * CV_INDEX_PAGE, CV_INDEX_PAGE);
        if (p > 0 && page == index->pages[p - 1]) continue;
        for (int64_t i = 0; i < n; i++)
            if (page->entries[i] != first) return false;
    }
    return true;
}

/* Stores entries little-endian on any machine. */
static void store_entries(uint8_t *dst, const int64_t *entries, int64_t n)
{
    if (CV_LITTLE_ENDIAN) { /* every commit stores the last page: fast path */
        memcpy(dst, entries, (size_t)n * sizeof entries[0]);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        cv_store_le64(dst + i * (int64_t)sizeof(int64_t), (uint64_t)entries[i]);
}

static cv_status encode_same(const cv_index *index, cv_buffer *out, cv_error *err)
{
    cv_codec_spec spec = index_spec;
    int64_t entry = cv_index_get(index, 0);
    uint8_t item[sizeof entry];
    store_entries(item, &entry, 1);
    spec.chunk_bytes = (int32_t)(index->n * (int64_t)sizeof(int64_t));
    cv_buffer chunk = {0};
    cv_status status = cv_encode_repeated(&spec, item, &chunk, err);
    if (status == CV_OK) status = cv_buffer_append(out, chunk.data, chunk.size, err);
    cv_buffer_free(&chunk);
    return status;
}

static cv_status encode_whole(encoding *e, cv_error *err)
{
    const cv_index *index = e->index;
    size_t size = (size_t)index->n * sizeof(int64_t);
    cv_buffer entries = {0}, chunk = {0};
    cv_status status = cv_buffer_resize(&entries, size, err);
    for (int64_t i = 0; i < index->n && status == CV_OK; i++)
        cv_store_le64(entries.data + i * (int64_t)sizeof(int64_t),
                      (uint64_t)cv_index_get(index, i));
    if (status == CV_OK)
        status = cv_encode_bytes(&index_spec, entries.data, (int32_t)size, &chunk, err);
    if (status == CV_OK) status = cv_buffer_append(e->out, chunk.data, chunk.size, err);
    cv_buffer_free(&entries);
    cv_buffer_free(&chunk);
    return status;
}

/* ---- Page by page ------------------------------------------------------- */

static cv_status encode_page(encoding *e, cv_index_page *page, int n, cv_error *err)
{
    size_t before = e->out->size;
    uint8_t bytes[CV_INDEX_PAGE_BYTES];
    store_entries(bytes, page->entries, n);
    CV_TRY(cv_encode_block(e->encoder, bytes, n * (int)sizeof(int64_t), e->out, page->header,
                           err));
    size_t size = e->out->size - before;
    e->possible = size > 0;
    if (!e->possible) return CV_OK;
    uint8_t *streams = cv_realloc(page->streams, page->streams_size, size);
    if (!streams) return cv_fail_memory(err, size, "the encoded index");
    memcpy(streams, e->out->data + before, size);
    page->streams = streams;
    page->streams_size = size;
    page->n_encoded = n;
    return CV_OK;
}

static cv_status append_page(encoding *e, int64_t p, cv_error *err)
{
    const cv_index *index = e->index;
    cv_index_page *page = index->pages[p];
    int n = (int)cv_min_i64(index->n - p * CV_INDEX_PAGE, CV_INDEX_PAGE);
    uint8_t *starts = e->out->data + e->origin + CV_CHUNK_HEADER_SIZE;
    cv_store_le32(starts + p * (int64_t)sizeof(int32_t),
                  (uint32_t)(e->out->size - e->origin));
    if (page->n_encoded == n)
        CV_TRY(cv_buffer_append(e->out, page->streams, page->streams_size, err));
    else
        CV_TRY(encode_page(e, page, n, err));
    e->possible =
        e->possible && cv_codec_same_encoding(index->pages[0]->header, page->header);
    return CV_OK;
}

static cv_status encode_pages(encoding *e, cv_error *err)
{
    const cv_index *index = e->index;
    size_t starts = (size_t)index->n_pages * sizeof(int32_t);
    size_t most = (size_t)index->n * sizeof(int64_t); /* a longer result is discarded */
    e->possible = index->n >= LEAST_PAGED;
    if (!e->possible) return CV_OK;
    CV_TRY(cv_buffer_resize(e->out, e->origin + CV_CHUNK_HEADER_SIZE + starts, err));
    for (int64_t p = 0; p < index->n_pages && e->possible; p++) {
        CV_TRY(append_page(e, p, err));
        e->possible = e->possible && e->out->size - e->origin <= most;
    }
    if (!e->possible) return CV_OK;
    uint8_t *header = e->out->data + e->origin;
    memcpy(header, index->pages[0]->header, CV_CHUNK_HEADER_SIZE);
    if (index->n_pages == 1) /* the only block is as large as the chunk */
        cv_codec_set_block_size(header, (int32_t)most);
    cv_codec_set_sizes(header, (int32_t)most, (int32_t)(e->out->size - e->origin));
    return CV_OK;
}

cv_status cv_index_encode(const cv_index *index, cv_encoder **encoder, cv_buffer *out,
                          cv_error *err)
{
    int64_t most = CV_MAX_CHUNK_BYTES / (int64_t)sizeof(int64_t);
    if (index->n > most)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "an index of %lld chunks, the format allows %lld", (long long)index->n,
                       (long long)most);
    if (index->n >= LEAST_REPEATED && all_equal(index)) return encode_same(index, out, err);
    if (!*encoder) CV_TRY(cv_encoder_create(&index_spec, encoder, err));

    encoding e = {.index = index, .encoder = *encoder, .out = out, .origin = out->size};
    cv_status status = encode_pages(&e, err);
    if (status != CV_OK || !e.possible) out->size = e.origin;
    if (status == CV_OK && !e.possible) status = encode_whole(&e, err);
    return status;
}
