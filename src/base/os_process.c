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

/* With deep binding a library calls the functions of the libraries that it was linked with, even if
 * the program has loaded other versions for all: eccodes in Python does that with libcurl and
 * libldap, and the process would crash at its end. Sanitizers refuse it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                   \
    __has_feature(memory_sanitizer)
#define LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL)
#endif
#endif
#if !defined(LOAD_FLAGS) && defined(RTLD_DEEPBIND)
#define LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
#elif !defined(LOAD_FLAGS)
#define LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL)
#endif

bool cv_library_load(const char *const *names, cv_library *out)
{
    out->system = NULL;
    for (; *names && !out->system; names++) out->system = dlopen(*names, LOAD_FLAGS);
    return out->system != NULL;
}

/* POSIX guarantees that a function's address fits a pointer to an object; ISO C does not. */
bool cv_library_find(cv_library library, const char *name, void *function)
{
    void *address = dlsym(library.system, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}
