/* The commit: the one way committed state changes. */
#ifndef CV_FRAME_COMMIT_H
#define CV_FRAME_COMMIT_H

#include "base/watch.h"
#include "frame/txn.h"

/* The commit protocol. On failure before the header write the committed state
 * is untouched and the transaction kept; a failed sync poisons the frame. */
cv_status cv_txn_commit(cv_txn *txn, cv_error *err);

/* Who hears before each chunk file of a directory is synced, and may stop the commit until all
 * of them are; NULL: nobody. */
void cv_txn_set_watch(cv_txn *txn, cv_watch *watch);

/* Gives checksums to every chunk that has none, and commits, unless
 * nothing is pending and all is sealed already. */
cv_status cv_txn_seal(cv_txn *txn, cv_watch *watch, cv_error *err);

/* The commit to come, the first one of a new array, puts the layouts of all chunks into one
 * place. */
void cv_txn_add_layouts(cv_txn *txn);

/* ---- Several frames at once --------------------------------------------- */

/* One of them: written, but for what makes it seen. */
typedef struct cv_commit cv_commit;

/* Writes what is pending of a contiguous frame, but its header, and syncs when `durable`,
 * whatever the frame's durability is: as a commit that has failed before it wrote the
 * header. *out NULL: nothing is pending. Ends with cv_commit_complete or cv_commit_drop,
 * before the transaction changes. */
cv_status cv_commit_prepare(cv_txn *txn, bool durable, cv_commit **out, cv_error *err);

/* Whether it gives the frame its name, instead of a new header; the state that it makes the
 * committed one, and the one that is. Borrowed. */
bool cv_commit_is_first(const cv_commit *commit);
const cv_snapshot *cv_commit_state(const cv_commit *commit);
const cv_snapshot *cv_commit_base(const cv_commit *commit);

/* Writes the header, or publishes, and ends it, also on failure. */
cv_status cv_commit_complete(cv_commit *commit, cv_error *err);

/* It may be committed or not, elsewhere: the frame is poisoned. */
void cv_commit_doubt(cv_commit *commit);

/* Ends it without a commit: all stays pending. NULL is fine. */
void cv_commit_drop(cv_commit *commit);

/* The write that makes the state of another header, of the same size and longer than 16
 * bytes, the committed one: for who completes a commit of somebody else's. */
cv_status cv_commit_put_header(cv_store *store, const uint8_t *header, size_t size,
                               cv_error *err);

/* ---- Before the close ---------------------------------------------------- */

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
