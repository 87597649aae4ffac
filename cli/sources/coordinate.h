/* Selects items of an axis by coordinates: the values of a 1-d array of the same length. */
#ifndef CLI_COORDINATE_H
#define CLI_COORDINATE_H

#include "formats/moment.h"
#include "sources/selection.h"

typedef enum coordinate_kind {
    COORDINATE_WHOLE,
    COORDINATE_SINGLE,
    COORDINATE_REAL
} coordinate_kind;

/* A value; the coordinate's kind determines the member. */
typedef union coordinate_value {
    int64_t whole;
    double real; /* also for float32 */
} coordinate_value;

typedef struct coordinate {
    const char *name; /* name of the axis, for messages */
    coordinate_kind kind;
    int64_t n;
    bool is_time; /* values are counts of `time`, and texts are moments */
    time_count time;
    /* Reads values [start, start + n) into `values`. */
    cli_exit (*read)(void *context, int64_t start, int64_t n, coordinate_value *values);
    void *context;
} coordinate;

/* Finds the items that `text` of `size` bytes denotes:
 *
 *   45.5, 2020-01-01         the one item with this value; with `nearest` the nearest one.
 *                            The axis is dropped
 *   40:50, 2020-01:2020-02   all items from the first value to the second, inclusive: a month,
 *   :50, 40:                 a day or a second is included up to its end
 *
 * A range requires that the coordinate only rises or only falls. Returns CLI_USAGE with a message
 * if no item matches, or if several items match a single value. */
cli_exit coordinate_match(const coordinate *c, const char *text, size_t size, bool nearest,
                          selection_axis *out);

#endif
