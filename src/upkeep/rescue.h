/* Finds a state of a damaged frame: from its header, else from a copy of a header, else from
 * what the header alone gives. Changes nothing and does not check chunks. */
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
    cv_error reason; /* why the header was not sufficient; code OK: it was */
} cv_rescue;

/* Looks for a state in this order:
 *
 *   1. the header's, if trailer and index are valid and the header is not a mix of two that a
 *      torn write left
 *   2. that of the newest header copy, if nothing indicates a later commit (see rescue.c).
 *      Otherwise the copy belongs to an older commit, and step 3 comes first. If only its
 *      index is damaged, with the chunks found by name; if only its trailer is missing and
 *      the seal exists, without the trailer
 *   3. the header's, with the same exceptions, unless the seal says that it is damaged
 *   4. those of older copies, with the same exceptions, the newest first
 *   5. those of the same headers in the same order, without trailer and seal
 *   6. with `guess`: the header's, with chunks numbered in the order of their positions
 *
 * CATERVA_ECORRUPT if there is none: the message describes the damage of the header's state,
 * and *out needs no release. Reads the whole file, through a window, unless step 1 succeeds. */
cv_status cv_rescue_find(cv_store *store, bool guess, cv_rescue *out, cv_error *err);

/* Rewrites the copy of the state's header, after cv_tail_check_copy found it damaged. */
cv_status cv_rescue_write_copy(cv_store *store, const cv_snapshot *state, bool durable,
                               cv_error *err);

/* Writes the state's header in place. In a directory, replaces the frame by one with this
 * header. Can be repeated if interrupted. */
cv_status cv_rescue_write_header(cv_store *store, const cv_snapshot *state, bool durable,
                                 cv_error *err);

#endif
