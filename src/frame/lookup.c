/* Room: frame. The index of a committed state, a Blosc2 chunk of int64 offsets, and its seal, the
 * checksums of the index and of each block table. Finds one entry, or decodes the whole index once
 * for each state; reads and checks each level of the seal once. Entries are checked when used, so
 * opening costs nothing per chunk. Also writes the seal. */
#include "frame/lookup.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "codec/decode.h"
#include "format/chunk_header.h"
#include "format/frame_header.h"
#include "format/seal.h"
#include "store/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Chunk references ------------------------------------------------------- */

/* Special chunks: negative offsets with the kind in the top byte. The bits are tested in C-Blosc2's
 * order. */
#define SPECIAL_ZEROS ((uint64_t)0x81 << 56)
#define SPECIAL_NAN ((uint64_t)0x82 << 56)
#define SPECIAL_UNINIT ((uint64_t)0x84 << 56)

int64_t cv_offset_of_kind(cv_ref_kind kind)
{
    switch (kind) {
    case CV_REF_NAN: return (int64_t)SPECIAL_NAN;
    case CV_REF_UNINIT: return (int64_t)SPECIAL_UNINIT;
    default: return (int64_t)SPECIAL_ZEROS;
    }
}

static cv_status make_special(const cv_snapshot *s, int64_t offset, cv_chunk_ref *out,
                              cv_error *err)
{
    uint64_t bits = (uint64_t)offset >> 56;
    if (bits & 0x01)
        out->kind = CV_REF_ZEROS;
    else if (bits & 0x04)
        out->kind = CV_REF_UNINIT;
    else if (bits & 0x02)
        out->kind = CV_REF_NAN;
    else
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                       "chunk %lld has the unknown special kind 0x%02llx",
                       (long long)out->chunk, (unsigned long long)bits);
    if (out->kind == CV_REF_NAN && s->grid.item_size != 4 && s->grid.item_size != 8)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                       "chunk %lld is all NaN, but items have %d bytes",
                       (long long)out->chunk, s->grid.item_size);
    return CV_OK;
}

cv_status cv_chunk_ref_make(const cv_snapshot *s, int64_t chunk, int64_t offset,
                            cv_chunk_ref *out, cv_error *err)
{
    *out = (cv_chunk_ref){.chunk = chunk, .kind = CV_REF_STORED, .object = CV_FRAME_OBJECT};
    if (cv_offset_is_special(offset)) return make_special(s, offset, out, err);

    if (s->header.sparse) {
        if (offset > UINT32_MAX)
            return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                           "chunk %lld has the invalid chunk file number %lld",
                           (long long)chunk, (long long)offset);
        out->object = offset;
        return CV_OK;
    }
    if (offset > s->header.cbytes - CV_CHUNK_HEADER_SIZE)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
            "chunk %lld begins at offset %lld, outside the chunk area of %lld bytes",
            (long long)chunk, (long long)offset, (long long)s->header.cbytes);
    out->pos = s->header.header_size + (uint64_t)offset;
    out->limit = (uint64_t)(s->header.cbytes - offset);
    return CV_OK;
}

cv_status cv_chunk_ref_find(const cv_snapshot *s, const cv_index *index, int64_t chunk,
                            cv_chunk_ref *out, cv_error *err)
{
    CV_TRY(cv_chunk_ref_make(s, chunk, cv_index_get(index, chunk), out, err));
    out->name = cv_index_name(index, chunk);
    if (out->name != 0) out->table_pos = cv_index_table_pos(index, chunk);
    return CV_OK;
}

cv_status cv_snapshot_check_room(const cv_snapshot *s, cv_store *store, int64_t n_stored,
                                 cv_error *err)
{
    enum { FEW_FILES = 1 << 20 }; /* if no more, the directory is not listed */
    int64_t room = s->header.cbytes / CV_CHUNK_HEADER_SIZE;
    if (s->header.sparse && n_stored > FEW_FILES) {
        cv_object *files;
        size_t n_files = 0;
        CV_TRY(cv_store_list(store, &files, &n_files, err));
        cv_free(files);
        room = (int64_t)n_files;
    } else if (s->header.sparse) {
        return CV_OK;
    }
    if (n_stored <= room) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                   "the index names %lld stored chunks, there is room for %lld",
                   (long long)n_stored, (long long)room);
}

/* ---- The seal's head ---------------------------------------------------------- */

static uint64_t seal_pos(const cv_snapshot *s) { return s->index_pos + s->index_size; }

static uint64_t list_pos(const cv_snapshot *s) { return seal_pos(s) + s->footer.head_size; }

static cv_status fail_seal(uint64_t pos, cv_error *err)
{
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                   "the seal is damaged: checksum differs at byte %llu",
                   (unsigned long long)pos);
}

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

/* ---- Checking the encoded index ----------------------------------------------------- */

static cv_chunk_expect expect_index(int64_t n_chunks, int64_t pos, uint64_t size)
{
    return (cv_chunk_expect){.chunk = -1,
                             .pos = pos,
                             .nbytes = n_chunks * (int64_t)sizeof(int64_t),
                             .item_size = sizeof(int64_t),
                             .max_cbytes = (int64_t)size};
}

static cv_chunk_expect expect_index_of(const cv_snapshot *s)
{
    return expect_index(s->grid.n_chunks, (int64_t)s->index_pos, s->index_size);
}

/* The checksums of an encoded index are those of a block table: the bytes before the first block,
 * and each block. */
static cv_status parse_index(const uint8_t *bytes, size_t size, int64_t n, int64_t pos,
                             cv_chunk_header *header, cv_error *err)
{
    cv_chunk_expect expect = expect_index(n, pos, size);
    CV_TRY(cv_chunk_header_parse(bytes, &expect, header, err));
    if ((size_t)header->cbytes == size) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, pos,
                   "the index chunk at byte %lld does not have the expected size",
                   (long long)pos);
}

static int64_t count_blocks(const cv_chunk_header *header)
{
    return cv_block_starts_size(header) / (int64_t)sizeof(int32_t);
}

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

static cv_status fail_index(const cv_snapshot *s, cv_error *err)
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
    size_t size = cv_size((int64_t)s->index_size);
    cv_block_table table = {.n = head->n_index_blocks, .blocks = sums};
    if (parse_index(bytes, size, head->n_chunks, pos, &header, NULL) != CV_OK ||
        count_blocks(&header) != table.n)
        return fail_index(s, err);
    cv_error reason = {0};
    cv_status status = sum_index(bytes, &header, pos, &table, &reason);
    if (status == CATERVA_ENOMEM) return cv_fail_memory(err, size, "the chunk index");
    bool equal = status == CV_OK && table.head == head->index_head &&
                 memcmp(sums, head->index_blocks, (size_t)table.n * sizeof sums[0]) == 0;
    return equal ? CV_OK : fail_index(s, err);
}

static cv_status check_index(const cv_snapshot *s, const cv_seal_head *head,
                             const uint8_t *bytes, cv_error *err)
{
    size_t size = (size_t)head->n_index_blocks * sizeof(uint32_t) + 1;
    uint32_t *sums = cv_malloc(size);
    if (!sums) return cv_fail_memory(err, size, "the seal");
    cv_status status = compare_index(s, head, bytes, sums, err);
    cv_free(sums);
    return status;
}

/* ---- The names of block tables ------------------------------------------------- */

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

static cv_status read_name(const cv_snapshot *s, cv_store *store, const cv_seal_head *head,
                           int64_t chunk, uint32_t *out, cv_error *err)
{
    uint8_t bytes[CV_SEAL_NAME * CV_SEAL_PAGE];
    CV_TRY(read_page(s, store, head, chunk / CV_SEAL_PAGE, bytes, err));
    *out = cv_load_le32(bytes + CV_SEAL_NAME * (chunk % CV_SEAL_PAGE));
    return CV_OK;
}

static cv_status read_pages(const cv_snapshot *s, cv_store *store, const cv_seal_head *head,
                            cv_index *index, cv_error *err)
{
    uint8_t bytes[CV_SEAL_NAME * CV_SEAL_PAGE];
    for (int64_t p = 0; p < cv_seal_pages(head->n_chunks); p++) {
        if (head->pages[p] == 0) continue;
        CV_TRY(read_page(s, store, head, p, bytes, err));
        size_t size = cv_seal_page_size(head->n_chunks, p);
        CV_TRY(cv_index_set_names(index, p, bytes, size, err));
    }
    return CV_OK;
}

static cv_status read_strays(const cv_snapshot *s, cv_store *store, const cv_seal_head *head,
                             cv_buffer *bytes, cv_error *err)
{
    size_t size = cv_size(head->n_strays * CV_SEAL_STRAY_SIZE);
    uint64_t pos = seal_pos(s) + s->footer.size - CV_SEAL_FOOTER - size;
    CV_TRY(cv_buffer_resize(bytes, size, err));
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, pos, bytes->data, bytes->size, err));
    if (cv_crc32c(0, bytes->data, bytes->size) == head->strays_crc) return CV_OK;
    return fail_seal(pos, err);
}

static cv_status take_strays(cv_buffer *bytes, cv_index *index, cv_error *err)
{
    _Static_assert(sizeof(cv_seal_stray) == CV_SEAL_STRAY_SIZE, "as large as it is stored");
    size_t n = bytes->size / CV_SEAL_STRAY_SIZE;
    cv_seal_stray *strays = (cv_seal_stray *)(void *)bytes->data;
    for (size_t i = 0; i < n; i++)
        strays[i] = cv_seal_stray_read(bytes->data + i * CV_SEAL_STRAY_SIZE);
    return cv_index_add_strays(index, strays, (int64_t)n, err);
}

cv_status cv_sealed_read_names(const cv_snapshot *s, cv_store *store,
                               const cv_seal_head *head, cv_index *index, cv_error *err)
{
    CV_TRY(read_pages(s, store, head, index, err));
    if (head->n_strays == 0) return CV_OK;
    cv_buffer bytes = {0};
    cv_status status = read_strays(s, store, head, &bytes, err);
    if (status == CV_OK) status = take_strays(&bytes, index, err);
    cv_buffer_free(&bytes);
    return status;
}

uint64_t cv_layout_area_end(const cv_snapshot *s)
{
    uint64_t copy = cv_header_copy_size(s->header.header_size);
    return s->index_pos > copy ? s->index_pos - copy : 0;
}

/* ---- Decoding the index ---------------------------------------------------------- */

/* Whether each block decodes from its own streams. */
static bool blocks_stand_alone(const cv_chunk_header *header, const uint8_t *header_bytes)
{
    return header->special == CV_SPECIAL_NONE && !header->split &&
           cv_codec_access(header_bytes) == CV_ACCESS_BLOCK;
}

typedef struct decoding {
    const cv_snapshot *snapshot;
    const uint8_t *bytes; /* the encoded index */
    const cv_chunk_header *header;
    cv_index *out;
    cv_decoder *decoder;
    cv_buffer scratch;
    int64_t bytes_taken; /* by pages */
} decoding;

/* Entries of page `p`. All pages but the last are full. */
static int64_t page_entries(const decoding *d, int64_t p)
{
    return cv_min_i64(d->out->n - p * CV_INDEX_PAGE, CV_INDEX_PAGE);
}

/* Finishes a page: converts the byte order and shares it with an equal one before it. Limits the
 * memory of distinct pages in proportion to the frame's size. */
static cv_status finish_page(decoding *d, cv_index_page *page, int64_t n, cv_error *err)
{
    enum { FREE_BYTES = 192 << 20, BYTES_PER_BYTE = 64 };
    for (int64_t i = 0; i < n; i++)
        page->entries[i] = (int64_t)cv_load_le64((const uint8_t *)&page->entries[i]);
    d->bytes_taken += cv_index_join_page(d->out, (int)n);
    int64_t size = (int64_t)d->snapshot->header.frame_size;
    if (d->bytes_taken / BYTES_PER_BYTE <= size + FREE_BYTES / BYTES_PER_BYTE) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, (int64_t)d->snapshot->index_pos,
                   "the index of %lld chunks in a frame of %lld bytes takes too much memory",
                   (long long)d->out->n, (long long)size);
}

/* Adds the name and position of the index to a decoder's error. */
static cv_status name_index(const decoding *d, cv_status status, cv_error *err)
{
    char reason[sizeof err->message];
    if (status != CATERVA_ECORRUPT || !err) return status;
    (void)snprintf(reason, sizeof reason, "%s", err->message);
    return cv_fail(err, status, (int64_t)d->snapshot->index_pos,
                   "the index chunk at byte %lld: %.180s", (long long)d->snapshot->index_pos,
                   reason);
}

static cv_status decode_at_once(const decoding *d, cv_error *err)
{
    const cv_chunk_header *h = d->header;
    return name_index(
        d, cv_decode_chunk(d->decoder, d->bytes, h->cbytes, d->scratch.data, h->nbytes, err),
        err);
}

static cv_status decode_piece(const decoding *d, int32_t at, int32_t size, cv_error *err)
{
    return name_index(d,
                      cv_decode_range(d->decoder, d->bytes, d->header->cbytes, at, size,
                                      d->scratch.data, err),
                      err);
}

/* Decodes the whole index if it is small, else STEP bytes at a time, and cuts them into pages. */
static cv_status decode_cut(decoding *d, cv_error *err)
{
    enum { LITTLE = 32 << 20, STEP = 16 << 20 };
    const cv_chunk_header *h = d->header;
    bool at_once = h->nbytes <= LITTLE;
    int32_t step = at_once ? h->nbytes : STEP;
    if (!at_once && (h->block_size > LITTLE || cv_codec_access(d->bytes) == CV_ACCESS_CHUNK))
        return cv_fail(err, CATERVA_EUNSUPPORTED, (int64_t)d->snapshot->index_pos,
                       "the index of %d bytes can only be decoded as a whole: too large",
                       h->nbytes);
    CV_TRY(cv_buffer_resize(&d->scratch, (size_t)step, err));
    for (int32_t at = 0; at < h->nbytes; at += step) {
        int32_t size = h->nbytes - at < step ? h->nbytes - at : step;
        CV_TRY(at_once ? decode_at_once(d, err) : decode_piece(d, at, size, err));
        for (int32_t done = 0; done < size; done += CV_INDEX_PAGE_BYTES) {
            cv_index_page *page;
            int64_t n = page_entries(d, d->out->n_pages);
            CV_TRY(cv_index_add_page(d->out, n, &page, err));
            memcpy(page->entries, d->scratch.data + done, (size_t)n * sizeof(int64_t));
            CV_TRY(finish_page(d, page, n, err));
        }
        if (at_once) break;
    }
    return CV_OK;
}

static cv_status decode_page(decoding *d, cv_block_range range, cv_error *err)
{
    cv_index_page *page;
    int64_t n = page_entries(d, d->out->n_pages);
    cv_packed_block block = {.chunk_header = d->bytes,
                             .streams = (uint8_t *)d->bytes + range.start,
                             .streams_size = range.end - range.start};
    CV_TRY(cv_index_add_page(d->out, n, &page, err));
    cv_status status = cv_decode_block(d->decoder, &block, page->entries,
                                       (int32_t)n * (int32_t)sizeof(int64_t), err);
    return status == CV_OK ? finish_page(d, page, n, err) : name_index(d, status, err);
}

static cv_status decode_blocks(decoding *d, cv_error *err)
{
    cv_chunk_expect expect = expect_index_of(d->snapshot);
    int64_t n = cv_ceil_div(d->out->n, CV_INDEX_PAGE);
    CV_TRY(cv_buffer_resize(&d->scratch, (size_t)n * sizeof(cv_block_range), err));
    cv_block_range *ranges = (cv_block_range *)d->scratch.data;
    CV_TRY(cv_block_starts_parse(d->header, d->bytes + CV_CHUNK_HEADER_SIZE, n, &expect,
                                 ranges, err));
    for (int64_t p = 0; p < n; p++) CV_TRY(decode_page(d, ranges[p], err));
    return CV_OK;
}

static cv_status decode_pages(decoding *d, cv_error *err)
{
    cv_codec_spec spec = {.item_size = sizeof(int64_t)};
    CV_TRY(cv_decoder_create(&spec, &d->decoder, err));
    bool fits = d->header->block_size == CV_INDEX_PAGE_BYTES;
    return fits && blocks_stand_alone(d->header, d->bytes) ? decode_blocks(d, err)
                                                           : decode_cut(d, err);
}

static cv_status decode_entries(const cv_snapshot *s, const uint8_t *bytes,
                                const cv_chunk_header *header, cv_index *out, cv_error *err)
{
    *out = (cv_index){.n = s->grid.n_chunks};
    decoding d = {.snapshot = s, .bytes = bytes, .header = header, .out = out};
    cv_status status = decode_pages(&d, err);
    cv_decoder_free(d.decoder);
    cv_buffer_free(&d.scratch);
    if (status != CV_OK) cv_index_free(out);
    return status;
}

static cv_status decode_index(const cv_snapshot *s, const uint8_t *bytes, cv_index *out,
                              cv_error *err)
{
    cv_chunk_expect expect = expect_index_of(s);
    cv_chunk_header header;
    CV_TRY(cv_chunk_header_parse(bytes, &expect, &header, err));
    switch (header.special) {
    case CV_SPECIAL_NONE: return decode_entries(s, bytes, &header, out, err);
    case CV_SPECIAL_VALUE:
        *out = (cv_index){.n = s->grid.n_chunks,
                          .same = (int64_t)cv_load_le64(bytes + CV_CHUNK_HEADER_SIZE)};
        return CV_OK;
    case CV_SPECIAL_ZEROS: *out = (cv_index){.n = s->grid.n_chunks}; return CV_OK;
    default:
        return cv_fail(err, CATERVA_ECORRUPT, expect.pos,
                       "the chunk index is a special chunk without values");
    }
}

static cv_status read_encoded(const cv_snapshot *s, cv_store *store, cv_buffer *buffer,
                              const uint8_t **bytes, cv_error *err)
{
    size_t size = cv_size((int64_t)s->index_size);
    *bytes = cv_store_view(store, CV_FRAME_OBJECT, s->index_pos, size);
    if (*bytes) return CV_OK;
    CV_TRY(cv_buffer_resize(buffer, size, err));
    *bytes = buffer->data;
    return cv_store_read(store, CV_FRAME_OBJECT, s->index_pos, buffer->data, size, err);
}

static cv_status load_checked(cv_snapshot *s, cv_store *store, const uint8_t *bytes,
                              cv_index *out, cv_error *err)
{
    const cv_seal_head *head;
    CV_TRY(cv_sealed_head(s, store, &head, err));
    if (head) CV_TRY(check_index(s, head, bytes, err));
    CV_TRY(decode_index(s, bytes, out, err));
    if (!head) return CV_OK;
    cv_status status = cv_sealed_read_names(s, store, head, out, err);
    if (status != CV_OK) cv_index_free(out);
    return status;
}

/* Fetches the index of a far store together with the header copy and the footer of the layouts
 * before it. */
static cv_status bring(const cv_snapshot *s, cv_store *store, cv_error *err)
{
    uint64_t size = s->index_size + s->footer.size, end = cv_layout_area_end(s), before = 0;
    if (cv_store_view(store, CV_FRAME_OBJECT, s->index_pos, cv_size((int64_t)size)))
        return CV_OK;
    if (!s->header.sparse && end > s->header.header_size + CV_LAYOUTS_FOOTER)
        before = s->index_pos - end + CV_LAYOUTS_FOOTER;
    if (!store->ops->bring) return CV_OK;
    return store->ops->bring(store, s->index_pos - before, size + before, err);
}

static cv_status load_index(cv_snapshot *s, cv_store *store, cv_index *out, cv_error *err)
{
    if (s->index_size == 0) return CV_OK;
    CV_TRY(bring(s, store, err));
    cv_buffer buffer = {0};
    const uint8_t *bytes;
    cv_status status = read_encoded(s, store, &buffer, &bytes, err);
    if (status == CV_OK) status = load_checked(s, store, bytes, out, err);
    cv_buffer_free(&buffer);
    return status;
}

typedef struct loading {
    cv_snapshot *snapshot;
    cv_store *store;
} loading;

static cv_status load_again(void *context, cv_error *err)
{
    const loading *l = context;
    return load_index(l->snapshot, l->store, &l->snapshot->index, err);
}

static cv_status load_twice(cv_snapshot *snapshot, cv_store *store, cv_error *err)
{
    loading l = {snapshot, store};
    const cv_doubted twice = {.store = store, .read = load_again, .context = &l};
    return cv_store_doubting(&twice, err);
}

cv_status cv_snapshot_index(cv_snapshot *snapshot, cv_store *store, const cv_index **out,
                            cv_error *err)
{
    cv_status status = CV_OK;
    if (!atomic_load_explicit(&snapshot->index_ready, memory_order_acquire)) {
        cv_mutex_lock(&snapshot->index_lock);
        if (!atomic_load_explicit(&snapshot->index_ready, memory_order_relaxed)) {
            status = load_twice(snapshot, store, err);
            if (status == CV_OK)
                atomic_store_explicit(&snapshot->index_ready, true, memory_order_release);
        }
        cv_mutex_unlock(&snapshot->index_lock);
    }
    *out = &snapshot->index;
    return status;
}

/* ---- One entry ---------------------------------------------------------- */

/* In a smaller index, or for more lookups, decoding all entries is as fast. */
enum { LARGE_INDEX = 16384, LOOKUPS = 8 };

typedef struct lookup {
    cv_snapshot *snapshot;
    cv_store *store;
    const cv_seal_head *head; /* NULL: not checked */
    cv_chunk_header header;
    uint8_t header_bytes[CV_CHUNK_HEADER_SIZE];
    cv_buffer starts;
    cv_buffer ranges;
    cv_buffer streams; /* of one block, behind space for the decoder's prefix */
    cv_buffer block;   /* decoded */
} lookup;

static cv_status read_index(const lookup *l, uint64_t at, void *dst, size_t size,
                            cv_error *err)
{
    return cv_store_read(l->store, CV_FRAME_OBJECT, l->snapshot->index_pos + at, dst, size,
                         err);
}

/* Reads the header. *possible: blocks decode alone, and all tables are right behind their
 * chunks. */
static cv_status open_lookup(lookup *l, bool *possible, cv_error *err)
{
    cv_chunk_expect expect = expect_index_of(l->snapshot);
    CV_TRY(cv_sealed_head(l->snapshot, l->store, &l->head, err));
    CV_TRY(read_index(l, 0, l->header_bytes, sizeof l->header_bytes, err));
    CV_TRY(cv_chunk_header_parse(l->header_bytes, &expect, &l->header, err));
    *possible = blocks_stand_alone(&l->header, l->header_bytes);
    if (l->head)
        *possible = *possible && l->head->n_strays == 0 &&
                    l->head->n_index_blocks * 4 == cv_block_starts_size(&l->header);
    return CV_OK;
}

/* The sealed bytes before the first block are header and block starts: there is no dictionary. */
static cv_status check_head(const lookup *l, cv_error *err)
{
    uint32_t crc = cv_crc32c(0, l->header_bytes, sizeof l->header_bytes);
    crc = cv_crc32c(crc, l->starts.data, l->starts.size);
    return crc == l->head->index_head ? CV_OK : fail_index(l->snapshot, err);
}

static cv_status find_block(lookup *l, int64_t block, cv_block_range *range, cv_error *err)
{
    cv_chunk_expect expect = expect_index_of(l->snapshot);
    size_t size = (size_t)cv_block_starts_size(&l->header);
    int64_t n_blocks = (int64_t)(size / sizeof(int32_t));
    CV_TRY(cv_buffer_resize(&l->starts, size, err));
    CV_TRY(cv_buffer_resize(&l->ranges, (size_t)n_blocks * sizeof *range, err));
    CV_TRY(read_index(l, CV_CHUNK_HEADER_SIZE, l->starts.data, size, err));
    if (l->head) CV_TRY(check_head(l, err));
    cv_block_range *ranges = (cv_block_range *)l->ranges.data;
    CV_TRY(cv_block_starts_parse(&l->header, l->starts.data, n_blocks, &expect, ranges, err));
    *range = ranges[block];
    return CV_OK;
}

static cv_status decode_block(lookup *l, int64_t block, cv_block_range range, int32_t size,
                              cv_error *err)
{
    size_t streams = (size_t)(range.end - range.start);
    CV_TRY(cv_buffer_resize(&l->streams, CV_BLOCK_PREFIX + streams, err));
    CV_TRY(cv_buffer_resize(&l->block, (size_t)size, err));
    cv_packed_block packed = {.chunk_header = l->header_bytes,
                              .streams = l->streams.data + CV_BLOCK_PREFIX,
                              .streams_size = range.end - range.start,
                              .in_place = true};
    CV_TRY(read_index(l, (uint64_t)range.start, packed.streams, streams, err));
    if (l->head && cv_crc32c(0, packed.streams, streams) != l->head->index_blocks[block])
        return fail_index(l->snapshot, err);
    cv_decoder *decoder;
    cv_codec_spec spec = {.item_size = sizeof(int64_t)};
    CV_TRY(cv_decoder_create(&spec, &decoder, err));
    cv_status status = cv_decode_block(decoder, &packed, l->block.data, size, err);
    cv_decoder_free(decoder);
    return status;
}

/* *found is false if the index must be decoded as a whole. */
static cv_status look_up(lookup *l, int64_t chunk, int64_t *out, uint32_t *name, bool *found,
                         cv_error *err)
{
    CV_TRY(open_lookup(l, found, err));
    if (!*found) return CV_OK;
    int64_t at = chunk * (int64_t)sizeof(int64_t);
    int64_t block = at / l->header.block_size;
    int64_t rest = l->header.nbytes - block * l->header.block_size;
    cv_block_range range;
    CV_TRY(find_block(l, block, &range, err));
    int32_t size = (int32_t)cv_min_i64(rest, l->header.block_size);
    CV_TRY(decode_block(l, block, range, size, err));
    *out = (int64_t)cv_load_le64(l->block.data + at % l->header.block_size);
    if (!l->head) return CV_OK;
    return read_name(l->snapshot, l->store, l->head, chunk, name, err);
}

/* A lookup takes several reads, one after the other. */
static bool worth_a_lookup(cv_snapshot *s, const cv_store *store)
{
    return !store->is_far && s->grid.n_chunks >= LARGE_INDEX &&
           !atomic_load_explicit(&s->index_ready, memory_order_acquire) &&
           atomic_fetch_add_explicit(&s->index_lookups, 1, memory_order_relaxed) < LOOKUPS;
}

cv_status cv_snapshot_find(cv_snapshot *snapshot, cv_store *store, int64_t chunk,
                           cv_chunk_ref *out, cv_error *err)
{
    if (worth_a_lookup(snapshot, store)) {
        lookup l = {.snapshot = snapshot, .store = store};
        int64_t offset;
        uint32_t name = 0;
        bool found;
        cv_status status = look_up(&l, chunk, &offset, &name, &found, err);
        cv_buffer_free(&l.starts);
        cv_buffer_free(&l.ranges);
        cv_buffer_free(&l.streams);
        cv_buffer_free(&l.block);
        if (status != CV_OK) return status;
        if (found) {
            status = cv_chunk_ref_make(snapshot, chunk, offset, out, err);
            out->name = name;
            return status;
        }
    }
    const cv_index *index;
    CV_TRY(cv_snapshot_index(snapshot, store, &index, err));
    return cv_chunk_ref_find(snapshot, index, chunk, out, err);
}

/* ---- The layouts of all chunks ------------------------------------------------------ */

/* Whether the layouts were written with the names of this state, and for its number of blocks. */
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

/* ---- Writing the seal ---------------------------------------------------------------- */

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

/* Uses the kept sum of a page that has not changed. */
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

/* Encodes the head last, when all checksums are known, into the space before the list. */
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

/* ---- The whole seal -------------------------------------------------------------------- */

static cv_status find_head(cv_snapshot *s, cv_store *store, cv_buffer *bytes, cv_error *err)
{
    uint8_t index[CV_CHUNK_HEADER_SIZE];
    cv_chunk_header header;
    cv_seal_head head;
    int64_t n = s->grid.n_chunks, pos = (int64_t)s->index_pos;
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, s->index_pos, index, sizeof index, err));
    CV_TRY(parse_index(index, cv_size((int64_t)s->index_size), n, pos, &header, err));
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

static cv_status verify_parts(const cv_snapshot *s, cv_store *store, const cv_seal_head *head,
                              cv_buffer *bytes, cv_error *err)
{
    uint8_t page[CV_SEAL_NAME * CV_SEAL_PAGE];
    CV_TRY(cv_buffer_resize(bytes, cv_size((int64_t)s->index_size), err));
    CV_TRY(
        cv_store_read(store, CV_FRAME_OBJECT, s->index_pos, bytes->data, bytes->size, err));
    CV_TRY(check_index(s, head, bytes->data, err));
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
