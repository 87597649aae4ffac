/* Finds a state of a damaged frame: from its header, else from a copy of a header, else from the
 * header alone by guessing. Changes nothing and does not check chunks. */
#ifndef CV_UPKEEP_RESCUE_H
#define CV_UPKEEP_RESCUE_H

#include "format/chunk_header.h"
#include "format/seal.h"
#include "frame/snapshot.h"
#include "store/store.h"
#include <caterva_upkeep.h>

typedef struct cv_rescue {
    cv_snapshot *state; /* owned by the caller; its index is decoded */
    caterva_found found;
    bool trailer_lost;
    bool refound;    /* the index is lost; chunks were found by their names in the seal */
    bool unverified; /* the seal is lost, so the index cannot be verified */
    int64_t n_known; /* chunks with a known position; later ones are lost */
    cv_error reason; /* why the header did not suffice; code OK: it did */
} cv_rescue;

/* Looks for a state in this order:
 *
 *   1. the header's, if trailer and index are valid and the header is not a mix of two headers
 *      that a torn write left
 *   2. that of the newest header copy, unless something indicates a later commit (see rescue.c):
 *      then the copy belongs to an older commit, and step 3 comes first. If only the index is
 *      damaged, chunks are found by their names. If only the trailer is missing and the seal
 *      exists, the state has no trailer
 *   3. the header's, with the same two exceptions, unless the seal shows that it is damaged
 *   4. those of older copies, with the same two exceptions, the newest first
 *   5. those of the same headers in the same order, without trailer and seal
 *   6. if `guess`: the header's, with chunks numbered in the order of their positions
 *
 * CATERVA_ECORRUPT if no state is found: the message describes the damage of the header's state,
 * and *out needs no release. Unless step 1 succeeds, reads the whole file through a window. */
cv_status cv_rescue_find(cv_store *store, bool guess, cv_rescue *out, cv_error *err);

/* Rewrites the copy of the state's header, if cv_tail_check_copy has found it damaged. */
cv_status cv_rescue_write_copy(cv_store *store, const cv_snapshot *state, bool durable,
                               cv_error *err);

/* Writes the state's header in place; in a directory, replaces the frame by one with this header.
 * If interrupted, can be repeated. */
cv_status cv_rescue_write_header(cv_store *store, const cv_snapshot *state, bool durable,
                                 cv_error *err);

#endif
