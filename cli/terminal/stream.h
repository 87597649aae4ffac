/* Sequential input: standard input, a pipe, the beginning of a file. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include "cli.h"

/* Reads `size` bytes, or fewer at the end of the input. Sets *got to the number of bytes read.
 * Messages name `path`. */
cli_exit stream_read(int fd, const char *path, void *dst, size_t size, size_t *got);

/* Returns how many of `size` bytes to transfer between two checks for signals and the clock. */
size_t stream_piece(size_t size);

/* Like stream_read, but discards the bytes. */
cli_exit stream_discard(int fd, const char *path, int64_t size, int64_t *got);

/* Reads all of standard input and appends a NUL. Returns CLI_USAGE if there are more than `limit`
 * bytes. Release *out with free. */
cli_exit stream_read_input(size_t limit, char **out, size_t *size);

#endif
