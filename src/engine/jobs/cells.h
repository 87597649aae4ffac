/* Cells of the result of a reduction: what numbers are added to on the way, and the result
 * that they make. Values are of `type`; NaN and NaT are not counted. */
#ifndef CV_ENGINE_CELLS_H
#define CV_ENGINE_CELLS_H

#include "engine/items/numbers.h"

/* All zero before the first number. */
typedef struct cv_cell {
    cv_wide value; /* extreme or sum so far */
    double rest;   /* of a sum of doubles, as in cv_real_sum */
    int64_t n;     /* numbers counted */
} cv_cell;

/* Counts a value, which is no NaN, n times; a run of values; one value in each of n cells.
 * Values of runs are clobbered. */
void cv_cell_repeat(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                    cv_wide value, int64_t n);
void cv_cell_run(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                 cv_wide *values, int64_t n);
void cv_cells_each(cv_cell *cells, const cv_number_type *type, caterva_reduction what,
                   cv_wide *values, int64_t n);

/* Adds what another cell, or a tally, has counted. */
void cv_cell_add(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                 const cv_cell *from);
void cv_cell_add_tally(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                       const cv_tally *from);

/* The result of a cell that `n_items` items were looked at for; and of a tally of all. */
cv_wide cv_cell_result(const cv_cell *cell, const cv_number_type *type,
                       caterva_reduction what, int64_t n_items, bool skip_nan);
cv_wide cv_reduce_tally(const cv_tally *tally, const cv_number_type *type,
                        caterva_reduction what, bool skip_nan);

/* The result of no number at all. */
cv_wide cv_reduce_nothing(const cv_number_type *type, caterva_reduction what);

/* Whether the result is an item as the array has it, which nothing does not have and times
 * do; else it is a number of 8 bytes. */
bool cv_reduce_gives_item(caterva_reduction what);

/* Bytes of a result. */
int64_t cv_reduce_cell_size(const cv_number_type *type, caterva_reduction what);

/* Stores one result: of sums in the machine's order, of extremes as items are. */
void cv_reduce_store(const cv_number_type *type, caterva_reduction what, cv_wide value,
                     uint8_t *dst);

#endif
