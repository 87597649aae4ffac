/* Selections of every kind, with the naive result: the numbers of the selected items, one by
 * one. */
#ifndef FUZZ_PICKS_H
#define FUZZ_PICKS_H

#include "fuzz.h"

enum { PICK_MAX_DIMS = 3, PICK_LIST = 12 };

typedef struct pick {
    caterva_selection selection; /* points into this struct */
    int ndim;                    /* of the result           */
    int64_t shape[PICK_MAX_DIMS];
    int64_t n;
    int64_t *items; /* numbers in the array (C order), in the order of the result */

    int64_t start[PICK_MAX_DIMS], stop[PICK_MAX_DIMS];
    caterva_axis axes[PICK_MAX_DIMS];
    int64_t lists[PICK_MAX_DIMS][PICK_LIST];
    uint8_t *masks[PICK_MAX_DIMS];
    int64_t *points;
    uint8_t *mask;
} pick;

/* A selection of an array of at most three axes, of the kind that the input chooses. */
void pick_any(fuzz_input *in, int ndim, const int64_t *shape, pick *out);

/* A selection of slices and single items, which views accept. */
void pick_slices(fuzz_input *in, int ndim, const int64_t *shape, pick *out);

/* Reverses the axes of the result. */
void pick_transpose(pick *p);

void pick_free(pick *p);

#endif
