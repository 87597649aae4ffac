/* Shuffled items to items: byte k of all of them stands before byte k + 1 of any.
 *
 *     planes:  a0 b0 c0 d0  a1 b1 c1 d1        items:  a0 a1 b0 b1 c0 c1 d0 d1
 */
#ifndef CV_ENGINE_UNSHUFFLE_H
#define CV_ENGINE_UNSHUFFLE_H

#include <stdint.h>

/* Moves `n` items: byte k of item i is at src[k * plane + i]. No overlap; any alignment.
 * Touches only the items. */
typedef void cv_unshuffle_function(const uint8_t *src, int64_t plane, int64_t n,
                                   uint8_t *dst);

/* One way to do it, for items of 2, 4 and 8 bytes. All give the same. */
typedef struct cv_unshuffle_kind {
    const char *name;
    unsigned needs; /* cv_cpu_feature; without them none may be called */
    cv_unshuffle_function *of_2, *of_4, *of_8;
} cv_unshuffle_kind;

/* The kinds for this processor, fastest first; the last one is portable. */
const cv_unshuffle_kind *cv_unshuffle_kinds(int *n);

/* The first for which cv_cpu_can; NULL for other sizes of items. */
cv_unshuffle_function *cv_unshuffle_for(int64_t item_size);

#endif
