/* Finds the state of a damaged frame: its header's, else a header copy's, else what the
 * header alone gives. Changes nothing, and checks no chunks. */
#ifndef CV_UPKEEP_RESCUE_H
#define CV_UPKEEP_RESCUE_H

#include "format/chunk_header.h"
#include "format/seal.h"
#include "frame/snapshot.h"
#include "store/store.h"
#include <caterva_upkeep.h>

typedef struct cv_rescue {
    cv_snapshot *state; /* the caller's; its index is decoded */
    caterva_found found;
    bool trailer_lost;
    bool refound;    /* the index is lost, chunks were found by their names in the seal */
    bool unvouched;  /* the seal is lost: that the index is right cannot be checked */
    int64_t n_known; /* chunks that the index places; those behind them are lost */
    cv_error reason; /* why the header as it stands was not enough; code OK: it was */
} cv_rescue;

/* Looks for a state in this order:
 *
 *   1. the header's, when trailer and index are there, and the header is no mix
 *      of two that a torn write left
 *   2. the newest header copy's, if nothing tells of a later commit (rescue.c): else that is
 *      an older one, and 3 comes first; if but its index is damaged, with the chunks that
 *      rescue.c finds; if it lacks but its trailer, without that, when the seal is there
 *   3. the header's, likewise, unless the seal says that it is damaged
 *   4. older copies', likewise, the newest first
 *   5. the same headers' in the same order, without trailer and seal
 *   6. with `guess`: the header's, chunks numbered as they lie
 *
 * CATERVA_ECORRUPT when there is none: then the sentence says what is wrong with
 * the header's, and nothing is to be released. Reads a file whole, through a
 * window, unless 1 serves. */
cv_status cv_rescue_find(cv_store *store, bool guess, cv_rescue *out, cv_error *err);

/* Writes the copy of the state's header anew if cv_tail_check_copy found it damaged. */
cv_status cv_rescue_write_copy(cv_store *store, const cv_snapshot *state, bool durable,
                               cv_error *err);

/* Writes the state's header in place; a directory's frame is replaced by one that is
 * otherwise the same. Can be repeated if interrupted. */
cv_status cv_rescue_write_header(cv_store *store, const cv_snapshot *state, bool durable,
                                 cv_error *err);

#endif
