/* Room: array. Reads of views that nobody waits for: what each array below is to give is
 * found when they are called, and read by requests. */
#include "array/request.h"
#include "array/selection.h"
#include "base/heap.h"

#include <string.h>

/* The lists of the share are the piece's from now on. */
static cv_status add_share(void *request, const cv_base *base, cv_mapped *share,
                           cv_error *err)
{
    cv_read_piece *piece;
    CV_TRY(cv_request_add_piece(request, base->array, 0, &piece, err));
    piece->base = base;
    piece->mapped = *share;
    memset(share->lists, 0, sizeof share->lists);
    return CV_OK;
}

static cv_status add_rest(void *context, const cv_rest *rest, cv_error *err)
{
    caterva_request *request = context;
    cv_rest *own = cv_malloc(sizeof *own);
    if (!own) return cv_fail_memory(err, sizeof *own, "a read in the background");
    *own = *rest;
    *request->last_rest = own;
    request->last_rest = &own->next;
    return CV_OK;
}

/* Of no item: one array tells that it is done. */
static cv_status add_nothing(caterva_request *request, const cv_selection *s, cv_error *err)
{
    const cv_base *base = request->base;
    cv_read_piece *piece;
    while (!base->array) base = base->parts[0]->base;
    CV_TRY(cv_request_add_piece(request, base->array, 0, &piece, err));
    piece->base = base;
    piece->mapped.selection = *s;
    return CV_OK;
}

static cv_status add_shares(caterva_request *request, const caterva_view *view,
                            const caterva_selection *words, const caterva_buffer *dst,
                            cv_error *err)
{
    const cv_visit collect = {
        .array = add_share, .later = add_rest, .context = request, .is_read = true};
    cv_selection s;
    cv_memory memory;
    CV_TRY(cv_array_selection(&view->grid, words, &s, err));
    cv_result result = cv_result_of(&s, view->base->dtype);
    CV_TRY(cv_memory_of_destination(dst, &result, &memory, err));
    if (s.n_items == 0) return add_nothing(request, &s, err);
    return cv_view_visit(view, &s, &memory, &collect, err);
}

caterva_status caterva_view_read_async(const caterva_view *view,
                                       const caterva_selection *selection,
                                       const caterva_buffer *dst,
                                       const caterva_async_options *options,
                                       caterva_request **out, caterva_error *err)
{
    caterva_request *request;
    if (out) *out = NULL;
    if (!view) return cv_fail(err, CATERVA_EINVAL, -1, "the view is NULL");
    CV_TRY(cv_request_new(options, out != NULL, &request, err));
    request->base = view->base;
    atomic_fetch_add(&view->base->n_views, 1);
    cv_status status = add_shares(request, view, selection, dst, err);
    if (status == CV_OK) status = cv_request_begin(request, out, err);
    if (status != CV_OK) cv_request_free(request);
    return status;
}
