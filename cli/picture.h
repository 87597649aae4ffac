/* Pictures of a 2-d source: row by row, in bounded memory. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include "colormap.h"
#include "transfer.h"

/* A 2-d source whose items are numbers. */
typedef struct picture {
    const cli_args *args;
    source *from;
    const caterva_dtype *dtype;
    int64_t height, width;
} picture;

/* Gets one row, `width` numbers; NaN and infinities among them. */
typedef cli_exit picture_row(void *context, int64_t row, const double *values);

/* Calls `row` for each row from the first to the last. */
cli_exit picture_rows(const picture *p, picture_row *row, void *context);

/* Smallest and largest finite value; 0 and 1 when there is none, and never equal. */
cli_exit picture_range(const picture *p, double *lo, double *hi);

/* Writes an 8-bit PNG, one pixel for each item. */
cli_exit picture_to_png(const picture *p, const colormap *map, const char *path, bool force);

/* Prints to standard output: half blocks in colour on a terminal, else characters. */
cli_exit picture_to_terminal(const picture *p, const colormap *map);

#endif
