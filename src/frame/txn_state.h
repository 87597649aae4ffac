/* What a transaction knows: shared by the files that change it. txn.c begins and ends it,
 * put.c puts chunks, commit.c makes it the committed state; holes.h, second_trailer.h, files.h and
 * tail.h each see to a part of the store. */
#ifndef CV_FRAME_TXN_STATE_H
#define CV_FRAME_TXN_STATE_H

#include "base/watch.h"
#include "codec/encode.h"
#include "frame/frame.h"
#include "frame/space.h"
#include "frame/survey.h"

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

#endif
