/* Space of a contiguous frame for a writer: accounts of dead and free bytes, a survey of the opened
 * frame, and the allocator, which owns both and places chunks and tails. */
#ifndef CV_FRAME_SPACE_H
#define CV_FRAME_SPACE_H

#include "base/status.h"
#include "frame/frame.h"

/* ---- Accounts ----
 *
 *   dead    not needed after the next commit: replaced chunks, the old tail
 *   aging   dead, but a power cut may restore a header that needs it
 *   free    needed by no state: new chunks go here, else behind the frame's end
 *
 * The sizes of chunks that this handle wrote are known. For chunks that it found, the survey knows
 * the distance to the next live byte. */

typedef struct cv_extent {
    uint64_t pos;
    uint64_t size;
} cv_extent;

/* Extents in ascending order, not overlapping. */
typedef struct cv_extents {
    cv_extent *items;
    size_t n, max;
    bool forgot; /* an extent was dropped: out of memory */
} cv_extents;

/* Adds an extent. `merge` joins it with adjacent ones. If out of memory, drops it and sets
 * `forgot`. */
void cv_extents_add(cv_extents *extents, cv_extent extent, bool merge);

/* Whether an extent begins at `pos`; sets *size. */
bool cv_extents_has(const cv_extents *extents, uint64_t pos, uint64_t *size);

/* Chunks are often replaced by others of nearly the same size: slack of up to 1/CV_SPACE_SLACK
 * makes these fit. */
enum { CV_SPACE_SLACK = 32 };

/* Takes `size` bytes from the smallest extent that has them, to keep large ones whole. Takes slack,
 * too: out->size may be larger. */
bool cv_extents_take(cv_extents *extents, uint64_t size, cv_extent *out);

typedef struct cv_space {
    cv_extents ours; /* live chunks that this handle put, at most CV_SPACE_OURS */
    cv_extents dead;
    cv_extents aging;
    cv_extents free;
    cv_extents taken;    /* taken from `free` since the commit; a rollback returns it */
    cv_extents replaced; /* each replaced chunk in `dead`; a rollback restores them */
    bool forgot_ours;    /* there were too many; never reset */
} cv_space;

void cv_space_put(cv_space *space, uint64_t pos, uint64_t size);    /* a chunk was put */
bool cv_space_replaced(cv_space *space, uint64_t pos);              /* a chunk was replaced */
bool cv_space_take(cv_space *space, uint64_t size, cv_extent *out); /* from `free` */

/* Whether no state needs dead bytes in [pos, pos + size). False if unknown. */
bool cv_space_is_clear(const cv_space *space, uint64_t pos, uint64_t size);

/* Removes the range from `free`. */
void cv_space_occupy(cv_space *space, uint64_t pos, uint64_t size);

/* Called after a commit: dead bytes become free if the header is durable or need not be, else after
 * the next commit. */
void cv_space_committed(cv_space *space, bool header_is_durable);
void cv_space_rolled_back(cv_space *space, uint64_t end);
void cv_space_destroy(cv_space *space);

/* ---- The survey ----
 *
 * The chunks of a contiguous frame when a writer opens it, and the unused space between them.
 *
 *   | header | dead | A ....... | B ... dead | C ... | A's table | tail |
 *                    '- A's room-'-- B's room-'-------'-----------'
 *
 * Index and seal contain the positions of chunks and separate tables; a room extends to the next
 * one. The size of a chunk is in its header, which is read when space is needed, for a few of the
 * largest rooms at a time. The table behind a sealed chunk must have the name in the seal,
 * otherwise its room is left whole. If other programs wrote chunks, all headers are read first, and
 * no space is used if chunks overlap or one cannot be measured. */

typedef struct cv_room {
    uint64_t pos;
    uint64_t size; /* 0: the chunk was replaced, see survey_replaced */
    uint32_t name; /* of the block table right behind the chunk; 0: none */
    bool measured; /* `size` is that of the chunk. Always true for a table */
    bool reserved; /* no table is known, but one behind the chunk may be adopted */
    uint16_t rank; /* size class, for the order of measuring */
} cv_room;

typedef struct cv_survey {
    cv_room *rooms; /* ascending */
    size_t n;
    uint32_t *order; /* rooms to be measured, large ones first */
    size_t n_order, next;
    int credit; /* measurements still allowed */
    bool whole; /* the rooms contain everything alive, except chunks put since */
} cv_survey;

/* ---- The allocator ----
 *
 * Bytes that the committed state does not use may still be needed. A reader may hold an older
 * state: its lock prevents all reuse. A power cut may restore the previous header, unless the
 * current one was synced, which is unknown after opening: so space that the survey found is used
 * only after a sync, or after the first commit, which syncs.
 *
 * Call with the transaction's lock, or from the only thread. */

typedef struct cv_allocator {
    cv_frame *frame;
    cv_snapshot *base;   /* the committed state; borrowed from the transaction */
    cv_space space;      /* below `end` */
    cv_survey survey;    /* made at first need */
    uint64_t end;        /* first byte behind everything ever used */
    uint64_t chunks_end; /* behind all chunks, committed and put */
    uint64_t base_end;   /* the same two after the last commit */
    uint64_t base_chunks_end;
    uint64_t tail_pos; /* position of the committed tail */
    uint64_t follower; /* position of another array behind the frame; 0: none */
    uint64_t expected; /* bytes to allocate in advance at the next need */
    bool has_room;     /* `expected` bytes were allocated */
    bool is_surveyed;
    bool is_unsettled; /* the header found may not be durable yet */
    bool may_reuse;    /* no reader holds a state older than base: space may be reused */
    bool owes_second;  /* the committed state lacks its second trailer */
} cv_allocator;

/* Begins on the frame's current state. Sets *n_commits to the number in its header copy, or to a
 * number above that of any commit. Call cv_allocator_free even after a failure. */
cv_status cv_allocator_begin(cv_allocator *a, cv_frame *frame, uint64_t *n_commits,
                             cv_error *err);
void cv_allocator_free(cv_allocator *a);

/* Continues from `base`, the committed state, with nothing put. */
void cv_allocator_reset(cv_allocator *a, cv_snapshot *base);

/* Releases everything put since the commit. Call after cv_allocator_reset. */
void cv_allocator_roll_back(cv_allocator *a);

/* Takes `size` bytes for a chunk, in a hole or behind the end. */
typedef struct cv_space_request {
    uint64_t size;
    bool replaces; /* another chunk: at the end it gets slack, since more may follow */
    bool is_like;  /* at the end, the position equals `like` */
    uint64_t like; /* modulo CV_CLONE_UNIT */
} cv_space_request;

cv_status cv_allocator_take(cv_allocator *a, const cv_space_request *request, uint64_t *pos,
                            cv_error *err);

/* Marks all bytes before `end` as used, permanently. */
void cv_allocator_extend(cv_allocator *a, uint64_t end);

/* The chunk at `pos` was replaced or dropped. */
void cv_allocator_replaced(cv_allocator *a, uint64_t pos);

/* Announces puts of about `size` bytes: allocates their space behind the end at once. Call
 * cv_allocator_expect_end afterwards: it returns unused space. */
void cv_allocator_expect(cv_allocator *a, uint64_t size);
void cv_allocator_expect_end(cv_allocator *a);

/* Places a tail of `size` bytes. All chunks are put; `next` has the shape of the new state. */
cv_status cv_allocator_place_tail(cv_allocator *a, const cv_snapshot *next, uint64_t size,
                                  uint64_t *pos, cv_error *err);

/* Called after the commit of `next` with its tail: frees what the commit replaced. `fresh`: the
 * first commit. */
void cv_allocator_committed(cv_allocator *a, const cv_snapshot *next, cv_extent tail,
                            bool fresh);

/* Whether the tail may move down to `place`, which is free: the next commit then moves it. */
bool cv_allocator_move_tail(cv_allocator *a, cv_extent place);

/* The position for a tail that would begin at `pos`: there, or behind the second trailer. */
uint64_t cv_allocator_behind_front(const cv_allocator *a, const cv_snapshot *next,
                                   uint64_t pos, uint64_t size);

/* Truncates the file to what committed states may need. Ignores errors. */
void cv_allocator_cut_back(cv_allocator *a);

/* Bytes below the frame's end that no state uses. False if unknown. */
bool cv_allocator_dead(cv_allocator *a, uint64_t *dead);

/* ---- The second trailer ----
 *
 * C-Blosc2 (3.3.5) expects the trailer of a frame without chunks right behind the header, and
 * refuses the frame otherwise. Such a frame therefore has two trailers: one at the end, which this
 * library reads, and one in front.
 *
 * Committed chunks may be in front, so the second trailer is written after the new header and only
 * if no reader holds an older state. Until then other programs cannot open the frame. A later
 * commit, the close, or the next writer writes a missing one. */

/* Whether `state` needs a second trailer: it has no chunks, and its trailer is not in front. Does
 * not check whether it has one. */
bool cv_second_trailer_is_apart(const cv_snapshot *state);

/* Writes a needed second trailer, or notes that it is missing. Ignores errors: the commit is valid
 * without it. */
void cv_second_trailer_write(cv_allocator *a, const cv_snapshot *state);

#endif
