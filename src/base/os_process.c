/* Room: base. Environment variables, which are read only here, and dynamic libraries. */
#include "base/os_process.h"

#include "base/heap.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

char *cv_os_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? cv_strdup(value) : NULL;
}

bool cv_library_load(const char *const *names, cv_library *out)
{
    out->system = NULL;
    for (; *names && !out->system; names++)
        out->system = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return out->system != NULL;
}

/* POSIX guarantees that a function's address fits a pointer to an object; ISO C does not. */
bool cv_library_find(cv_library library, const char *name, void *function)
{
    void *address = dlsym(library.system, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}
