/* Recognizes the format of a file by its first bytes. */
#ifndef CLI_PROBE_H
#define CLI_PROBE_H

#include "foreign/foreign.h"
#include "sources/source.h"

#define PROBE_PIPE_SIZE 16 /* bytes read from a pipe */

typedef struct probe {
    data_format format; /* FORMAT_ARRAY, FORMAT_NPY or FORMAT_FOREIGN; FORMAT_NONE: unknown */
    const char *other;  /* a format that cannot be read ("a FITS file"), or NULL. Static */
    bool empty;
    int fd;                        /* open at its first byte; -1: a directory, or not open */
    uint8_t head[PROBE_PIPE_SIZE]; /* bytes read from a pipe; the input begins here */
    size_t head_size;
} probe;
#define PROBE_INIT                                                                           \
    {                                                                                        \
        .fd = -1                                                                             \
    }

/* Opens `path` ("-": standard input) and recognizes it. Release with probe_close, unless a source
 * took ownership of the descriptor. */
cli_exit probe_open(const char *path, probe *out);
void probe_close(probe *p);

/* Returns the format of a local file that foreign_open opens, or NULL. */
const foreign_info *probe_foreign(const char *path);

/* Whether `path` is a file that begins like an npy file. */
bool probe_is_npy(const char *path);

/* Call it after the library failed to open `path`. If the file is of another known kind, reports
 * that and returns a failure; otherwise returns CLI_OK without a message. */
cli_exit probe_explain(const cli_args *args, const char *path);

/* Reports "x.h5 is an HDF5 file, ..." with CLI_UNSUPPORTED. */
cli_exit probe_refuse(const char *path, const char *other);

#endif
