/* Room: array. Reads of an array that nobody waits for: checked and copied when they are
 * called. */
#include "array/describe.h"
#include "array/request.h"
#include "array/selection.h"

#include <string.h>

/* Of an array all that selections look at. */
static cv_grid grid_of(const caterva_info *info)
{
    cv_grid grid = {
        .ndim = info->ndim, .item_size = info->item_size, .n_items = info->n_items};
    memcpy(grid.shape, info->shape, sizeof grid.shape);
    return grid;
}

static size_t list_size(const cv_axis *axis)
{
    return axis->list ? (size_t)axis->n * sizeof axis->list[0] : 0;
}

static size_t points_size(const cv_selection *s)
{
    return s->points ? (size_t)s->shape[0] * (size_t)s->grid->ndim * sizeof s->points[0] : 0;
}

/* What the selection borrows; it fits, for it is in memory. */
static size_t borrowed_size(const cv_selection *s)
{
    size_t size = points_size(s) + (s->mask ? (size_t)s->grid->n_items : 0);
    for (int d = 0; d < s->grid->ndim; d++)
        size += list_size(&s->axes[d]) + (s->axes[d].mask ? (size_t)s->grid->shape[d] : 0);
    return size;
}

static const void *keep(uint8_t **at, const void *bytes, size_t size)
{
    if (!bytes) return NULL;
    memcpy(*at, bytes, size);
    *at += size;
    return *at - size;
}

/* Numbers first, which want their alignment. */
static void keep_borrowed(cv_selection *s, uint8_t *at)
{
    s->points = keep(&at, s->points, points_size(s));
    for (int d = 0; d < s->grid->ndim; d++)
        s->axes[d].list = keep(&at, s->axes[d].list, list_size(&s->axes[d]));
    for (int d = 0; d < s->grid->ndim; d++)
        s->axes[d].mask = keep(&at, s->axes[d].mask, (size_t)s->grid->shape[d]);
    s->mask = keep(&at, s->mask, (size_t)s->grid->n_items);
}

/* The one piece of the request: all that the call asks for, checked, with copies of what it
 * borrows. */
static cv_status add_selected(caterva_request *request, caterva_array *array,
                              const caterva_selection *words, const caterva_buffer *dst,
                              cv_error *err)
{
    const caterva_info *info = &request->description->info;
    cv_grid grid = grid_of(info);
    cv_selection s;
    cv_memory memory;
    cv_read_piece *piece;
    CV_TRY(cv_array_selection(&grid, words, &s, err));
    cv_result result = cv_result_of(&s, info->dtype);
    CV_TRY(cv_memory_of_destination(dst, &result, &memory, err));
    CV_TRY(cv_request_add_piece(request, array, borrowed_size(&s), &piece, err));
    piece->mapped.selection = s;
    piece->mapped.memory = memory;
    keep_borrowed(&piece->mapped.selection, (uint8_t *)(piece + 1));
    return CV_OK;
}

caterva_status caterva_read_async(caterva_array *array, const caterva_selection *selection,
                                  const caterva_buffer *dst,
                                  const caterva_async_options *options, caterva_request **out,
                                  caterva_error *err)
{
    caterva_request *request;
    if (out) *out = NULL;
    CV_TRY(cv_array_check(array, err));
    CV_TRY(cv_request_new(options, out != NULL, &request, err));
    cv_status status = cv_array_describe(array, &request->description, err);
    if (status == CV_OK) status = add_selected(request, array, selection, dst, err);
    if (status == CV_OK) status = cv_request_begin(request, out, err);
    if (status != CV_OK) cv_request_free(request);
    return status;
}
