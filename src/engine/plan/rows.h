/* Rows of a part whose items stand in even steps along each axis: the last axis goes along
 * each row. One row of one item with 0 dimensions. */
#ifndef CV_ENGINE_ROWS_H
#define CV_ENGINE_ROWS_H

#include "engine/plan/part.h"

typedef struct cv_rows {
    const cv_part *part;
    int64_t index[CV_MAX_DIMS]; /* of the row, from the part's first item */
    int64_t pos[2];             /* by cv_side: its first item, from the part's */
    int64_t length;             /* items */
    int64_t step[2];            /* by cv_side: from one to the next */
    bool done;
} cv_rows;

void cv_rows_begin(cv_rows *rows, const cv_part *part);
void cv_rows_next(cv_rows *rows);

#endif
