/* If the file system can share bytes between two files, a durable merge into a file clones
 * large chunks and copies only their ends. No such file system is needed: this program
 * replaces the system calls, which copy, and fail on request. */
#include "support/info.h"
#include "support/random.h"
#include "support/scratch.h"

#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#if defined(__linux__) && defined(__LP64__)

#include <errno.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- A file system that clones ---------------------------------------------------------------- */

typedef enum cloning { CLONES, REFUSES, FAILS_HALFWAY } cloning;

static cloning how;
static atomic_int n_clones;
static atomic_llong cloned_bytes;

static int clone_range(int fd, const struct file_clone_range *r)
{
    bool whole =
        r->src_offset % 4096 == 0 && r->dest_offset % 4096 == 0 && r->src_length % 4096 == 0;
    size_t size = how == FAILS_HALFWAY ? r->src_length / 2 : r->src_length;
    atomic_fetch_add(&n_clones, 1);
    errno = how == REFUSES ? EOPNOTSUPP : EINVAL;
    if (how == REFUSES || !whole || r->src_length == 0) return -1;
    char *bytes = malloc(r->src_length);
    assert_non_null(bytes);
    assert_int_equal(pread((int)r->src_fd, bytes, size, (off_t)r->src_offset), size);
    if (how == FAILS_HALFWAY) memset(bytes, 0xaa, size);
    assert_int_equal(pwrite(fd, bytes, size, (off_t)r->dest_offset), size);
    free(bytes);
    atomic_fetch_add(&cloned_bytes, (long long)size);
    errno = EIO;
    return how == FAILS_HALFWAY ? -1 : 0;
}

#ifdef __GLIBC__
typedef unsigned long ioctl_request;
#else
typedef int ioctl_request; /* as in POSIX, and in musl */
#endif

int ioctl(int fd, ioctl_request request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if ((unsigned long)request == FICLONERANGE) return clone_range(fd, argument);
    return (int)syscall(SYS_ioctl, fd, request, argument);
}

int fstatfs(int fd, struct statfs *out)
{
    enum { XFS = 0x58465342 };
    int result = (int)syscall(SYS_fstatfs, fd, out);
    if (result == 0) out->f_type = XFS;
    return result;
}

/* ---- An array, a job and its parts -------------------------------------------------------------- */

enum { PARTS = 4, CHUNKS = 8, ROWS = 128, COLUMNS = 1024, N = CHUNKS * ROWS * COLUMNS };

static const int64_t shape[2] = {CHUNKS * ROWS, COLUMNS}, origin[2] = {0, 0};
static const int32_t chunk_shape[2] = {ROWS, COLUMNS}, block_shape[2] = {ROWS / 4, COLUMNS};
static const int64_t chunk_bytes = ROWS * COLUMNS * 4;
static char path[SCRATCH_PATH];
static int32_t items[N];
static caterva_array *array;
static void *job, *tokens[PARTS];
static size_t job_size, sizes[PARTS];

static void write_part(int number)
{
    enum { PART = CHUNKS / PARTS * ROWS };
    const int64_t start[2] = {number * PART, 0}, stop[2] = {(number + 1) * PART, COLUMNS};
    caterva_array *part;
    assert_int_equal(caterva_part_open(path, job, job_size, NULL, &part, NULL), CATERVA_OK);
    assert_int_equal(caterva_write(part, start, stop, items + number * PART * COLUMNS,
                                   PART * COLUMNS * sizeof items[0], NULL),
                     CATERVA_OK);
    assert_int_equal(caterva_part_finish(part, &tokens[number], &sizes[number], NULL),
                     CATERVA_OK);
}

static caterva_create_options options(int threads, caterva_durability durability)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk_shape;
    o.block_shape = block_shape;
    o.dtype = "<i4";
    o.overwrite = 1;
    o.threads = threads;
    o.durability = durability;
    return o;
}

static void begin(int threads, caterva_durability durability)
{
    caterva_create_options o = options(threads, durability);
    assert_int_equal(caterva_create(path, &o, &array, NULL), CATERVA_OK);
    assert_int_equal(caterva_job_begin(array, NULL, &job, &job_size, NULL), CATERVA_OK);
    for (int i = 0; i < PARTS; i++) write_part(i);
}

static int set_up(void **state)
{
    (void)state;
    rng r = rng_from_seed(1);
    rng_fill(&r, items, sizeof items);
    scratch_path(path, "array");
    how = CLONES;
    atomic_store(&n_clones, 0);
    atomic_store(&cloned_bytes, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < PARTS; i++) caterva_free(tokens[i]);
    caterva_free(job);
    caterva_discard(array);
    scratch_remove(path);
    return 0;
}

static void merge(void)
{
    assert_int_equal(
        caterva_merge(array, (const void *const *)tokens, sizes, PARTS, NULL, NULL, NULL),
        CATERVA_OK);
}

static void expect_all(void)
{
    static int32_t got[N];
    caterva_verify_result verified = CATERVA_VERIFY_RESULT_INIT;
    assert_int_equal(caterva_read(array, origin, shape, got, sizeof got, NULL), CATERVA_OK);
    assert_memory_equal(got, items, sizeof got);
    assert_int_equal(caterva_verify(array, NULL, &verified, NULL), CATERVA_OK);
    assert_int_equal(verified.damages, 0);
}

/* Also after reopening the file. */
static void commit_and_expect_all(void)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    expect_all();
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    assert_int_equal(caterva_open(path, &o, &array, NULL), CATERVA_OK);
    expect_all();
}

static int64_t bytes_of_one_writer(void)
{
    char other[SCRATCH_PATH];
    caterva_array *alone;
    caterva_create_options o = options(1, CATERVA_DURABILITY_FULL);
    scratch_path(other, "alone");
    assert_int_equal(caterva_create_from_memory(other, &o, items, sizeof items, &alone, NULL),
                     CATERVA_OK);
    assert_int_equal(caterva_commit(alone, NULL), CATERVA_OK);
    int64_t bytes = info_of(alone)->frame_bytes;
    assert_int_equal(caterva_close(alone, NULL), CATERVA_OK);
    scratch_remove(other);
    return bytes;
}

/* ---- Tests ------------------------------------------------------------------------------------------ */

static void chunks_are_cloned_but_for_their_ends(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        set_up(NULL);
        begin(threads, CATERVA_DURABILITY_FULL);
        merge();
        assert_int_equal(atomic_load(&n_clones), CHUNKS);
        assert_true(atomic_load(&cloned_bytes) >= CHUNKS * (chunk_bytes - 2 * 4096));
        commit_and_expect_all();
        assert_true(info_of(array)->frame_bytes <= bytes_of_one_writer() * 21 / 20);
        if (threads == 1) tear_down(NULL);
    }
}

static void a_rollback_and_another_merge(void **state)
{
    (void)state;
    begin(1, CATERVA_DURABILITY_FULL);
    merge();
    assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
    merge();
    commit_and_expect_all();
}

/* Space is free where the array's own chunks were: copies go there. */
static void holes_are_used_all_the_same(void **state)
{
    (void)state;
    caterva_create_options o = options(1, CATERVA_DURABILITY_FULL);
    assert_int_equal(caterva_create_from_memory(path, &o, items, sizeof items, &array, NULL),
                     CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < N; k++) items[k] ^= (int)(i + 1) * 0x9e3779b;
        assert_int_equal(caterva_job_begin(array, NULL, &job, &job_size, NULL), CATERVA_OK);
        for (int k = 0; k < PARTS; k++) write_part(k);
        merge();
        commit_and_expect_all();
        if (i == 2) break;
        for (int k = 0; k < PARTS; k++) caterva_free(tokens[k]);
        caterva_free(job);
    }
    assert_true(info_of(array)->frame_bytes <= bytes_of_one_writer() * 9 / 4);
}

/* After the first refusal it is not tried again. */
static void what_is_refused_is_copied(void **state)
{
    (void)state;
    how = REFUSES;
    begin(1, CATERVA_DURABILITY_FULL);
    merge();
    assert_int_equal(atomic_load(&n_clones), 1);
    commit_and_expect_all();
}

static void what_fails_halfway_is_written(void **state)
{
    (void)state;
    how = FAILS_HALFWAY;
    begin(1, CATERVA_DURABILITY_FULL);
    merge();
    assert_int_equal(atomic_load(&n_clones), 1);
    commit_and_expect_all();
}

/* A clone would make the system write the parts first, which is not needed. */
static void nothing_is_cloned_that_need_not_be_durable(void **state)
{
    (void)state;
    begin(1, CATERVA_DURABILITY_NONE);
    merge();
    assert_int_equal(atomic_load(&n_clones), 0);
    commit_and_expect_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(chunks_are_cloned_but_for_their_ends, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_rollback_and_another_merge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(holes_are_used_all_the_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_refused_is_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_fails_halfway_is_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_cloned_that_need_not_be_durable, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) { return 0; } /* no system calls that this program could replace */

#endif
