/* Boxes of arrays whose items lie one after another in a file, in C or Fortran order. */
#ifndef CLI_ITEMS_H
#define CLI_ITEMS_H

#include "foreign/foreign.h"
#include "foreign/packed.h"

/* Returns the bytes of all items; CLI_UNSUPPORTED if there are more than 2^63 - 1. */
cli_exit items_size(const char *path, const foreign_node *array, int64_t *out);

/* Reads a box; the array's first item is at byte `position`. Needs 16 MiB in Fortran order. */
cli_exit items_read(packed *from, int64_t position, const foreign_node *array,
                    const int64_t *start, const int64_t *stop, void *dst);

/* Writes a box by calls of `put`, with positions that begin at `position`. */
typedef cli_exit items_put(void *to, const void *bytes, size_t size, int64_t position);
cli_exit items_write(items_put *put, void *to, int64_t position, const foreign_node *array,
                     const int64_t *start, const int64_t *stop, const void *src);

#endif
