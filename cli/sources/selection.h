/* Selections in NumPy's syntax, without the outer brackets: "0:100,::2,-1", "...,5",
 * "[1,5,7],None,:", "[True,False,True]", and "@mask.npy" for a mask or a list of indices in a file.
 * Several lists select every combination. */
#ifndef CLI_SELECTION_H
#define CLI_SELECTION_H

#include "cli.h"

/* One axis: `count` items start, start + step, ... or list[0], list[1], ... A plain integer selects
 * one item and drops the axis from the result. */
typedef struct selection_axis {
    int64_t start, step, count;
    int64_t *list; /* owned by the selection; NULL: use start and step */
    bool dropped;
} selection_axis;

typedef struct selection {
    int ndim; /* of the array */
    selection_axis axis[CATERVA_MAX_DIMS];
    int n_result;                 /* number of axes of the result */
    int result[CATERVA_MAX_DIMS]; /* axes of the array; -1: a new axis */
    int64_t *points; /* NULL, or for a mask of the whole array: n_points rows of ndim
                      * indices; the result has one axis. Owned */
    int64_t n_points;
} selection;

/* A box of items, [start, stop) on each axis. */
typedef struct box {
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
} box;

/* Parses `text` for an array of this shape; NULL selects everything. Returns CLI_USAGE if the text
 * is malformed or out of range; the message gives the position. Release with selection_free, unless
 * a source or sink took ownership. */
cli_exit selection_parse(const char *text, int ndim, const int64_t *shape, selection *out);
void selection_free(selection *sel);

void selection_whole(int ndim, const int64_t *shape, selection *out);

/* Selects the single item `index` of an axis, and drops the axis from the result. */
void selection_drop(selection *sel, int axis, int64_t index);

/* Adds a new first axis of one item. */
void selection_add_axis(selection *sel);

/* Keeps only every `step`-th item of `axis` of the result. */
void selection_thin(selection *sel, int axis, int64_t step);

bool selection_is_whole(const selection *sel, const int64_t *shape);

/* Whether every step is 1, so that a box of the result is a box of the array. */
bool selection_is_box(const selection *sel);
bool selection_has_list(const selection *sel); /* or has points */

/* Sets the shape of the result and returns its ndim. */
int selection_shape(const selection *sel, int64_t *shape);

/* Computes the smallest box of the array with all items of a box of the result; not for points. */
void selection_bounds(const selection *sel, const box *result, box *bounds);

/* Converts a box of the result to a library selection. *out borrows from `axes` and `sel`. */
void selection_of_box(const selection *sel, const box *result,
                      caterva_axis axes[CATERVA_MAX_DIMS], caterva_selection *out);

/* Returns the number of items in a box of `ndim` axes. */
int64_t box_items(const box *b, int ndim);

#endif
