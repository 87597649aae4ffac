/* Options of new arrays: --shape, --chunks, --codec and others. */
#ifndef CLI_CREATION_H
#define CLI_CREATION_H

#include "foreign/foreign.h"
#include "sources/transfer.h"

typedef struct creation {
    const cli_args *args;
    caterva_create_options options;
    array_shape shape;
    caterva_dtype *dtype;
    char *dtype_text;
    int32_t chunk_shape[CATERVA_MAX_DIMS], block_shape[CATERVA_MAX_DIMS];
    uint8_t *fill_value;
    const char *convert_to; /* for a copy by the library: --astype, or NULL */
    caterva_casting casting;
    caterva_metalayer metalayers[CATERVA_MAX_DIMS];
    bool zarr; /* the array is also a Zarr array; --zarr */
} creation;

/* Fills `c` for an array of this shape and dtype. Options that were not given are left to the
 * library or, if `like` is not NULL, taken from `like`. Release `c` with creation_free, also after
 * a failure. `c` must not be moved, because it contains pointers to itself. */
cli_exit creation_init(creation *c, const cli_args *args, const array_shape *shape,
                       const char *dtype, caterva_array *like);
void creation_free(creation *c);

/* Takes the fill of an array in a file of another format, whose items `from` delivers, and chooses a
 * partition that fits its stored chunks, unless options choose them. */
cli_exit creation_take_node(creation *c, const foreign_node *node, const source *from);

/* Leaves codec, level and filters to the library. */
void creation_drop_codec(creation *c);

/* Replaces the chunk and block shapes of another array by those that the library chooses; those of a
 * Zarr array are adapted to it. */
cli_exit creation_choose_partition(creation *c);

/* Checks that a new array may be created at `path`. */
cli_exit creation_check(const creation *c, const char *path);

/* Rejects a `path` that is standard output, or whose extension is that of another format. */
cli_exit creation_check_name(const char *path);

/* Creates the array at `path`. */
cli_exit creation_make(creation *c, const char *path, caterva_array **out);

#endif
