/* Reading through views. */
#ifndef CV_ARRAY_VIEW_READ_H
#define CV_ARRAY_VIEW_READ_H

#include "array/view.h"

/* CATERVA_ESTALE when the array's grid is not the one that views were made of. */
cv_status cv_view_check(const cv_base *base, const cv_grid *grid, cv_error *err);

/* Reads a selection of the view, checked, into memory, checked. */
cv_status cv_view_read(const caterva_view *view, const cv_selection *selection,
                       const cv_memory *dst, cv_error *err);

#endif
