/* `caterva append`: the state of a growing array, and commits before the end (append_paced.c). */
#ifndef CLI_APPEND_H
#define CLI_APPEND_H

#include "sources/source.h"

/* The array, and the axis it grows along. */
typedef struct growth {
    const char *path;
    caterva_array *array; /* NULL once a sink owns it */
    array_shape shape;
    char *dtype;
    int axis;
    int64_t chunk;  /* its extent along the axis */
    int64_t outer;  /* product of the extents before the axis */
    int64_t stride; /* bytes of one item of the axis: the items at one index */
} growth;

/* Computes the items of the axis in a slab: those that fit in half of --memory, in whole chunks. */
cli_exit append_slab_length(const cli_args *args, const growth *g, int64_t *n);

/* Appends `size` bytes, whole items of the axis. `name`: the input, for messages. */
cli_exit append_slab(growth *g, const char *name, const void *items, size_t size);

/* A commit follows after this many items of the axis, or this long after the first uncommitted
 * one. */
typedef struct append_pace {
    int64_t items;        /* 0: unlimited */
    int64_t milliseconds; /* -1: never     */
} append_pace;

/* Reads --every and --follow. *paced: whether one of them is given. */
cli_exit append_pace_of(const cli_args *args, append_pace *out, bool *paced);

/* Appends a stream of raw items and commits by the pace; the close of the array commits the
 * rest. */
cli_exit append_stream(const cli_args *args, growth *g, int fd, const char *name,
                       const append_pace *pace);

/* Same for an input with a known length: `n` items of the axis. */
cli_exit append_source(const cli_args *args, growth *g, source *from, int64_t n,
                       const append_pace *pace);

#endif
