/* An output file that appears complete or not at all, or standard output. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli.h"

typedef struct output {
    int fd;
    char *path;      /* for messages */
    char *target;    /* the file that the rename replaces, or NULL */
    char *temporary; /* in the same directory as the target */
    bool force;
    bool seekable;
    uint8_t *buffer;
    size_t used;
} output;

/* Opens `path` for writing; NULL or "-" is standard output. A regular file is written under a
 * temporary name in the same directory; a device or pipe directly. CLI_IO if the file exists and
 * `force` is false. */
CLI_API cli_exit output_open(output *out, const char *path, bool force);

/* Appends bytes to a buffer, which is written when it is full. */
cli_exit output_write(output *out, const void *bytes, size_t size);

/* Writes at a position from the beginning, after the bytes that were appended. Call it only if
 * `seekable` is true. */
cli_exit output_write_at(output *out, const void *bytes, size_t size, int64_t position);

/* Flushes and renames the file. After a failure, no file is left. Releases `out`. */
CLI_API cli_exit output_finish(output *out);

/* Deletes what was written and releases `out`; does nothing after output_finish. */
CLI_API void output_abandon(output *out);

/* Returns CLI_USAGE if `out` (NULL: standard output) is the same file or directory as `in`, or a
 * file in the directory `in`: writing it would destroy the input. */
cli_exit output_check_input(const char *out, const char *in);

/* For results that the library writes. Returns CLI_IO if `path` exists and `force` is false, or if
 * it cannot be replaced (a device, a pipe). */
cli_exit output_check_array(const char *path, bool force);

/* Deletes a folder with everything in it. */
void output_delete_folder(const char *path);

/* Deletes what killed processes left of making `path`: temporary files beside it, and, if it is a
 * folder, in it. No other process may be making it. */
void output_delete_temporaries(const char *path);

/* Syncs all files and folders in a folder. */
cli_exit output_sync_folder(const char *path);

/* Returns a free name ".NAME.tmp-XXXXXX" and `extension` next to `path`, to be freed; NULL after a
 * reported lack of memory. */
char *output_temporary(const char *path, const char *extension);

#endif
