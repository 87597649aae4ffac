/* The second trailer of a contiguous frame without chunks. C-Blosc2 looks for the
 * trailer in front, right behind the header, wherever the trailer is (of its place it
 * knows the size only, from the frame's end), and does not open the frame
 * otherwise (3.3.5). So such a frame has its trailer twice: at the end, which
 * we read, and in front.
 *
 * The committed state may have its chunks in front, so the copy is written when
 * the new header stands, and nobody reads an older state any more: until then the
 * frame opens here only. A later commit writes what is owed, or the close, or, when
 * the writer was killed or the readers stayed on, the next writer that opens the
 * array and closes it. */
#ifndef CV_FRAME_SECOND_TRAILER_H
#define CV_FRAME_SECOND_TRAILER_H

#include "frame/txn_state.h"

/* True when C-Blosc2 looks for the trailer in front. */
bool cv_second_trailer_is_needed(const cv_snapshot *state);

/* True when `state` needs a copy: it has no chunks and its trailer is not in
 * front. Whether the copy is there is not known. */
bool cv_second_trailer_is_apart(const cv_snapshot *state);

/* The place for a tail of `size` bytes: `pos`, or behind the front where that
 * is in the way. */
uint64_t cv_second_trailer_keep_off(const cv_txn *txn, uint64_t pos, uint64_t size);

/* Writes the copy where the committed `state` needs one, unless somebody reads
 * an older state: then it is owed, and written by a later commit or at the end.
 * Best effort: the commit stands without it. */
void cv_second_trailer_write(cv_txn *txn, const cv_snapshot *state);

/* The books, after a commit: the copy is in use. */
void cv_second_trailer_account(cv_txn *txn, const cv_snapshot *next);

#endif
