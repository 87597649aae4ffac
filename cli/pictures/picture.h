/* Pictures of a 2-d source: row by row, in bounded memory. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include "pictures/colormap.h"
#include "sources/transfer.h"

/* A source whose items are numbers: (height, width), or (height, width, channels). */
typedef struct picture {
    const cli_args *args;
    source *from;
    const caterva_dtype *dtype;
    int64_t height, width;
    int channels; /* 1: numbers, coloured by a map; 3: red, green, blue; 4: with opacity */
    int64_t full_height, full_width; /* size before sampling */
} picture;

/* Receives a row of `width` times `channels` numbers, which may be NaN or infinite. */
typedef cli_exit picture_row(void *context, int64_t row, const double *values);

/* Calls `row` for each row from the first to the last. */
cli_exit picture_rows(const picture *p, picture_row *row, void *context);

/* Finds the smallest and largest finite value, or 0 and 1 if no value is finite. If both values are
 * equal, *hi becomes about *lo + 1. */
cli_exit picture_range(const picture *p, double *lo, double *hi);

/* Writes an 8-bit PNG with one pixel for each item. Channels are scaled so that lo and hi of the
 * map become 0 and 255. */
cli_exit picture_to_png(const picture *p, const colormap *map, const char *path, bool force);

/* Computes the size in pixels at which the terminal shows a picture of height x width items. */
void picture_terminal_size(int64_t height, int64_t width, int64_t *rows, int64_t *columns);

/* Prints to standard output: as coloured half blocks on a terminal, otherwise as characters. */
cli_exit picture_to_terminal(const picture *p, const colormap *map);

#endif
