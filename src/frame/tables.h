/* Making the block tables of chunks, see format/block_table.h. */
#ifndef CV_FRAME_TABLES_H
#define CV_FRAME_TABLES_H

#include "base/grid.h"
#include "base/heap.h"
#include "format/chunk_header.h"

/* Appends the table of the stored chunk `chunk`, `size` bytes, of an array of
 * `grid` to `out`, which may be the buffer that the chunk is in; *name is the
 * table's. CATERVA_ECORRUPT, CATERVA_EUNSUPPORTED: it is no such chunk. */
cv_status cv_table_make(const cv_grid *grid, const uint8_t *chunk, size_t size,
                        cv_buffer *out, uint32_t *name, cv_error *err);

/* The same from checksums at hand. */
cv_status cv_table_append(const cv_block_table *table, cv_buffer *out, uint32_t *name,
                          cv_error *err);

#endif
