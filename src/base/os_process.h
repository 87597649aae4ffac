/* Environment and dynamic libraries. The library reads only variables for s3:// credentials
 * and certificate files. */
#ifndef CV_BASE_OS_PROCESS_H
#define CV_BASE_OS_PROCESS_H

#include <stdbool.h>

/* Owned, free with cv_free; NULL: it is not set, or empty, or there is no memory. */
char *cv_os_variable(const char *name);

/* ---- Libraries ---- */

/* One that is loaded; it stays until the process ends. {0} is none. */
typedef struct cv_library {
    void *system;
} cv_library;

/* The first of the names (NULL ends them) that can be loaded. */
bool cv_library_load(const char *const *names, cv_library *out);

/* Puts the address of the function into `*function`, a pointer to one of its type. */
bool cv_library_find(cv_library library, const char *name, void *function);

#endif
