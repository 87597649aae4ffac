/* What filters say they do to items, computed the plain way: the oracle for all
 * pipelines. Filters that only rearrange bytes do nothing to items. */
#ifndef SUPPORT_FILTER_MODEL_H
#define SUPPORT_FILTER_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* The filters a pipeline can be made of, and how many there are. */
enum { N_FILTERS = 8 };
extern const int all_filters[N_FILTERS];

/* How many pipelines of `length` filters there are, and the k-th of them. */
int64_t count_pipelines(int length);
void number_pipeline(int64_t k, int length, int *filters);

/* A number for the filter that suits items of this size: cells of 4, some bits cleared. */
int filter_number_for(int filter, int32_t item_size);

/* Blocks are 2-d, `edge` x `edge` items, edge a multiple of 4. Does to `block` what
 * filters[0..n) say. */
void apply_filters(const int *filters, int n, int32_t item_size, int edge, uint8_t *block);

#endif
