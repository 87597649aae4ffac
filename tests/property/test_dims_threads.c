/* Names of dimensions are set beside other threads: what the call sets and what it deletes is seen
 * as one change. */
#include "caterva.h"

#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum { N_WATCHERS = 3, ROUNDS = 400 };

static caterva_array *array;
static atomic_bool is_over;
static atomic_int n_seen;

/* `dims` and what it replaces never exist together. */
static void *watch(void *unused)
{
    while (!atomic_load(&is_over)) {
        caterva_error err;
        const caterva_info *info;
        const char **names;
        int n_lists = 0;
        CHECK_OK(caterva_info_get(array, &info, &err), err);
        for (int i = 0; i < info->n_attributes; i++)
            n_lists += strcmp(info->attribute_names[i], "dims") == 0 ||
                       strcmp(info->attribute_names[i], "dimension_names") == 0;
        CHECK(n_lists <= 1, "%d lists of names", n_lists);
        caterva_info_release(info);
        caterva_status status = caterva_dims_get(array, &names, &err);
        CHECK(status == CATERVA_OK || status == CATERVA_ENOTFOUND, "%s", err.message);
        if (status != CATERVA_OK) continue;
        CHECK((strcmp(names[0], "x") == 0 && strcmp(names[1], "y") == 0) ||
                  (strcmp(names[0], "p") == 0 && strcmp(names[1], "q") == 0),
              "%s, %s", names[0], names[1]);
        caterva_free(names);
        atomic_fetch_add(&n_seen, 1);
    }
    return unused;
}

/* Another one that takes turns. */
static void *set_other(void *unused)
{
    caterva_error err;
    while (!atomic_load(&is_over))
        CHECK_OK(caterva_attr_set(array, "n", "\x07", 1, &err), err);
    return unused;
}

int main(void)
{
    static const char *const names[] = {"x", "y"};
    static const char old[] = "\x92\xa1p\xa1q";
    const int64_t shape[] = {2, 2};
    pthread_t threads[N_WATCHERS + 1];
    caterva_error err;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.dtype = "|u1";
    CHECK_OK(caterva_create("mem:", &o, &array, &err), err);
    for (int i = 0; i <= N_WATCHERS; i++)
        CHECK(pthread_create(&threads[i], NULL, i < N_WATCHERS ? watch : set_other, NULL) ==
                  0,
              "no thread");
    for (int i = 0; i < ROUNDS || atomic_load(&n_seen) == 0; i++) {
        CHECK_OK(caterva_attr_set(array, "dimension_names", old, sizeof old - 1, &err), err);
        CHECK_OK(caterva_dims_set(array, names, &err), err);
        CHECK_OK(caterva_dims_set(array, NULL, &err), err);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i <= N_WATCHERS; i++) pthread_join(threads[i], NULL);
    caterva_discard(array);
    return 0;
}
