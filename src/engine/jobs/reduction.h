/* What statistics, histograms and reductions have in common: whose items, which of them,
 * and what they are. */
#ifndef CV_ENGINE_REDUCTION_H
#define CV_ENGINE_REDUCTION_H

#include "engine/items/numbers.h"
#include "engine/read/read.h"

typedef struct cv_reduction {
    const cv_source *source;
    const cv_number_type *type;
    const cv_selection *selection; /* as cv_fold_init wants it */
    cv_watch *watch;               /* counts jobs */
} cv_reduction;

#endif
