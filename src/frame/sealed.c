/* Room: frame. Reads and writes what stands between index and trailer. The root
 * is checked when a snapshot is loaded; from there on each level is checked when
 * it is read, and each read once. */
#include "frame/sealed.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "format/chunk_header.h"
#include "format/frame_header.h"
#include "format/seal.h"

#include <string.h>

/* ---- Sealed ---- */

static uint64_t seal_pos(const cv_snapshot *s) { return s->index_pos + s->index_size; }

static uint64_t list_pos(const cv_snapshot *s) { return seal_pos(s) + s->footer.head_size; }

static uint64_t strays_pos(const cv_snapshot *s, const cv_seal_head *head)
{
    uint64_t size = (uint64_t)head->n_strays * CV_SEAL_STRAY_SIZE;
    return seal_pos(s) + s->footer.size - CV_SEAL_FOOTER - size;
}

static cv_status fail_seal(uint64_t pos, cv_error *err)
{
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                   "the seal is damaged: checksum differs at byte %llu",
                   (unsigned long long)pos);
}

/* ---- The head ----------------------------------------------------------- */

static cv_status parse_head(const cv_snapshot *s, const uint8_t *bytes, cv_seal_head *out,
                            cv_error *err)
{
    const cv_seal_footer *footer = &s->footer;
    uint64_t size;
    if (cv_crc32c(0, bytes, footer->head_size) != footer->head_crc)
        return fail_seal(seal_pos(s), err);
    CV_TRY(cv_seal_head_parse(bytes, footer->head_size, (int64_t)seal_pos(s),
                              s->grid.n_chunks, out, err));
    if (cv_seal_size(out, footer->head_size, &size) && size == footer->size) return CV_OK;
    cv_seal_head_free(out);
    return fail_seal(seal_pos(s), err);
}

static cv_status read_head(const cv_snapshot *s, cv_store *store, cv_seal_head *out,
                           cv_error *err)
{
    cv_buffer bytes = {0};
    cv_status status = cv_buffer_resize(&bytes, s->footer.head_size, err);
    if (status == CV_OK)
        status =
            cv_store_read(store, CV_FRAME_OBJECT, seal_pos(s), bytes.data, bytes.size, err);
    if (status == CV_OK) status = parse_head(s, bytes.data, out, err);
    cv_buffer_free(&bytes);
    return status;
}

static bool is_sealed(const cv_snapshot *s)
{
    return s->seal != CV_SEAL_NONE && s->grid.n_chunks > 0;
}

cv_status cv_sealed_head(cv_snapshot *s, cv_store *store, const cv_seal_head **out,
                         cv_error *err)
{
    *out = NULL;
    if (!is_sealed(s) || s->unchecked) return CV_OK;
    cv_status status = CV_OK;
    if (!atomic_load_explicit(&s->head_ready, memory_order_acquire)) {
        cv_mutex_lock(&s->head_lock);
        if (!atomic_load_explicit(&s->head_ready, memory_order_relaxed)) {
            status = read_head(s, store, &s->head, err);
            if (status == CV_OK)
                atomic_store_explicit(&s->head_ready, true, memory_order_release);
        }
        cv_mutex_unlock(&s->head_lock);
    }
    *out = &s->head;
    return status;
}

/* ---- The index ---------------------------------------------------------- */

/* The sums of an encoded index are those of a block table: what stands before the
 * first block, and each block. */
static cv_status parse_index(const uint8_t *bytes, size_t size, int64_t n, int64_t pos,
                             cv_chunk_header *header, cv_error *err)
{
    cv_chunk_expect expect = {.chunk = -1,
                              .pos = pos,
                              .nbytes = n * (int64_t)sizeof(int64_t),
                              .item_size = sizeof(int64_t),
                              .max_cbytes = (int64_t)size};
    CV_TRY(cv_chunk_header_parse(bytes, &expect, header, err));
    if ((size_t)header->cbytes == size) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, pos,
                   "the index chunk at byte %lld has not its size", (long long)pos);
}

static int64_t count_blocks(const cv_chunk_header *header)
{
    return cv_block_starts_size(header) / (int64_t)sizeof(int32_t);
}

/* table->n and table->blocks are given. */
static cv_status sum_index(const uint8_t *bytes, const cv_chunk_header *header, int64_t pos,
                           cv_block_table *table, cv_error *err)
{
    cv_chunk_expect expect = {.chunk = -1, .pos = pos};
    cv_buffer ranges = {0};
    cv_status status =
        cv_buffer_resize(&ranges, (size_t)table->n * sizeof(cv_block_range) + 1, err);
    cv_block_range *r = (cv_block_range *)(void *)ranges.data;
    if (status == CV_OK && table->n > 0)
        status = cv_block_starts_parse(header, bytes + CV_CHUNK_HEADER_SIZE, table->n,
                                       &expect, r, err);
    if (status == CV_OK) cv_block_table_make(bytes, header, r, table);
    cv_buffer_free(&ranges);
    return status;
}

cv_status cv_sealed_fail_index(const cv_snapshot *s, cv_error *err)
{
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                   "the index chunk at byte %lld is damaged: checksum differs",
                   (long long)s->index_pos);
}

static cv_status compare_index(const cv_snapshot *s, const cv_seal_head *head,
                               const uint8_t *bytes, uint32_t *sums, cv_error *err)
{
    cv_chunk_header header;
    int64_t pos = (int64_t)s->index_pos;
    size_t size = (size_t)s->index_size;
    cv_block_table table = {.n = head->n_index_blocks, .blocks = sums};
    if (parse_index(bytes, size, head->n_chunks, pos, &header, NULL) != CV_OK ||
        count_blocks(&header) != table.n)
        return cv_sealed_fail_index(s, err);
    cv_error reason = {0};
    cv_status status = sum_index(bytes, &header, pos, &table, &reason);
    if (status == CATERVA_ENOMEM) return cv_fail_memory(err, size, "the chunk index");
    bool equal = status == CV_OK && table.head == head->index_head &&
                 memcmp(sums, head->index_blocks, (size_t)table.n * sizeof sums[0]) == 0;
    return equal ? CV_OK : cv_sealed_fail_index(s, err);
}

cv_status cv_sealed_check_index(const cv_snapshot *s, const cv_seal_head *head,
                                const uint8_t *bytes, cv_error *err)
{
    size_t size = (size_t)head->n_index_blocks * sizeof(uint32_t) + 1;
    uint32_t *sums = cv_malloc(size);
    if (!sums) return cv_fail_memory(err, size, "the seal");
    cv_status status = compare_index(s, head, bytes, sums, err);
    cv_free(sums);
    return status;
}

cv_status cv_sealed_check_part(const cv_snapshot *s, uint32_t sum, const void *bytes,
                               size_t size, cv_error *err)
{
    return cv_crc32c(0, bytes, size) == sum ? CV_OK : cv_sealed_fail_index(s, err);
}

static cv_status find_head(cv_snapshot *s, cv_store *store, cv_buffer *bytes, cv_error *err)
{
    uint8_t index[CV_CHUNK_HEADER_SIZE];
    cv_chunk_header header;
    cv_seal_head head;
    int64_t n = s->grid.n_chunks, pos = (int64_t)s->index_pos;
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, s->index_pos, index, sizeof index, err));
    CV_TRY(parse_index(index, (size_t)s->index_size, n, pos, &header, err));
    size_t size = cv_seal_head_size(n, count_blocks(&header));
    uint64_t whole;
    CV_TRY(cv_buffer_resize(bytes, size, err));
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, seal_pos(s), bytes->data, size, err));
    CV_TRY(cv_seal_head_parse(bytes->data, size, (int64_t)seal_pos(s), n, &head, err));
    bool fits = cv_seal_size(&head, size, &whole);
    cv_seal_head_free(&head);
    if (!fits) return fail_seal(seal_pos(s), err);
    s->footer = (cv_seal_footer){.size = whole,
                                 .head_size = (uint32_t)size,
                                 .head_crc = cv_crc32c(0, bytes->data, size)};
    s->seal = CV_SEAL_NO_HEADER;
    return CV_OK;
}

cv_status cv_sealed_find(cv_snapshot *s, cv_store *store, cv_error *err)
{
    cv_buffer bytes = {0};
    cv_status status = s->grid.n_chunks > 0 ? find_head(s, store, &bytes, err) : CV_OK;
    cv_buffer_free(&bytes);
    return status;
}

/* ---- The names ---------------------------------------------------------- */

/* Page `p` of the list, checked; `bytes` has room for a page. */
static cv_status read_page(const cv_snapshot *s, cv_store *store, const cv_seal_head *head,
                           int64_t p, uint8_t *bytes, cv_error *err)
{
    size_t size = cv_seal_page_size(head->n_chunks, p);
    if (head->pages[p] == 0) {
        memset(bytes, 0, size);
        return CV_OK;
    }
    uint64_t pos = list_pos(s) + cv_seal_page_pos(head, p);
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, pos, bytes, size, err));
    return cv_seal_page_sum(bytes, size) == head->pages[p] ? CV_OK : fail_seal(pos, err);
}

cv_status cv_sealed_read_name(const cv_snapshot *s, cv_store *store, const cv_seal_head *head,
                              int64_t chunk, uint32_t *out, cv_error *err)
{
    uint8_t bytes[CV_SEAL_NAME * CV_SEAL_PAGE];
    CV_TRY(read_page(s, store, head, chunk / CV_SEAL_PAGE, bytes, err));
    *out = cv_load_le32(bytes + CV_SEAL_NAME * (chunk % CV_SEAL_PAGE));
    return CV_OK;
}

/* An index of equal entries gets pages when there is a name to keep. */
static cv_status make_pages(cv_index *index, cv_error *err)
{
    if (index->pages) return CV_OK;
    cv_index paged;
    CV_TRY(cv_index_share(index, &paged, err));
    cv_index_free(index);
    *index = paged;
    return CV_OK;
}

static cv_status read_pages(const cv_snapshot *s, cv_store *store, const cv_seal_head *head,
                            cv_index *index, cv_error *err)
{
    uint8_t bytes[CV_SEAL_NAME * CV_SEAL_PAGE];
    for (int64_t p = 0; p < cv_seal_pages(head->n_chunks); p++) {
        if (head->pages[p] == 0) continue;
        CV_TRY(read_page(s, store, head, p, bytes, err));
        CV_TRY(make_pages(index, err));
        cv_index_page *page;
        CV_TRY(cv_index_own_page(index, p, &page, err));
        memcpy(page->names, bytes, cv_seal_page_size(head->n_chunks, p));
    }
    return CV_OK;
}

static cv_status read_strays(const cv_snapshot *s, cv_store *store, const cv_seal_head *head,
                             cv_buffer *bytes, cv_error *err)
{
    uint64_t pos = strays_pos(s, head);
    CV_TRY(cv_buffer_resize(bytes, (size_t)head->n_strays * CV_SEAL_STRAY_SIZE, err));
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, pos, bytes->data, bytes->size, err));
    if (cv_crc32c(0, bytes->data, bytes->size) == head->strays_crc) return CV_OK;
    return fail_seal(pos, err);
}

static cv_status parse_strays(const cv_buffer *bytes, cv_index *index, cv_error *err)
{
    int64_t n = (int64_t)(bytes->size / CV_SEAL_STRAY_SIZE);
    CV_TRY(cv_strays_create(n, &index->strays, err));
    for (int64_t i = 0; i < n; i++)
        index->strays->items[i] = cv_seal_stray_read(bytes->data + i * CV_SEAL_STRAY_SIZE);
    return CV_OK;
}

cv_status cv_sealed_read_names(const cv_snapshot *s, cv_store *store,
                               const cv_seal_head *head, cv_index *index, cv_error *err)
{
    CV_TRY(read_pages(s, store, head, index, err));
    if (head->n_strays == 0) return CV_OK;
    cv_buffer bytes = {0};
    cv_status status = read_strays(s, store, head, &bytes, err);
    if (status == CV_OK) status = parse_strays(&bytes, index, err);
    cv_buffer_free(&bytes);
    return status;
}

/* ---- Writing ------------------------------------------------------------ */

/* Memory for the sums of `n_blocks` blocks of the index and of all pages. */
static cv_status new_head(const cv_index *index, int64_t n_blocks, cv_seal_head *head,
                          cv_error *err)
{
    size_t n = (size_t)(n_blocks + cv_seal_pages(index->n));
    *head = (cv_seal_head){.n_chunks = index->n, .n_index_blocks = n_blocks};
    head->index_blocks = cv_malloc(n * sizeof(uint32_t));
    if (!head->index_blocks) return cv_fail_memory(err, n * sizeof(uint32_t), "the seal");
    head->pages = head->index_blocks + n_blocks;
    return CV_OK;
}

/* A page that has not changed since it was last summed is not summed again. */
static uint32_t sum_page(cv_index_page *page, size_t size)
{
    int n = (int)(size / CV_SEAL_NAME);
    if (page->n_summed != n) page->sum = cv_seal_page_sum(page->names, size);
    page->n_summed = n;
    return page->sum;
}

static cv_status append_list(const cv_index *index, cv_seal_head *head, cv_buffer *out,
                             cv_error *err)
{
    for (int64_t p = 0; p < cv_seal_pages(index->n); p++) {
        head->pages[p] = 0;
        if (!index->pages) continue;
        cv_index_page *page = index->pages[p];
        size_t size = cv_seal_page_size(index->n, p);
        head->pages[p] = sum_page(page, size);
        if (head->pages[p] != 0) CV_TRY(cv_buffer_append(out, page->names, size, err));
    }
    return CV_OK;
}

uint32_t cv_sealed_names(const cv_index *index)
{
    uint32_t names = 0;
    for (int64_t p = 0; p < cv_seal_pages(index->n); p++) {
        size_t size = cv_seal_page_size(index->n, p);
        names = cv_layouts_names(names, index->pages ? sum_page(index->pages[p], size) : 0);
    }
    return names;
}

static cv_status append_strays(const cv_strays *strays, cv_seal_head *head, cv_buffer *out,
                               cv_error *err)
{
    size_t at = out->size;
    head->n_strays = strays ? strays->n : 0;
    CV_TRY(cv_buffer_resize(out, at + (size_t)head->n_strays * CV_SEAL_STRAY_SIZE, err));
    for (int64_t i = 0; i < head->n_strays; i++)
        cv_seal_stray_write(&strays->items[i], out->data + at + i * CV_SEAL_STRAY_SIZE);
    head->strays_crc = cv_crc32c(0, out->data + at, out->size - at);
    return CV_OK;
}

/* The head is encoded last, when all sums are known, into the room before the
 * list. */
static cv_status append_parts(const cv_index *index, cv_seal_head *head, cv_buffer *out,
                              cv_seal_footer *footer, cv_error *err)
{
    size_t at = out->size;
    size_t head_size = cv_seal_head_size(head->n_chunks, head->n_index_blocks);
    CV_TRY(cv_buffer_resize(out, at + head_size, err));
    CV_TRY(append_list(index, head, out, err));
    CV_TRY(append_strays(index->strays, head, out, err));
    size_t end = out->size;
    CV_TRY(cv_buffer_resize(out, end + CV_SEAL_FOOTER, err));
    cv_seal_head_write(head, out->data + at);
    footer->size = end + CV_SEAL_FOOTER - at;
    footer->head_size = (uint32_t)head_size;
    footer->head_crc = cv_crc32c(0, out->data + at, head_size);
    cv_seal_footer_write(footer, out->data + end);
    return CV_OK;
}

cv_status cv_sealed_append(const cv_index *index, size_t origin, cv_buffer *out,
                           cv_seal_footer *footer, cv_error *err)
{
    cv_chunk_header header;
    cv_seal_head head;
    CV_TRY(parse_index(out->data + origin, out->size - origin, index->n, -1, &header, err));
    CV_TRY(new_head(index, count_blocks(&header), &head, err));
    cv_block_table table = {.n = head.n_index_blocks, .blocks = head.index_blocks};
    cv_status status = sum_index(out->data + origin, &header, -1, &table, err);
    head.index_head = table.head;
    if (status == CV_OK) status = append_parts(index, &head, out, footer, err);
    cv_seal_head_free(&head);
    return status;
}

/* ---- Verify ------------------------------------------------------------- */

static cv_status verify_parts(const cv_snapshot *s, cv_store *store, const cv_seal_head *head,
                              cv_buffer *bytes, cv_error *err)
{
    uint8_t page[CV_SEAL_NAME * CV_SEAL_PAGE];
    CV_TRY(cv_buffer_resize(bytes, (size_t)s->index_size, err));
    CV_TRY(
        cv_store_read(store, CV_FRAME_OBJECT, s->index_pos, bytes->data, bytes->size, err));
    CV_TRY(cv_sealed_check_index(s, head, bytes->data, err));
    for (int64_t p = 0; p < cv_seal_pages(head->n_chunks); p++)
        CV_TRY(read_page(s, store, head, p, page, err));
    return head->n_strays > 0 ? read_strays(s, store, head, bytes, err) : CV_OK;
}

cv_status cv_sealed_verify(const cv_snapshot *s, cv_store *store, cv_error *err)
{
    if (!is_sealed(s)) return CV_OK;
    cv_seal_head head;
    cv_buffer bytes = {0};
    CV_TRY(read_head(s, store, &head, err));
    cv_status status = verify_parts(s, store, &head, &bytes, err);
    cv_buffer_free(&bytes);
    cv_seal_head_free(&head);
    return status;
}

/* ---- Layout area ----
 *
 * Finds the layouts of all chunks, and says whether they are this state's. What
 * reads them, and what writes them, is not known here. */

uint64_t cv_layout_area_end(const cv_snapshot *s)
{
    uint64_t copy = cv_header_copy_size(s->header.header_size);
    return s->index_pos > copy ? s->index_pos - copy : 0;
}

/* Of this state's list of names, and of its partition. */
static bool is_ours(const cv_snapshot *s, const cv_seal_head *head,
                    const cv_layouts_footer *footer)
{
    uint32_t names = 0;
    for (int64_t p = 0; p < cv_seal_pages(head->n_chunks); p++)
        names = cv_layouts_names(names, head->pages[p]);
    return names == footer->names && footer->n <= s->grid.n_chunks &&
           footer->record_size == cv_layouts_record_size(s->grid.n_blocks);
}

cv_status cv_layout_area_find(cv_snapshot *s, cv_store *store, cv_layout_area *out,
                              cv_error *err)
{
    uint8_t bytes[CV_LAYOUTS_FOOTER];
    cv_layouts_footer footer;
    const cv_seal_head *head;
    uint64_t end = cv_layout_area_end(s), begin = s->header.header_size;
    *out = (cv_layout_area){.size = 0};
    if (s->header.sparse || end < begin + sizeof bytes) return CV_OK;
    CV_TRY(
        cv_store_read(store, CV_FRAME_OBJECT, end - sizeof bytes, bytes, sizeof bytes, err));
    if (!cv_layouts_footer_read(bytes, &footer)) return CV_OK;
    CV_TRY(cv_sealed_head(s, store, &head, err));
    if (!head || !is_ours(s, head, &footer)) return CV_OK;
    uint64_t size = cv_layouts_size(&footer);
    if (size > end - begin) return CV_OK;
    *out = (cv_layout_area){.pos = end - size,
                            .size = size,
                            .first = end - size + CV_LAYOUTS_MARK,
                            .n = footer.n,
                            .record_size = footer.record_size};
    return CV_OK;
}
