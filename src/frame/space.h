/* The bytes of a contiguous frame that a writer may use: the books of dead and free bytes,
 * the survey of the opened frame, and the allocator, which owns both and places chunks and
 * tails. */
#ifndef CV_FRAME_SPACE_H
#define CV_FRAME_SPACE_H

#include "base/status.h"
#include "frame/frame.h"

/* ---- The books ----
 *
 *   dead    what the next commit makes dead: replaced chunks, the old tail
 *   aging   dead, but a power cut may still bring back a header that needs it
 *   free    not needed by any state: new chunks go here, else behind the frame's end
 *
 * What this handle wrote itself has a size that is known for sure; of what it found, the
 * survey says how far away the next live byte is. */

typedef struct cv_extent {
    uint64_t pos;
    uint64_t size;
} cv_extent;

/* Extents in ascending order; never overlapping. */
typedef struct cv_extents {
    cv_extent *items;
    size_t n, max;
    bool forgot; /* an extent could not be kept for want of memory */
} cv_extents;

/* Adds an extent; `merge` joins adjacent ones. Without memory drops it and sets `forgot`. */
void cv_extents_add(cv_extents *extents, cv_extent extent, bool merge);

/* Whether an extent begins at `pos`; its size then. */
bool cv_extents_has(const cv_extents *extents, uint64_t pos, uint64_t *size);

/* Chunks replaced by others of nearly the same size: slack up to 1/CV_SPACE_SLACK fits
 * either. */
enum { CV_SPACE_SLACK = 32 };

/* Takes `size` bytes from the smallest extent that has them, keeping large ones whole;
 * slack is taken, too, so out->size may be more. */
bool cv_extents_take(cv_extents *extents, uint64_t size, cv_extent *out);

typedef struct cv_space {
    cv_extents ours; /* live chunks that this handle put, at most CV_SPACE_OURS */
    cv_extents dead;
    cv_extents aging;
    cv_extents free;
    cv_extents taken;    /* from free since the commit: a rollback gives it back */
    cv_extents replaced; /* chunks among the dead, each: a rollback lets them live */
    bool forgot_ours;    /* there were too many, for good */
} cv_space;

void cv_space_put(cv_space *space, uint64_t pos, uint64_t size);    /* a chunk was put */
bool cv_space_replaced(cv_space *space, uint64_t pos);              /* a chunk died */
bool cv_space_take(cv_space *space, uint64_t size, cv_extent *out); /* cv_extents_take */

/* Whether no state needs bytes of [pos, pos + size) that are not live; false if unknown. */
bool cv_space_is_clear(const cv_space *space, uint64_t pos, uint64_t size);

/* The range is used from now on, whatever part of it was free. */
void cv_space_occupy(cv_space *space, uint64_t pos, uint64_t size);

/* After a commit: its dead bytes are free for the next transaction if the header is on the
 * disk (or need not be), else one commit later. */
void cv_space_committed(cv_space *space, bool header_is_durable);
void cv_space_rolled_back(cv_space *space, uint64_t end);
void cv_space_destroy(cv_space *space);

/* ---- The survey ----
 *
 * The chunks of a contiguous frame when a writer opens it, and the unused space between
 * them.
 *
 *   | header | dead | A ....... | B ... dead | C ... | A's table | tail |
 *                    '- A's room-'-- B's room-'-------'-----------'
 *
 * Index and seal say where chunks and separate tables begin; a room reaches to the next.
 * The chunk's size is in its header, read when space is wanted, a few of the largest rooms
 * at a time. The table behind a sealed chunk must have the name in the seal, or its room
 * stays whole. With other writers' chunks all headers are read first: if chunks overlap, or
 * one cannot be measured, nothing is given away. */

typedef struct cv_room {
    uint64_t pos;
    uint64_t size; /* 0: the chunk was replaced, see cv_survey_replaced */
    uint32_t name; /* of the block table right behind the chunk, 0: there is none */
    bool measured; /* `size` is what the chunk takes; of a table it always is */
    bool reserved; /* no table is known, one behind the chunk may be adopted */
    uint16_t rank; /* in the order of measuring, small ones first */
} cv_room;

typedef struct cv_survey {
    cv_room *rooms; /* ascending */
    size_t n;
    uint32_t *order; /* rooms to be measured, the large ones first */
    size_t n_order, next;
    int credit; /* measurements that may still be made */
    bool whole; /* the rooms are all that lives, but for what was put since */
} cv_survey;

/* ---- The allocator ----
 *
 * Unused bytes of the committed state may be needed by readers of an older state, whose
 * locks stop all reuse, and by the previous header, which a power cut may restore unless
 * the present one was synced; that is unknown at opening. So found space is used after a
 * sync, or after the first commit, which has one.
 *
 * Calls are made with the transaction's lock, or by the only thread. */

typedef struct cv_allocator {
    cv_frame *frame;
    cv_snapshot *base;   /* the committed state; borrowed from the transaction */
    cv_space space;      /* of what lies below `end` */
    cv_survey survey;    /* of what was found there; made at first need */
    uint64_t end;        /* first byte behind all that was ever used */
    uint64_t chunks_end; /* and behind all chunks, committed and put */
    uint64_t base_end;   /* the same two as the last commit left them */
    uint64_t base_chunks_end;
    uint64_t tail_pos; /* where the committed tail begins */
    uint64_t follower; /* where an array begins that stands behind the frame; 0: none does */
    uint64_t expected; /* bytes for which room is to be taken at the first need, */
    bool has_room;     /* which was */
    bool is_surveyed;
    bool is_unsettled; /* the header found may not be on the disk yet */
    bool may_reuse;    /* cv_allocator_may_reuse: no reader holds a state older than base */
    bool owes_second;  /* the committed state lacks its second trailer */
} cv_allocator;

/* Begins on the frame's current state. *n_commits: its header copy's number, or one above
 * any commit's. Free after a failure, too. */
cv_status cv_allocator_begin(cv_allocator *a, cv_frame *frame, uint64_t *n_commits,
                             cv_error *err);
void cv_allocator_free(cv_allocator *a);

/* Stands on `base`, the committed state, with nothing put. */
void cv_allocator_reset(cv_allocator *a, cv_snapshot *base);

/* Nothing of what was put since the commit is used; after cv_allocator_reset. */
void cv_allocator_roll_back(cv_allocator *a);

/* Takes `size` bytes for a chunk: a hole, or a place behind the end. */
typedef struct cv_space_request {
    uint64_t size;
    bool
        replaces; /* another chunk: behind the end it gets slack, as more of its kind follow */
    bool is_like;  /* behind the end it gets a place of the same remainder as */
    uint64_t like; /* this one, by CV_CLONE_UNIT */
} cv_space_request;

cv_status cv_allocator_take(cv_allocator *a, const cv_space_request *request, uint64_t *pos,
                            cv_error *err);

/* All bytes before `end` are used, for something that is never given back. */
void cv_allocator_extend(cv_allocator *a, uint64_t end);

/* The chunk at `pos` is replaced or dropped. */
void cv_allocator_replaced(cv_allocator *a, uint64_t pos);

/* Announces puts of about `size` bytes: allocates their room behind the end in one large
 * write. End it when done: unused room is returned. */
void cv_allocator_expect(cv_allocator *a, uint64_t size);
void cv_allocator_expect_end(cv_allocator *a);

/* Places a tail of `size` bytes. `next` has the coming state's shape; its chunks are all
 * put. */
cv_status cv_allocator_place_tail(cv_allocator *a, const cv_snapshot *next, uint64_t size,
                                  uint64_t *pos, cv_error *err);

/* After the commit of `next` with its tail: frees what it replaced. `fresh`: the first
 * commit. */
void cv_allocator_committed(cv_allocator *a, const cv_snapshot *next, cv_extent tail,
                            bool fresh);

/* Whether the tail may move down to `place`, which is free: the next commit then does it. */
bool cv_allocator_move_tail(cv_allocator *a, cv_extent place);

/* Where a tail may stand that would begin at `pos`: there, or behind the second trailer. */
uint64_t cv_allocator_behind_front(const cv_allocator *a, const cv_snapshot *next,
                                   uint64_t pos, uint64_t size);

/* Cuts the file back to what committed states may need. Best effort. */
void cv_allocator_cut_back(cv_allocator *a);

/* Bytes below the frame's end that no state uses. False if that is not known. */
bool cv_allocator_dead(cv_allocator *a, uint64_t *dead);

/* ---- The second trailer ----
 *
 * C-Blosc2 looks for the trailer right behind the header of a frame without chunks, and
 * refuses the frame otherwise (3.3.5). So such a frame has its trailer twice: at the end,
 * which we read, and in front.
 *
 * Committed chunks may be in front, so the copy is written after the new header, when no
 * reader holds an older state; until then only this library opens the frame. A later commit
 * writes an owed copy, or the close, or the next writer. */

/* Whether `state` needs a copy: no chunks, trailer not in front. Does not look for the
 * copy. */
bool cv_second_trailer_is_apart(const cv_snapshot *state);

/* Writes a needed copy, or notes that it is owed. Best effort: the commit stands without. */
void cv_second_trailer_write(cv_allocator *a, const cv_snapshot *state);

#endif
