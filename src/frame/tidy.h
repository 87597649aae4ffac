/* What a writer gives back before it closes, and what is dead after that. */
#ifndef CV_FRAME_TIDY_H
#define CV_FRAME_TIDY_H

#include "frame/txn.h"

/* Before the store is closed: gives back what costs little to give back. The tail
 * of a contiguous frame moves down over dead space, by a commit, where that wins
 * at least 64 KiB or a 16th of the file, and the file is cut to the frame's size;
 * a directory's old chunk files go. Best effort: nothing is done with changes
 * pending or beside readers, and what fails leaves the committed state as it is. */
void cv_txn_tidy(cv_txn *txn);

/* After that: how many bytes of the contiguous frame's `size` are dead. False when this
 * transaction changed nothing, readers of an older state are there, or the dead cannot be
 * told. Reads the headers of chunks that were not measured, of very many a part: the
 * others count as live. */
bool cv_txn_dead(cv_txn *txn, uint64_t *dead, uint64_t *size);

#endif
