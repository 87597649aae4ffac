/* Loads the shared library, works with its threads and unloads it repeatedly, as programs
 * with plug-ins do: no thread may remain in unloaded code. */
#include "caterva.h"

#include "support/check.h"
#include "support/random.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 1 << 20, ROUNDS = 5, SKIPPED = 77 };

typedef caterva_status create_fn(const char *, const caterva_create_options *, const void *,
                                 size_t, caterva_array **, caterva_error *);
typedef caterva_status read_fn(caterva_array *, const int64_t *, const int64_t *, void *,
                               size_t, caterva_error *);
typedef caterva_status close_fn(caterva_array *, caterva_error *);

/* ISO C does not convert the result of dlsym to a function pointer. */
static void find(void *library, const char *name, void *function, size_t size)
{
    void *address = dlsym(library, name);
    CHECK(address, "%s is not in " CATERVA_LIBRARY, name);
    memcpy(function, &address, size);
}

static void one_round(const int32_t *items, int32_t *got)
{
    create_fn *create;
    read_fn *read_items;
    close_fn *close_array;
    void *library = dlopen(CATERVA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    CHECK(library, "%s", dlerror());
    find(library, "caterva_create_from_memory", &create, sizeof create);
    find(library, "caterva_read", &read_items, sizeof read_items);
    find(library, "caterva_close", &close_array, sizeof close_array);

    const int64_t origin = 0, shape = N;
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = &shape;
    options.dtype = "<i4";
    options.threads = 4;
    caterva_array *array = NULL;
    caterva_error err;
    CHECK_OK(create("mem:", &options, items, N * sizeof *items, &array, &err), err);
    memset(got, 0, N * sizeof *got);
    CHECK_OK(read_items(array, &origin, &shape, got, N * sizeof *got, &err), err);
    CHECK(memcmp(items, got, N * sizeof *got) == 0, "other items came back");
    CHECK_OK(close_array(array, &err), err);
    CHECK(dlclose(library) == 0, "%s", dlerror());
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* so that threads can crash */
}

int main(void)
{
    if (!CATERVA_STAYS_LOADED) {
        puts("skipped: the linker cannot keep a library loaded");
        return SKIPPED;
    }
    rng r = rng_from_seed(7);
    int32_t *items = check_alloc(N * sizeof *items), *got = check_alloc(N * sizeof *got);
    for (int i = 0; i < N; i++) items[i] = (int32_t)rng_between(&r, 0, 999);
    for (int round = 0; round < ROUNDS; round++) one_round(items, got);
    void *still = dlopen(CATERVA_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    CHECK(still, "dlclose took the library");
    free(items);
    free(got);
    _exit(0); /* LeakSanitizer fails on thread-local memory of an unloaded library */
}
