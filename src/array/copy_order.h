/* What copies of arrays and of views share: the order for the new array. */
#ifndef CV_ARRAY_COPY_ORDER_H
#define CV_ARRAY_COPY_ORDER_H

#include "array/array.h"
#include "engine/items/convert.h"

/* Options made complete, with what they point at. */
typedef struct cv_copy_order {
    caterva_copy_options options;
    caterva_create_options create;
    int64_t start[CATERVA_MAX_DIMS];
    int64_t shape[CATERVA_MAX_DIMS];
    int32_t chunk_shape[CATERVA_MAX_DIMS];
    int32_t block_shape[CATERVA_MAX_DIMS];
    cv_conversion conversion; /* of every item */
    uint8_t fill[16];         /* the source's, converted */
} cv_copy_order;

/* Reads the caller's options, NULL included; of `create` all but shape and partition
 * is then complete, or left to cv_copy_set_kind. */
cv_status cv_copy_read_options(const caterva_copy_options *options, cv_copy_order *order,
                               cv_error *err);

/* The conversion that is asked for, and its dtype for the new array. */
cv_status cv_copy_set_conversion(const caterva_array *source, cv_copy_order *order,
                                 cv_error *err);

/* Layout, metalayer and fill as `source` has them, where nothing else was asked for. */
void cv_copy_set_kind(const caterva_array *source, const char *url, cv_copy_order *order);

/* Makes `for_remote` 0 or 1: as the source, which is locked, where nothing was asked for.
 * CATERVA_EINVAL for a directory that is to be read through URLs. After cv_copy_set_kind. */
cv_status cv_copy_choose_remote(caterva_array *source, cv_copy_order *order, cv_error *err);

#endif
