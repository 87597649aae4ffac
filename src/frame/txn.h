/* A transaction: everything a writer changes between two commits. New chunks
 * go into space that the committed state does not use, so that until the commit
 * nothing of it is seen, and dropping it costs nothing: put.h, reshape.h, commit.h,
 * tidy.h. */
#ifndef CV_FRAME_TXN_H
#define CV_FRAME_TXN_H

#include "base/watch.h"
#include "codec/encode.h"
#include "format/frame_header.h"
#include "frame/frame.h"
#include "frame/lookup.h"
#include "frame/sealed.h"
#include "frame/snapshot.h"
#include "frame/space.h"

typedef struct cv_txn {
    cv_frame *frame;
    cv_snapshot *base;   /* the committed state this stands on */
    cv_snapshot *state;  /* base, or one of our own with changes of shape, attributes */
    cv_mutex lock;       /* guards all below */
    bool has_index;      /* else the index is as base's */
    cv_index index;      /* state's whole index; what did not change it shares */
    cv_encoder *encoder; /* of the index; NULL until the first commit */
    cv_buffer tail;      /* memory that one commit leaves to the next */
    bool changed;
    uint64_t end;        /* contiguous: first byte behind all that was ever used */
    uint64_t chunks_end; /* and behind all chunks, committed and put */
    uint64_t expected;   /* contiguous: bytes for which room is taken at the first one, */
    bool has_room;       /* which was */
    bool knows_clones;   /* whether chunks may be cloned into it, */
    bool clones;         /* and that they may, as far as is known */
    uint64_t base_end;   /* the same two as the last commit left them */
    uint64_t base_chunks_end;
    uint64_t base_tail_pos; /* contiguous: where the committed tail begins */
    uint64_t n_commits;     /* the number in the last header copy */
    cv_space space;         /* contiguous: what below `end` may be used again */
    cv_survey survey;       /* of what was found there; made at first need */
    bool unsurveyed;        /* not yet */
    bool adds_layouts;      /* the next commit puts all layouts into one place, too */
    bool unsettled;         /* the header found may not be on the disk yet */
    bool has_follower;      /* an array stands behind the frame that was found, */
    uint64_t found_end;     /* which ends here */
    int64_t adopt_next;     /* adopt.h: chunks before it are seen to */
    bool adopted;           /* and so are all */
    bool may_reuse;         /* cv_txn_may_reuse: no reader holds a state older than base */
    bool owes_second;  /* contiguous: the committed state lacks its copy, second_trailer.h */
    int64_t next_file; /* directory: first number nobody uses */
    cv_object *new_files; /* directory: chunk files put since the commit */
    size_t n_new_files, max_new_files;
    cv_watch *syncing; /* hears before each of them is synced, and may stop that; or NULL */
    cv_object *old_files; /* directory: what no state names since some commit */
    size_t n_old_files;
} cv_txn;

/* The committed index, or what later puts made of it. Called with the lock. */
cv_status cv_txn_index(cv_txn *txn, const cv_index **out, cv_error *err);

/* An index of the transaction's own, made at the first change. Called with the
 * lock, or by the only thread. */
cv_status cv_txn_own_index(cv_txn *txn, cv_error *err);

/* ---- second_trailer ----
 * The second trailer of a contiguous frame without chunks. C-Blosc2 looks for the
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

/* ---- files ----
 * The chunk files of a directory: which of them a state names, and the removal
 * of those that none does. A replaced file stays for the readers of older
 * states until no reader holds one; what is left at the end, or by a crash, goes
 * when the next writer opens the directory. */

/* The chunk files that an index of `n` entries names, in ascending order. Free
 * with cv_free, also on failure. */
cv_status cv_files_named(const cv_index *index, int64_t n, int64_t **files, size_t *n_files,
                         cv_error *err);

/* Before a commit: the files that the committed index names or the transaction has put, and that
 * its own index does not name. Sets nothing when the transaction has no index. Free *files with
 * cv_free, also on failure. */
cv_status cv_files_unnamed(cv_txn *txn, int64_t **files, size_t *n_files, cv_error *err);

/* After a commit: nobody who opens from now on needs these files. They go with
 * the next cv_files_remove_old that meets no reader of a state older than `state`, the
 * committed one. */
void cv_files_replaced(cv_txn *txn, const int64_t *files, size_t n_files);
void cv_files_remove_old(cv_txn *txn, const cv_snapshot *state);

/* ---- holes ----
 * Where a writer finds space in a contiguous frame that is there already: dead bytes
 * of its own commits (space.h), those it found (survey.h), and what a writer that
 * failed or was killed left behind the frame.
 *
 * Two others may need bytes that the committed state does not use. Readers of an older
 * state: they say so by their locks, and nothing is used beside them. And a power cut,
 * which may bring back the header before the one on the file, as long as that was never
 * synced: which is not known when a file is opened. So what is found is used after a
 * sync, or after the first commit, which has one. */

/* True when nobody reads a state older than the committed one; that stays so until the
 * next commit. */
bool cv_txn_may_reuse(cv_txn *txn);

/* A hole for `size` bytes, if there is one. A sync that fails poisons the frame. Called
 * with the lock. */
cv_status cv_holes_take(cv_txn *txn, uint64_t size, cv_extent *out, bool *found,
                        cv_error *err);

/* The chunk at `pos` is replaced or dropped. Called with the lock. */
void cv_holes_replaced(cv_txn *txn, uint64_t pos);

/* Before a tail of `size` bytes is placed: lowers chunks_end to where the chunks of the
 * state to be committed end, and makes sure that the space before the committed tail
 * may be used where there is much of it. */
cv_status cv_holes_before_tail(cv_txn *txn, uint64_t size, cv_error *err);

/* Bytes below the frame's end that nobody uses. False when they cannot be told. */
bool cv_holes_dead(cv_txn *txn, uint64_t *dead);

/* ---- tail ----
 * The tail of a contiguous frame: what stands behind its chunks.
 *
 *   | chunks and dead space | header copy | index | seal | trailer |
 *
 * The copy counts as dead space (cbytes ends with it). It is there for repair,
 * should the header be torn, and promises nothing to readers. The seal vouches
 * for all else (sealed.h). In a directory's chunks.b2frame the copy stands behind all,
 * where the frame has ended. */

/* Bytes of the header copy that a tail of `state` begins with, or 0: of a directory, too. */
uint64_t cv_tail_copy_size(const cv_snapshot *state);

/* The copy right before the index of a stored state, when it is one of its own
 * header: not after another writer changed the frame. `bytes` keeps it. */
cv_status cv_tail_read_copy(const cv_snapshot *state, cv_store *store, cv_buffer *bytes,
                            cv_header_copy *copy, bool *found, cv_error *err);

/* Where the copy of a sealed state's header stands, and its size; 0: it has none, or who wrote
 * the state is not known. */
cv_status cv_tail_own_copy(const cv_snapshot *state, cv_store *store, uint64_t *pos,
                           uint64_t *size, cv_error *err);

/* CATERVA_ECORRUPT: that copy is not what the commit has written. */
cv_status cv_tail_check_copy(const cv_snapshot *state, cv_store *store, cv_error *err);

/* The tail of the state that a commit would write now, but for what depends on
 * its place: header copy and root. */
typedef struct cv_tail {
    cv_buffer bytes;
    uint64_t copy_size, index_size;
    size_t root; /* where what the root vouches for begins: footer or trailer */
    cv_seal_footer footer;
} cv_tail;

/* Builds it in tail->bytes, whose memory is used again. */
cv_status cv_tail_build(cv_txn *txn, cv_tail *tail, cv_error *err);

/* Completes it with the header of its state, which says where it stands. */
void cv_tail_seal(cv_txn *txn, const cv_buffer *header, cv_tail *tail);

/* ---- txn ----
 * A transaction: everything a writer changes between two commits. New chunks
 * go into space that the committed state does not use, so that until the commit
 * nothing of it is seen, and dropping it costs nothing: put.h, reshape.h, commit.h,
 * tidy.h. */

typedef struct cv_txn cv_txn;

/* Begins on the frame's current snapshot. One per frame. */
cv_status cv_txn_begin(cv_frame *frame, cv_txn **out, cv_error *err);

/* Releases it; what was put and not committed is dropped. */
void cv_txn_free(cv_txn *txn);

/* CATERVA_EIO when the frame is poisoned: it takes no further change. */
cv_status cv_txn_check(const cv_txn *txn, cv_error *err);

/* True when something was put since the last commit, or nothing of the frame
 * was ever committed. */
bool cv_txn_pending(const cv_txn *txn);

/* The state as the transaction would leave it: shape, attributes, metalayers. Borrowed
 * until the next change. */
cv_snapshot *cv_txn_snapshot(const cv_txn *txn);

/* Where chunk `chunk` is, as the transaction sees it. Any thread. */
cv_status cv_txn_find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err);

/* Changes attributes or a metalayer. */
cv_status cv_txn_change(cv_txn *txn, const cv_change *change, cv_error *err);

/* The commit to come, the first one of a new array, puts the layouts of all chunks into one
 * place, see put_layouts.h. */
void cv_txn_add_layouts(cv_txn *txn);

/* Drops what was put since the last commit. */
void cv_txn_rollback(cv_txn *txn);

/* For the commit: empties the transaction and stands it on the frame's current snapshot. */
void cv_txn_reset(cv_txn *txn);

#endif
