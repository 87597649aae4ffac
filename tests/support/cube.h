/* A cube of int32, and its model, which is the same items in plain memory. For tests in which
 * several threads or background work use one array: they read boxes in every way and compare them
 * with the model. */
#ifndef SUPPORT_CUBE_H
#define SUPPORT_CUBE_H

#include "caterva.h"
#include "random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CUBE_SIDE = 64,
    CUBE_ITEMS = CUBE_SIDE * CUBE_SIDE * CUBE_SIDE,
    CUBE_BLOCK_BYTES = 16 * 16 * 16 * 4, /* if the cube is created with `even` */
    CUBE_CACHE_ALL = 16 << 20            /* holds all blocks of the cube */
};

extern const int64_t cube_shape[3], cube_origin[3];

typedef struct cube_box {
    int64_t start[3], stop[3];
    size_t size; /* in bytes */
} cube_box;

cube_box cube_box_of(const int64_t *start, const int64_t *stop);
cube_box cube_plane(int axis, int64_t at, int64_t thick);

/* A random box in rows [first, last). */
cube_box cube_random_box(rng *r, int64_t first, int64_t last);

/* Makes a model: CUBE_ITEMS items that compress. Release with free. */
int32_t *cube_new(uint64_t seed);

/* Copies a box from the model to a buffer, or from the buffer to the model if `to_model`. */
void cube_copy(int32_t *model, const cube_box *b, int32_t *buffer, bool to_model);

/* Creates an array with the items of the model, and commits. With `even`, chunks and blocks divide
 * the shape. `pipeline` determines layout and level. */
void cube_create(const char *url, int32_t *model, int64_t cache_bytes, bool even,
                 const rng *pipeline, caterva_array **out);

/* Opens the array for reading. With `off`, read-ahead is off. */
caterva_array *cube_open(const char *path, int threads, int64_t cache_bytes, bool off);

void cube_prefetch(caterva_array *array, const cube_box *b);

/* The ways of reading a box. */
typedef enum cube_way {
    CUBE_AS_BOX,
    CUBE_AS_SELECTION,
    CUBE_THROUGH_VIEW,
    CUBE_AROUND_DAMAGE,
    CUBE_WAYS
} cube_way;

/* Reads the box in the given way, and fails unless it equals that of the model. */
void cube_check_read_by(cube_way how, caterva_array *array, int32_t *model,
                        const cube_box *b);
void cube_check_read(caterva_array *array, int32_t *model, const cube_box *b); /* as box */

#endif
