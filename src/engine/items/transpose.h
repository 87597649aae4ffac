/* Transposition of tables of items: rows become columns.
 *
 *     a0 a1 a2        a0 b0
 *     b0 b1 b2        a1 b1
 *                     a2 b2
 */
#ifndef CV_ENGINE_TRANSPOSE_H
#define CV_ENGINE_TRANSPOSE_H

#include <stdint.h>

/* The items of a row are contiguous on both sides; steps are bytes from row to row. */
typedef struct cv_transposition {
    int64_t n_rows, n_columns; /* of the source */
    int64_t src_step, dst_step;
} cv_transposition;

/* Moves item j of row i to item i of row j, any alignment, no overlap. Writes only the items. */
typedef void cv_transpose_function(const cv_transposition *t, const uint8_t *src,
                                   uint8_t *dst);

/* One implementation, for items of 1, 2, 4 and 8 bytes. All give the same result. */
typedef struct cv_transpose_kind {
    const char *name;
    unsigned needs; /* cv_cpu_feature bits; the processor must have all of them */
    cv_transpose_function *of_1, *of_2, *of_4, *of_8;
} cv_transpose_kind;

/* Returns the kinds compiled for this processor family, fastest first; the last is portable. */
const cv_transpose_kind *cv_transpose_kinds(int *n);

/* Returns the first function that this processor supports; NULL for other item sizes. */
cv_transpose_function *cv_transpose_for(int64_t item_size);

#endif
