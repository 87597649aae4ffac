/* Views inside this room. A view is a map of axes over a base; the base, shared by
 * all views made of one another, is an array or several views in a row. */
#ifndef CV_ARRAY_VIEW_H
#define CV_ARRAY_VIEW_H

#include "array/selection.h"

#include <stdatomic.h>

struct cv_visit;

typedef struct cv_base {
    atomic_int n_views; /* that stand on it */
    cv_grid grid;       /* ndim, shape, n_items and item_size only */
    char *dtype;
    caterva_array *array; /* borrowed; NULL: a join */
    /* A join: part i holds items [starts[i], starts[i + 1]) of its axis. */
    int n_parts;
    int axis;
    int64_t *starts;
    caterva_view **parts;
    /* Visits its parts, each with its share of a selection; no masks come here. */
    cv_status (*visit)(const struct cv_base *join, const cv_selection *selection,
                       const cv_memory *memory, const struct cv_visit *visit, cv_error *err);
} cv_base;

struct caterva_view {
    cv_base *base;
    cv_grid grid;               /* of the view: as the base's */
    int base_axis[CV_MAX_DIMS]; /* of each axis of the view; -1: a new one */
    int64_t start[CV_MAX_DIMS]; /* for each axis of the base: item i of the view is */
    int64_t step[CV_MAX_DIMS];  /* start + i * step; start alone where none shows it */
};

/* Fills n_items; CATERVA_EINVAL when it does not fit. */
cv_status cv_view_count(cv_grid *grid, cv_error *err);

/* A view of the whole base, which it takes over, also after a failure. */
cv_status cv_view_of_base(cv_base *base, caterva_view **out, cv_error *err);
void cv_base_release(cv_base *base);

#endif
