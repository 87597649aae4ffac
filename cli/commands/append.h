/* Growing an array along one axis: what `append` knows of it, and the ways to commit
 * more often than at the end. */
#ifndef CLI_APPEND_H
#define CLI_APPEND_H

#include "sources/source.h"

/* The array as it is, and where it grows. */
typedef struct growth {
    const char *path;
    caterva_array *array; /* NULL once a sink owns it */
    array_shape shape;
    char *dtype;
    int axis;
    int64_t chunk;  /* its extent along the axis */
    int64_t outer;  /* product of the extents before the axis */
    int64_t stride; /* bytes of one item of the axis: of all that lies at one index */
} growth;

/* Items of the axis in a slab: as many as the memory takes, up to whole chunks. */
cli_exit append_slab_length(const cli_args *args, const growth *g, int64_t *n);

/* Appends `size` bytes, whole items of the axis; `name` is where they are from. */
cli_exit append_slab(growth *g, const char *name, const void *items, size_t size);

/* When to commit: after so many items of the axis, and so long after the first that is
 * not committed. */
typedef struct append_pace {
    int64_t items;        /* 0: any number */
    int64_t milliseconds; /* -1: never     */
} append_pace;

/* From --every and --follow. *paced is false when neither is given. */
cli_exit append_pace_of(const cli_args *args, append_pace *out, bool *paced);

/* A stream of raw items, up to its end, each committed as the pace says. The last ones
 * are left for the close of the array to commit. */
cli_exit append_stream(const cli_args *args, growth *g, int fd, const char *name,
                       const append_pace *pace);

/* The same for an input that says its length; `n` items of the axis. */
cli_exit append_source(const cli_args *args, growth *g, source *from, int64_t n,
                       const append_pace *pace);

#endif
