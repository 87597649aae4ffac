/* The header of NumPy's .npy files, versions 1.0, 2.0 and 3.0. */
#ifndef CLI_NPY_H
#define CLI_NPY_H

#include "cli.h"

typedef struct npy_header {
    char *dtype; /* as str(dtype.descr) or dtype.str; owned */
    bool has_objects; /* the items are Python objects, which have no fixed size */
    bool fortran_order;
    int ndim; /* may exceed CATERVA_MAX_DIMS; then `shape` has only the first extents */
    int64_t shape[CATERVA_MAX_DIMS];
    int64_t data_position; /* bytes before the first item */
} npy_header;

/* Reads the next `size` bytes of a file. Returns CLI_CORRUPT if the file has fewer. */
typedef cli_exit npy_read_bytes(void *context, void *dst, size_t size);

/* Reads the header of a file. Messages name it `path`. Release out->dtype with free. */
cli_exit npy_read_header(const char *path, npy_read_bytes *next, void *context,
                         npy_header *out);

/* Makes the complete header for items of `dtype` in C order. Release *out with free. */
cli_exit npy_make_header(const char *dtype, int ndim, const int64_t *shape, char **out,
                         size_t *size);

#endif
