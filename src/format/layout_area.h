/* The layouts of an array's chunks in one place: what has to be known of a chunk before a
 * block of it can be asked for. It is there for readers to whom each read takes long, and
 * nobody needs it: what it says counts where the seal's chunk list has its names.
 *
 *   | chunks | mark | record | record | ... | footer | header copy | index ...
 *
 * Other writers see dead space before the index. There is a record for each chunk that has a
 * name in the chunk list, in the order of the list, 48 + 8 bytes for each block of a chunk:
 *
 *     head    the chunk's bytes before its first block: header and block starts, or
 *             a repeated item
 *     table   its block table (block_table.h), right behind
 *     zeros   to the record's end. A chunk whose head is longer has zeros alone
 *
 * The mark keeps who looks for chunks behind chunks from taking a record for one. The
 * footer, little-endian:
 *
 *     0  8  "cv-lays\x01", which is the mark, too
 *     8  8  records
 *    16  4  bytes of a record
 *    20  4  CRC32C of the sums of the chunk list's pages, 4 bytes each: whose records they are
 *    24  4  CRC32C of all before it
 */
#ifndef CV_FORMAT_LAYOUT_AREA_H
#define CV_FORMAT_LAYOUT_AREA_H

#include "base/status.h"

enum { CV_LAYOUTS_MARK = 8, CV_LAYOUTS_FOOTER = 28 };

/* Chunks of more blocks have no records. */
enum { CV_MOST_RECORD = 1 << 20 };

typedef struct cv_layouts_footer {
    int64_t n; /* records */
    uint32_t record_size;
    uint32_t names; /* cv_layouts_names of all pages */
} cv_layouts_footer;

/* Writes the 8 bytes before the first record. */
void cv_layouts_mark_write(uint8_t out[CV_LAYOUTS_MARK]);

void cv_layouts_footer_write(const cv_layouts_footer *footer, uint8_t out[CV_LAYOUTS_FOOTER]);

/* False unless it is one that says what can be. */
bool cv_layouts_footer_read(const uint8_t bytes[CV_LAYOUTS_FOOTER], cv_layouts_footer *out);

/* Bytes from the mark to the footer's end; n and record_size as read or written. */
uint64_t cv_layouts_size(const cv_layouts_footer *footer);

/* Bytes of a record; 0: more than there may be. */
uint32_t cv_layouts_record_size(int64_t n_blocks);

/* The number that says whose records they are: of the pages before, 0 at first, and the sum of
 * the next page of the list. */
uint32_t cv_layouts_names(uint32_t before, uint32_t page_sum);

/* A record's parts: head [0, head_size), table right behind. */
typedef struct cv_record_parts {
    size_t head_size, table_size;
} cv_record_parts;

/* Finds them in a record of `size` bytes, of a chunk of `n_blocks`. False when there is
 * none, or it does not fit. What they hold is not checked. */
bool cv_record_find_parts(const uint8_t *record, size_t size, int64_t n_blocks,
                          cv_record_parts *out);

#endif
