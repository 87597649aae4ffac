/* Files that say large numbers: all that takes no amount from its caller is done with
 * them, by the library and by the command line, in a child that may take 256 MiB more
 * than it has and a few seconds of processor time. Any answer is one, but for want of
 * memory. With TIMES in the environment it prints how long each step took. */
#ifndef SUPPORT_HOSTILE_H
#define SUPPORT_HOSTILE_H

#include <stddef.h>
#include <stdint.h>

typedef struct hostile {
    const char *name;     /* for messages */
    const char *path;     /* of the array: the file, or the directory */
    const char *file;     /* that lies: the same, or the frame in the directory */
    const uint8_t *bytes; /* of it */
    size_t size;
} hostile;

/* The file as it is meant. */
void hostile_restore(const hostile *h);

/* All ways through the library, the file restored before and after each that changes it. */
void hostile_run_library(const hostile *h);

/* The command line named by CATERVA_CLI, if there is one. */
void hostile_run_programs(const hostile *h);

#endif
