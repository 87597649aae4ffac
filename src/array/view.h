/* Views: maps from the axes of a view to those of its base. The base is an array, or a join, which
 * is several views in a row along one axis. A view of a view has the same base. */
#ifndef CV_ARRAY_VIEW_H
#define CV_ARRAY_VIEW_H

#include "array/read_write.h"

#include <stdatomic.h>

struct cv_visit;

typedef struct cv_base {
    atomic_int n_views; /* number of views that use the base */
    cv_grid grid;       /* only ndim, shape, n_items and item_size are set */
    char *dtype;
    caterva_array *array; /* borrowed; NULL for a join */
    /* For a join: part i contains items [starts[i], starts[i + 1]) of axis `axis`. */
    int n_parts;
    int axis;
    int64_t *starts;
    caterva_view **parts;
    /* For a join: visits each part with the part's share of the selection, which is not a mask. */
    cv_status (*visit)(const struct cv_base *join, const cv_selection *selection,
                       const cv_memory *memory, const struct cv_visit *visit, cv_error *err);
} cv_base;

struct caterva_view {
    cv_base *base;
    cv_grid grid;               /* only the members that are set in the base's grid */
    int base_axis[CV_MAX_DIMS]; /* axis of the base; -1 for a new axis of the view */
    /* Index i of an axis of the view is index start[b] + i * step[b] of axis b of the base. An axis
     * of the base that no axis of the view maps to has the fixed index start[b]. */
    int64_t start[CV_MAX_DIMS];
    int64_t step[CV_MAX_DIMS];
};
void cv_base_release(cv_base *base);

/* A selection on the base, and its memory: axes in the base's order, without new axes. */
typedef struct cv_mapped {
    cv_selection selection;
    cv_memory memory;
    int64_t *lists[CV_MAX_DIMS]; /* owned; for points, only lists[0] is used */
} cv_mapped;

/* Maps a nonempty selection and the memory of its result to the base. The caller frees *m with
 * cv_mapped_free, even after a failure. */
cv_status cv_view_map(const caterva_view *view, const cv_selection *s,
                      const cv_memory *memory, cv_mapped *m, cv_error *err);
void cv_mapped_free(cv_mapped *mapped);

/* CATERVA_ESTALE if the array's grid or dtype has changed since the base was made. */
cv_status cv_view_check(const cv_base *base, const cv_grid *grid, cv_error *err);

/* Makes the check of cv_view_check for all arrays below `base`. Call without their locks. */
cv_status cv_view_check_arrays(const cv_base *base, cv_error *err);

/* Begin and end one call on the watch of each array below `base`, so that all reads of an array
 * count as one call. cv_view_finish returns `status`. */
void cv_view_begin(const cv_base *base);
cv_status cv_view_finish(const cv_base *base, cv_status status);

/* The last step of a read through a view, after the arrays have delivered their items: copies
 * points to their places, or copies the item of a new axis to all indices of that axis. */
typedef struct cv_rest {
    struct cv_rest *next;
    cv_memory memory; /* of the result */
    int64_t n_points; /* item i of `items` goes to index places[i] */
    int64_t *places;  /* owned, like `items`; both are NULL if there are no points */
    uint8_t *items;
    int ndim; /* of the result; of a new axis, only the last index was read */
    int64_t shape[CV_MAX_DIMS];
    bool is_new[CV_MAX_DIMS];
} cv_rest;

void cv_rest_do(const cv_rest *rest);
void cv_rest_free(cv_rest *rest); /* frees the memory that `rest` owns */

/* The functions that visit the arrays below a view. `array` is called for one array after the
 * other, with the array's nonempty share of the selection and the memory of that share. */
typedef struct cv_visit {
    cv_status (*array)(void *context, const cv_base *base, cv_mapped *share, cv_error *err);
    /* Keeps `rest` and performs it later, in the order of the calls. On success takes over the
     * memory that `rest` owns. If `later` is NULL, each rest is performed immediately. */
    cv_status (*later)(void *context, const cv_rest *rest, cv_error *err);
    void *context;
    bool is_read; /* points of a join get memory of their own, and a list may select the
                     item of a new axis several times */
} cv_visit;

/* Visits the arrays that a checked selection touches. CATERVA_EUNSUPPORTED if the visit is not a
 * read and a list selects the item of a new axis several times. */
cv_status cv_view_visit(const caterva_view *view, const cv_selection *selection,
                        const cv_memory *memory, const cv_visit *visit, cv_error *err);

/* Reads a checked selection of the view into checked memory. */
cv_status cv_view_read(const caterva_view *view, const cv_selection *selection,
                       const cv_memory *dst, cv_error *err);

#endif
