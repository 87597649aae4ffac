/* Old versions of glibc's functions, for wheels. The extension and the command line of a wheel
 * use them as glibc 2.28 has them, so that a wheel built on a newer system runs on older ones.
 *
 * From 2.34 on libpthread and libdl are parts of libc, and their functions have a second version.
 * The stat family are functions since 2.33; some functions of libm do not set errno since 2.29.
 * The linker redirects each call to the function below (--wrap, python/CMakeLists.txt), which
 * calls the old version; both do the same. Must not include headers of this project. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#define BASE_AT "GLIBC_2.4"
enum { STAT_VERSION = 1 };
#elif defined(__aarch64__)
#define BASE "GLIBC_2.17"
#define BASE_AT BASE
enum { STAT_VERSION = 0 };
#else
#error "unknown architecture: which symbol versions does its glibc have?"
#endif

/* OLD(result, name, (parameters), (arguments)) */
#define OLD_AT(version, type, name, parameters, arguments)                                   \
    type old_##name parameters;                                                              \
    type __wrap_##name parameters;                                                           \
    __asm__(".symver old_" #name ", " #name "@" version);                                    \
    type __wrap_##name parameters { return old_##name arguments; }
#define OLD(type, name, parameters, arguments)                                               \
    OLD_AT(BASE, type, name, parameters, arguments)

/* ---- libpthread ---------------------------------------------------------------- */

typedef void *thread_function(void *);
typedef void once_function(void);

OLD(int, pthread_getcpuclockid, (pthread_t thread, clockid_t *clock), (thread, clock))
OLD(int, pthread_create,
    (pthread_t *thread, const pthread_attr_t *how, thread_function *run, void *context),
    (thread, how, run, context))
OLD(int, pthread_join, (pthread_t thread, void **result), (thread, result))
OLD(int, pthread_detach, (pthread_t thread), (thread))
OLD(int, pthread_once, (pthread_once_t *once, once_function *run), (once, run))
OLD(int, pthread_mutex_trylock, (pthread_mutex_t *lock), (lock))
OLD(int, pthread_rwlock_init, (pthread_rwlock_t *lock, const pthread_rwlockattr_t *how),
    (lock, how))
OLD(int, pthread_rwlock_destroy, (pthread_rwlock_t *lock), (lock))
OLD(int, pthread_rwlock_rdlock, (pthread_rwlock_t *lock), (lock))
OLD(int, pthread_rwlock_wrlock, (pthread_rwlock_t *lock), (lock))
OLD(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t *lock), (lock))
OLD(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *lock), (lock))
OLD(int, pthread_rwlock_unlock, (pthread_rwlock_t *lock), (lock))
OLD(int, pthread_rwlockattr_init, (pthread_rwlockattr_t *how), (how))
OLD(int, pthread_rwlockattr_destroy, (pthread_rwlockattr_t *how), (how))
OLD(int, pthread_rwlockattr_setkind_np, (pthread_rwlockattr_t *how, int kind), (how, kind))
OLD(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *before),
    (how, set, before))

/* ---- libdl ------------------------------------------------------------------------ */

OLD(void *, dlopen, (const char *path, int flags), (path, flags))
OLD(void *, dlsym, (void *library, const char *name), (library, name))
OLD(int, dlclose, (void *library), (library))
OLD(char *, dlerror, (void), ())

/* ---- libm ------------------------------------------------------------------------- */

OLD(double, pow, (double a, double b), (a, b))
OLD(double, exp, (double a), (a))
OLD(double, log, (double a), (a))
OLD(double, hypot, (double a, double b), (a, b))

/* ---- stat ------------------------------------------------------------------------- */

struct stat64;
OLD(int, __xstat64, (int version, const char *path, struct stat64 *out), (version, path, out))
OLD(int, __lxstat64, (int version, const char *path, struct stat64 *out),
    (version, path, out))
OLD(int, __fxstat64, (int version, int file, struct stat64 *out), (version, file, out))
OLD_AT(BASE_AT, int, __fxstatat64,
       (int version, int folder, const char *path, struct stat64 *out, int flags),
       (version, folder, path, out, flags))

int __wrap_stat64(const char *path, struct stat64 *out);
int __wrap_stat64(const char *path, struct stat64 *out)
{
    return __wrap___xstat64(STAT_VERSION, path, out);
}

int __wrap_lstat64(const char *path, struct stat64 *out);
int __wrap_lstat64(const char *path, struct stat64 *out)
{
    return __wrap___lxstat64(STAT_VERSION, path, out);
}

int __wrap_fstat64(int file, struct stat64 *out);
int __wrap_fstat64(int file, struct stat64 *out)
{
    return __wrap___fxstat64(STAT_VERSION, file, out);
}

int __wrap_fstatat64(int folder, const char *path, struct stat64 *out, int flags);
int __wrap_fstatat64(int folder, const char *path, struct stat64 *out, int flags)
{
    return __wrap___fxstatat64(STAT_VERSION, folder, path, out, flags);
}

/* ---- Before main ------------------------------------------------------------------ */

/* Until 2.33 programs contained the code that calls their constructors. A newer crt1.o does not,
 * and leaves it to libc. The old version of this function calls what it is given. */
typedef int main_function(int, char **, char **);
typedef void init_function(int, char **, char **);

extern init_function *__init_array_start[] __attribute__((visibility("hidden"), weak));
extern init_function *__init_array_end[] __attribute__((visibility("hidden"), weak));

static void construct(int argc, char **argv, char **environment)
{
    size_t n = (size_t)(__init_array_end - __init_array_start);
    for (size_t i = 0; i < n; i++) __init_array_start[i](argc, argv, environment);
}

int old___libc_start_main(main_function *main, int argc, char **argv, init_function *init,
                          void (*fini)(void), void (*rtld_fini)(void), void *stack);
int __wrap___libc_start_main(main_function *main, int argc, char **argv, init_function *init,
                             void (*fini)(void), void (*rtld_fini)(void), void *stack);
__asm__(".symver old___libc_start_main, __libc_start_main@" BASE);

int __wrap___libc_start_main(main_function *main, int argc, char **argv, init_function *init,
                             void (*fini)(void), void (*rtld_fini)(void), void *stack)
{
    return old___libc_start_main(main, argc, argv, init ? init : construct, fini, rtld_fini,
                                 stack);
}
