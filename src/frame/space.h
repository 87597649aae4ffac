/* Which bytes of a contiguous frame a writer may use again.
 *
 *   dead    what the next commit makes dead: replaced chunks, the old tail
 *   aging   dead, but a power cut may still bring back a header that needs it
 *   free    nobody needs it: new chunks go here, else behind the frame's end
 *
 * What this handle wrote itself has a size that is known for sure; of what it found,
 * survey.h says how far the next live byte is. */
#ifndef CV_FRAME_SPACE_H
#define CV_FRAME_SPACE_H

#include "base/status.h"

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

/* Takes out whatever lies in [pos, pos + size). */
void cv_extents_cut(cv_extents *holes, uint64_t pos, uint64_t size);

/* Whether an extent begins at `pos`; its size then. */
bool cv_extents_has(const cv_extents *extents, uint64_t pos, uint64_t *size);

/* Chunks that replace each other are of nearly the same size. With a little room
 * left over, up to 1/CV_SPACE_SLACK, either fits the other's hole. */
enum { CV_SPACE_SLACK = 32 };

/* Takes `size` bytes out of the smallest extent that has them: the larger ones
 * stay whole for larger chunks. A rest that is but slack is taken with it, so
 * out->size may be more. */
bool cv_extents_take(cv_extents *extents, uint64_t size, cv_extent *out);

/* Whether there is one that has them; the bytes of all. */
bool cv_extents_fit(const cv_extents *extents, uint64_t size);
uint64_t cv_extents_total(const cv_extents *extents);
uint64_t cv_extents_below(const cv_extents *extents, uint64_t end);

void cv_extents_move(cv_extents *to, cv_extents *from); /* merging; empties `from` */
void cv_extents_destroy(cv_extents *extents);

typedef struct cv_space {
    cv_extents ours; /* live chunks that this handle put, at most CV_SPACE_OURS */
    cv_extents dead;
    cv_extents aging;
    cv_extents free;
    cv_extents taken;    /* from free since the commit: a rollback gives it back */
    cv_extents replaced; /* chunks among the dead, each: a rollback lets them live */
    bool forgot_ours;    /* there were too many, for good */
} cv_space;

enum { CV_SPACE_OURS = 65536 };

void cv_space_put(cv_space *space, uint64_t pos, uint64_t size); /* a chunk was put */
bool cv_space_replaced(cv_space *space, uint64_t pos);           /* a chunk died */
void cv_space_died(cv_space *space, cv_extent chunk); /* the same, of a found one */
bool cv_space_take(cv_space *space, uint64_t size, cv_extent *out); /* cv_extents_take */

/* The end of the last live chunk of ours; false when that is not known. */
bool cv_space_ours_end(const cv_space *space, uint64_t *end);

/* True when nobody may need bytes of [pos, pos + size) that are not live; false
 * also when that is not known any more. */
bool cv_space_is_clear(const cv_space *space, uint64_t pos, uint64_t size);

/* The range is used from now on, whatever part of it was free. */
void cv_space_occupy(cv_space *space, uint64_t pos, uint64_t size);

/* The header on the disk is known to be the committed one: nobody needs what
 * older ones do. */
void cv_space_settled(cv_space *space);

/* After a commit: what it made dead may be used again, by the next transaction
 * when its header is on the disk (or need not be), else one commit later. */
void cv_space_committed(cv_space *space, bool header_is_durable);
void cv_space_rolled_back(cv_space *space, uint64_t end);
void cv_space_destroy(cv_space *space);

#endif
