/* The seal: checksums that cover a committed state, from the trailer down to every block. Each
 * level contains the checksums of the next level, so a read checks only the bytes that it reads:
 *
 *     trailer's fingerprint   CRC32C of the header; XXH3 of footer and trailer
 *       footer                CRC32C of the seal's head
 *         head                CRC32C of each block of the index, of each page of the
 *                             chunk list, and of the strays
 *           chunk list        name of each chunk's block table (chunk_header.h), or 0
 *                             if unknown. Pages of zeros are omitted
 *           strays            positions of tables that are not right behind a chunk
 *
 * The seal is between the index and the trailer, where other readers see the end of the index's
 * space:
 *
 *     | index | head | chunk list | strays | footer | trailer |
 *
 * All numbers are little-endian. Other writers drop the seal and zero the fingerprint, or rewrite
 * the header with their thread counts, which are 0 in this library's arrays. Then the state is
 * unsealed, but not damaged. */
#ifndef CV_FORMAT_SEAL_H
#define CV_FORMAT_SEAL_H

#include "base/heap.h"
#include "base/status.h"
#include "format/frame_header.h"

#include <stddef.h>
#include <stdint.h>

/* ---- The root ----------------------------------------------------------- */

enum { CV_SEAL_FOOTER = 32 };

/* The footer: the last bytes before the trailer. */
typedef struct cv_seal_footer {
    uint64_t commit;    /* number of the commit that wrote the seal, from 1 on */
    uint64_t size;      /* bytes of the seal, including the footer */
    uint32_t head_size; /* bytes of the head */
    uint32_t head_crc;  /* CRC32C of the head */
} cv_seal_footer;

void cv_seal_footer_write(const cv_seal_footer *footer, uint8_t out[CV_SEAL_FOOTER]);
bool cv_seal_footer_read(const uint8_t bytes[CV_SEAL_FOOTER], cv_seal_footer *out);

/* Searches `bytes` from *at on for a footer, and sets *at to its offset. False if not found. */
bool cv_seal_footer_find(const uint8_t *bytes, size_t size, size_t *at, cv_seal_footer *out);

typedef enum cv_seal_state {
    CV_SEAL_NONE = 0, /* no fingerprint: written by another program, or not committed yet */
    CV_SEAL_WHOLE,    /* covers header, trailer and everything below */
    CV_SEAL_NO_HEADER /* another program rewrote the header; the seal covers the rest */
} cv_seal_state;

/* Writes the fingerprint into the last 16 bytes of `bytes`, which hold footer and trailer. */
void cv_seal_root_write(uint8_t *bytes, size_t size, const uint8_t *header,
                        size_t header_size);

/* Checks `bytes`, which hold the footer (if any) and the trailer. CATERVA_ECORRUPT if they hold
 * neither a valid seal nor a trailer as other programs write it. */
cv_status cv_seal_root_check(const uint8_t *bytes, size_t size, const cv_trailer *trailer,
                             const uint8_t *header_bytes, const cv_frame_header *header,
                             cv_seal_state *out, cv_error *err);

/* ---- The head ----------------------------------------------------------- */

enum {
    CV_SEAL_NAME = 4,   /* bytes of a name in the chunk list */
    CV_SEAL_PAGE = 2048 /* number of names that share a checksum */
};

/* A chunk that another program wrote and this library sealed: its block table is not right behind
 * the chunk. Strays are sorted by entry. */
typedef struct cv_seal_stray {
    int64_t entry; /* number of the chunk's entry in the index */
    uint64_t pos;  /* position of its block table in the frame */
} cv_seal_stray;

typedef struct cv_seal_head {
    int64_t n_chunks;
    int64_t n_strays;
    int64_t n_index_blocks;
    uint32_t index_head; /* CRC32C of the index up to its first block */
    uint32_t strays_crc;
    uint32_t *index_blocks; /* n_index_blocks CRC32Cs; one allocation with `pages` */
    uint32_t *pages;        /* checksums of the pages of the chunk list */
} cv_seal_head;

/* Returns a page's checksum. A page of zeros, which is not stored, has 0. Another page has its
 * CRC32C, or 1 if the CRC32C is 0. */
uint32_t cv_seal_page_sum(const uint8_t *names, size_t size);

/* Returns the number of pages of a list of `n_chunks` names. */
int64_t cv_seal_pages(int64_t n_chunks);

/* Return a page's size in bytes, and the position of a stored page in the stored chunk list. */
size_t cv_seal_page_size(int64_t n_chunks, int64_t p);
uint64_t cv_seal_page_pos(const cv_seal_head *head, int64_t p);

size_t cv_seal_head_size(int64_t n_chunks, int64_t n_index_blocks);

enum { CV_SEAL_STRAY_SIZE = 16 };

void cv_seal_stray_write(const cv_seal_stray *stray, uint8_t out[CV_SEAL_STRAY_SIZE]);
cv_seal_stray cv_seal_stray_read(const uint8_t bytes[CV_SEAL_STRAY_SIZE]);

/* Writes cv_seal_head_size bytes. */
void cv_seal_head_write(const cv_seal_head *head, uint8_t *out);

/* Parses a head of `size` bytes at frame position `pos`, for `n_chunks` chunks. Release with
 * cv_seal_head_free. */
cv_status cv_seal_head_parse(const uint8_t *bytes, size_t size, int64_t pos, int64_t n_chunks,
                             cv_seal_head *out, cv_error *err);
void cv_seal_head_free(cv_seal_head *head);

/* Computes the bytes of the whole seal. Returns false if their number exceeds 63 bits. */
bool cv_seal_size(const cv_seal_head *head, size_t head_size, uint64_t *out);

/* ---- The layouts of all chunks ----
 *
 * An optional area with copies of all chunk layouts, for readers with slow reads. A record is used
 * only if its table's name is in the seal's chunk list. To other writers the area is dead space.
 *
 *   | chunks | mark | record | record | ... | footer | header copy | index ...
 *
 * The area has one record for each chunk with a name in the list, in the list's order. A record has
 * 48 bytes, and 8 bytes for each block:
 *
 *     head    the chunk's bytes before its first block: header and block starts, or
 *             a repeated item
 *     table   the chunk's block table (chunk_header.h), right behind the head
 *     zeros   to the record's end; the whole record if the chunk's head is too long
 *
 * The mark prevents a search for chunks from taking a record for a chunk. Footer, little-endian:
 *
 *     0  8  "cv-lays\x01", the same bytes as the mark
 *     8  8  number of records
 *    16  4  bytes of a record
 *    20  4  CRC32C of the checksums (4 bytes each) of the chunk list's pages, which
 *           identifies the state of the records
 *    24  4  CRC32C of bytes 0 to 23 */

enum { CV_LAYOUTS_MARK = 8, CV_LAYOUTS_FOOTER = 28 };

typedef struct cv_layouts_footer {
    int64_t n; /* number of records */
    uint32_t record_size;
    uint32_t names; /* cv_layouts_names of all pages */
} cv_layouts_footer;

/* Writes the 8 bytes before the first record. */
void cv_layouts_mark_write(uint8_t out[CV_LAYOUTS_MARK]);

void cv_layouts_footer_write(const cv_layouts_footer *footer, uint8_t out[CV_LAYOUTS_FOOTER]);

/* Reads a footer. False if the bytes are not a footer, or if a value is impossible. */
bool cv_layouts_footer_read(const uint8_t bytes[CV_LAYOUTS_FOOTER], cv_layouts_footer *out);

/* Returns the bytes from the mark to the end of the footer. */
uint64_t cv_layouts_size(const cv_layouts_footer *footer);

/* Returns the bytes of a record; 0 if they exceed the maximum. */
uint32_t cv_layouts_record_size(int64_t n_blocks);

/* Returns the checksum `before` (0 at first), continued with the next page's checksum. */
uint32_t cv_layouts_names(uint32_t before, uint32_t page_sum);

/* The parts of a record. The head is [0, head_size); the table is right behind the head. */
typedef struct cv_record_parts {
    size_t head_size, table_size;
} cv_record_parts;

/* Finds the parts of a record of `size` bytes, for a chunk of `n_blocks`. False if the record is
 * all zeros, or if the parts do not fit. Does not check their contents. */
bool cv_record_find_parts(const uint8_t *record, size_t size, int64_t n_blocks,
                          cv_record_parts *out);

/* ---- Identifiers of states ----
 *
 * A hash of everything that identifies a committed state. */

enum { CV_STATE_ID = 16 }; /* as CATERVA_STATE_ID of caterva.h */

typedef struct cv_state_part {
    const void *bytes;
    size_t size;
} cv_state_part;

/* Computes the identifier of all parts in this order: their XXH3-128. */
void cv_state_id(const cv_state_part *parts, size_t n, uint8_t out[CV_STATE_ID]);

#endif
