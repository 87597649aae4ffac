/* Views inside this room: a map of axes over a base, which views of views share: an array or
 * several views in a row. */
#ifndef CV_ARRAY_VIEW_H
#define CV_ARRAY_VIEW_H

#include "array/read_write.h"

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
void cv_base_release(cv_base *base);

/* A selection in terms of the base, with its axes in their order and no new axes. */
typedef struct cv_mapped {
    cv_selection selection;
    cv_memory memory;
    int64_t *lists[CV_MAX_DIMS]; /* owned; of points the first */
} cv_mapped;

/* Maps a nonempty selection and its result's memory. Always release with cv_mapped_free. */
cv_status cv_view_map(const caterva_view *view, const cv_selection *s,
                      const cv_memory *memory, cv_mapped *m, cv_error *err);
void cv_mapped_free(cv_mapped *mapped);

/* CATERVA_ESTALE when the array's grid, or its dtype, is not the one that views were made of. */
cv_status cv_view_check(const cv_base *base, const cv_grid *grid, cv_error *err);

/* The same of all arrays below. Not with a lock of theirs. */
cv_status cv_view_check_arrays(const cv_base *base, cv_error *err);

/* What remains of a read when the arrays have given their items: points go to their places,
 * and a new axis' item to all its indices. */
typedef struct cv_rest {
    struct cv_rest *next;
    cv_memory memory; /* of the result */
    int64_t n_points; /* item i of `items` goes to index places[i] */
    int64_t *places;  /* owned, both; NULL: no points */
    uint8_t *items;
    int ndim; /* of the result, and its shape; of new axes the last item is there */
    int64_t shape[CV_MAX_DIMS];
    bool is_new[CV_MAX_DIMS];
} cv_rest;

void cv_rest_do(const cv_rest *rest);
void cv_rest_free(cv_rest *rest); /* what it owns */

/* Called for each array below a view in turn, with its nonempty share of the selection and
 * the memory. */
typedef struct cv_visit {
    cv_status (*array)(void *context, const cv_base *base, cv_mapped *share, cv_error *err);
    /* Finishes reads later: takes over what `rest` owns, on success, in the order of calls.
     * NULL: at once. */
    cv_status (*later)(void *context, const cv_rest *rest, cv_error *err);
    void *context;
    bool is_read; /* each item goes to its place: points come with a memory of their own, and
                     items that are selected several times are copied there */
} cv_visit;

/* Visits the arrays of a checked selection. CATERVA_EUNSUPPORTED for a list that repeats a
 * new axis' item, unless it is a read. */
cv_status cv_view_visit(const caterva_view *view, const cv_selection *selection,
                        const cv_memory *memory, const cv_visit *visit, cv_error *err);

/* Reads a selection of the view, checked, into memory, checked. */
cv_status cv_view_read(const caterva_view *view, const cv_selection *selection,
                       const cv_memory *dst, cv_error *err);

#endif
