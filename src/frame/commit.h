/* The commit: the one way committed state changes. */
#ifndef CV_FRAME_COMMIT_H
#define CV_FRAME_COMMIT_H

#include "base/watch.h"
#include "frame/txn.h"

/* Commits. On failure before the header write the committed state is untouched and the
 * transaction kept; a failed sync poisons the frame. */
cv_status cv_txn_commit(cv_txn *txn, cv_error *err);

/* Called before each chunk file of a directory is synced; may stop the commit until the
 * last one. NULL: none. */
void cv_txn_set_watch(cv_txn *txn, cv_watch *watch);

/* Gives checksums to every chunk without, and commits; does nothing if all is sealed. */
cv_status cv_txn_seal(cv_txn *txn, cv_watch *watch, cv_error *err);

/* The first commit of a new array will write all layouts into one place. */
void cv_txn_add_layouts(cv_txn *txn);

/* ---- Several frames at once --------------------------------------------- */

/* One of them: written, but for what makes it seen. */
typedef struct cv_commit cv_commit;

/* Writes a contiguous frame's pending changes except the header, and syncs when `durable`,
 * whatever the frame's durability. *out NULL: nothing is pending. Call cv_commit_complete
 * or cv_commit_drop before the transaction changes. */
cv_status cv_commit_prepare(cv_txn *txn, bool durable, cv_commit **out, cv_error *err);

/* Whether it gives the frame its name; the new state, and the committed one. Borrowed. */
bool cv_commit_is_first(const cv_commit *commit);
const cv_snapshot *cv_commit_state(const cv_commit *commit);
const cv_snapshot *cv_commit_base(const cv_commit *commit);

/* Writes the header, or publishes, and ends it, also on failure. */
cv_status cv_commit_complete(cv_commit *commit, cv_error *err);

/* It may be committed or not, elsewhere: the frame is poisoned. */
void cv_commit_doubt(cv_commit *commit);

/* Ends it without a commit: all stays pending. NULL is fine. */
void cv_commit_drop(cv_commit *commit);

/* Commits by writing another header of the same size (over 16 bytes), to complete another's
 * commit. */
cv_status cv_commit_put_header(cv_store *store, const uint8_t *header, size_t size,
                               cv_error *err);

/* ---- Before the close ---------------------------------------------------- */

/* Before the close: moves a contiguous frame's tail down over dead space, by a commit, if
 * that wins 64 KiB or a 16th, and cuts the file; deletes a directory's old chunk files.
 * Best effort: not with pending changes or readers, and failures leave the committed state
 * as it is. */
void cv_txn_tidy(cv_txn *txn);

/* After that: how many bytes of the contiguous frame's `size` are dead. False when this
 * transaction changed nothing, readers of an older state are there, or the dead cannot be
 * told. Reads the headers of chunks that were not measured, of very many a part: the
 * others count as live. */
bool cv_txn_dead(cv_txn *txn, uint64_t *dead, uint64_t *size);

#endif
