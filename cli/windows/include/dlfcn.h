/* Libraries that are loaded at run time. */
#ifndef CLI_WINDOWS_DLFCN_H
#define CLI_WINDOWS_DLFCN_H

enum { RTLD_NOW = 0, RTLD_LOCAL = 0 };
void *dlopen(const char *path, int how);
void *dlsym(void *library, const char *name);
const char *dlerror(void); /* of the last dlopen of this thread */

#endif
