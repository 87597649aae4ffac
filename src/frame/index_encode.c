/* Room: frame. The chunk index to bytes: header, block starts, and of each page
 * the streams it remembers, or new ones where it changed.
 *
 *     | header | starts | streams of page 0 | page 1 | ... | last page |  */
#include "frame/index_encode.h"

#include "base/arith.h"
#include "base/grid.h"
#include "base/heap.h"
#include "format/chunk_header.h"

#include <string.h>

/* LZ4 encodes these blocks three times as fast as BloscLZ, and as small. */
static const cv_codec_spec index_spec = {
    .codec = CATERVA_CODEC_LZ4,
    .level = 5,
    .split_mode = 2, /* never */
    .filters = {0, 0, 0, 0, 0, CATERVA_FILTER_SHUFFLE},
    .item_size = sizeof(int64_t),
    .block_bytes = CV_INDEX_PAGE_BYTES,
    .chunk_bytes = CV_INDEX_PAGE_BYTES,
};

/* Below so many entries nothing is gained by repetition, or by blocks. */
enum { LEAST_REPEATED = 8, LEAST_PAGED = 16 };

typedef struct encoding {
    const cv_index *index;
    cv_encoder *encoder;
    cv_buffer *out;
    size_t origin; /* of the chunk in `out` */
    bool possible; /* false: the index must be encoded whole */
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

/* Entries are stored little-endian, whatever this machine is. */
static void store_entries(uint8_t *dst, const int64_t *entries, int64_t n)
{
    if (CV_LITTLE_ENDIAN) { /* every commit stores the last page */
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

/* Appends new streams for the page's first `n` entries; it remembers them. */
static cv_status encode_page(encoding *e, cv_index_page *page, int n, cv_error *err)
{
    size_t before = e->out->size;
    uint8_t bytes[CV_INDEX_PAGE_BYTES];
    store_entries(bytes, page->entries, n);
    CV_TRY(cv_encode_last_block(e->encoder, bytes, n * (int)sizeof(int64_t), e->out,
                                page->header, err));
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
    size_t most = (size_t)index->n * sizeof(int64_t); /* beyond it, plain is smaller */
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
    if (index->n_pages == 1) /* the only block is as long as the chunk */
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
