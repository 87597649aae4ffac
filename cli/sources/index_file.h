/* Masks and lists of indices that a selection reads from a file: "@mask.npy". */
#ifndef CLI_INDEX_FILE_H
#define CLI_INDEX_FILE_H

#include "cli.h"

typedef struct index_file {
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    int64_t n;        /* number of items */
    uint8_t *mask;    /* booleans, one byte each; or NULL */
    int64_t *indices; /* integers, or NULL */
} index_file;

/* Reads an npy or b2nd file of booleans or integers. Release with index_file_free, also on
 * failure. */
cli_exit index_file_load(const char *path, index_file *out);
void index_file_free(index_file *file);

#endif
