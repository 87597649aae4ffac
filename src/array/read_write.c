/* Room: array. Reads and writes of boxes, selections, chunks and blocks: checks arguments, takes
 * locks, calls the engine. */
#include "array/read_write.h"

#include "array/array.h"
#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/copy.h"
#include "engine/plan/select_plan.h"
#include "engine/read/chunks.h"
#include "engine/read/read.h"
#include "engine/write/flush.h"
#include "engine/write/transfer.h"
#include "engine/write/write.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <string.h>

/* ---- Memory ---------------------------------------------------------------------------- */

/* The buffer's own axes, before they are aligned with the result's. */
typedef struct axes {
    int ndim;
    int64_t shape[CV_MAX_DIMS];
    int64_t strides[CV_MAX_DIMS];
} axes;

static cv_status read_shape(const caterva_buffer *b, const cv_result *result, axes *out,
                            cv_error *err)
{
    out->ndim = b->shape || b->strides ? b->ndim : result->ndim;
    if (out->ndim < 0 || out->ndim > CV_MAX_DIMS)
        return cv_fail(err, CATERVA_EINVAL, -1, "the buffer cannot have %d dimensions",
                       out->ndim);
    if (!b->shape && out->ndim != result->ndim)
        return cv_fail(err, CATERVA_ESHAPE, -1,
                       "the buffer has %d strides, the selection %d dimensions", out->ndim,
                       result->ndim);
    for (int d = 0; d < out->ndim; d++) {
        out->shape[d] = b->shape ? b->shape[d] : result->shape[d];
        if (out->shape[d] < 0)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "axis %d of the buffer has %lld items, less than 0", d,
                           (long long)out->shape[d]);
    }
    return CV_OK;
}

/* Sets the buffer's strides, or those of C order. The strides of axes of one item are not used. */
static cv_status read_strides(const caterva_buffer *b, int64_t item_size, axes *a,
                              cv_error *err)
{
    int64_t stride = item_size;
    for (int d = a->ndim - 1; d >= 0; d--) {
        a->strides[d] = b->strides ? b->strides[d] : stride;
        if (!cv_mul_i64(stride, cv_max_i64(a->shape[d], 1), &stride))
            return cv_fail(err, CATERVA_EINVAL, -1, "the buffer's size does not fit 64 bits");
    }
    return CV_OK;
}

/* Checks that the buffer holds the span from its lowest item to the end of its highest one. */
static cv_status check_size(const caterva_buffer *b, int64_t item_size, const axes *a,
                            cv_error *err)
{
    int64_t span = item_size;
    for (int d = 0; d < a->ndim; d++) {
        int64_t stride = a->strides[d], reach;
        if (stride == INT64_MIN ||
            !cv_mul_i64(stride < 0 ? -stride : stride, a->shape[d] - 1, &reach) ||
            !cv_add_i64(span, reach, &span))
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "the buffer's stride %lld on axis %d does not fit 64 bits",
                           (long long)stride, d);
    }
    if (!b->data) return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    if ((uint64_t)span > b->size)
        return cv_fail(err, CATERVA_ESHORT, -1,
                       "the items span %lld bytes, the buffer has %zu", (long long)span,
                       b->size);
    return CV_OK;
}

/* Prepares the conversion from the array's dtype to the buffer's, or the opposite if `to_array`. */
static cv_status init_conversion(const caterva_buffer *b, const cv_result *result,
                                 bool to_array, cv_conversion *out, cv_error *err)
{
    *out = (cv_conversion){.needed = false};
    if (b->field && to_array)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "a single field of the items cannot be written");
    if (b->field)
        return cv_conversion_init_field(out, result->dtype, b->field, b->dtype, b->casting,
                                        err);
    if (!b->dtype) return CV_OK;
    if (to_array) return cv_conversion_init(out, b->dtype, result->dtype, b->casting, err);
    return cv_conversion_init(out, result->dtype, b->dtype, b->casting, err);
}

static cv_status take_buffer(const caterva_buffer *buffer, caterva_buffer *out, cv_error *err)
{
    if (!buffer) return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    return cv_options_copy(out, sizeof *out, buffer, "buffer", err);
}

/* Returns whether the buffer is empty. Empty buffers may have any strides (NumPy's are often 0). */
static bool is_empty(axes *a)
{
    bool empty = false;
    for (int d = 0; d < a->ndim; d++) empty = empty || a->shape[d] == 0;
    for (int d = 0; empty && d < a->ndim; d++) a->strides[d] = 1;
    return empty;
}

static cv_status read_axes(const caterva_buffer *b, const cv_result *result,
                           int64_t item_size, axes *out, cv_error *err)
{
    CV_TRY(read_shape(b, result, out, err));
    if (is_empty(out)) return CV_OK;
    CV_TRY(read_strides(b, item_size, out, err));
    return check_size(b, item_size, out, err);
}

cv_status cv_memory_of_destination(const caterva_buffer *buffer, const cv_result *result,
                                   cv_memory *out, cv_error *err)
{
    axes a;
    caterva_buffer b;
    CV_TRY(take_buffer(buffer, &b, err));
    CV_TRY(init_conversion(&b, result, false, &out->conversion, err));
    out->item_size = out->conversion.needed ? out->conversion.to.size : result->item_size;
    CV_TRY(read_axes(&b, result, out->item_size, &a, err));
    if (a.ndim != result->ndim)
        return cv_fail(err, CATERVA_ESHAPE, -1,
                       "the buffer has %d dimensions, the selection %d", a.ndim,
                       result->ndim);
    out->data = b.data;
    for (int d = 0; d < a.ndim; d++) {
        if (a.shape[d] != result->shape[d])
            return cv_fail(err, CATERVA_ESHAPE, -1,
                           "axis %d of the buffer has %lld items, of the selection %lld", d,
                           (long long)a.shape[d], (long long)result->shape[d]);
        if (a.strides[d] == 0 && a.shape[d] > 1)
            return cv_fail(
                err, CATERVA_EINVAL, -1,
                "the %lld items of axis %d of the destination have the same address",
                (long long)a.shape[d], d);
        out->strides[d] = a.strides[d];
    }
    return CV_OK;
}

/* Aligns the buffer's axes with the result's, beginning with the last axis. */
static cv_status broadcast(const axes *a, const cv_result *result, int64_t *strides,
                           cv_error *err)
{
    if (a->ndim > result->ndim)
        return cv_fail(err, CATERVA_ESHAPE, -1,
                       "the buffer has %d dimensions, the selection %d", a->ndim,
                       result->ndim);
    int missing = result->ndim - a->ndim; /* axes that the buffer lacks */
    for (int d = 0; d < result->ndim; d++) {
        int64_t length = d < missing ? 1 : a->shape[d - missing];
        if (length != 1 && length != result->shape[d])
            return cv_fail(err, CATERVA_ESHAPE, -1,
                           "axis %d of the buffer has %lld items, axis %d of the selection "
                           "%lld",
                           d - missing, (long long)length, d, (long long)result->shape[d]);
        strides[d] = length == 1 ? 0 : a->strides[d - missing];
    }
    return CV_OK;
}

/* Converts the buffer's items to the array's dtype, in C order. Converts a broadcast item once. */
static cv_status convert_source(const cv_conversion *c, const cv_result *result, cv_memory *m,
                                void **converted, cv_error *err)
{
    int64_t shape[CV_MAX_DIMS], packed[CV_MAX_DIMS], n = 1;
    for (int d = result->ndim - 1; d >= 0; d--) {
        shape[d] = m->strides[d] == 0 ? 1 : result->shape[d];
        packed[d] = n * c->from.size;
        n *= shape[d]; /* no overflow: the items are in memory */
    }
    int64_t size, copy_size;
    if (!cv_mul_i64(n, c->from.size, &copy_size) || !cv_mul_i64(n, c->to.size, &size))
        return cv_fail(err, CATERVA_EINVAL, -1, "the buffer's size does not fit 64 bits");
    uint8_t *copy = cv_malloc(cv_size(copy_size));
    *converted = cv_malloc(cv_size(size));
    if (!copy || !*converted) {
        cv_free(copy);
        return cv_fail_memory(err, cv_size(size), "converting a buffer");
    }
    cv_copy_box(result->ndim, shape, c->from.size, (cv_strided){m->data, m->strides},
                (cv_strided){copy, packed});
    cv_convert(c, copy, *converted, n);
    cv_free(copy);
    m->data = *converted;
    for (int d = 0; d < result->ndim; d++)
        m->strides[d] = shape[d] == 1 ? 0 : packed[d] / c->from.size * c->to.size;
    return CV_OK;
}

cv_status cv_memory_of_source(const caterva_buffer *buffer, const cv_result *result,
                              cv_memory *out, void **converted, cv_error *err)
{
    axes a;
    caterva_buffer b;
    cv_conversion c;
    *converted = NULL;
    CV_TRY(take_buffer(buffer, &b, err));
    CV_TRY(init_conversion(&b, result, true, &c, err));
    CV_TRY(read_axes(&b, result, c.needed ? c.from.size : result->item_size, &a, err));
    *out = (cv_memory){.data = b.data, .item_size = result->item_size};
    CV_TRY(broadcast(&a, result, out->strides, err));
    for (int d = 0; d < result->ndim; d++)
        if (result->shape[d] == 0) return CV_OK;
    return c.needed ? convert_source(&c, result, out, converted, err) : CV_OK;
}

/* ---- Selections. A selection that is a box is read and written as a box ----------- */

cv_status cv_array_selection(const cv_grid *grid, const caterva_selection *words,
                             cv_selection *out, cv_error *err)
{
    if (!words) return cv_selection_init(out, grid, NULL, err);
    caterva_selection copy;
    CV_TRY(cv_options_copy(&copy, sizeof copy, words, "selection", err));
    return cv_selection_init(out, grid, &copy, err);
}

cv_result cv_result_of(const cv_selection *selection, const char *dtype)
{
    return (cv_result){selection->ndim, selection->shape, selection->grid->item_size, dtype};
}

/* Plans the box [start, stop) for memory with the strides of `plan`. */
static cv_status plan_box(const cv_select_plan *plan, const int64_t *start,
                          const int64_t *stop, cv_plan *out, cv_error *err)
{
    CV_TRY(cv_plan_box(plan->grid, start, stop, out, err));
    memcpy(out->buffer_strides, plan->strides, sizeof out->buffer_strides);
    return CV_OK;
}

caterva_status caterva_selection_shape(caterva_array *array,
                                       const caterva_selection *selection, int *ndim,
                                       int64_t *shape, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!shape || !ndim) return cv_fail(err, CATERVA_EINVAL, -1, "shape or ndim is NULL");
    cv_array_lock_shared(array);
    cv_selection s;
    cv_status status = cv_array_selection(&cv_array_state(array)->grid, selection, &s, err);
    cv_array_unlock(array);
    if (status != CV_OK) return status;
    *ndim = s.ndim;
    memcpy(shape, s.shape, (size_t)s.ndim * sizeof shape[0]);
    return CV_OK;
}

/* Returns the selection on `grid`, which this function makes for items of the converted size: reads
 * convert whole blocks before they copy items. */
static cv_selection convert_selection(const cv_selection *selection, int64_t item_size,
                                      cv_grid *grid)
{
    int64_t from = selection->grid->item_size;
    cv_selection converted = *selection;
    *grid = *selection->grid;
    grid->item_size = (int32_t)item_size;
    for (int d = 0; d < grid->ndim; d++)
        grid->item_strides[d] = grid->item_strides[d] / from * item_size;
    grid->block_bytes = grid->block_bytes / from * item_size;
    converted.grid = grid;
    return converted;
}

static cv_status read_planned(caterva_array *array, const cv_source *source,
                              const cv_select_plan *plan, const cv_memory *dst, cv_error *err)
{
    const cv_conversion *conversion = dst->conversion.needed ? &dst->conversion : NULL;
    int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS];
    if (conversion || !cv_select_plan_is_box(plan, start, stop))
        return (source->skip ? cv_select_read_skipping
                             : cv_select_read)(source, plan, conversion, dst->data, err);
    cv_plan box;
    CV_TRY(plan_box(plan, start, stop, &box, err));
    CV_TRY((source->skip ? cv_read_box_skipping
                         : cv_read_box)(source, &box, dst->data + plan->buffer_pos, err));
    cv_read_ahead_note(&array->ahead, &array->prefetch, source, &box);
    return CV_OK;
}

cv_status cv_array_read_selected(caterva_array *array, const cv_source *source,
                                 const cv_selection *selection, const cv_memory *dst,
                                 cv_error *err)
{
    cv_grid grid;
    cv_select_plan plan;
    cv_selection converted;
    if (selection->n_items == 0) return CV_OK;
    if (dst->conversion.needed) {
        converted = convert_selection(selection, dst->item_size, &grid);
        selection = &converted;
    }
    cv_status status =
        cv_select_plan_init(&plan, selection, dst->strides, source->watch, err);
    if (status == CV_OK) status = read_planned(array, source, &plan, dst, err);
    cv_select_plan_free(&plan);
    return status;
}

static cv_status read_selection(caterva_array *array, const cv_source *source,
                                const caterva_selection *words, const caterva_buffer *dst,
                                cv_error *err)
{
    cv_selection selection;
    cv_memory memory;
    CV_TRY(cv_array_selection(&source->snapshot->grid, words, &selection, err));
    cv_result result = cv_result_of(&selection, array->type.dtype);
    CV_TRY(cv_memory_of_destination(dst, &result, &memory, err));
    return cv_array_read_selected(array, source, &selection, &memory, err);
}

caterva_status caterva_read_selection(caterva_array *array,
                                      const caterva_selection *selection,
                                      const caterva_buffer *dst, caterva_error *err)
{
    cv_source source;
    CV_TRY(cv_array_begin_read(array, &source, err));
    cv_status status = read_selection(array, &source, selection, dst, err);
    return cv_array_finish(array, status);
}

static cv_status write_planned(cv_pending *pending, const cv_select_plan *plan,
                               const uint8_t *data, cv_error *err)
{
    int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS];
    if (!cv_select_plan_is_box(plan, start, stop))
        return cv_select_write(pending, plan, data, err);
    cv_plan box;
    CV_TRY(plan_box(plan, start, stop, &box, err));
    return cv_write_box(pending, &box, data + plan->buffer_pos, err);
}

cv_status cv_array_write_selected(cv_pending *pending, const cv_selection *selection,
                                  const cv_memory *src, cv_error *err)
{
    if (selection->n_items == 0) return CV_OK;
    cv_select_plan plan;
    cv_status status =
        cv_select_plan_init(&plan, selection, src->strides, pending->watch, err);
    if (status == CV_OK) status = write_planned(pending, &plan, src->data, err);
    cv_select_plan_free(&plan);
    return status;
}

static cv_status write_selection(caterva_array *array, const caterva_selection *words,
                                 const caterva_buffer *src, cv_error *err)
{
    cv_selection selection;
    cv_memory memory;
    void *converted;
    CV_TRY(cv_pending_check(array->pending, err));
    CV_TRY(cv_array_selection(&cv_array_state(array)->grid, words, &selection, err));
    cv_result result = cv_result_of(&selection, array->type.dtype);
    cv_status status = cv_memory_of_source(src, &result, &memory, &converted, err);
    if (status == CV_OK)
        status = cv_array_note_write(array, &(cv_written){.selection = &selection}, err);
    if (status == CV_OK)
        status = cv_array_write_selected(array->pending, &selection, &memory, err);
    cv_free(converted);
    return status;
}

caterva_status caterva_write_selection(caterva_array *array,
                                       const caterva_selection *selection,
                                       const caterva_buffer *src, caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    cv_array_lock_alone(array);
    cv_status status = write_selection(array, selection, src, err);
    return cv_array_finish(array, status);
}

static cv_status plan_given_box(const cv_grid *grid, const int64_t *start,
                                const int64_t *stop, cv_plan *plan, cv_error *err)
{
    if (grid->ndim > 0 && (!start || !stop))
        return cv_fail(err, CATERVA_EINVAL, -1, "start or stop is NULL");
    return cv_plan_box(grid, start, stop, plan, err);
}

static cv_status plan_transfer(const cv_grid *grid, const int64_t *start, const int64_t *stop,
                               const void *buffer, size_t buffer_size, cv_plan *plan,
                               cv_error *err)
{
    CV_TRY(plan_given_box(grid, start, stop, plan, err));
    uint64_t needed = (uint64_t)(plan->n_items * grid->item_size);
    if (needed > 0 && !buffer) return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    if (needed > buffer_size)
        return cv_fail(err, CATERVA_ESHORT, -1, "the box has %llu bytes, the buffer %zu",
                       (unsigned long long)needed, buffer_size);
    return CV_OK;
}

caterva_status caterva_read(caterva_array *array, const int64_t *start, const int64_t *stop,
                            void *dst, size_t dst_size, caterva_error *err)
{
    cv_source source;
    cv_plan plan;
    CV_TRY(cv_array_begin_read(array, &source, err));
    cv_status status =
        plan_transfer(&source.snapshot->grid, start, stop, dst, dst_size, &plan, err);
    if (status == CV_OK) status = cv_read_box(&source, &plan, dst, err);
    if (status == CV_OK) cv_read_ahead_note(&array->ahead, &array->prefetch, &source, &plan);
    return cv_array_finish(array, status);
}

caterva_status caterva_prefetch(caterva_array *array, const int64_t *start,
                                const int64_t *stop, caterva_error *err)
{
    cv_source source;
    cv_plan plan;
    CV_TRY(cv_array_begin_read(array, &source, err));
    cv_status status = plan_given_box(&source.snapshot->grid, start, stop, &plan, err);
    if (status == CV_OK) cv_prefetch_add(&array->prefetch, &source, &plan, false);
    return cv_array_finish(array, status);
}

caterva_status caterva_write(caterva_array *array, const int64_t *start, const int64_t *stop,
                             const void *src, size_t src_size, caterva_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    cv_array_lock_alone(array);
    cv_plan plan;
    cv_status status = cv_pending_check(array->pending, err);
    if (status == CV_OK)
        status = plan_transfer(&cv_array_state(array)->grid, start, stop, src, src_size,
                               &plan, err);
    if (status == CV_OK)
        status = cv_array_note_write(array, &(cv_written){.box = &plan}, err);
    if (status == CV_OK) status = cv_write_box(array->pending, &plan, src, err);
    return cv_array_finish(array, status);
}

caterva_status caterva_create_from_memory(const char *url,
                                          const caterva_create_options *options,
                                          const void *src, size_t src_size,
                                          caterva_array **out, caterva_error *err)
{
    static const int64_t origin[CATERVA_MAX_DIMS] = {0};
    CV_TRY(caterva_create(url, options, out, err));
    cv_status status =
        caterva_write(*out, origin, cv_array_state(*out)->grid.shape, src, src_size, err);
    if (status != CV_OK) {
        cv_array_free(*out);
        *out = NULL;
    }
    return status;
}

caterva_status caterva_read_skipping(caterva_array *array, const caterva_selection *selection,
                                     const caterva_buffer *dst,
                                     const caterva_skip_options *options, caterva_error *err)
{
    cv_source source;
    caterva_skip_options o;
    CV_TRY(cv_array_check(array, err));
    CV_TRY(cv_options_copy(&o, sizeof o, options, "skip options", err));
    if (!o.on_damage) return cv_fail(err, CATERVA_EINVAL, -1, "on_damage is NULL");
    const cv_skip skip = {o.fill ? o.fill : array->fill, {o.on_damage, o.context}};
    CV_TRY(cv_array_begin_read(array, &source, err));
    source.skip = &skip;
    cv_status status = read_selection(array, &source, selection, dst, err);
    return cv_array_finish(array, status);
}

/* ---- Chunks and blocks one by one ------------------------------------------- */

static cv_status check_number(const char *what, int64_t number, int64_t n, cv_error *err)
{
    if (number >= 0 && number < n) return CV_OK;
    return cv_fail(err, CATERVA_ERANGE, -1, "%s %lld is not in [0, %lld)", what,
                   (long long)number, (long long)n);
}

/* Call with the lock held. */
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

static cv_status next_chunk(caterva_array *array, caterva_chunk_iter *iter, cv_error *err)
{
    iter->done = iter->next >= array->snapshot->grid.n_chunks;
    if (iter->done) return CV_OK;
    CV_TRY(describe_chunk(array, iter->next, &iter->chunk, err));
    const size_t before = offsetof(caterva_chunk_iter, chunk); /* `chunk` may be longer */
    iter->chunk.struct_size = iter->struct_size > before ? iter->struct_size - before : 0;
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

/* ---- Bytes --------------------------------------------------------------- */

/* Encodes the chunk if it has dirty blocks, because dirty blocks have no stored bytes yet. */
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

static cv_status write_stored(caterva_array *array, int64_t chunk, const void *src,
                              size_t src_size, bool decode, cv_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    if (!src) return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    cv_array_lock_alone(array);
    cv_status status = cv_pending_check(array->pending, err);
    if (status == CV_OK)
        status = check_number("chunk", chunk, cv_array_state(array)->grid.n_chunks, err);
    if (status == CV_OK)
        status = cv_array_note_write(array, &(cv_written){.chunk = &chunk}, err);
    if (status == CV_OK)
        status = cv_chunk_put(array->pending, chunk, src, src_size, decode, err);
    return cv_array_finish(array, status);
}

caterva_status caterva_chunk_write_stored(caterva_array *array, int64_t chunk,
                                          const void *src, size_t src_size,
                                          caterva_error *err)
{
    return write_stored(array, chunk, src, src_size, true, err);
}

caterva_status caterva_chunk_write_undecoded(caterva_array *array, int64_t chunk,
                                             const void *src, size_t src_size,
                                             caterva_error *err)
{
    return write_stored(array, chunk, src, src_size, false, err);
}
