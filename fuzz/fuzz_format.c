/* Any bytes as each of the structures of a frame. The first byte selects the parser. What
 * parses and has a writer must be written back with the same meaning. */
#include "fuzz.h"

#include "format/array_meta.h"
#include "format/chunk_header.h"
#include "format/dual.h"
#include "format/frame_header.h"
#include "format/seal.h"

static void try_header(const uint8_t *bytes, size_t size)
{
    uint32_t header_size;
    if (cv_frame_header_peek(bytes, size, &header_size, NULL) != CV_OK || header_size > size)
        return;
    cv_frame_header header, again;
    if (cv_frame_header_parse(bytes, header_size, &header, NULL) != CV_OK) return;
    cv_buffer out = {0};
    if (cv_frame_header_write(&header, &out, NULL) == CV_OK) {
        FUZZ_NEED(out.size == header_size, "a header of %u bytes became %zu", header_size,
                  out.size);
        FUZZ_NEED(cv_frame_header_parse(out.data, out.size, &again, NULL) == CV_OK,
                  "a header that was written does not parse");
        FUZZ_NEED(again.frame_size == header.frame_size && again.cbytes == header.cbytes &&
                      again.n_metalayers == header.n_metalayers,
                  "a header does not come back");
    }
    cv_buffer_free(&out);
}

static void try_trailer(const uint8_t *bytes, size_t size)
{
    uint32_t trailer_size;
    if (size >= CV_TRAILER_TAIL)
        cv_trailer_peek(bytes + size - CV_TRAILER_TAIL, 1 << 20, &trailer_size, NULL);
    cv_trailer trailer;
    if (cv_trailer_parse(bytes, size, 0, &trailer, NULL) != CV_OK) return;
    cv_buffer out = {0};
    if (cv_trailer_write(trailer.attributes, trailer.n_attributes, &out, NULL) == CV_OK)
        FUZZ_NEED(out.size <= size, "a trailer grew from %zu to %zu bytes", size, out.size);
    cv_buffer_free(&out);
    cv_trailer_free(&trailer);
}

static void try_meta(const uint8_t *bytes, size_t size, bool legacy)
{
    cv_array_meta meta;
    if (size > UINT32_MAX ||
        cv_array_meta_parse(bytes, (uint32_t)size, legacy, 0, &meta, NULL) != CV_OK)
        return;
    cv_buffer out = {0};
    if (cv_array_meta_write(&meta, &out, NULL) == CV_OK)
        FUZZ_NEED(out.size <= size, "a metalayer grew from %zu to %zu bytes", size, out.size);
    cv_buffer_free(&out);
}

static void try_own(const uint8_t *bytes, size_t size)
{
    cv_own own;
    if (cv_own_parse(bytes, size, &own, NULL) == CV_OK && own.fill)
        FUZZ_NEED(own.fill >= bytes && own.fill + own.fill_size <= bytes + size,
                  "the fill lies outside its attribute");
}

/* A chunk that is rewritten for Zarr stays the same when it is rewritten again. */
static void try_dual(const uint8_t *bytes, const cv_chunk_header *header,
                     const cv_block_range *ranges, int64_t n)
{
    enum { LARGE = 1 << 20 };
    cv_buffer once = {0}, twice = {0};
    cv_chunk_expect expect = {.nbytes = -1};
    cv_chunk_header again;
    const cv_grid grid = {
        .ndim = 1, .n_blocks = n, .block_counts = {n}, .block_strides = {1}};
    if (header->block_size > LARGE || !cv_dual_fits(header)) return;
    uint8_t *item = fuzz_alloc(header->type_size);
    cv_block_range *places = fuzz_alloc((size_t)n * sizeof *places);
    for (int64_t i = 0; i < n; i++)
        (void)cv_dual_look(bytes, header, &ranges[i], header->type_size, item);
    if (cv_dual_write(bytes, header, ranges, &grid, &once, NULL) == CV_OK) {
        expect.max_cbytes = (int64_t)once.size;
        FUZZ_NEED(cv_chunk_header_parse(once.data, &expect, &again, NULL) == CV_OK &&
                      cv_block_starts_parse(&again, once.data + CV_CHUNK_HEADER_SIZE, n,
                                            &expect, places, NULL) == CV_OK,
                  "a rewritten chunk of %zu bytes is no chunk", once.size);
        for (int64_t i = 0; i < n; i++)
            FUZZ_NEED(
                cv_dual_look(once.data, &again, &places[i], header->type_size, item).kind !=
                    CV_DUAL_NEITHER,
                "block %lld is lost", (long long)i);
        FUZZ_NEED(cv_dual_write(once.data, &again, places, &grid, &twice, NULL) == CV_OK &&
                      twice.size == once.size &&
                      memcmp(once.data, twice.data, once.size) == 0,
                  "%zu bytes become %zu", once.size, twice.size);
    }
    cv_buffer_free(&once);
    cv_buffer_free(&twice);
    free(places);
    free(item);
}

/* An accepted chunk must not make libblosc2 access a byte outside of it. */
static void try_chunk(const uint8_t *bytes, size_t size)
{
    if (size < CV_CHUNK_HEADER_SIZE) return;
    cv_chunk_expect expect = {.nbytes = -1, .max_cbytes = (int64_t)size};
    cv_chunk_header header;
    if (cv_chunk_header_parse(bytes, &expect, &header, NULL) != CV_OK) return;
    FUZZ_NEED(header.cbytes >= CV_CHUNK_HEADER_SIZE && (size_t)header.cbytes <= size,
              "a chunk of %d bytes in %zu", header.cbytes, size);
    int64_t n = cv_block_starts_size(&header) / 4;
    if (n == 0) return;
    cv_block_range *ranges = fuzz_alloc((size_t)n * sizeof *ranges);
    bool good = cv_block_starts_parse(&header, bytes + CV_CHUNK_HEADER_SIZE, n, &expect,
                                      ranges, NULL) == CV_OK;
    for (int64_t i = 0; good && i < n; i++)
        FUZZ_NEED(ranges[i].start >= CV_CHUNK_HEADER_SIZE + 4 * n &&
                      ranges[i].end > ranges[i].start && ranges[i].end <= header.cbytes,
                  "block %lld is [%d, %d) of %d", (long long)i, ranges[i].start,
                  ranges[i].end, header.cbytes);
    if (good) try_dual(bytes, &header, ranges, n);
    free(ranges);
}

/* A footer at the end of the input and a head at its beginning. */
static void try_seal(const uint8_t *bytes, size_t size)
{
    cv_seal_footer footer;
    cv_seal_head head;
    uint64_t seal_size;
    if (size < CV_SEAL_FOOTER) return;
    if (cv_seal_footer_read(bytes + size - CV_SEAL_FOOTER, &footer))
        FUZZ_NEED(footer.size >= CV_SEAL_FOOTER, "a seal of %llu bytes",
                  (unsigned long long)footer.size);
    int64_t n_chunks = bytes[size - 1];
    size -= CV_SEAL_FOOTER;
    if (cv_seal_head_parse(bytes, size, 0, n_chunks, &head, NULL) != CV_OK) return;
    cv_seal_size(&head, size, &seal_size);
    uint8_t *out = fuzz_alloc(size);
    FUZZ_NEED(cv_seal_head_size(head.n_chunks, head.n_index_blocks) == size,
              "a head of %zu bytes is not as long as it says", size);
    cv_seal_head_write(&head, out);
    FUZZ_NEED(memcmp(out, bytes, size) == 0, "a seal's head does not come back");
    free(out);
    cv_seal_head_free(&head);
}

static void try_block_table(const uint8_t *bytes, size_t size)
{
    int64_t n = size >= 16 ? (int64_t)(size - 16) / 4 : -1;
    if (n < 0) return;
    cv_block_table table = {.n = n, .blocks = fuzz_alloc((size_t)n * sizeof(uint32_t))};
    if (cv_block_table_read(bytes, &table)) {
        uint8_t *out = fuzz_alloc(size);
        cv_block_table_write(&table, out);
        FUZZ_NEED(memcmp(out, bytes, cv_block_table_size(n)) == 0,
                  "a block table does not come back");
        free(out);
    }
    free(table.blocks);
}

static void try_header_copy(const uint8_t *bytes, size_t size)
{
    cv_header_copy copy;
    cv_header_copy_parse(bytes, size, 0, &copy, NULL);
    for (size_t at = size; cv_header_copy_before(bytes, size, 0, &at, &copy);)
        FUZZ_NEED(copy.header >= bytes && copy.pos + copy.size <= size,
                  "a copy of the header lies outside");
}

/* A footer at the end of the input; a record that is all of it, with as many blocks as fit
 * its size. */
static void try_layouts(const uint8_t *bytes, size_t size)
{
    cv_layouts_footer footer;
    cv_record_parts parts;
    uint8_t out[CV_LAYOUTS_FOOTER];
    if (size < CV_LAYOUTS_FOOTER) return;
    const uint8_t *last = bytes + size - CV_LAYOUTS_FOOTER;
    if (cv_layouts_footer_read(last, &footer)) {
        cv_layouts_footer_write(&footer, out);
        FUZZ_NEED(memcmp(out, last, sizeof out) == 0, "a footer does not come back");
        FUZZ_NEED(cv_layouts_size(&footer) < INT64_MAX, "layouts of %llu bytes",
                  (unsigned long long)cv_layouts_size(&footer));
    }
    int64_t n = size > 48 ? (int64_t)(size - 48) / 8 : 0;
    if (cv_record_find_parts(bytes, size, n, &parts))
        FUZZ_NEED(parts.head_size >= CV_CHUNK_HEADER_SIZE &&
                      parts.head_size + parts.table_size <= size,
                  "a record of %zu bytes has a head of %zu and a table of %zu", size,
                  parts.head_size, parts.table_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0) return 0;
    uint8_t which = *bytes++;
    size--;
    uint8_t *exact = fuzz_alloc(size);
    if (size > 0) memcpy(exact, bytes, size);
    switch (which < 250 ? which % 9 : 9) {
    case 0: try_header(exact, size); break;
    case 1: try_trailer(exact, size); break;
    case 2: try_meta(exact, size, false); break;
    case 3: try_meta(exact, size, true); break;
    case 4: try_own(exact, size); break;
    case 5: try_chunk(exact, size); break;
    case 6: try_seal(exact, size); break;
    case 7: try_block_table(exact, size); break;
    case 8: try_header_copy(exact, size); break;
    default: try_layouts(exact, size); break;
    }
    free(exact);
    return 0;
}
