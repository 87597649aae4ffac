/* Other processes that run this program with other arguments, and memory that all share. Works
 * where there is no fork. */
#ifndef SUPPORT_PROCESSES_H
#define SUPPORT_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct process {
    intptr_t id;
} process;

/* Starts this program with these arguments: NULL ends them, and argv[0] is set. */
process process_start(const char *argv[]);

/* Kills it, unless it has ended. */
void process_kill(process p);

/* Waits until it ends. Returns its exit status, or -1 if it was killed. */
int process_wait(process p);

/* Maps a file of `size` bytes, which is created with zeros. Lasts until the process ends. */
void *process_share(const char *path, size_t size);

#endif
