/* The naive n-d array with which every other implementation is compared: plain memory in C order,
 * moved item by item. Slow and obviously correct. */
#ifndef SUPPORT_ORACLE_H
#define SUPPORT_ORACLE_H

#include "caterva.h"
#include "random.h"

#include <stddef.h>
#include <stdint.h>

/* The parameters of an array. The oracle does not use chunk and block shape. */
typedef struct geometry {
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    int32_t chunk_shape[CATERVA_MAX_DIMS];
    int32_t block_shape[CATERVA_MAX_DIMS];
    int32_t item_size;
} geometry;

typedef struct box {
    int64_t start[CATERVA_MAX_DIMS];
    int64_t stop[CATERVA_MAX_DIMS];
} box;

typedef struct oracle {
    geometry geometry;
    uint8_t *bytes;
    size_t size;
} oracle;

/* Returns a shape of at most `max_items` items (with padding). Its chunk and block shapes usually
 * divide neither the shape nor each other; sometimes an axis has length 0. */
geometry random_geometry(rng *r, int max_ndim, int64_t max_items);

/* Returns a box inside the shape: sometimes empty, a point, a line or the whole array. */
box random_box(rng *r, const geometry *g);
box whole_box(const geometry *g);

int64_t box_items(const box *b, int ndim);
size_t box_size(const box *b, const geometry *g);

/* Returns "shape (4,5) chunks (3,2) blocks (2,2) items of 4 bytes", for messages. */
const char *geometry_text(const geometry *g, char *text, size_t size);
const char *box_text(const box *b, int ndim, char *text, size_t size);

/* Makes an array of zero bytes. Release it with oracle_free. */
oracle oracle_new(const geometry *g);
void oracle_free(oracle *o);
void oracle_copy(oracle *to, const oracle *from);
void oracle_fill(oracle *o, const void *item);
void oracle_read(const oracle *o, const box *b, void *dst);
void oracle_write(oracle *o, const box *b, const void *src);

#endif
