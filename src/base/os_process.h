/* Environment variables and dynamic libraries. The library reads variables only for s3://
 * credentials and certificate files. */
#ifndef CV_BASE_OS_PROCESS_H
#define CV_BASE_OS_PROCESS_H

#include <stdbool.h>

/* Returns a copy of the variable; release with cv_free. NULL if unset, empty or out of memory. */
char *cv_os_variable(const char *name);

/* ---- Libraries ---- */

/* A loaded library. It stays loaded until the process ends. {0} is no library. */
typedef struct cv_library {
    void *system;
} cv_library;

/* Loads the first library in `names` (ends with NULL) that can be loaded. False if none can. */
bool cv_library_load(const char *const *names, cv_library *out);

/* Stores the address of function `name` in `*function`, a pointer to a function. */
bool cv_library_find(cv_library library, const char *name, void *function);

#endif
