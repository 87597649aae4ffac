/* Selections in NumPy's words, without brackets: "0:100,::2,-1", "...,5". */
#ifndef CLI_SELECTION_H
#define CLI_SELECTION_H

#include "cli.h"

/* One axis: count items start, start + step, ... A plain integer takes one item
 * and drops the axis from the result. */
typedef struct selection_axis {
    int64_t start, step, count;
    bool dropped;
} selection_axis;

typedef struct selection {
    int ndim; /* of the array */
    selection_axis axis[CATERVA_MAX_DIMS];
} selection;

/* A box of items, [start, stop) on each axis. */
typedef struct box {
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
} box;

/* Reads `text` for an array of this shape; NULL selects everything. CLI_USAGE
 * with a sentence that shows the place when it is malformed or out of range. */
cli_exit selection_parse(const char *text, int ndim, const int64_t *shape, selection *out);

bool selection_is_whole(const selection *sel, const int64_t *shape);

/* True when every step is 1: a box of the result is a box of the array. */
bool selection_is_box(const selection *sel);

/* Shape of the result; returns its ndim. */
int selection_shape(const selection *sel, int64_t *shape);

/* The smallest box of the array that holds the items of a box of the result. */
void selection_bounds(const selection *sel, const box *result, box *bounds);

/* Items in a box of `ndim` axes. */
int64_t box_items(const box *b, int ndim);

#endif
