/* Views inside this room: a map of axes over a base. Views of views share the base, which is an
 * array, or several views in a row (a join). */
#ifndef CV_ARRAY_VIEW_H
#define CV_ARRAY_VIEW_H

#include "array/read_write.h"

#include <stdatomic.h>

struct cv_visit;

typedef struct cv_base {
    atomic_int n_views; /* number of views that use it */
    cv_grid grid;       /* ndim, shape, n_items and item_size only */
    char *dtype;
    caterva_array *array; /* borrowed; NULL: a join */
    /* A join: part i contains items [starts[i], starts[i + 1]) of its axis. */
    int n_parts;
    int axis;
    int64_t *starts;
    caterva_view **parts;
    /* Visits the parts, each with its share of a selection, which is never a mask. */
    cv_status (*visit)(const struct cv_base *join, const cv_selection *selection,
                       const cv_memory *memory, const struct cv_visit *visit, cv_error *err);
} cv_base;

struct caterva_view {
    cv_base *base;
    cv_grid grid;               /* of the view; same members as the base's */
    int base_axis[CV_MAX_DIMS]; /* for each axis of the view; -1: a new axis */
    int64_t start[CV_MAX_DIMS]; /* for each axis of the base: item i of the view is item */
    int64_t step[CV_MAX_DIMS];  /* start + i * step; only start if no axis of the view
                                   shows it */
};
void cv_base_release(cv_base *base);

/* A selection on the base: its axes in their order, without new axes. */
typedef struct cv_mapped {
    cv_selection selection;
    cv_memory memory;
    int64_t *lists[CV_MAX_DIMS]; /* owned; of points only the first */
} cv_mapped;

/* Maps a nonempty selection and the memory of its result. Always release with cv_mapped_free. */
cv_status cv_view_map(const caterva_view *view, const cv_selection *s,
                      const cv_memory *memory, cv_mapped *m, cv_error *err);
void cv_mapped_free(cv_mapped *mapped);

/* CATERVA_ESTALE if the array's grid or dtype has changed since the base was made. */
cv_status cv_view_check(const cv_base *base, const cv_grid *grid, cv_error *err);

/* The same for all arrays below. Call without their locks. */
cv_status cv_view_check_arrays(const cv_base *base, cv_error *err);

/* Begin and end a call on the watches of all arrays below: reads between them count as one call.
 * cv_view_finish returns `status`. */
void cv_view_begin(const cv_base *base);
cv_status cv_view_finish(const cv_base *base, cv_status status);

/* The steps of a read that follow after the arrays have delivered their items: distributing points,
 * and copying the item of a new axis to all its indices. */
typedef struct cv_rest {
    struct cv_rest *next;
    cv_memory memory; /* of the result */
    int64_t n_points; /* item i of `items` goes to index places[i] */
    int64_t *places;  /* both owned; NULL: no points */
    uint8_t *items;
    int ndim; /* of the result, and its shape; the last item of a new axis is set */
    int64_t shape[CV_MAX_DIMS];
    bool is_new[CV_MAX_DIMS];
} cv_rest;

void cv_rest_do(const cv_rest *rest);
void cv_rest_free(cv_rest *rest); /* frees what it owns */

/* Called for each array below a view, one after the other, with its nonempty share of the selection
 * and the memory. */
typedef struct cv_visit {
    cv_status (*array)(void *context, const cv_base *base, cv_mapped *share, cv_error *err);
    /* Performs `rest` later, in the order of calls; on success owns what `rest` owns. NULL: it is
     * performed at once. */
    cv_status (*later)(void *context, const cv_rest *rest, cv_error *err);
    void *context;
    bool is_read; /* for reads: points get their own memory, and items that are selected
                     several times are copied */
} cv_visit;

/* Visits the arrays of a checked selection. CATERVA_EUNSUPPORTED for a list that repeats the item
 * of a new axis, unless it is a read. */
cv_status cv_view_visit(const caterva_view *view, const cv_selection *selection,
                        const cv_memory *memory, const cv_visit *visit, cv_error *err);

/* Reads a checked selection of the view into checked memory. */
cv_status cv_view_read(const caterva_view *view, const cv_selection *selection,
                       const cv_memory *dst, cv_error *err);

#endif
