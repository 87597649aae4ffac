/* Room: base. The system's loader of libraries. */
#include "base/os_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

bool cv_library_load(const char *const *names, cv_library *out)
{
    out->system = NULL;
    for (; *names && !out->system; names++)
        out->system = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return out->system != NULL;
}

/* POSIX has addresses of functions and of objects be alike; ISO C has not. */
bool cv_library_find(cv_library library, const char *name, void *function)
{
    void *address = dlsym(library.system, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}
