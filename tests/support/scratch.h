/* A temporary directory, removed when the program exits. */
#ifndef SUPPORT_SCRATCH_H
#define SUPPORT_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

enum { SCRATCH_PATH = 512 };

/* Writes the path of `name` in the scratch directory to `path`, and returns it. The directory is
 * created at first use under $TMPDIR or /tmp. */
const char *scratch_path(char path[SCRATCH_PATH], const char *name);

/* Removes a file or a whole directory, if it exists. */
void scratch_remove(const char *path);

/* Loads a whole file. Returns NULL if it cannot be read. Release with free. */
uint8_t *scratch_load(const char *path, size_t *size);

void scratch_save(const char *path, const void *bytes, size_t size);

#endif
