/* Room: array. What an array is: from a snapshot to the public info. */
#include "array/array.h"
#include "engine/verify.h"
#include "format/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- dtype -------------------------------------------------------------- */

/* Files exist whose dtype does not fit their item size: then the items are
 * opaque, and the info says so. */
static cv_status describe_dtype(caterva_array *array, cv_error *err)
{
    const cv_array_meta *meta = &cv_array_state(array)->meta;
    caterva_info *info = &array->info;
    free(array->dtype_stored); /* of an attempt that failed */
    array->dtype_stored = NULL;
    if (meta->dtype) {
        array->dtype_stored = strndup(meta->dtype, meta->dtype_size);
        if (!array->dtype_stored) return cv_fail_memory(err, meta->dtype_size, "a dtype");
        int64_t size;
        cv_status parsed = cv_dtype_item_size(meta->dtype, meta->dtype_size, &size, NULL);
        if (parsed == CATERVA_ENOMEM) return cv_fail_memory(err, meta->dtype_size, "a dtype");
        bool fits = meta->dtype_format == 0 && parsed == CV_OK && size == info->item_size;
        info->dtype_disagrees = !fits;
        if (fits) array->dtype = strdup(array->dtype_stored);
        if (fits && !array->dtype) return cv_fail_memory(err, meta->dtype_size, "a dtype");
    }
    if (!array->dtype) {
        char opaque[24];
        snprintf(opaque, sizeof opaque, "|V%d", info->item_size);
        array->dtype = strdup(opaque);
    }
    if (!array->dtype) return cv_fail_memory(err, 24, "a dtype");
    info->dtype = array->dtype;
    info->dtype_stored = array->dtype_stored;
    return CV_OK;
}

/* ---- Info --------------------------------------------------------------- */

static void describe_grid(const cv_grid *grid, caterva_info *info)
{
    info->ndim = grid->ndim;
    for (int d = 0; d < grid->ndim; d++) {
        info->shape[d] = grid->shape[d];
        info->chunk_shape[d] = (int32_t)grid->chunk_shape[d];
        info->block_shape[d] = (int32_t)grid->block_shape[d];
        info->chunk_counts[d] = grid->chunk_counts[d];
        info->block_counts[d] = grid->block_counts[d];
    }
    info->item_size = grid->item_size;
    info->n_items = grid->n_items;
    info->n_chunks = grid->n_chunks;
    info->n_blocks = grid->n_blocks;
    info->chunk_bytes = grid->chunk_bytes;
    info->block_bytes = grid->block_bytes;
    info->data_bytes = grid->total_bytes;
}

static void describe_header(const cv_snapshot *s, caterva_info *info)
{
    const cv_frame_header *h = &s->header;
    info->layout = h->sparse ? CATERVA_SPARSE : CATERVA_CONTIGUOUS;
    info->metalayer = s->meta.legacy ? CATERVA_METALAYER_CATERVA : CATERVA_METALAYER_B2ND;
    info->codec = h->codec;
    info->codec_meta = h->codec_meta;
    info->level = h->level;
    info->use_dict = h->use_dict;
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++) {
        info->filters[i] = h->filters[i];
        info->filters_meta[i] = h->filters_meta[i];
    }
    info->frame_bytes = (int64_t)h->frame_size + (h->sparse ? h->cbytes : 0);
    info->header_bytes = h->header_size;
    info->n_metalayers = h->n_metalayers;
    info->sealed = s->seal == CV_SEAL_WHOLE;
}

cv_status cv_array_describe(caterva_array *array, cv_error *err)
{
    int disagrees = array->info.dtype_disagrees;
    array->info = (caterva_info){.in_memory = array->frame->store->in_memory};
    describe_grid(&cv_array_state(array)->grid, &array->info);
    describe_header(array->snapshot, &array->info);
    array->info.n_attributes = cv_array_attributes(array);
    array->info.fill_value = array->fill;
    if (!array->dtype) return describe_dtype(array, err);
    array->info.dtype = array->dtype; /* fixed at creation: a commit cannot fail here */
    array->info.dtype_stored = array->dtype_stored;
    array->info.dtype_disagrees = disagrees;
    return CV_OK;
}

const caterva_info *caterva_describe(const caterva_array *array)
{
    return array ? &array->info : NULL;
}

/* ---- Chunks ------------------------------------------------------------- */

caterva_status caterva_describe_chunk(caterva_array *array, int64_t chunk,
                                      caterva_chunk_info *out, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "out is NULL");
    cv_array_lock_shared(array);
    cv_status status;
    int64_t n = array->snapshot->grid.n_chunks;
    if (chunk < 0 || chunk >= n)
        status = cv_fail(err, CATERVA_EINVAL, -1, "chunk %lld is not in [0, %lld)",
                         (long long)chunk, (long long)n);
    else
        status = cv_describe_chunk(array->frame, array->snapshot, chunk, out, err);
    cv_array_unlock(array);
    return status;
}

caterva_status caterva_measure(caterva_array *array, caterva_space *out, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "out is NULL");
    cv_array_lock_shared(array);
    cv_status status = cv_measure(array->frame, array->snapshot, out, err);
    cv_array_unlock(array);
    return status;
}

caterva_status caterva_verify(caterva_array *array, const caterva_verify_options *options,
                              caterva_verify_result *result, caterva_error *err)
{
    static const caterva_verify_options defaults = CATERVA_VERIFY_INIT;
    CV_TRY(cv_array_check(array, err));
    if (!result) return cv_fail(err, CATERVA_EINVAL, -1, "result is NULL");
    caterva_verify_options o;
    CV_TRY(
        cv_options_copy(&o, sizeof o, options ? options : &defaults, "verify options", err));
    cv_array_lock_shared(array);
    cv_source source = cv_array_source(array);
    source.snapshot = array->snapshot; /* what is pending is no stored state */
    cv_status status = cv_verify(&source, &o, NULL, result, err);
    cv_array_unlock(array);
    return status;
}
