/* Room: format. Parses and writes the seal, and the seal's root in the trailer. */
#include "format/seal.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/os.h"
#include "format/chunk_header.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- The footer --------------------------------------------------------- */

static const char FOOTER_MAGIC[8] = {'c', 'v', 's', 'e', 'a', 'l', '1', '\n'};

enum { AT_COMMIT = 8, AT_SIZE = 16, AT_HEAD_SIZE = 24, AT_HEAD_CRC = 28 };

void cv_seal_footer_write(const cv_seal_footer *footer, uint8_t out[CV_SEAL_FOOTER])
{
    memcpy(out, FOOTER_MAGIC, sizeof FOOTER_MAGIC);
    cv_store_le64(out + AT_COMMIT, footer->commit);
    cv_store_le64(out + AT_SIZE, footer->size);
    cv_store_le32(out + AT_HEAD_SIZE, footer->head_size);
    cv_store_le32(out + AT_HEAD_CRC, footer->head_crc);
}

bool cv_seal_footer_read(const uint8_t bytes[CV_SEAL_FOOTER], cv_seal_footer *out)
{
    if (memcmp(bytes, FOOTER_MAGIC, sizeof FOOTER_MAGIC) != 0) return false;
    *out = (cv_seal_footer){
        .commit = cv_load_le64(bytes + AT_COMMIT),
        .size = cv_load_le64(bytes + AT_SIZE),
        .head_size = cv_load_le32(bytes + AT_HEAD_SIZE),
        .head_crc = cv_load_le32(bytes + AT_HEAD_CRC),
    };
    return out->size >= CV_SEAL_FOOTER && out->head_size <= out->size - CV_SEAL_FOOTER;
}

bool cv_seal_footer_find(const uint8_t *bytes, size_t size, size_t *at, cv_seal_footer *out)
{
    while (*at <= size && size - *at >= CV_SEAL_FOOTER) {
        const uint8_t *hit =
            cv_os_find(bytes + *at, size - *at, FOOTER_MAGIC, sizeof FOOTER_MAGIC);
        if (!hit || (size_t)(hit - bytes) > size - CV_SEAL_FOOTER) return false;
        *at = (size_t)(hit - bytes);
        if (cv_seal_footer_read(hit, out)) return true;
        ++*at;
    }
    return false;
}

/* ---- The root ----------------------------------------------------------- */

enum { FINGERPRINT_NONE = 0, FINGERPRINT_128 = 3, FINGERPRINT_SIZE = 16 };

/* Bytes 0..3: CRC32C of the header. Bytes 4..15: 96 bits of the XXH3-128 of footer and trailer. */
static void fingerprint(const uint8_t *bytes, size_t size, const uint8_t *header,
                        size_t header_size, uint8_t out[FINGERPRINT_SIZE])
{
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(bytes, size - FINGERPRINT_SIZE));
    cv_store_le32(out, cv_crc32c(0, header, header_size));
    memcpy(out + 4, hash.digest, FINGERPRINT_SIZE - 4);
}

void cv_seal_root_write(uint8_t *bytes, size_t size, const uint8_t *header,
                        size_t header_size)
{
    uint8_t *type = bytes + size - FINGERPRINT_SIZE - 1;
    *type = FINGERPRINT_128;
    fingerprint(bytes, size, header, header_size, type + 1);
}

cv_status cv_seal_root_check(const uint8_t *bytes, size_t size, const cv_trailer *trailer,
                             const uint8_t *header_bytes, const cv_frame_header *header,
                             cv_seal_state *out, cv_error *err)
{
    int64_t header_pos = 0, trailer_pos = (int64_t)(header->frame_size - trailer->size);
    *out = CV_SEAL_NONE;
    static const uint8_t zeros[FINGERPRINT_SIZE];
    if (trailer->fingerprint_type == FINGERPRINT_NONE &&
        memcmp(trailer->fingerprint, zeros, sizeof zeros) == 0)
        return CV_OK;
    if (trailer->fingerprint_type != FINGERPRINT_128)
        return cv_fail(err, CATERVA_ECORRUPT, trailer_pos,
                       "the trailer's fingerprint has the unknown type %d: damaged",
                       trailer->fingerprint_type);

    uint8_t expected[FINGERPRINT_SIZE];
    fingerprint(bytes, size, header_bytes, header->header_size, expected);
    if (memcmp(expected + 4, trailer->fingerprint + 4, FINGERPRINT_SIZE - 4) != 0)
        return cv_fail(err, CATERVA_ECORRUPT, trailer_pos,
                       "the trailer is damaged: checksum differs");
    bool is_whole = memcmp(expected, trailer->fingerprint, 4) == 0;
    *out = is_whole ? CV_SEAL_WHOLE : CV_SEAL_NO_HEADER;
    if (is_whole || (header->encode_threads > 0 && header->decode_threads > 0))
        return CV_OK; /* other writers set both counts, and we do for attributes of groups */
    return cv_fail(err, CATERVA_ECORRUPT, header_pos,
                   "the header is damaged: checksum differs");
}

/* ---- The head ----------------------------------------------------------- */

/*  0  u64  number of chunks    16  u32  number of index blocks    24  u32  CRC32C of the strays
 *  8  u64  number of strays    20  u32  CRC32C of the index head
 * 28  u32  CRC32C of each index block, then of each page */
enum { HEAD_FIXED = 28 };

int64_t cv_seal_pages(int64_t n_chunks)
{
    return n_chunks / CV_SEAL_PAGE + (n_chunks % CV_SEAL_PAGE != 0);
}

size_t cv_seal_page_size(int64_t n_chunks, int64_t p)
{
    int64_t left = n_chunks - p * CV_SEAL_PAGE;
    return CV_SEAL_NAME * (size_t)(left < CV_SEAL_PAGE ? left : CV_SEAL_PAGE);
}

size_t cv_seal_head_size(int64_t n_chunks, int64_t n_index_blocks)
{
    return HEAD_FIXED + 4 * (size_t)(n_index_blocks + cv_seal_pages(n_chunks));
}

uint32_t cv_seal_page_sum(const uint8_t *names, size_t size)
{
    static const uint8_t zeros[CV_SEAL_NAME * CV_SEAL_PAGE];
    if (memcmp(names, zeros, size) == 0) return 0;
    uint32_t crc = cv_crc32c(0, names, size);
    return crc == 0 ? 1 : crc;
}

uint64_t cv_seal_page_pos(const cv_seal_head *head, int64_t p)
{
    uint64_t n = 0; /* stored pages before `p`; all are full */
    for (int64_t i = 0; i < p; i++) n += head->pages[i] != 0;
    return n * CV_SEAL_NAME * CV_SEAL_PAGE;
}

/* At byte 0: i64 entry. At byte 8: u64 pos. */
void cv_seal_stray_write(const cv_seal_stray *stray, uint8_t out[CV_SEAL_STRAY_SIZE])
{
    cv_store_le64(out, (uint64_t)stray->entry);
    cv_store_le64(out + 8, stray->pos);
}

cv_seal_stray cv_seal_stray_read(const uint8_t bytes[CV_SEAL_STRAY_SIZE])
{
    return (cv_seal_stray){(int64_t)cv_load_le64(bytes), cv_load_le64(bytes + 8)};
}

void cv_seal_head_write(const cv_seal_head *head, uint8_t *out)
{
    uint8_t *p = out;
    cv_store_le64(p, (uint64_t)head->n_chunks);
    cv_store_le64(p + 8, (uint64_t)head->n_strays);
    cv_store_le32(p + 16, (uint32_t)head->n_index_blocks);
    cv_store_le32(p + 20, head->index_head);
    cv_store_le32(p + 24, head->strays_crc);
    p += HEAD_FIXED;
    for (int64_t i = 0; i < head->n_index_blocks; i++, p += 4)
        cv_store_le32(p, head->index_blocks[i]);
    for (int64_t i = 0; i < cv_seal_pages(head->n_chunks); i++, p += 4)
        cv_store_le32(p, head->pages[i]);
}

static cv_status misfit(int64_t pos, cv_error *err)
{
    return cv_fail(err, CATERVA_ECORRUPT, pos, "the seal does not fit the frame: damaged");
}

cv_status cv_seal_head_parse(const uint8_t *bytes, size_t size, int64_t pos, int64_t n_chunks,
                             cv_seal_head *out, cv_error *err)
{
    if (size < HEAD_FIXED) return misfit(pos, err);
    cv_seal_head head = {
        .n_chunks = (int64_t)cv_load_le64(bytes),
        .n_strays = (int64_t)cv_load_le64(bytes + 8),
        .n_index_blocks = cv_load_le32(bytes + 16),
        .index_head = cv_load_le32(bytes + 20),
        .strays_crc = cv_load_le32(bytes + 24),
    };
    if (head.n_chunks != n_chunks || head.n_strays < 0 || head.n_strays > n_chunks ||
        cv_seal_head_size(n_chunks, head.n_index_blocks) != size)
        return misfit(pos, err);

    size_t n = (size - HEAD_FIXED) / 4;
    head.index_blocks = cv_malloc(n * sizeof(uint32_t) + 1);
    if (!head.index_blocks) return cv_fail_memory(err, n * sizeof(uint32_t), "the seal");
    for (size_t i = 0; i < n; i++)
        head.index_blocks[i] = cv_load_le32(bytes + HEAD_FIXED + 4 * i);
    head.pages = head.index_blocks + head.n_index_blocks;
    *out = head;
    return CV_OK;
}

void cv_seal_head_free(cv_seal_head *head)
{
    cv_free(head->index_blocks);
    *head = (cv_seal_head){0};
}

bool cv_seal_size(const cv_seal_head *head, size_t head_size, uint64_t *out)
{
    int64_t list = 0, strays, size;
    for (int64_t p = 0; p < cv_seal_pages(head->n_chunks); p++)
        if (head->pages[p] != 0) list += (int64_t)cv_seal_page_size(head->n_chunks, p);
    bool fits = cv_mul_i64(head->n_strays, CV_SEAL_STRAY_SIZE, &strays) &&
                cv_add_i64(list, strays, &size) &&
                cv_add_i64(size, (int64_t)head_size + CV_SEAL_FOOTER, &size);
    *out = fits ? (uint64_t)size : 0;
    return fits;
}

/* ---- The layouts of all chunks ---- */

/* Arrays with larger records, in bytes, have no layout area. */
enum { CV_MOST_RECORD = 1 << 20 };

static const uint8_t magic[CV_LAYOUTS_MARK] = {'c', 'v', '-', 'l', 'a', 'y', 's', 1};

enum { COUNT_AT = 8, SIZE_AT = 16, NAMES_AT = 20, CHECKSUM_AT = 24 };

void cv_layouts_mark_write(uint8_t out[CV_LAYOUTS_MARK]) { memcpy(out, magic, sizeof magic); }

void cv_layouts_footer_write(const cv_layouts_footer *footer, uint8_t out[CV_LAYOUTS_FOOTER])
{
    memcpy(out, magic, sizeof magic);
    cv_store_le64(out + COUNT_AT, (uint64_t)footer->n);
    cv_store_le32(out + SIZE_AT, footer->record_size);
    cv_store_le32(out + NAMES_AT, footer->names);
    cv_store_le32(out + CHECKSUM_AT, cv_crc32c(0, out, CHECKSUM_AT));
}

bool cv_layouts_footer_read(const uint8_t bytes[CV_LAYOUTS_FOOTER], cv_layouts_footer *out)
{
    if (memcmp(bytes, magic, sizeof magic) != 0 ||
        cv_load_le32(bytes + CHECKSUM_AT) != cv_crc32c(0, bytes, CHECKSUM_AT))
        return false;
    *out = (cv_layouts_footer){.n = (int64_t)cv_load_le64(bytes + COUNT_AT),
                               .record_size = cv_load_le32(bytes + SIZE_AT),
                               .names = cv_load_le32(bytes + NAMES_AT)};
    return out->n > 0 && out->n <= INT32_MAX && out->record_size > 0 &&
           out->record_size <= CV_MOST_RECORD;
}

uint64_t cv_layouts_size(const cv_layouts_footer *footer)
{
    uint64_t records = (uint64_t)footer->n * footer->record_size; /* at most 51 bits */
    return CV_LAYOUTS_MARK + records + CV_LAYOUTS_FOOTER;
}

uint32_t cv_layouts_record_size(int64_t n_blocks)
{
    enum { TWO_SUMS = 8 }; /* of a block: start and checksum */
    int64_t fixed = CV_CHUNK_HEADER_SIZE + (int64_t)cv_block_table_size(0);
    if (n_blocks > (CV_MOST_RECORD - fixed) / TWO_SUMS) return 0;
    return (uint32_t)(fixed + TWO_SUMS * n_blocks);
}

uint32_t cv_layouts_names(uint32_t before, uint32_t page_sum)
{
    uint8_t bytes[4];
    cv_store_le32(bytes, page_sum);
    return cv_crc32c(before, bytes, sizeof bytes);
}

bool cv_record_find_parts(const uint8_t *record, size_t size, int64_t n_blocks,
                          cv_record_parts *out)
{
    cv_chunk_expect expect = {.nbytes = -1, .max_cbytes = INT32_MAX};
    cv_chunk_header header;
    if (size < CV_CHUNK_HEADER_SIZE ||
        cv_chunk_header_parse(record, &expect, &header, NULL) != CV_OK)
        return false;
    bool is_special = header.special != CV_SPECIAL_NONE;
    int64_t head = is_special ? header.cbytes
                              : CV_CHUNK_HEADER_SIZE + (int64_t)cv_block_starts_size(&header);
    out->head_size = (size_t)head;
    out->table_size = cv_block_table_size(cv_block_table_blocks(&header, n_blocks));
    return out->head_size <= size && out->table_size <= size - out->head_size;
}

/* ---- Identifiers of states ---- */

/* Seeds the hash of each part with the hash of the parts before the part, so that moving bytes
 * between parts changes the result. */
void cv_state_id(const cv_state_part *parts, size_t n, uint8_t out[CV_STATE_ID])
{
    XXH128_hash_t hash = {0};
    for (size_t i = 0; i < n; i++) {
        XXH128_hash_t part = XXH3_128bits_withSeed(parts[i].bytes, parts[i].size, hash.low64);
        hash.low64 = part.low64;
        hash.high64 = (hash.high64 << 1 | hash.high64 >> 63) ^ part.high64;
    }
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(out, canonical.digest, CV_STATE_ID);
}
