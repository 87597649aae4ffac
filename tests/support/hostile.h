/* Files that contain large numbers. The library and the command line do with them every operation
 * whose size the caller does not choose. Each runs in a child process, which may take 256 MiB more
 * memory than at its start and a few seconds of processor time. Any result is accepted except a
 * lack of memory. With TIMES in the environment, prints how long each step took. */
#ifndef SUPPORT_HOSTILE_H
#define SUPPORT_HOSTILE_H

#include <stddef.h>
#include <stdint.h>

typedef struct hostile {
    const char *name;     /* for messages */
    const char *path;     /* of the array: the file, or the directory */
    const char *file;     /* the modified file: `path`, or the frame in that directory */
    const uint8_t *bytes; /* contents of that file */
    size_t size;
} hostile;

/* Writes the file's contents. */
void hostile_restore(const hostile *h);

/* Runs all operations of the library. Restores the file before and after each operation that
 * changes it. */
void hostile_run_library(const hostile *h);

/* Runs the command line named by CATERVA_CLI, if set. */
void hostile_run_programs(const hostile *h);

#endif
