/* Room: store. Beginnings and ends of objects, which are kept as they come: the first that is
 * known of an object. */
#include "store/http_piece.h"

#include "base/heap.h"
#include "store/gather.h"
#include "store/http_fetch.h"

#include <string.h>

/* ---- One ------------------------------------------------------------------------------- */

typedef struct piece_request {
    cv_fetch fetch; /* first */
    cv_http_piece *out;
    cv_gathered *pieces; /* this one, or many */
    cv_status *status;   /* where that of one of many goes; else NULL */
} piece_request;

static cv_status piece_granted(cv_fetch *fetch, const cv_grant *grant, cv_error *err)
{
    cv_http_piece *out = ((piece_request *)fetch)->out;
    out->bytes = cv_malloc((size_t)grant->size);
    if (!out->bytes) return cv_fail_memory(err, (size_t)grant->size, "bytes of a URL");
    out->pos = grant->first;
    out->size = (size_t)grant->size;
    return CV_OK;
}

static cv_status piece_take(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes, size_t size,
                            cv_error *err)
{
    cv_http_piece *out = ((piece_request *)fetch)->out;
    (void)err;
    memcpy(out->bytes + (pos - out->pos), bytes, size);
    return CV_OK;
}

/* Of one of many the others go on. */
static void piece_gone(cv_fetch *fetch)
{
    const piece_request *r = (piece_request *)fetch;
    if (r->status) *r->status = fetch->status;
    cv_gathered_gone(r->pieces, 1, r->status ? CV_OK : fetch->status, &fetch->error,
                     SIZE_MAX);
}

/* Until all are gone. */
static cv_status wait_for_pieces(cv_gathered *pieces, piece_request *list, size_t n,
                                 cv_watch *watch, cv_error *err)
{
    bool goes_on = true;
    cv_status status = CV_OK;
    while (goes_on && status == CV_OK)
        status = cv_gathering_wait(pieces->all, watch, &goes_on, err);
    for (size_t i = 0; status != CV_OK && i < n; i++) cv_fetch_cancel(&list[i].fetch);
    cv_gathered_leave(pieces);
    return status;
}

static void order_piece(piece_request *r, cv_http_object *object, const cv_ask *ask,
                        bool is_anew)
{
    *r->out = (cv_http_piece){0};
    r->fetch.object = object;
    r->fetch.ask = *ask;
    r->fetch.is_anew = is_anew;
    r->fetch.n_ranges = 1;
    r->fetch.granted = piece_granted;
    r->fetch.take = piece_take;
    r->fetch.gone = piece_gone;
}

cv_status cv_http_read_piece(cv_http_object *object, const cv_ask *ask, bool is_anew,
                             cv_watch *watch, cv_http_piece *out, bool *has_no_ranges,
                             cv_error *err)
{
    const cv_arrivals nobody = {.watch = watch};
    cv_gathering all;
    cv_gathered pieces;
    piece_request r = {.out = out, .pieces = &pieces};
    order_piece(&r, object, ask, is_anew);
    cv_gathering_init(&all);
    cv_status status = cv_gathered_join(&pieces, &all, &nobody, 0, 1, err);
    if (status == CV_OK) {
        cv_error error = {0};
        atomic_fetch_add(&object->session->round_trips, 1);
        status = cv_fetch_begin(&r.fetch, &error);
        if (status != CV_OK) cv_gathered_gone(&pieces, 1, status, &error, SIZE_MAX);
        status = wait_for_pieces(&pieces, &r, status == CV_OK ? 1 : 0, watch, err);
    }
    *has_no_ranges = r.fetch.has_no_ranges;
    cv_gathering_destroy(&all);
    if (status != CV_OK) cv_free(out->bytes);
    if (status != CV_OK) *out = (cv_http_piece){0};
    return status;
}

/* ---- First pieces of many ---------------------------------------------------------------- */

/* What could not be begun has that for its status. */
static void begin_orders(cv_http_order *orders, piece_request *list, size_t n,
                         cv_gathered *pieces)
{
    for (size_t i = 0; i < n; i++) {
        const cv_ask ask = {.first = 0, .end = orders[i].size};
        list[i].out = &orders[i].piece;
        list[i].pieces = pieces;
        list[i].status = &orders[i].status;
        order_piece(&list[i], orders[i].object, &ask, orders[i].is_anew);
        cv_status status = cv_fetch_begin(&list[i].fetch, NULL);
        if (status == CV_OK) continue;
        orders[i].status = status;
        cv_gathered_gone(pieces, 1, CV_OK, NULL, SIZE_MAX);
    }
}

cv_status cv_http_read_orders(cv_http_order *orders, size_t n, cv_watch *watch, cv_error *err)
{
    const cv_arrivals nobody = {.watch = watch};
    cv_gathering all;
    cv_gathered pieces;
    if (n == 0) return CV_OK;
    piece_request *list = cv_calloc(n, sizeof *list);
    if (!list) return cv_fail_memory(err, n * sizeof *list, "requests");
    cv_gathering_init(&all);
    cv_status status = cv_gathered_join(&pieces, &all, &nobody, 0, n, err);
    if (status == CV_OK) {
        atomic_fetch_add(&orders[0].object->session->round_trips, 1);
        begin_orders(orders, list, n, &pieces);
        status = wait_for_pieces(&pieces, list, n, watch, err);
    }
    cv_gathering_destroy(&all);
    cv_free(list);
    for (size_t i = 0; i < n; i++) {
        cv_http_order *o = &orders[i];
        if (status == CV_OK && o->status == CV_OK) continue;
        cv_free(o->piece.bytes);
        o->piece = (cv_http_piece){0};
    }
    return status;
}
