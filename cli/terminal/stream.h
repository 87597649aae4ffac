/* Sequential input: standard input, a pipe, the beginning of a file. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include "cli.h"

/* Reads `size` bytes, fewer (*got) only at the end. Error messages name `path`. */
cli_exit stream_read(int fd, const char *path, void *dst, size_t size, size_t *got);

/* Returns how much of `size` to transfer at once, so that signals and the clock are checked. */
size_t stream_piece(size_t size);

/* The same, but discards the bytes. */
cli_exit stream_discard(int fd, const char *path, int64_t size, int64_t *got);

/* Reads all of standard input, with a NUL; CLI_USAGE: over `limit` bytes. Release *out with
 * free. */
cli_exit stream_read_input(size_t limit, char **out, size_t *size);

#endif
