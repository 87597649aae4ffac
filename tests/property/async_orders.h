/* Asynchronous reads of a cube in a file: each is started, reported, and compared with what
 * was written. */
#ifndef TEST_ASYNC_ORDERS_H
#define TEST_ASYNC_ORDERS_H

#include "caterva.h"

#include "support/check.h"
#include "support/cube.h"
#include "support/scratch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GUARD = 8 };

static int32_t *model;
static char path[SCRATCH_PATH];

/* One read, from the call to its end. */
typedef struct order {
    caterva_array *array;
    caterva_request *request;
    cube_box box;
    int32_t *got; /* followed by GUARD items */
    atomic_int reported;
    caterva_status status;
    atomic_bool *gate;             /* on_done waits until it is open; or NULL */
    void (*then)(struct order *o); /* on_done calls it; or NULL */
    struct order *other;
} order;

static inline void on_done(void *context, caterva_status status, const caterva_error *error)
{
    order *o = context;
    CHECK((status == CATERVA_OK) == (error == NULL), "an error with %d", status);
    CHECK(!error || (error->code == status && error->message[0]), "no sentence");
    o->status = status;
    for (int i = 0; o->gate && !atomic_load(o->gate); i++) {
        CHECK(i < 60000, "the gate stays shut");
        usleep(1000);
    }
    if (o->then) o->then(o);
    atomic_fetch_add(&o->reported, 1); /* last, since other threads count it */
}

static inline void set_up(order *o, const cube_box *box)
{
    memset(o, 0, sizeof *o);
    o->box = *box;
    o->got = check_alloc(box->size + GUARD * sizeof(int32_t));
    memset(o->got, 0x55, box->size + GUARD * sizeof(int32_t));
}

/* The data that the call points to is freed when it returns. */
static inline caterva_status begin(order *o, caterva_array *array, caterva_error *err)
{
    cube_box *words = check_alloc(sizeof *words);
    caterva_selection selection = CATERVA_SELECTION_INIT;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    caterva_async_options options = CATERVA_ASYNC_INIT;
    *words = o->box;
    selection.start = words->start;
    selection.stop = words->stop;
    dst.data = o->got;
    dst.size = o->box.size;
    options.on_done = on_done;
    options.context = o;
    o->array = array;
    caterva_status status =
        caterva_read_async(array, &selection, &dst, &options, &o->request, err);
    memset(words, 0x7F, sizeof *words);
    free(words);
    return status;
}

static inline void must_begin(order *o, caterva_array *array)
{
    caterva_error err;
    CHECK_OK(begin(o, array, &err), err);
}

static inline void wait_for(order *o)
{
    caterva_error err;
    caterva_status status = caterva_request_wait(o->request, &err);
    CHECK(status == o->status, "wait returned %s, on_done got %s",
          caterva_status_name(status), caterva_status_name(o->status));
}

/* Waits; the read was reported once, and its items are right if it succeeded. */
static inline void finish(order *o)
{
    int reported = atomic_load(&o->reported);
    CHECK(reported == 1, "on_done was called %d times", reported);
    CHECK(o->status == CATERVA_OK || o->status == CATERVA_ESTOPPED, "a read gave %s",
          caterva_status_name(o->status));
    if (o->status == CATERVA_OK) {
        int32_t *expected = check_alloc(o->box.size);
        cube_copy(model, &o->box, expected, false);
        CHECK(memcmp(o->got, expected, o->box.size) == 0, "other items");
        free(expected);
    }
    for (int i = 0; i < GUARD; i++)
        CHECK(o->got[o->box.size / sizeof(int32_t) + (size_t)i] == 0x55555555, "too far");
    caterva_request_release(o->request);
    free(o->got);
}

static inline cube_box small_box(rng *r)
{
    int64_t start[3], stop[3];
    for (int d = 0; d < 3; d++) {
        start[d] = rng_between(r, 0, CUBE_SIDE - 10);
        stop[d] = start[d] + rng_between(r, 1, 10);
    }
    return cube_box_of(start, stop);
}

/* Creates an array of the model's items at `path`. */
static inline void make_cube(uint64_t seed)
{
    caterva_error err;
    caterva_array *array;
    model = cube_new(seed);
    scratch_path(path, "async");
    cube_create(path, model, -1, true, &(rng){0}, &array);
    CHECK_OK(caterva_close(array, &err), err);
}

#endif
