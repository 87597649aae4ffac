/* Counting along an axis of which items in even steps are taken. */
#ifndef CV_ENGINE_STEPPED_H
#define CV_ENGINE_STEPPED_H

#include "engine/plan/selection.h"

/* Items of a slice that runs forwards, and is not empty, that lie in [lo, hi): the first
 * one's place among the selected, and how many. */
int64_t cv_stepped_count(const cv_axis *axis, int64_t lo, int64_t hi, int64_t *first);

#endif
