/* `caterva append`: the state of a growing array, and the functions of append_paced.c. */
#ifndef CLI_APPEND_H
#define CLI_APPEND_H

#include "sources/source.h"

/* The array, and the axis along which it grows. */
typedef struct growth {
    const char *path;
    caterva_array *array; /* NULL once a sink owns the array */
    array_shape shape;
    char *dtype;
    int axis;
    int64_t chunk;  /* extent of a chunk along the axis */
    int64_t outer;  /* product of the extents before the axis */
    int64_t stride; /* bytes of one "item of the axis": all items at one index of it */
} growth;

/* Computes *n, the number of items of the axis in a slab: as many as fit in half of --memory,
 * rounded down to whole chunks if possible. */
cli_exit append_slab_length(const cli_args *args, const growth *g, int64_t *n);

/* Appends `size` bytes, which must be whole items of the axis, from the input `name`. */
cli_exit append_slab(growth *g, const char *name, const void *items, size_t size);

/* When to commit: after `items` items of the axis, or `milliseconds` after the first uncommitted
 * item arrived, whichever comes first. */
typedef struct append_pace {
    int64_t items;        /* 0: unlimited */
    int64_t milliseconds; /* -1: never     */
} append_pace;

/* Reads --every and --follow. Sets *paced to whether one of them was given. */
cli_exit append_pace_of(const cli_args *args, append_pace *out, bool *paced);

/* Appends a stream of raw items and commits at `pace`. Closing the array commits the rest. */
cli_exit append_stream(const cli_args *args, growth *g, int fd, const char *name,
                       const append_pace *pace);

/* Like append_stream, for an input of known length: `n` items of the axis. */
cli_exit append_source(const cli_args *args, growth *g, source *from, int64_t n,
                       const append_pace *pace);

#endif
