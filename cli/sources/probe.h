/* What a file is, by its first bytes. */
#ifndef CLI_PROBE_H
#define CLI_PROBE_H

#include "sources/source.h"

#define PROBE_PIPE_SIZE 16 /* bytes taken out of a pipe */

typedef struct probe {
    data_format format; /* FORMAT_ARRAY or FORMAT_NPY; FORMAT_NONE: the bytes do not tell */
    const char *other;  /* what else they are ("an HDF5 file"), or NULL. Static */
    bool empty;
    int fd; /* open at the first byte; -1: a directory, or never opened */
    uint8_t head[PROBE_PIPE_SIZE]; /* of a pipe: taken out of it, to be read first */
    size_t head_size;
} probe;
#define PROBE_INIT                                                                           \
    {                                                                                        \
        .fd = -1                                                                             \
    }

/* Opens `path` ("-": standard input) and looks. Release with probe_close, which a source
 * that took the descriptor over makes unnecessary. */
cli_exit probe_open(const char *path, probe *out);
void probe_close(probe *p);

/* Whether `path` is a file that begins as NumPy's do. */
bool probe_is_npy(const char *path);

/* After the library could not open `path`: a sentence that names what it is and CLI_OK
 * never, when that is something else; else CLI_OK, and nothing was said. */
cli_exit probe_explain(const cli_args *args, const char *path);

/* "x.h5 is an HDF5 file, ..." with CLI_UNSUPPORTED. */
cli_exit probe_refuse(const char *path, const char *other);

#endif
