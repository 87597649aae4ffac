/* Arrays of a tree are created, opened, closed and discarded beside commits and rollbacks of the
 * tree in another thread. */
#include "small_tree.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum { N_WRITERS = 2, ROUNDS = 90 };

static atomic_int n_writing;

static void write_rows(caterva_array *array, int32_t first)
{
    static const int64_t start[] = {0, 0}, stop[] = {3, 4};
    caterva_error e;
    int32_t items[12];
    for (int i = 0; i < 12; i++) items[i] = first + i;
    CHECK_OK(caterva_write(array, start, stop, items, sizeof items, &e), e);
}

static void *write_arrays(void *number)
{
    char key[20];
    caterva_error e;
    caterva_array *array;
    caterva_create_options new = create_options();
    caterva_open_options old = CATERVA_OPEN_INIT;
    new.overwrite = 1;
    old.mode = CATERVA_MODE_WRITE;
    old.compact_percent = 1;
    snprintf(key, sizeof key, "/g/x%d", *(const int *)number);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 3 == 1)
            CHECK_OK(caterva_tree_open_array(tree, key, &old, &array, &e), e);
        else
            CHECK_OK(caterva_tree_create_array(tree, key, &new, &array, &e), e);
        write_rows(array, i);
        if (i % 3 == 2)
            caterva_discard(array);
        else
            CHECK_OK(caterva_close(array, &e), e);
    }
    atomic_fetch_sub(&n_writing, 1);
    return NULL;
}

/* All items of one write, or none if it was rolled back. */
static void check_whole(const char *key)
{
    static const int64_t start[] = {0, 0}, stop[] = {3, 4};
    int32_t items[12];
    caterva_array *array;
    CHECK_OK(caterva_tree_open_array(tree, key, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, start, stop, items, sizeof items, &err), err);
    bool is_fill = items[0] == 0 && items[11] == 0;
    for (int i = 0; i < 12; i++)
        CHECK(items[i] == (is_fill ? 0 : items[0] + i), "%s: %d", key, items[i]);
    caterva_discard(array);
}

int main(void)
{
    int numbers[N_WRITERS];
    char key[20];
    pthread_t threads[N_WRITERS];
    caterva_tree_options o = CATERVA_TREE_INIT;
    o.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_tree_create(scratch_path(path, "t.b2d"), &o, &tree, &err), err);
    atomic_store(&n_writing, N_WRITERS);
    for (int i = 0; i < N_WRITERS; i++) {
        numbers[i] = i;
        CHECK(!pthread_create(&threads[i], NULL, write_arrays, &numbers[i]),
              "pthread_create");
    }
    for (int i = 0; atomic_load(&n_writing) > 0; i++) {
        CHECK_OK(caterva_tree_commit(tree, &err), err);
        if (i % 2) CHECK_OK(caterva_tree_rollback(tree, &err), err);
    }
    for (int i = 0; i < N_WRITERS; i++) {
        CHECK(!pthread_join(threads[i], NULL), "pthread_join");
        snprintf(key, sizeof key, "/g/x%d", i);
        check_whole(key);
    }
    CHECK_OK(caterva_tree_close(tree, &err), err);
    return 0;
}
