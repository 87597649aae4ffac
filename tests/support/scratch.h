/* A directory of the test's own, removed when the program exits. */
#ifndef SUPPORT_SCRATCH_H
#define SUPPORT_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

enum { SCRATCH_PATH = 512 };

/* The path of `name` in the scratch directory, into `path`. Made at first use
 * under $TMPDIR or /tmp. */
const char *scratch_path(char path[SCRATCH_PATH], const char *name);

/* Removes a file or a whole directory; fine when there is none. */
void scratch_remove(const char *path);

/* The whole file in memory (free with free), or NULL when it cannot be read. */
uint8_t *scratch_load(const char *path, size_t *size);

void scratch_save(const char *path, const void *bytes, size_t size);

#endif
