/* A result file that appears whole or not at all, or standard output. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli.h"

typedef struct output {
    int fd;
    char *path;      /* for messages */
    char *target;    /* what the rename replaces; NULL when written directly */
    char *temporary; /* beside the target */
    bool force;
    bool seekable;
    uint8_t *buffer;
    size_t used;
} output;

/* Opens `path` for writing; NULL or "-" is standard output. A regular file is
 * written under a temporary name beside it; a device or pipe directly. CLI_IO
 * when the file exists and `force` is false. */
cli_exit output_open(output *out, const char *path, bool force);

/* Appends; buffered. */
cli_exit output_write(output *out, const void *bytes, size_t size);

/* Writes at a place counted from the beginning; only when `seekable`. */
cli_exit output_write_at(output *out, const void *bytes, size_t size, int64_t position);

/* Flushes and renames. On failure nothing is left behind. Releases `out`. */
cli_exit output_finish(output *out);

/* Removes what was written and releases `out`; does nothing after finish. */
void output_abandon(output *out);

/* CLI_USAGE when `out` (NULL: standard output) is the file or directory `in`, by
 * whatever name, or a file in that directory: writing it would destroy what is read. */
cli_exit output_check_input(const char *out, const char *in);

/* For results that the library writes: CLI_IO when something is at `path` and
 * `force` is false, or when it cannot be replaced (a device, a pipe). */
cli_exit output_check_array(const char *path, bool force);

#endif
