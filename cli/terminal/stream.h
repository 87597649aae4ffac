/* Bytes that come in order: standard input, a pipe, the front of a file. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include "cli.h"

/* Reads up to `size` bytes; fewer come (*got) only at the end. `path` is what the
 * sentence of a failure names. */
cli_exit stream_read(int fd, const char *path, void *dst, size_t size, size_t *got);

/* So much of `size` is read or written at once, that a signal or a look at the clock
 * need not wait long. */
size_t stream_piece(size_t size);

/* The same, and drops what it reads. */
cli_exit stream_skip(int fd, const char *path, int64_t size, int64_t *got);

/* All of standard input, with a NUL behind it; CLI_USAGE when it is more than `limit`
 * bytes. Release *out with free. */
cli_exit stream_read_input(size_t limit, char **out, size_t *size);

#endif
