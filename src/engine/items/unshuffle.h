/* Unshuffling: in shuffled items, byte k of all items comes before byte k + 1 of any item.
 *
 *     planes:  a0 b0 c0 d0  a1 b1 c1 d1        items:  a0 a1 b0 b1 c0 c1 d0 d1
 */
#ifndef CV_ENGINE_UNSHUFFLE_H
#define CV_ENGINE_UNSHUFFLE_H

#include <stdint.h>

/* Moves `n` items: byte k of item i is at src[k * plane + i]. src and dst have any alignment, but
 * must not overlap. Writes only the items. */
typedef void cv_unshuffle_function(const uint8_t *src, int64_t plane, int64_t n,
                                   uint8_t *dst);

/* One implementation, for items of 2, 4 and 8 bytes. All give the same result. */
typedef struct cv_unshuffle_kind {
    const char *name;
    unsigned needs; /* cv_cpu_feature bits; the processor must have all of them */
    cv_unshuffle_function *of_2, *of_4, *of_8;
} cv_unshuffle_kind;

/* Returns the kinds compiled for this processor family, fastest first; the last is portable. */
const cv_unshuffle_kind *cv_unshuffle_kinds(int *n);

/* Returns the first function that this processor supports; NULL for other item sizes. */
cv_unshuffle_function *cv_unshuffle_for(int64_t item_size);

#endif
