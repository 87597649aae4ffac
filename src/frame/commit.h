/* The commit: the only way to change committed state. */
#ifndef CV_FRAME_COMMIT_H
#define CV_FRAME_COMMIT_H

#include "base/watch.h"
#include "frame/txn.h"

/* Commits. If this fails before the header is written, the committed state is unchanged and the
 * transaction is kept. A failed sync poisons the frame. */
cv_status cv_txn_commit(cv_txn *txn, cv_error *err);

/* Sets the watch that a commit calls before it syncs each chunk file of a directory; the watch may
 * stop the commit then. NULL: none. */
void cv_txn_set_watch(cv_txn *txn, cv_watch *watch);

/* Adds checksums to all chunks that have none, and commits. Does nothing if all are sealed. */
cv_status cv_txn_seal(cv_txn *txn, cv_watch *watch, cv_error *err);

/* Makes the first commit of a new array also write the layouts of all chunks in one place. */
void cv_txn_add_layouts(cv_txn *txn);

/* ---- Commits of several frames ------------------------------------------ */

/* A commit of one frame in which everything is written but the header. */
typedef struct cv_commit cv_commit;

/* Writes the pending changes of a contiguous frame, except the header. Syncs if `durable`, whatever
 * the frame's durability is. Sets *out to NULL if nothing is pending. Call cv_commit_complete or
 * cv_commit_drop before the transaction changes. */
cv_status cv_commit_prepare(cv_txn *txn, bool durable, cv_commit **out, cv_error *err);

/* cv_commit_is_first returns whether the commit gives the frame its name. _state and _base return
 * the new and the committed state, borrowed. */
bool cv_commit_is_first(const cv_commit *commit);
const cv_snapshot *cv_commit_state(const cv_commit *commit);
const cv_snapshot *cv_commit_base(const cv_commit *commit);

/* Writes the header, or gives a new frame its name. Frees the commit, even on failure. */
cv_status cv_commit_complete(cv_commit *commit, cv_error *err);

/* Poisons the frame: it is unknown whether a journal committed its header. */
void cv_commit_doubt(cv_commit *commit);

/* Frees the commit without committing; all changes stay pending. NULL is fine. */
void cv_commit_drop(cv_commit *commit);

/* Commits by replacing the header with one of the same size (more than 16 bytes). Can also complete
 * the commit of another process. */
cv_status cv_commit_put_header(cv_store *store, const uint8_t *header, size_t size,
                               cv_error *err);

/* ---- Before the close ---------------------------------------------------- */

/* Called before the close. Commits once more to move a contiguous frame's tail down over dead
 * space, if that saves 64 KiB or 1/16 of the file, and truncates the file. Deletes old chunk files
 * of a directory. Does nothing if changes are pending or older readers exist. Ignores errors, which
 * leave the committed state unchanged. */
void cv_txn_tidy(cv_txn *txn);

/* Called after cv_txn_tidy: how many of the `size` bytes of a contiguous frame are dead. False if
 * this transaction changed nothing, older readers exist, or the number is unknown. Reads the
 * headers of chunks not yet measured; if there are very many, only some: the others count as
 * live. */
bool cv_txn_dead(cv_txn *txn, uint64_t *dead, uint64_t *size);

#endif
