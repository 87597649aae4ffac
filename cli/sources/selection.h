/* Selections in NumPy's words, without the outer brackets: "0:100,::2,-1", "...,5",
 * "[1,5,7],None,:", "[True,False,True]", and "@mask.npy" for a mask or a list of indices
 * out of a file. Of several lists every combination is taken. */
#ifndef CLI_SELECTION_H
#define CLI_SELECTION_H

#include "cli.h"

/* One axis: count items start, start + step, ... or list[0], list[1], ... A plain
 * integer takes one item and drops the axis from the result. */
typedef struct selection_axis {
    int64_t start, step, count;
    int64_t *list; /* owned by the selection; NULL: in steps */
    bool dropped;
} selection_axis;

typedef struct selection {
    int ndim; /* of the array */
    selection_axis axis[CATERVA_MAX_DIMS];
    int n_result; /* axes of the result, each one of the array's or -1: a new one */
    int result[CATERVA_MAX_DIMS];
    int64_t *points; /* NULL, or of a mask of the whole array: n_points rows of ndim
                        indices; the result has one axis. Owned */
    int64_t n_points;
} selection;

/* A box of items, [start, stop) on each axis. */
typedef struct box {
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
} box;

/* Reads `text` for an array of this shape; NULL selects everything. CLI_USAGE
 * with a sentence that shows the place when it is malformed or out of range.
 * Release with selection_free, unless a source or sink took it over. */
cli_exit selection_parse(const char *text, int ndim, const int64_t *shape, selection *out);
void selection_free(selection *sel);

void selection_whole(int ndim, const int64_t *shape, selection *out);

/* Takes the one item `index` of an axis, which the result loses. */
void selection_drop(selection *sel, int axis, int64_t index);

/* A new axis of one item in front. */
void selection_add_axis(selection *sel);

/* Of `axis` of the result only every `step`-th item. */
void selection_thin(selection *sel, int axis, int64_t step);

bool selection_is_whole(const selection *sel, const int64_t *shape);

/* True when every step is 1: a box of the result is a box of the array. */
bool selection_is_box(const selection *sel);
bool selection_has_list(const selection *sel); /* or points */

/* Shape of the result; returns its ndim. */
int selection_shape(const selection *sel, int64_t *shape);

/* The smallest box of the array that holds the items of a box of the result; not of
 * points. */
void selection_bounds(const selection *sel, const box *result, box *bounds);

/* A box of the result in the library's words, which borrow from `axes` and `sel`. */
void selection_of_box(const selection *sel, const box *result,
                      caterva_axis axes[CATERVA_MAX_DIMS], caterva_selection *out);

/* Items in a box of `ndim` axes. */
int64_t box_items(const box *b, int ndim);

#endif
