/* Finding the chunks of a state whose index is damaged: the seal's chunk list holds
 * the name of each chunk's block table, and the tables stand behind the chunks. */
#ifndef CV_FRAME_REFIND_H
#define CV_FRAME_REFIND_H

#include "format/chunk_header.h"
#include "frame/snapshot.h"

/* Bytes [pos, end) of an object. */
typedef struct cv_range {
    cv_object object;
    uint64_t pos, end;
} cv_range;

/* The block table of a stored chunk. */
typedef struct cv_found_table {
    size_t size; /* bytes; 0: what stands there is none of this chunk's */
    uint32_t name;
} cv_found_table;

/* Looks where `range` begins for the table of the chunk with this header. */
cv_status cv_refind_table(cv_store *store, const cv_grid *grid, const cv_chunk_header *header,
                          cv_range range, cv_found_table *out, cv_error *err);

/* Gives `state`, which has trailer and seal, an index of the chunks that are found by
 * their names; all others read as zeros. Reads the whole chunk area, through a window.
 * CATERVA_ECORRUPT when there is none to find. */
cv_status cv_refind_chunks(cv_snapshot *state, cv_store *store, cv_error *err);

/* Gives the chunks of a state of ours whose seal is lost, and whose index is decoded, the
 * names of the tables that stand right behind them, so that their checksums count. Where
 * none stands, the chunk stays without. Nobody else has the state yet. */
cv_status cv_refind_names(cv_snapshot *state, cv_store *store, cv_error *err);

#endif
