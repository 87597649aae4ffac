/* A merge into a directory takes over the files of chunks that are moved whole, and copies no
 * byte: the file then has a name in the part and one in the array. So nothing that happens to
 * the array before the commit may change the part: a rollback, a coordinator that dies, and
 * another one that uses the same number for a chunk of its own. */
#include "support/info.h"
#include "support/random.h"
#include "support/scratch.h"

#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PARTS = 4, ROWS = 16, COLUMNS = 64, N = PARTS * ROWS * COLUMNS };

static const int64_t shape[2] = {PARTS * ROWS, COLUMNS}, origin[2] = {0, 0};
static char path[SCRATCH_PATH], folder[2 * SCRATCH_PATH];
static int32_t before[N], after[N];
static caterva_array *array;
static void *job, *tokens[PARTS];
static size_t job_size, sizes[PARTS];

/* ---- An array, a job and its parts ---------------------------------------------------------- */

static void open_array(void)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    assert_int_equal(caterva_open(path, &o, &array, NULL), CATERVA_OK);
}

static void write_part(int number)
{
    const int64_t start[2] = {number * ROWS, 0}, stop[2] = {(number + 1) * ROWS, COLUMNS};
    caterva_array *part;
    assert_int_equal(caterva_part_open(path, job, job_size, NULL, &part, NULL), CATERVA_OK);
    assert_int_equal(caterva_write(part, start, stop, after + number * ROWS * COLUMNS,
                                   ROWS * COLUMNS * sizeof after[0], NULL),
                     CATERVA_OK);
    assert_int_equal(caterva_part_finish(part, &tokens[number], &sizes[number], NULL),
                     CATERVA_OK);
}

static void find_folder(void)
{
    const caterva_job_list *list;
    assert_int_equal(caterva_jobs_list(path, NULL, &list, NULL), CATERVA_OK);
    assert_int_equal(list->n, 1);
    snprintf(folder, sizeof folder, "%s", list->entries[0]->folder);
    caterva_job_list_release(list);
}

/* Each part is one chunk of noise. */
static int set_up(void **state)
{
    (void)state;
    rng r = rng_from_seed(1);
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = (const int32_t[]){ROWS, COLUMNS};
    o.block_shape = (const int32_t[]){ROWS / 4, COLUMNS};
    o.dtype = "<i4";
    o.layout = CATERVA_LAYOUT_SPARSE;
    rng_fill(&r, before, sizeof before);
    rng_fill(&r, after, sizeof after);
    scratch_path(path, "array");
    scratch_remove(path);
    assert_int_equal(
        caterva_create_from_memory(path, &o, before, sizeof before, &array, NULL),
        CATERVA_OK);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
    open_array();
    assert_int_equal(caterva_job_begin(array, NULL, &job, &job_size, NULL), CATERVA_OK);
    for (int i = 0; i < PARTS; i++) write_part(i);
    find_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)caterva_job_delete(path, job, job_size, NULL, NULL);
    for (int i = 0; i < PARTS; i++) caterva_free(tokens[i]);
    caterva_free(job);
    caterva_discard(array);
    array = NULL;
    scratch_remove(path);
    return 0;
}

static caterva_status merge(bool keep)
{
    caterva_merge_options o = CATERVA_MERGE_INIT;
    o.keep = keep;
    return caterva_merge(array, (const void *const *)tokens, sizes, PARTS, &o, NULL, NULL);
}

static void expect(const int32_t *items)
{
    static int32_t got[N];
    caterva_verify_result verified = CATERVA_VERIFY_RESULT_INIT;
    assert_int_equal(caterva_read(array, origin, shape, got, sizeof got, NULL), CATERVA_OK);
    assert_memory_equal(got, items, sizeof got);
    if (caterva_has_pending(array)) return;
    assert_int_equal(caterva_verify(array, NULL, &verified, NULL), CATERVA_OK);
    assert_int_equal(verified.damages, 0);
}

/* ---- Files ------------------------------------------------------------------------------------ */

/* Counts the array's chunk files with that many names. Those of `before` are 0 to PARTS - 1,
 * merged ones come after them. */
static int count_files(int first, int n, nlink_t names)
{
    char name[SCRATCH_PATH + 32];
    struct stat st;
    int found = 0;
    for (int i = first; i < first + n; i++) {
        snprintf(name, sizeof name, "%s/%08X.chunk", path, i);
        found += lstat(name, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == names;
    }
    return found;
}

static void run_on_parts(const char *what)
{
    char command[3 * SCRATCH_PATH];
    snprintf(command, sizeof command, "%s '%s'/*/*.chunk", what, folder);
    assert_int_equal(system(command), 0);
}

static void the_file_becomes_the_array_s(void **state)
{
    (void)state;
    assert_int_equal(merge(false), CATERVA_OK);
    assert_int_equal(count_files(PARTS, PARTS, 2), PARTS);
    expect(after);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(count_files(PARTS, PARTS, 1), PARTS);
    assert_int_equal(count_files(0, PARTS, 1), 0);
    assert_int_not_equal(access(folder, F_OK), 0);
    expect(after);
}

static void a_rollback_leaves_the_parts(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(merge(false), CATERVA_OK);
        assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
        assert_int_equal(count_files(PARTS, PARTS, 2), 0);
        expect(before);
    }
    assert_int_equal(merge(false), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    expect(after);
}

/* If a worker changes its part after the merge, the array changes too: the commit detects it
 * and changes nothing. */
static void a_part_is_changed_after_the_merge(void **state)
{
    (void)state;
    enum { TURNS = 2 };
    const char *changes[TURNS] = {"truncate -s 20", "touch -d 2001-02-03"};
    caterva_error err;
    for (int i = 0; i < TURNS; i++) {
        assert_int_equal(merge(false), CATERVA_OK);
        run_on_parts(changes[TURNS - 1 - i]);
        assert_int_equal(caterva_commit(array, &err), CATERVA_ECORRUPT);
        assert_non_null(strstr(err.message, "changed through the part"));
        assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
        expect(before);
    }
    assert_int_equal(merge(false), CATERVA_ECORRUPT);
    assert_int_equal(caterva_resize(array, shape, &err), CATERVA_EROLLBACK);
    assert_non_null(strstr(err.message, "a change failed half-way"));
    assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
    expect(before);
    assert_int_equal(access(folder, F_OK), 0);
}

/* A chunk written after the merge is the array's own again. */
static void a_merged_chunk_is_written_over(void **state)
{
    (void)state;
    const int64_t stop[2] = {ROWS, COLUMNS};
    assert_int_equal(merge(false), CATERVA_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++) after[i] = i;
    assert_int_equal(
        caterva_write(array, origin, stop, after, ROWS * COLUMNS * sizeof after[0], NULL),
        CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    expect(after);
}

/* A chunk that was put and is then beyond the shape is in no state: its file is deleted at
 * once. */
static void chunks_are_shrunk_away(void **state)
{
    (void)state;
    const int64_t one[2] = {ROWS, COLUMNS}, none[2] = {0, COLUMNS};
    assert_int_equal(merge(false), CATERVA_OK);
    assert_int_equal(caterva_resize(array, one, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(count_files(0, 2 * PARTS, 1), 1);
    assert_int_equal(count_files(PARTS, PARTS, 1), 1);
    assert_int_equal(
        caterva_write(array, origin, one, before, ROWS * COLUMNS * sizeof before[0], NULL),
        CATERVA_OK);
    assert_int_equal(caterva_resize(array, none, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(count_files(0, 3 * PARTS, 1), 0);
}

/* Kept parts have files of their own. */
static void kept_parts_share_nothing(void **state)
{
    (void)state;
    assert_int_equal(merge(true), CATERVA_OK);
    assert_int_equal(count_files(PARTS, PARTS, 1), PARTS);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(access(folder, F_OK), 0);
    expect(after);
}

/* Counts the chunk files from this number on that have the permissions of chunk 0. */
static int count_alike(int first, int n)
{
    char name[SCRATCH_PATH + 32];
    struct stat st, other;
    int found = 0;
    snprintf(name, sizeof name, "%s/%08X.chunk", path, 0);
    assert_int_equal(lstat(name, &st), 0);
    for (int i = first; i < first + n; i++) {
        snprintf(name, sizeof name, "%s/%08X.chunk", path, i);
        found += lstat(name, &other) == 0 && other.st_mode == st.st_mode;
    }
    return found;
}

/* The array's permissions do not depend on the parts: a worker's umask may have been
 * different, stricter or not. */
static void other_permissions_become_the_array_s(void **state)
{
    (void)state;
    enum { TURNS = 3 }; /* a rollback may use up numbers */
    const char *commands[TURNS] = {"chmod 0400", "chmod 0666", "chmod 0600"};
    for (int i = 0; i < TURNS; i++) {
        run_on_parts(commands[i]);
        assert_int_equal(merge(false), CATERVA_OK);
        assert_int_equal(count_files(PARTS, TURNS * PARTS, 2), PARTS);
        assert_int_equal(count_alike(PARTS, TURNS * PARTS), PARTS);
        if (i + 1 < TURNS) assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
    }
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    expect(after);
}

/* A file that belongs to another user does not become one of the array's. */
static void another_owner_s_is_copied(void **state)
{
    (void)state;
    if (geteuid() != 0) skip(); /* only root can change owners */
    run_on_parts("chown 12345:23456");
    assert_int_equal(merge(false), CATERVA_OK);
    assert_int_equal(count_files(PARTS, PARTS, 1), PARTS);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    expect(after);
}

/* A link would be dangling once the part is deleted. */
static void a_symbolic_link_is_copied(void **state)
{
    (void)state;
    char command[6 * SCRATCH_PATH];
    snprintf(command, sizeof command,
             "for f in '%s'/*/*.chunk; do mv \"$f\" \"$f.real\" && ln -s \"$f.real\" \"$f\" "
             "|| exit 1; done",
             folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(merge(false), CATERVA_OK);
    assert_int_equal(count_files(PARTS, PARTS, 1), PARTS);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    expect(after);
}

/* ---- A coordinator that dies -------------------------------------------------------------------- */

static void die_after_the_merge(void)
{
    caterva_discard(array);
    array = NULL;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        caterva_open_options o = CATERVA_OPEN_INIT;
        o.mode = CATERVA_MODE_WRITE;
        o.threads = 1;
        bool good = caterva_open(path, &o, &array, NULL) == CATERVA_OK;
        good = good && merge(false) == CATERVA_OK;
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(count_files(PARTS, PARTS, 2), PARTS); /* nothing was cleaned up */
    open_array();
    expect(before);
}

/* The next writes get the numbers of remaining files. */
static void write_other_chunk(void)
{
    int32_t items[ROWS * COLUMNS];
    const int64_t stop[2] = {ROWS, COLUMNS};
    for (int i = 0; i < ROWS * COLUMNS; i++) items[i] = before[i] = -i;
    assert_int_equal(caterva_write(array, origin, stop, items, sizeof items, NULL),
                     CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(count_files(PARTS, 1, 1), 1);
    expect(before);
}

/* The first part could be merged if the chunk had not changed. */
static void what_is_left_over_is_not_written_into(void **state)
{
    (void)state;
    die_after_the_merge();
    write_other_chunk();
    assert_int_equal(merge(false), CATERVA_ESTALE);
    expect(before);
}

static void it_is_merged_again_over_what_is_left_over(void **state)
{
    (void)state;
    die_after_the_merge();
    assert_int_equal(merge(false), CATERVA_OK);
    assert_int_equal(count_files(PARTS, PARTS, 2), PARTS);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(count_files(PARTS, PARTS, 1), PARTS);
    expect(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_file_becomes_the_array_s, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rollback_leaves_the_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_part_is_changed_after_the_merge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_merged_chunk_is_written_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(chunks_are_shrunk_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kept_parts_share_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_permissions_become_the_array_s, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(another_owner_s_is_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_symbolic_link_is_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_left_over_is_not_written_into, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(it_is_merged_again_over_what_is_left_over, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
