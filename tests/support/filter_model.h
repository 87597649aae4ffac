/* The documented effect of filters on items, computed in the simplest way: the oracle for all
 * pipelines. Filters that only rearrange bytes have no effect on items. */
#ifndef SUPPORT_FILTER_MODEL_H
#define SUPPORT_FILTER_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* The filters from which pipelines are made. */
enum { N_FILTERS = 8 };
extern const int all_filters[N_FILTERS];

/* Return the number of pipelines of `length` filters, and the k-th of these pipelines. */
int64_t count_pipelines(int length);
void number_pipeline(int64_t k, int length, int *filters);

/* Returns a meta value that suits items of this size: a cell edge of 4, or some bits cleared. */
int filter_number_for(int filter, int32_t item_size);

/* Applies filters[0..n) to `block`, which has `edge` x `edge` items; edge is a multiple of 4. */
void apply_filters(const int *filters, int n, int32_t item_size, int edge, uint8_t *block);

#endif
