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
    int channels; /* 1: numbers, which a map colours; 3: red, green, blue; 4: and opacity */
    int64_t full_height, full_width; /* more when items were left out */
} picture;

/* Gets one row, `width` times `channels` numbers; NaN and infinities among them. */
typedef cli_exit picture_row(void *context, int64_t row, const double *values);

/* Calls `row` for each row from the first to the last. */
cli_exit picture_rows(const picture *p, picture_row *row, void *context);

/* Smallest and largest finite value; 0 and 1 when there is none, and never equal. */
cli_exit picture_range(const picture *p, double *lo, double *hi);

/* Writes an 8-bit PNG, one pixel for each item. Channels go from 0 to 255 as the map's
 * colours go from its first value to its last. */
cli_exit picture_to_png(const picture *p, const colormap *map, const char *path, bool force);

/* The pixels that the terminal has for so many items. */
void picture_terminal_size(int64_t height, int64_t width, int64_t *rows, int64_t *columns);

/* Prints to standard output: half blocks in colour on a terminal, else characters. */
cli_exit picture_to_terminal(const picture *p, const colormap *map);

#endif
