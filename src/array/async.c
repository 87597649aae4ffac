/* Room: array. Reads in the background. A call checks its arguments and copies them to a request:
 *
 *     request -> turns, one for each array     each is a task in its array's own list
 *             |    '-> pieces                  boxes or selections of that array
 *             '-> rests                        done by the last turn, before on_done
 *
 * A turn takes no lock. Turns of different arrays may run in parallel, and a call on one array
 * never waits for another array. The first failure cancels the other turns. */
#include "array/array.h"
#include "array/read_write.h"
#include "array/view.h"
#include "base/heap.h"
#include "engine/run/pool.h"

#include <assert.h>
#include <caterva_store.h>
#include <stdlib.h>
#include <string.h>

/* A read of one array and its destination. The data of the selection follows the struct, unless
 * `mapped.lists` owns it. */
typedef struct cv_read_piece {
    struct cv_read_piece *next;
    caterva_array *array;
    const cv_base *base; /* for a view: the base, with which the array is compared; or NULL */
    cv_mapped mapped;
} cv_read_piece;

typedef struct cv_turn {
    cv_task task; /* first member: the list holds its address */
    caterva_request *request;
    cv_read_piece *first; /* the pieces of one array */
} cv_turn;

struct caterva_request {
    atomic_int references; /* one for each turn, and one for the caller */
    atomic_int n_left;     /* turns that have not ended */
    caterva_async_options options;
    const cv_description *description; /* the array's, at the call; NULL for a view */
    cv_base *base;                     /* the view's base; NULL for an array */
    int n_turns;
    cv_turn *turns;
    cv_read_piece *pieces;
    cv_rest *rests, **last_rest; /* in the order in which they are performed */
    atomic_bool has_failed;
    cv_status status;
    cv_error error; /* the first failure */
};

static cv_turn *turn_of(cv_task *task) { return (cv_turn *)(void *)task; }

/* Makes a request. `is_held`: the program receives the request. The caller must free the request
 * with request_free, unless request_begin succeeds. */
static cv_status request_new(const caterva_async_options *options, bool is_held,
                             caterva_request **out, cv_error *err)
{
    caterva_async_options o;
    CV_TRY(cv_options_read(&o, sizeof o, options, "async options", err));
    if (!o.on_done && !is_held)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "on_done and out are NULL: set at least one of them");
    caterva_request *request = cv_calloc(1, sizeof *request);
    if (!request) return cv_fail_memory(err, sizeof *request, "a read in the background");
    request->options = o;
    request->last_rest = &request->rests;
    *out = request;
    return CV_OK;
}

/* Adds a piece to the request, followed by `size` bytes of memory. */
static cv_status request_add_piece(caterva_request *request, caterva_array *array,
                                   size_t size, cv_read_piece **out, cv_error *err)
{
    cv_read_piece *piece = cv_malloc(sizeof *piece + size);
    if (!piece) return cv_fail_memory(err, sizeof *piece + size, "a read in the background");
    *piece = (cv_read_piece){.next = request->pieces, .array = array};
    request->pieces = piece;
    *out = piece;
    return CV_OK;
}

static void free_pieces(cv_read_piece *piece)
{
    for (cv_read_piece *next; piece; piece = next) {
        next = piece->next;
        cv_mapped_free(&piece->mapped);
        cv_free(piece);
    }
}

static void request_free(caterva_request *request)
{
    for (int i = 0; i < request->n_turns; i++) {
        cv_watch_destroy(&request->turns[i].task.watch);
        cv_cond_destroy(&request->turns[i].task.over);
        free_pieces(request->turns[i].first);
    }
    free_pieces(request->pieces);
    for (cv_rest *rest = request->rests, *next; rest; rest = next) {
        next = rest->next;
        cv_rest_free(rest);
        cv_free(rest);
    }
    cv_free(request->turns);
    cv_description_release(request->description);
    cv_base_release(request->base);
    cv_free(request);
}

static void drop_reference(caterva_request *request)
{
    if (atomic_fetch_sub_explicit(&request->references, 1, memory_order_acq_rel) == 1)
        request_free(request);
}

static void free_turn(cv_task *task) { drop_reference(turn_of(task)->request); }

/* CATERVA_ESTALE if a resize or a refresh has changed shape or dtype since the read was begun. */
static cv_status check_array(const caterva_array *array, const caterva_info *info,
                             const cv_grid *grid, cv_error *err)
{
    bool same = grid->ndim == info->ndim && grid->item_size == info->item_size &&
                strcmp(array->type.dtype, info->dtype) == 0;
    for (int d = 0; same && d < grid->ndim; d++) same = grid->shape[d] == info->shape[d];
    if (same) return CV_OK;
    return cv_fail(err, CATERVA_ESTALE, -1,
                   "the array's shape or dtype has changed since the read was begun");
}

static cv_status read_piece(cv_turn *turn, cv_read_piece *piece, cv_error *err)
{
    CV_TRY(cv_watch_tick(&turn->task.watch, 0, err));
    CV_TRY(cv_array_check_whole(piece->array, err));
    cv_source source = cv_array_source(piece->array);
    source.watch = &turn->task.watch;
    const cv_grid *grid = &source.snapshot->grid;
    CV_TRY(piece->base
               ? cv_view_check(piece->base, grid, err)
               : check_array(piece->array, &turn->request->description->info, grid, err));
    piece->mapped.selection.grid = grid;
    return cv_array_read_selected(piece->array, &source, &piece->mapped.selection,
                                  &piece->mapped.memory, err);
}

/* Records the first failure and cancels the other turns. */
static void fail(cv_turn *turn, cv_status status, const cv_error *error)
{
    caterva_request *request = turn->request;
    if (atomic_exchange(&request->has_failed, true)) return;
    request->status = status;
    request->error = *error;
    for (int i = 0; i < request->n_turns; i++)
        if (&request->turns[i] != turn) cv_task_cancel(&request->turns[i].task);
}

static void run(cv_task *task)
{
    cv_turn *turn = turn_of(task);
    cv_error error;
    cv_status status = cv_watch_tick(&task->watch, 0, &error);
    for (cv_read_piece *piece = turn->first; piece && status == CV_OK; piece = piece->next)
        status = read_piece(turn, piece, &error);
    if (status != CV_OK) fail(turn, status, &error);
}

/* Called when a turn ends. The last turn performs the rests and calls on_done. */
static void report(cv_task *task)
{
    caterva_request *r = turn_of(task)->request;
    if (atomic_fetch_sub_explicit(&r->n_left, 1, memory_order_acq_rel) > 1) return;
    for (const cv_rest *rest = r->rests; rest && r->status == CV_OK; rest = rest->next)
        cv_rest_do(rest);
    if (!r->options.on_done) return;
    r->options.on_done(r->options.context, r->status, r->status == CV_OK ? NULL : &r->error);
}

static int compare_arrays(const void *a, const void *b)
{
    uintptr_t of_a = (uintptr_t)(*(cv_read_piece *const *)a)->array;
    uintptr_t of_b = (uintptr_t)(*(cv_read_piece *const *)b)->array;
    return of_a < of_b ? -1 : of_a > of_b;
}

static cv_status make_turns(caterva_request *request, cv_read_piece *const *pieces, size_t n,
                            cv_error *err)
{
    size_t n_turns = 0;
    for (size_t i = 0; i < n; i++)
        n_turns += i == 0 || pieces[i]->array != pieces[i - 1]->array;
    request->turns = cv_calloc(n_turns, sizeof request->turns[0]);
    if (!request->turns)
        return cv_fail_memory(err, n_turns * sizeof request->turns[0],
                              "a read in the background");
    request->pieces = NULL;
    for (size_t i = 0; i < n; i++) {
        bool is_new = i == 0 || pieces[i]->array != pieces[i - 1]->array;
        cv_turn *turn = &request->turns[request->n_turns + is_new - 1];
        request->n_turns += is_new;
        pieces[i]->next = turn->first;
        turn->first = pieces[i];
    }
    return CV_OK;
}

static cv_status share_out(caterva_request *request, cv_error *err)
{
    size_t n = 0;
    assert(request->pieces); /* even an empty selection has a piece */
    for (const cv_read_piece *piece = request->pieces; piece; piece = piece->next) n++;
    cv_read_piece **pieces = cv_malloc(n * sizeof(cv_read_piece *));
    if (!pieces) return cv_fail_memory(err, n * sizeof *pieces, "a read in the background");
    n = 0;
    for (cv_read_piece *piece = request->pieces; piece; piece = piece->next)
        pieces[n++] = piece;
    qsort(pieces, n, sizeof(cv_read_piece *), compare_arrays);
    cv_status status = make_turns(request, pieces, n, err);
    cv_free(pieces);
    return status;
}

/* Begins the request. If `out` is not NULL, sets *out first, because on_done may be called before
 * this function returns. On failure sets *out to NULL, and the caller frees the request. */
static cv_status request_begin(caterva_request *request, caterva_request **out, cv_error *err)
{
    CV_TRY(share_out(request, err));
    int n = request->n_turns;
    for (int i = 0; i < n; i++) {
        cv_turn *turn = &request->turns[i];
        turn->request = request;
        turn->task = (cv_task){.run = run, .report = report, .free = free_turn};
        turn->task.list = &turn->first->array->reads;
        turn->task.next = i + 1 < n ? &request->turns[i + 1].task : NULL;
    }
    atomic_init(&request->n_left, n);
    atomic_init(&request->references, n + (out != NULL));
    if (out) *out = request;
    cv_status status = cv_tasks_add(&request->turns[0].task, err);
    if (status != CV_OK && out) *out = NULL;
    return status;
}

void caterva_request_cancel(caterva_request *request)
{
    for (int i = 0; request && i < request->n_turns; i++)
        cv_task_cancel(&request->turns[i].task);
}

/* Returns true if the calling thread is inside the on_done of this request. */
static bool is_reported_here(const caterva_request *request)
{
    for (int i = 0; i < request->n_turns; i++)
        if (cv_task_is_reported_here(&request->turns[i].task)) return true;
    return false;
}

static bool wait_for(caterva_request *request)
{
    if (is_reported_here(request)) return true;
    for (int i = 0; i < request->n_turns; i++)
        if (!cv_task_wait(&request->turns[i].task)) return false;
    return true;
}

caterva_status caterva_request_wait(caterva_request *request, caterva_error *err)
{
    if (!request) return cv_fail(err, CATERVA_EINVAL, -1, "the request is NULL");
    if (!wait_for(request))
        return cv_fail(err, CATERVA_EBUSY, -1,
                       "on_done of a request cannot wait for another request");
    if (atomic_load_explicit(&request->n_left, memory_order_acquire) > 0)
        return cv_fail(
            err, CATERVA_ESTOPPED, -1,
            "the read was begun before a fork: only the parent process can wait for it");
    if (request->status != CV_OK && err) *err = request->error;
    return request->status;
}

void caterva_request_release(caterva_request *request)
{
    if (request) drop_reference(request);
}

void caterva_background_hold(void) { cv_pool_hold_steps(); }

void caterva_background_resume(void) { cv_pool_resume_steps(); }

/* ---- Reads of arrays ----------------------------------------------------------------- */

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

/* Size of the data that the selection borrows. Cannot overflow: the data is in memory. */
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

/* Copies the borrowed data to `at`. Lists come before masks, because numbers need alignment. */
static void keep_borrowed(cv_selection *s, uint8_t *at)
{
    s->points = keep(&at, s->points, points_size(s));
    for (int d = 0; d < s->grid->ndim; d++)
        s->axes[d].list = keep(&at, s->axes[d].list, list_size(&s->axes[d]));
    for (int d = 0; d < s->grid->ndim; d++)
        s->axes[d].mask = keep(&at, s->axes[d].mask, (size_t)s->grid->shape[d]);
    s->mask = keep(&at, s->mask, (size_t)s->grid->n_items);
}

/* Checks and copies the arguments of a read of one array, as the only piece of the request. */
static cv_status add_selected(caterva_request *request, caterva_array *array,
                              const caterva_selection *words, const caterva_buffer *dst,
                              cv_error *err)
{
    const caterva_info *info = &request->description->info;
    cv_grid grid = grid_of(info);
    cv_selection s;
    cv_memory memory;
    cv_read_piece *piece = NULL;
    CV_TRY(cv_array_selection(&grid, words, &s, err));
    cv_result result = cv_result_of(&s, info->dtype);
    CV_TRY(cv_memory_of_destination(dst, &result, &memory, err));
    CV_TRY(request_add_piece(request, array, borrowed_size(&s), &piece, err));
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
    caterva_request *request = NULL;
    if (out) *out = NULL;
    CV_TRY(cv_array_check(array, err));
    CV_TRY(request_new(options, out != NULL, &request, err));
    cv_status status = cv_array_describe(array, &request->description, err);
    if (status == CV_OK) status = add_selected(request, array, selection, dst, err);
    if (status == CV_OK) status = request_begin(request, out, err);
    if (status != CV_OK) request_free(request);
    return status;
}

/* ---- Reads of views: the call divides the selection, turns read the shares ---------------- */

/* Adds a piece that reads one array's share. The share's lists move to the piece. */
static cv_status add_share(void *request, const cv_base *base, cv_mapped *share,
                           cv_error *err)
{
    cv_read_piece *piece = NULL;
    CV_TRY(request_add_piece(request, base->array, 0, &piece, err));
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

/* Adds a piece without items, for an empty selection. The turn of this piece ends the request. */
static cv_status add_nothing(caterva_request *request, const cv_selection *s, cv_error *err)
{
    const cv_base *base = request->base;
    cv_read_piece *piece = NULL;
    while (!base->array) base = base->parts[0]->base;
    CV_TRY(request_add_piece(request, base->array, 0, &piece, err));
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
    caterva_request *request = NULL;
    if (out) *out = NULL;
    if (!view) return cv_fail(err, CATERVA_EINVAL, -1, "the view is NULL");
    CV_TRY(request_new(options, out != NULL, &request, err));
    request->base = view->base;
    atomic_fetch_add(&view->base->n_views, 1);
    cv_status status = add_shares(request, view, selection, dst, err);
    if (status == CV_OK) status = request_begin(request, out, err);
    if (status != CV_OK) request_free(request);
    return status;
}
