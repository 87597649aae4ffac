/* Room: array. Chunks and blocks one by one: arguments checked, locks taken, the
 * engine called. */
#include "engine/read/chunks.h"

#include "array/array.h"
#include "base/arith.h"
#include "engine/jobs/measure.h"
#include "engine/write/flush.h"

#include <string.h>

static cv_status check_number(const char *what, int64_t number, int64_t n, cv_error *err)
{
    if (number >= 0 && number < n) return CV_OK;
    return cv_fail(err, CATERVA_ERANGE, -1, "%s %lld is not in [0, %lld)", what,
                   (long long)number, (long long)n);
}

/* ---- Describing ---------------------------------------------------------- */

/* With the lock. */
static cv_status describe_chunk(caterva_array *array, int64_t chunk, caterva_chunk_info *out,
                                cv_error *err)
{
    const cv_grid *grid = &array->snapshot->grid;
    CV_TRY(check_number("chunk", chunk, grid->n_chunks, err));
    CV_TRY(cv_describe_chunk(array->frame, array->snapshot, chunk, out, err));
    for (int d = 0; d < grid->ndim; d++) {
        out->start[d] = out->index[d] * grid->chunk_shape[d];
        out->stop[d] = cv_min_i64(grid->shape[d], out->start[d] + grid->chunk_shape[d]);
    }
    return CV_OK;
}

static cv_status describe_block(caterva_array *array, int64_t chunk, int64_t block,
                                caterva_block_info *out, cv_error *err)
{
    const cv_grid *grid = &array->snapshot->grid;
    CV_TRY(check_number("chunk", chunk, grid->n_chunks, err));
    CV_TRY(check_number("block", block, grid->n_blocks, err));
    return cv_describe_block(array->frame, array->snapshot, chunk, block, out, err);
}

caterva_status caterva_chunk_describe(caterva_array *array, int64_t chunk,
                                      caterva_chunk_info *out, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    CV_TRY(cv_output_check(out, sizeof *out, "chunk info", err));
    caterva_chunk_info full;
    cv_array_lock_shared(array);
    cv_status status = describe_chunk(array, chunk, &full, err);
    if (status == CV_OK) cv_output_fill(out, &full, sizeof full);
    return cv_array_finish(array, status);
}

caterva_status caterva_block_describe(caterva_array *array, int64_t chunk, int64_t block,
                                      caterva_block_info *out, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    CV_TRY(cv_output_check(out, sizeof *out, "block info", err));
    caterva_block_info full;
    cv_array_lock_shared(array);
    cv_status status = describe_block(array, chunk, block, &full, err);
    if (status == CV_OK) cv_output_fill(out, &full, sizeof full);
    return cv_array_finish(array, status);
}

/* ---- One after another ---------------------------------------------------- */

/* What an iterator describes comes last in it: a newer header makes both longer. */
static size_t size_inside(size_t iter_size, size_t offset)
{
    return iter_size > offset ? iter_size - offset : 0;
}

static cv_status next_chunk(caterva_array *array, caterva_chunk_iter *iter, cv_error *err)
{
    iter->done = iter->next >= array->snapshot->grid.n_chunks;
    if (iter->done) return CV_OK;
    CV_TRY(describe_chunk(array, iter->next, &iter->chunk, err));
    iter->chunk.struct_size =
        size_inside(iter->struct_size, offsetof(caterva_chunk_iter, chunk));
    iter->next++;
    return CV_OK;
}

caterva_status caterva_chunk_next(caterva_array *array, caterva_chunk_iter *iter,
                                  caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    caterva_chunk_iter full;
    CV_TRY(cv_options_copy(&full, sizeof full, iter, "chunk iterator", err));
    cv_array_lock_shared(array);
    cv_status status = next_chunk(array, &full, err);
    if (status == CV_OK) cv_output_fill(iter, &full, sizeof full);
    return cv_array_finish(array, status);
}

static cv_status next_block(caterva_array *array, caterva_block_iter *iter, cv_error *err)
{
    iter->done = iter->next >= array->snapshot->grid.n_blocks;
    if (iter->done) return CV_OK;
    CV_TRY(describe_block(array, iter->chunk, iter->next, &iter->block, err));
    iter->block.struct_size =
        size_inside(iter->struct_size, offsetof(caterva_block_iter, block));
    iter->next++;
    return CV_OK;
}

caterva_status caterva_block_next(caterva_array *array, caterva_block_iter *iter,
                                  caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    caterva_block_iter full;
    CV_TRY(cv_options_copy(&full, sizeof full, iter, "block iterator", err));
    cv_array_lock_shared(array);
    cv_status status = next_block(array, &full, err);
    if (status == CV_OK) cv_output_fill(iter, &full, sizeof full);
    return cv_array_finish(array, status);
}

/* ---- Bytes --------------------------------------------------------------- */

caterva_status caterva_chunk_read(caterva_array *array, int64_t chunk, void *dst,
                                  size_t dst_size, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!dst) return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    cv_array_lock_shared(array);
    cv_source source = cv_array_source(array);
    const cv_grid *grid = &source.snapshot->grid;
    cv_status status = check_number("chunk", chunk, grid->n_chunks, err);
    if (status == CV_OK && dst_size < (size_t)grid->chunk_bytes)
        status = cv_fail(err, CATERVA_ESHORT, -1, "a chunk has %lld bytes, the buffer %zu",
                         (long long)grid->chunk_bytes, dst_size);
    if (status == CV_OK) status = cv_chunk_decode(&source, chunk, dst, err);
    return cv_array_finish(array, status);
}

/* Dirty blocks have no stored form before they are flushed. */
static cv_status flush(caterva_array *array, int64_t chunk, cv_error *err)
{
    if (!array->pending || !cv_pending_find(array->pending, chunk)) return CV_OK;
    cv_worker *worker;
    CV_TRY(cv_worker_take(&array->workers, &worker, err));
    worker->watch = array->watch;
    cv_status status = cv_pending_flush_chunk(array->pending, worker, chunk, 1, err);
    cv_worker_give(&array->workers, worker);
    return status;
}

static cv_status read_stored(caterva_array *array, int64_t chunk, void *dst, size_t dst_size,
                             size_t *size, cv_error *err)
{
    CV_TRY(check_number("chunk", chunk, cv_array_state(array)->grid.n_chunks, err));
    CV_TRY(flush(array, chunk, err));
    cv_source source = cv_array_source(array);
    cv_buffer buffer = {0};
    const uint8_t *bytes;
    cv_status status = cv_chunk_stored(&source, chunk, &buffer, &bytes, size, err);
    if (status == CV_OK && dst) {
        if (*size <= dst_size)
            memcpy(dst, bytes, *size);
        else
            status = cv_fail(err, CATERVA_ESHORT, -1,
                             "chunk %lld takes %zu bytes, the buffer has %zu",
                             (long long)chunk, *size, dst_size);
    }
    cv_buffer_free(&buffer);
    return status;
}

caterva_status caterva_chunk_read_stored(caterva_array *array, int64_t chunk, void *dst,
                                         size_t dst_size, size_t *size, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!size) return cv_fail(err, CATERVA_EINVAL, -1, "size is NULL");
    cv_array_lock_alone(array);
    cv_status status = array->pending ? cv_pending_check(array->pending, err) : CV_OK;
    if (status == CV_OK) status = read_stored(array, chunk, dst, dst_size, size, err);
    return cv_array_finish(array, status);
}

caterva_status caterva_chunk_write_stored(caterva_array *array, int64_t chunk,
                                          const void *src, size_t src_size,
                                          caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    if (!src) return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    cv_array_lock_alone(array);
    cv_status status = cv_pending_check(array->pending, err);
    if (status == CV_OK)
        status = check_number("chunk", chunk, cv_array_state(array)->grid.n_chunks, err);
    if (status == CV_OK) status = cv_part_mark_chunk(array->part, chunk, err);
    if (status == CV_OK) status = cv_chunk_put(array->pending, chunk, src, src_size, err);
    return cv_array_finish(array, status);
}
