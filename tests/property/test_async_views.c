/* Asynchronous reads of views: on_done is called when no array below writes to the buffer any
 * more, also if one of them has been closed, damaged or reshaped meanwhile.
 *
 * usage: test_async_views [ROUNDS [SEED]] */
#include "view_orders.h"

static void all_kinds_are_read(rng *r)
{
    enum { N = 40 };
    order orders[N] = {{.reported = 0}};
    caterva_array *arrays[ARRAYS];
    draw_arrays(arrays, r);
    for (int i = 0; i < N; i++) begin_order(&orders[i], arrays, r);
    for (int i = 0; i < N; i++) {
        wait_for(&orders[i]);
        CHECK(orders[i].status == CATERVA_OK, "read %d gives %d", i, orders[i].status);
        finish_order(&orders[i]);
    }
    discard_all(arrays);
}

/* ---- Ends ------------------------------------------------------------------------------ */

/* Some reads are cancelled, some requests are not used again. Then one array is closed, which
 * ends the reads that need it, and then the others. */
static void closing_in_the_middle(rng *r)
{
    enum { N = 40 };
    order orders[N] = {{.reported = 0}};
    caterva_array *arrays[ARRAYS];
    draw_arrays(arrays, r);
    for (int i = 0; i < N; i++) {
        begin_order(&orders[i], arrays, r);
        if (rng_one_in(r, 5)) caterva_request_cancel(orders[i].request);
        if (!rng_one_in(r, 4)) continue;
        caterva_request_release(orders[i].request);
        orders[i].request = NULL;
    }
    if (rng_one_in(r, 2)) usleep((useconds_t)rng_int(r, 0, 1000));
    for (int i = 0; i < ARRAYS; i++) caterva_discard(arrays[(i + 2) % ARRAYS]);
    for (int i = 0; i < N; i++) CHECK(atomic_load(&orders[i].reported) == 1, "%d goes on", i);
    for (int i = 0; i < N; i++) finish_order(&orders[i]);
}

static void close_here(order *o)
{
    CHECK(caterva_request_wait(o->request, NULL) == o->status, "its own request");
    discard_all(o->arrays);
}

/* In the only read, possibly before the call that began it has returned. */
static void on_done_may_close_all_arrays(rng *r)
{
    order o = {.reported = 0, .then = close_here};
    caterva_array *arrays[ARRAYS];
    draw_arrays(arrays, r);
    begin_order(&o, arrays, r);
    wait_for(&o);
    CHECK(o.status == CATERVA_OK, "%d", o.status);
    finish_order(&o);
}

/* One damaged array: only its message is reported. */
static void damage_is_reported(rng *r)
{
    static const int64_t shape[2] = {SIDE, SIDE};
    char path[SCRATCH_PATH];
    caterva_error err, reported;
    caterva_array *arrays[ARRAYS];
    caterva_request *request;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    size_t size;
    int32_t got[2 * SIDE * SIDE];
    CHECK_OK(caterva_close(make_numbered(scratch_path(path, "damaged"), 1, shape, r), &err),
             err);
    uint8_t *bytes = scratch_load(path, &size);
    CHECK(bytes != NULL, "no bytes");
    for (size_t i = size / 4; i < size / 2; i += 20) bytes[i] ^= 0x20;
    scratch_save(path, bytes, size);
    arrays[0] = make_numbered("mem:", 0, shape, r);
    CHECK_OK(caterva_open(path, NULL, &arrays[1], &err), err);
    caterva_view *view = pair_up(whole(arrays[0]), whole(arrays[1]), true, 0);
    dst.data = got;
    dst.size = sizeof got;
    caterva_status damage = caterva_view_read(view, NULL, &dst, &err);
    CHECK(damage == CATERVA_ECORRUPT || damage == CATERVA_EUNSUPPORTED, /* of a flag's bit */
          "not damaged: %d", damage);
    CHECK_OK(caterva_view_read_async(view, NULL, &dst, NULL, &request, &reported), reported);
    CHECK(caterva_request_wait(request, &reported) == damage, "not reported: %s",
          reported.message);
    caterva_request_release(request);
    CHECK(strcmp(reported.message, err.message) == 0, "%s, but %s", reported.message,
          err.message);
    caterva_view_free(view);
    caterva_discard(arrays[0]);
    caterva_discard(arrays[1]);
    scratch_remove(path);
    free(bytes);
}

/* An array of another shape by the time of the read; and one that is closed already. */
static void a_stale_view_is_reported(rng *r)
{
    static const int64_t shape[2] = {SIDE, SIDE}, more[2] = {SIDE + 1, SIDE};
    caterva_error err;
    caterva_array *arrays[2] = {make_numbered("mem:", 0, shape, r),
                                make_numbered("mem:", 1, shape, r)};
    caterva_request *request;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    int32_t got[2 * SIDE * SIDE];
    caterva_view *view = pair_up(whole(arrays[0]), whole(arrays[1]), false, 1);
    dst.data = got;
    dst.size = sizeof got;
    CHECK_OK(caterva_resize(arrays[1], more, &err), err);
    CHECK_OK(caterva_view_read_async(view, NULL, &dst, NULL, &request, &err), err);
    CHECK(caterva_request_wait(request, &err) == CATERVA_ESTALE, "not stale");
    CHECK(strstr(err.message, "when the view was made"), "%s", err.message);
    caterva_request_release(request);
    dst.size--;
    CHECK(caterva_view_read_async(view, NULL, &dst, NULL, &request, &err) == CATERVA_ESHORT,
          "a short buffer");
    CHECK(request == NULL, "a request");
    caterva_view_free(view);
    for (int i = 0; i < 2; i++) caterva_discard(arrays[i]);
}

int main(int argc, char **argv)
{
    int rounds = (int)number_argument(argc, argv, 1, 60);
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    alarm(560); /* ends the program if it hangs */
    set_allocator();
    damage_is_reported(&r);
    a_stale_view_is_reported(&r);
    for (int i = 0; i < rounds; i++) {
        all_kinds_are_read(&r);
        closing_in_the_middle(&r);
        on_done_may_close_all_arrays(&r);
    }
    return 0;
}
