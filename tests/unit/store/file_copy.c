/* The copy of a small file in memory: made by the read that makes it worth its cost, right in
 * every byte, and never where it must not exist. */
#include "store/file.h"

#include "support/check.h"
#include "support/random.h"
#include "support/scratch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A read costs 2 KiB and its bytes; the copy is worth it if the sum exceeds the file and 64
 * reads. */
enum { SIZE = 40000, BEFORE = 100, EACH = 2048, ENOUGH = SIZE + 64 * EACH };
enum { READS = ENOUGH / (EACH + 1) + 1 };

typedef struct file {
    char path[SCRATCH_PATH];
    cv_file file;
    uint8_t bytes[BEFORE + SIZE];
    cv_file_copy kept;
} file;

static file *new_file(uint64_t most)
{
    static file f;
    rng r = rng_from_seed(7);
    rng_fill(&r, f.bytes, sizeof f.bytes);
    scratch_path(f.path, "kept");
    scratch_save(f.path, f.bytes, sizeof f.bytes);
    assert_int_equal(cv_dir_open_file(cv_dir_here, f.path, CV_OPEN_READ, 0, &f.file), 0);
    cv_file_copy_init(&f.kept, f.file, BEFORE, SIZE, most);
    return &f;
}

static void close_file(file *f)
{
    cv_file_copy_free(&f->kept);
    cv_file_close(&f->file);
}

static void read_often(file *f)
{
    for (int i = 0; i < READS; i++) {
        assert_null(cv_file_copy_view(&f->kept, 0, 1));
        cv_file_copy_count(&f->kept, 1);
    }
}

static void large_reads_count_for_more(void **state)
{
    (void)state;
    enum { LARGE = SIZE / 4 };
    file *f = new_file(SIZE);
    for (int cost = 0; cost <= ENOUGH; cost += LARGE + EACH) {
        assert_null(cv_file_copy_view(&f->kept, 0, 1));
        cv_file_copy_count(&f->kept, LARGE);
    }
    assert_non_null(cv_file_copy_view(&f->kept, 0, 1));
    close_file(f);
}

static void it_is_lent_once_it_is_worth_it(void **state)
{
    (void)state;
    file *f = new_file(SIZE);
    read_often(f);
    for (int pos = 0; pos <= SIZE; pos += 997) {
        size_t size = (size_t)(SIZE - pos);
        const uint8_t *lent = cv_file_copy_view(&f->kept, (uint64_t)pos, size);
        assert_non_null(lent);
        assert_memory_equal(lent, f->bytes + BEFORE + pos, size);
        assert_null(cv_file_copy_view(&f->kept, (uint64_t)pos, size + 1));
    }
    assert_null(cv_file_copy_view(&f->kept, SIZE + 1, 0));
    assert_null(cv_file_copy_view(&f->kept, UINT64_MAX, 1));
    close_file(f);
}

static void what_was_lent_stays(void **state)
{
    (void)state;
    file *f = new_file(SIZE);
    read_often(f);
    const uint8_t *lent = cv_file_copy_view(&f->kept, 0, SIZE);
    assert_int_equal(truncate(f->path, 0), 0);
    assert_ptr_equal(cv_file_copy_view(&f->kept, 0, SIZE), lent);
    cv_file_copy_stop(&f->kept);
    assert_null(cv_file_copy_view(&f->kept, 0, SIZE));
    assert_memory_equal(lent, f->bytes + BEFORE, SIZE);
    close_file(f);
}

static void large_and_cut_files_are_not_kept(void **state)
{
    (void)state;
    file *f = new_file(SIZE - 1);
    read_often(f);
    read_often(f);
    close_file(f);
    f = new_file(SIZE);
    assert_int_equal(truncate(f->path, BEFORE + SIZE - 1), 0);
    read_often(f);
    read_often(f);
    close_file(f);
}

static void *read_and_compare(void *context)
{
    file *f = context;
    for (int i = 0; i < 2 * READS; i++) {
        const uint8_t *lent = cv_file_copy_view(&f->kept, 0, SIZE);
        if (lent && memcmp(lent, f->bytes + BEFORE, SIZE) != 0) return f;
        if (!lent) cv_file_copy_count(&f->kept, 1);
    }
    return NULL;
}

static void several_threads_get_one_copy(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    file *f = new_file(SIZE);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_and_compare, f), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_non_null(cv_file_copy_view(&f->kept, 0, SIZE));
    close_file(f);
}

/* The store copies only files opened for reading, and only if requested. */
static void only_stores_that_read_keep(void **state)
{
    (void)state;
    cv_error err;
    file *f = new_file(0);
    for (int how = 0; how < 3; how++) { /* writing, not requested, reading */
        cv_store *store;
        uint8_t byte;
        assert_int_equal(cv_store_file_open(f->path, 0, how == 0, &store, &err), CV_OK);
        if (how != 1) cv_store_file_keep(store, 1 << 20);
        for (int i = 0; i < READS; i++) {
            store->ops->warm(store, CV_FRAME_OBJECT, 5, 1);
            assert_null(cv_store_view(store, CV_FRAME_OBJECT, 5, 1));
            assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 5, &byte, 1, &err), CV_OK);
        }
        store->ops->warm(store, CV_FRAME_OBJECT, 5, 1);
        const uint8_t *lent = cv_store_view(store, CV_FRAME_OBJECT, 5, 1);
        assert_int_equal(lent != NULL, how == 2);
        assert_null(cv_store_view(store, 0, 5, 1));
        if (lent) assert_int_equal(*lent, f->bytes[5]);
        cv_store_read_anew(store);
        assert_null(cv_store_view(store, CV_FRAME_OBJECT, 5, 1));
        assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 5, &byte, 1, &err), CV_OK);
        cv_store_close(store);
    }
    close_file(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_lent_once_it_is_worth_it),
        cmocka_unit_test(large_reads_count_for_more),
        cmocka_unit_test(what_was_lent_stays),
        cmocka_unit_test(large_and_cut_files_are_not_kept),
        cmocka_unit_test(several_threads_get_one_copy),
        cmocka_unit_test(only_stores_that_read_keep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
