/* Test support: the naive n-d oracle and random geometries. The oracle works in another way than
 * the library: no chunks, no stored strides, one item at a time. */
#include "oracle.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Mostly sizes of NumPy types, some odd ones, and one above the chunk header's limit of 255. */
static const int32_t item_sizes[] = {1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 3, 5, 7, 12, 16, 24, 300};

/* Returns the greatest length of an axis: the usual one for this ndim, at most `room` items. */
static int64_t axis_limit(int ndim, int64_t room)
{
    static const int64_t usual[] = {1, 4000, 70, 20, 11, 7, 5, 4, 3};
    int64_t limit = usual[ndim < 9 ? ndim : 8];
    return limit < room ? limit : room;
}

static void random_axis(rng *r, geometry *g, int axis, int64_t limit)
{
    g->shape[axis] = rng_one_in(r, 60) ? 0 : rng_between(r, 1, limit);
    g->chunk_shape[axis] = (int32_t)rng_between(r, 1, limit);
    if (rng_one_in(r, 4) && g->shape[axis] > 0)
        g->chunk_shape[axis] = (int32_t)g->shape[axis];
    g->block_shape[axis] = (int32_t)rng_between(r, 1, g->chunk_shape[axis]);
    if (rng_one_in(r, 4)) g->block_shape[axis] = g->chunk_shape[axis];
}

static int64_t padded_length(const geometry *g, int axis)
{
    int64_t chunk = g->chunk_shape[axis];
    int64_t block = g->block_shape[axis];
    int64_t extended = (chunk + block - 1) / block * block;
    int64_t n_chunks = (g->shape[axis] + chunk - 1) / chunk;
    return (n_chunks > 0 ? n_chunks : 1) * extended;
}

geometry random_geometry(rng *r, int max_ndim, int64_t max_items)
{
    geometry g = {.ndim = rng_int(r, 0, max_ndim)};
    int n_sizes = (int)(sizeof(item_sizes) / sizeof(item_sizes[0]));
    g.item_size = item_sizes[rng_int(r, 0, n_sizes - 1)];
    int64_t room = max_items;
    for (int axis = 0; axis < g.ndim; axis++) {
        int64_t limit = axis_limit(g.ndim, room > 0 ? room : 1);
        random_axis(r, &g, axis, limit);
        while (padded_length(&g, axis) > room && limit > 1) {
            limit /= 2;
            random_axis(r, &g, axis, limit);
        }
        room /= padded_length(&g, axis);
    }
    return g;
}

box random_box(rng *r, const geometry *g)
{
    box b;
    memset(&b, 0, sizeof(b));
    int kind = rng_int(r, 0, 9); /* 0: whole array, 1: point, 2: line, 3 to 9: any */
    int line = g->ndim > 0 ? rng_int(r, 0, g->ndim - 1) : 0;
    for (int axis = 0; axis < g->ndim; axis++) {
        int64_t n = g->shape[axis];
        int64_t first = rng_between(r, 0, n);
        int64_t second = rng_between(r, 0, n);
        b.start[axis] = first < second ? first : second;
        b.stop[axis] = first < second ? second : first;
        if (kind == 0 || (kind == 2 && axis == line)) {
            b.start[axis] = 0;
            b.stop[axis] = n;
        } else if ((kind == 1 || kind == 2) && n > 0) {
            b.start[axis] = rng_between(r, 0, n - 1);
            b.stop[axis] = b.start[axis] + 1;
        }
    }
    return b;
}

box whole_box(const geometry *g)
{
    box b;
    memset(&b, 0, sizeof(b));
    memcpy(b.stop, g->shape, sizeof(b.stop));
    return b;
}

int64_t box_items(const box *b, int ndim)
{
    int64_t n = 1;
    for (int axis = 0; axis < ndim; axis++) n *= b->stop[axis] - b->start[axis];
    return n;
}

size_t box_size(const box *b, const geometry *g)
{
    return (size_t)box_items(b, g->ndim) * (size_t)g->item_size;
}

static size_t put_list(char *text, size_t size, size_t at, const char *label)
{
    int n = at < size ? snprintf(text + at, size - at, "%s", label) : 0;
    return at + (n > 0 ? (size_t)n : 0);
}

static size_t put_number(char *text, size_t size, size_t at, int64_t number, int first)
{
    char word[32];
    snprintf(word, sizeof(word), "%s%lld", first ? "" : ",", (long long)number);
    return put_list(text, size, at, word);
}

const char *geometry_text(const geometry *g, char *text, size_t size)
{
    char tail[48];
    size_t at = put_list(text, size, 0, "shape (");
    for (int i = 0; i < g->ndim; i++) at = put_number(text, size, at, g->shape[i], i == 0);
    at = put_list(text, size, at, ") chunks (");
    for (int i = 0; i < g->ndim; i++)
        at = put_number(text, size, at, g->chunk_shape[i], i == 0);
    at = put_list(text, size, at, ") blocks (");
    for (int i = 0; i < g->ndim; i++)
        at = put_number(text, size, at, g->block_shape[i], i == 0);
    snprintf(tail, sizeof(tail), ") items of %d bytes", (int)g->item_size);
    put_list(text, size, at, tail);
    return text;
}

const char *box_text(const box *b, int ndim, char *text, size_t size)
{
    size_t at = put_list(text, size, 0, "[");
    for (int i = 0; i < ndim; i++) {
        at = put_number(text, size, at, b->start[i], i == 0);
        at = put_list(text, size, at, ":");
        at = put_number(text, size, at, b->stop[i], 1);
    }
    put_list(text, size, at, "]");
    return text;
}

oracle oracle_new(const geometry *g)
{
    box all = whole_box(g);
    oracle o = {.geometry = *g, .size = box_size(&all, g)};
    o.bytes = check_alloc(o.size);
    return o;
}

void oracle_free(oracle *o)
{
    free(o->bytes);
    o->bytes = NULL;
}

void oracle_copy(oracle *to, const oracle *from)
{
    memcpy(to->bytes, from->bytes, from->size);
}

void oracle_fill(oracle *o, const void *item)
{
    size_t item_size = (size_t)o->geometry.item_size;
    for (size_t at = 0; at < o->size; at += item_size) memcpy(o->bytes + at, item, item_size);
}

/* Returns the position, in the array's bytes, of item `n` of the box in C order. */
static size_t item_position(const geometry *g, const box *b, int64_t n)
{
    int64_t position = 0;
    int64_t stride = 1;
    for (int axis = g->ndim - 1; axis >= 0; axis--) {
        int64_t length = b->stop[axis] - b->start[axis];
        position += (b->start[axis] + n % length) * stride;
        n /= length;
        stride *= g->shape[axis];
    }
    return (size_t)position * (size_t)g->item_size;
}

void oracle_read(const oracle *o, const box *b, void *dst)
{
    size_t item_size = (size_t)o->geometry.item_size;
    int64_t n_items = box_items(b, o->geometry.ndim);
    uint8_t *to = dst;
    for (int64_t n = 0; n < n_items; n++)
        memcpy(to + (size_t)n * item_size, o->bytes + item_position(&o->geometry, b, n),
               item_size);
}

void oracle_write(oracle *o, const box *b, const void *src)
{
    size_t item_size = (size_t)o->geometry.item_size;
    int64_t n_items = box_items(b, o->geometry.ndim);
    const uint8_t *from = src;
    for (int64_t n = 0; n < n_items; n++)
        memcpy(o->bytes + item_position(&o->geometry, b, n), from + (size_t)n * item_size,
               item_size);
}
