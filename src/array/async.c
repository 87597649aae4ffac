/* Room: array. Reads that nobody waits for: checked and copied when they are called, done
 * as errands of the handle, on threads of the pool. */
#include "array/describe.h"
#include "array/selection.h"
#include "base/heap.h"

#include <string.h>

struct caterva_request {
    cv_errand errand; /* first: its address is what the list holds */
    caterva_array *array;
    const cv_description *description; /* of the array when it was called */
    cv_selection selection;            /* its lists and masks are ours, behind the struct */
    cv_memory memory;
    caterva_async_options options;
    bool is_done;
    cv_status status;
    cv_error error; /* unless the status is OK */
};

static caterva_request *request_of(cv_errand *errand)
{
    return (caterva_request *)(void *)errand;
}

/* ---- What is kept -------------------------------------------------------- */

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

static void free_request(cv_errand *errand)
{
    caterva_request *r = request_of(errand);
    cv_description_release(r->description);
    cv_watch_destroy(&errand->watch);
    cv_cond_destroy(&errand->over);
    cv_free(r);
}

/* ---- Reading, and telling ------------------------------------------------ */

/* The array may have been reshaped since, or the handle turned to another one. */
static cv_status check_state(const caterva_request *r, const cv_grid *grid, cv_error *err)
{
    const caterva_info *info = &r->description->info;
    bool same = grid->ndim == info->ndim && grid->item_size == info->item_size &&
                strcmp(r->array->type.dtype, info->dtype) == 0;
    for (int d = 0; same && d < grid->ndim; d++) same = grid->shape[d] == info->shape[d];
    if (same) return CV_OK;
    return cv_fail(err, CATERVA_ESTALE, -1,
                   "the array's shape has changed since the read was begun");
}

static cv_status read_now(caterva_request *r, cv_error *err)
{
    CV_TRY(cv_watch_tick(&r->errand.watch, 0, err));
    cv_source source = cv_array_source(r->array);
    source.watch = &r->errand.watch;
    CV_TRY(check_state(r, &source.snapshot->grid, err));
    r->selection.grid = &source.snapshot->grid;
    return cv_array_read_selected(r->array, &source, &r->selection, &r->memory, err);
}

static void run(cv_errand *errand)
{
    caterva_request *r = request_of(errand);
    r->status = read_now(r, &r->error);
    r->is_done = true;
}

static void tell(cv_errand *errand)
{
    const caterva_request *r = request_of(errand);
    if (!r->options.on_done) return;
    r->options.on_done(r->options.context, r->status, r->status == CV_OK ? NULL : &r->error);
}

/* ---- Calls ---------------------------------------------------------------- */

static cv_status take_options(const caterva_async_options *options, bool is_held,
                              caterva_async_options *out, cv_error *err)
{
    static const caterva_async_options defaults = CATERVA_ASYNC_INIT;
    CV_TRY(cv_options_copy(out, sizeof *out, options ? options : &defaults, "async options",
                           err));
    if (out->on_done || is_held) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "on_done and out are NULL: nobody would know when the read is done");
}

/* What the call asks for, all of it checked; `selection` borrows. */
static cv_status take_words(const caterva_info *info, const caterva_selection *words,
                            const caterva_buffer *dst, const cv_grid *grid,
                            caterva_request *out, cv_error *err)
{
    CV_TRY(cv_array_selection(grid, words, &out->selection, err));
    cv_result result = cv_result_of(&out->selection, info->dtype);
    return cv_memory_of_destination(dst, &result, &out->memory, err);
}

/* The request for good, with copies of what was borrowed. */
static cv_status keep_request(const caterva_request *words, caterva_request **out,
                              cv_error *err)
{
    size_t size = sizeof **out + borrowed_size(&words->selection);
    caterva_request *r = cv_malloc(size);
    if (!r) return cv_fail_memory(err, size, "a read in the background");
    *r = *words;
    keep_borrowed(&r->selection, (uint8_t *)(r + 1));
    *out = r;
    return CV_OK;
}

static cv_status begin(const caterva_request *words, caterva_request **out, cv_error *err)
{
    caterva_request *r = NULL;
    CV_TRY(keep_request(words, &r, err));
    if (out) *out = r;
    cv_status status = cv_errands_add(&words->array->reads, &r->errand, out != NULL, err);
    if (status == CV_OK) return CV_OK;
    if (out) *out = NULL;
    r->description = NULL; /* the caller's still */
    free_request(&r->errand);
    return status;
}

caterva_status caterva_read_async(caterva_array *array, const caterva_selection *selection,
                                  const caterva_buffer *dst,
                                  const caterva_async_options *options, caterva_request **out,
                                  caterva_error *err)
{
    if (out) *out = NULL;
    CV_TRY(cv_array_check(array, err));
    caterva_request r = {.errand = {.run = run, .tell = tell, .free = free_request},
                         .array = array};
    CV_TRY(take_options(options, out != NULL, &r.options, err));
    CV_TRY(cv_array_describe(array, &r.description, err));
    const caterva_info *info = &r.description->info;
    cv_grid grid = grid_of(info);
    cv_status status = take_words(info, selection, dst, &grid, &r, err);
    if (status == CV_OK) status = begin(&r, out, err);
    if (status != CV_OK) cv_description_release(r.description);
    return status;
}

void caterva_request_cancel(caterva_request *request)
{
    if (request) cv_errand_cancel(&request->errand);
}

caterva_status caterva_request_wait(caterva_request *request, caterva_error *err)
{
    if (!request) return cv_fail(err, CATERVA_EINVAL, -1, "the request is NULL");
    if (!cv_errand_wait(&request->errand))
        return cv_fail(err, CATERVA_EBUSY, -1,
                       "on_done of one request cannot wait for another one");
    if (!request->is_done)
        return cv_fail(err, CATERVA_ESTOPPED, -1,
                       "the read was begun before the fork: it is the parent's");
    if (request->status != CV_OK && err) *err = request->error;
    return request->status;
}

void caterva_request_release(caterva_request *request)
{
    if (request) cv_errand_release(&request->errand);
}
