/* Statistics and reductions of views of several arrays. */
#ifndef CV_ARRAY_REDUCE_JOIN_H
#define CV_ARRAY_REDUCE_JOIN_H

#include "array/reduce_call.h"
#include "array/view.h"

/* As the public functions; `view` is of several arrays. Bins are checked, and added to; of
 * the given cells what, dst and dst_size count. */
cv_status cv_join_statistics(const caterva_view *view, const caterva_reduce_options *options,
                             caterva_stats *out, cv_error *err);
cv_status cv_join_histogram(const caterva_view *view, const caterva_reduce_options *options,
                            const cv_bins *bins, cv_error *err);
cv_status cv_join_reduce(const caterva_view *view, const caterva_reduce_options *options,
                         const cv_cells_wanted *given, cv_error *err);

#endif
