/* Which bytes of a contiguous frame a writer may use: the books of dead and free bytes, the
 * survey of what was there when the frame was opened, and the allocator, which owns both and
 * gives out places for chunks and tails. */
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

/* Adds an extent; `merge` joins it with neighbours it touches. Without memory
 * it is forgotten, and `forgot` says so for good. */
void cv_extents_add(cv_extents *extents, cv_extent extent, bool merge);

/* Whether an extent begins at `pos`; its size then. */
bool cv_extents_has(const cv_extents *extents, uint64_t pos, uint64_t *size);

/* Chunks that replace each other are of nearly the same size. With a little room
 * left over, up to 1/CV_SPACE_SLACK, either fits the other's hole. */
enum { CV_SPACE_SLACK = 32 };

/* Takes `size` bytes out of the smallest extent that has them: the larger ones
 * stay whole for larger chunks. A rest that is but slack is taken with it, so
 * out->size may be more. */
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

/* True if no state needs bytes of [pos, pos + size) that are not live; false also if
 * that is not known any more. */
bool cv_space_is_clear(const cv_space *space, uint64_t pos, uint64_t size);

/* The range is used from now on, whatever part of it was free. */
void cv_space_occupy(cv_space *space, uint64_t pos, uint64_t size);

/* After a commit: what it made dead may be used again, by the next transaction
 * when its header is on the disk (or need not be), else one commit later. */
void cv_space_committed(cv_space *space, bool header_is_durable);
void cv_space_rolled_back(cv_space *space, uint64_t end);
void cv_space_destroy(cv_space *space);

/* ---- The survey ----
 *
 * Where the chunks of a contiguous frame lie when a writer opens it, and how much of
 * the space between them nobody uses.
 *
 *   | header | dead | A ....... | B ... dead | C ... | A's table | tail |
 *                   '- A's room-'-- B's room-'-------'-----------'
 *
 * Index and seal say where chunks, and tables apart from them, begin. The room of each
 * reaches to the next; how much of it a chunk takes is in its header. Those are read
 * when space is wanted, the largest rooms first and a few at a time. Of a sealed chunk
 * the table behind it must have the name that the seal knows, or its room stays whole.
 * Where other writers' chunks are among them, all headers are read at once: if two
 * chunks overlap, or one cannot be measured, none of the space is given away. */

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
 * Two others may need bytes that the committed state does not use. Readers of an older state
 * say so by their locks, and nothing is used while there are any. A power cut may bring back
 * the header before the one in the file, as long as that one was never synced, which is not
 * known when a file is opened. So what is found is used after a sync, or after the first
 * commit, which has one.
 *
 * All calls are made with the transaction's lock, or by the only thread. */

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

/* Begins on the frame's current state. *n_commits is the number in its header's copy, or one
 * that is larger than that of any commit before. Free after a failure, too. */
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

/* About `size` bytes are going to be put: room for those that go behind the end is taken in one
 * large write, which is quicker than many. End it when nothing more is put: room that was not
 * needed goes back. */
void cv_allocator_expect(cv_allocator *a, uint64_t size);
void cv_allocator_expect_end(cv_allocator *a);

/* Where a tail of `size` bytes goes. `next` has the shape of the state to be committed, whose
 * chunks are all put. */
cv_status cv_allocator_place_tail(cv_allocator *a, const cv_snapshot *next, uint64_t size,
                                  uint64_t *pos, cv_error *err);

/* After the commit of `next`, with its tail there: what was replaced is dead. `fresh`: it is
 * the first commit of the frame. */
void cv_allocator_committed(cv_allocator *a, const cv_snapshot *next, cv_extent tail,
                            bool fresh);

/* Whether the committed tail may move down to `place`, which is free; the next commit puts it
 * there then. */
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
 * C-Blosc2 looks for the trailer right behind the header if a frame has no chunks, wherever
 * the trailer is (of its place it knows the size only, from the frame's end), and does not
 * open the frame otherwise (3.3.5). So such a frame has its trailer twice: at the end, which
 * we read, and in front.
 *
 * The committed state may have its chunks in front, so the copy is written when the new header
 * is in place and no reader holds an older state: until then only this library opens the
 * frame. A later commit writes what is owed, or the close, or, after a crash or if the readers
 * stayed on, the next writer that opens the array and closes it. */

/* True if `state` needs a copy: it has no chunks and its trailer is not in front. Whether the
 * copy is there is not known. */
bool cv_second_trailer_is_apart(const cv_snapshot *state);

/* Writes the copy where the committed `state` needs one, or notes that it is owed. Best
 * effort: the commit stands without it. */
void cv_second_trailer_write(cv_allocator *a, const cv_snapshot *state);

#endif
