/* Items appended and inserted from every kind of buffer: in Fortran order, with gaps, with
 * negative strides, repeated along axes of one item, of another dtype. The oracle is a plain
 * array, edited item by item.
 *
 * usage: test_edits [ROUNDS [SEED]] */
#include "caterva.h"

#include "support/check.h"
#include "support/random.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 40, MOST = 64 };

/* The expected array, rows of at most SIDE items. */
typedef struct model {
    int64_t shape[2];
    int32_t items[MOST][MOST];
} model;

/* The inserted items: (i, j) of them. */
typedef struct patch {
    int64_t shape[2], strides[2];
    caterva_buffer buffer;
    uint8_t bytes[8 * MOST * MOST];
    int32_t values[MOST][MOST];
} patch;

static void put_item(uint8_t *at, const char *dtype, int32_t value)
{
    double real = value;
    int16_t small = (int16_t)value;
    if (!dtype) {
        memcpy(at, &value, sizeof value);
    } else if (dtype[1] == 'f') {
        memcpy(at, &real, sizeof real);
    } else if (dtype[0] == '=') {
        memcpy(at, &small, sizeof small);
    } else {
        at[0] = (uint8_t)((uint16_t)small >> 8);
        at[1] = (uint8_t)small;
    }
}

/* A patch of that shape, or with axes of one item that are broadcast. */
static void draw_patch(patch *p, const int64_t *shape, rng *r)
{
    static const char *const dtypes[] = {NULL, NULL, "=i2", ">i2", "=f8"};
    const char *dtype = dtypes[rng_int(r, 0, 4)];
    int64_t size = dtype ? dtype[2] - '0' : 4, at = 0, span = size;
    int first = rng_int(r, 0, 1); /* the axis with the smallest step */
    p->buffer = (caterva_buffer)CATERVA_BUFFER_INIT;
    for (int d = 0; d < 2; d++) p->shape[d] = rng_one_in(r, 5) ? 1 : shape[d];
    for (int k = 0, d = first; k < 2; k++, d = 1 - d) {
        p->strides[d] = span + (k ? size * rng_int(r, 0, 1) : 0);
        span = p->strides[d] * (p->shape[d] - 1) + span;
        if (!rng_one_in(r, 3)) continue;
        at += p->strides[d] * (p->shape[d] - 1);
        p->strides[d] = -p->strides[d];
    }
    CHECK(span <= (int64_t)sizeof p->bytes, "%lld bytes", (long long)span);
    for (int64_t i = 0; i < p->shape[0]; i++)
        for (int64_t j = 0; j < p->shape[1]; j++) {
            p->values[i][j] = rng_int(r, -999, 999);
            put_item(p->bytes + at + i * p->strides[0] + j * p->strides[1], dtype,
                     p->values[i][j]);
        }
    p->buffer.data = p->bytes + at;
    p->buffer.size = (size_t)span;
    p->buffer.ndim = 2;
    p->buffer.shape = p->shape;
    p->buffer.strides = p->strides;
    p->buffer.dtype = dtype;
    p->buffer.casting = CATERVA_CASTING_UNSAFE;
}

static int32_t value_of(const patch *p, int64_t i, int64_t j)
{
    return p->values[p->shape[0] == 1 ? 0 : i][p->shape[1] == 1 ? 0 : j];
}

static void insert(model *m, int axis, int64_t at, int64_t n, const patch *p)
{
    static model old;
    old = *m;
    m->shape[axis] += n;
    for (int64_t i = 0; i < m->shape[0]; i++)
        for (int64_t j = 0; j < m->shape[1]; j++) {
            int64_t k = axis ? j : i; /* along the axis */
            int64_t before = k < at ? 0 : n;
            if (k >= at && k < at + n)
                m->items[i][j] = axis ? value_of(p, i, j - at) : value_of(p, i - at, j);
            else
                m->items[i][j] = axis ? old.items[i][j - before] : old.items[i - before][j];
        }
}

static void check_array(caterva_array *array, const model *m)
{
    static int32_t got[MOST * MOST];
    static const int64_t origin[2] = {0, 0};
    caterva_error err;
    CHECK_OK(caterva_read(array, origin, m->shape, got, sizeof got, &err), err);
    for (int64_t i = 0; i < m->shape[0]; i++)
        for (int64_t j = 0; j < m->shape[1]; j++)
            CHECK(got[i * m->shape[1] + j] == m->items[i][j], "item %lld, %lld", (long long)i,
                  (long long)j);
}

static void edit(caterva_array *array, model *m, rng *r)
{
    static patch p; /* large */
    caterva_error err;
    int axis = rng_int(r, 0, 1);
    int64_t n = rng_between(r, 1, 7), at = rng_between(r, 0, m->shape[axis]);
    int64_t shape[2] = {m->shape[0], m->shape[1]};
    bool appends = rng_one_in(r, 3);
    if (m->shape[axis] + n > SIDE) {
        CHECK_OK(caterva_remove(array, axis, 3, SIDE / 2, &err), err);
        int64_t gone = SIDE / 2 - 3;
        for (int64_t i = 0; i < m->shape[0]; i++)
            for (int64_t j = 0; j < m->shape[1]; j++)
                if ((axis ? j : i) >= SIDE / 2)
                    m->items[axis ? i : i - gone][axis ? j - gone : j] = m->items[i][j];
        m->shape[axis] -= gone;
        return;
    }
    shape[axis] = n;
    draw_patch(&p, shape, r);
    if (appends) at = m->shape[axis];
    CHECK_OK(appends ? caterva_append(array, axis, n, &p.buffer, &err)
                     : caterva_insert(array, axis, at, n, &p.buffer, &err),
             err);
    insert(m, axis, at, n, &p);
}

int main(int argc, char **argv)
{
    static model m; /* large */
    static const int32_t chunks[2] = {7, 5}, blocks[2] = {3, 5};
    int rounds = (int)number_argument(argc, argv, 1, 40);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    for (int k = 0; k < rounds; k++) {
        caterva_error err;
        caterva_array *array;
        caterva_create_options o = CATERVA_CREATE_INIT;
        for (int d = 0; d < 2; d++) m.shape[d] = rng_between(&r, 1, 12);
        memset(m.items, 0, sizeof m.items);
        o.ndim = 2;
        o.shape = m.shape;
        o.chunk_shape = chunks;
        o.block_shape = blocks;
        o.dtype = "=i4";
        CHECK_OK(caterva_create("mem:", &o, &array, &err), err);
        for (int i = 0; i < 25; i++) {
            edit(array, &m, &r);
            check_array(array, &m);
            if (rng_one_in(&r, 5)) CHECK_OK(caterva_commit(array, &err), err);
        }
        caterva_discard(array);
    }
    return 0;
}
