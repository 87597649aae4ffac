/* Unit: base/os*. Whole reads and writes, locks, renames that do not replace (with the system
 * call and portably), temporary names. */
#include "base/os.h"
#include "base/os_dir.h"
#include "base/os_file.h"
#include "base/os_posix.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/rooms.h"

typedef int (*rename_new_fn)(cv_dir dir, const char *from, const char *to);

static cv_dir open_scratch_dir(const char *name)
{
    char path[SCRATCH_PATH];
    cv_dir dir;
    mkdir(scratch_path(path, name), 0777);
    assert_int_equal(cv_dir_open(cv_dir_here, path, 0, &dir), 0);
    return dir;
}

static void put_file_at(cv_dir dir, const char *name, const char *text)
{
    cv_file file;
    assert_int_equal(cv_dir_open_file(dir, name,
                                      CV_OPEN_WRITE | CV_OPEN_CREATE | CV_OPEN_EMPTY, 0666,
                                      &file),
                     0);
    assert_int_equal(cv_file_write(file, text, strlen(text), 0), 0);
    cv_file_close(&file);
}

static void expect_file_at(cv_dir dir, const char *name, const char *text)
{
    char bytes[64] = {0};
    size_t done;
    cv_file file;
    assert_int_equal(cv_dir_open_file(dir, name, CV_OPEN_READ, 0, &file), 0);
    assert_int_equal(cv_file_read(file, bytes, sizeof bytes - 1, 0, &done), 0);
    assert_string_equal(bytes, text);
    cv_file_close(&file);
}

static bool exists_at(cv_dir dir, const char *name)
{
    return faccessat(cv_posix_dir(dir), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- Files -------------------------------------------------------------- */

static void test_read_stops_only_at_the_end(void **state)
{
    (void)state;
    cv_dir dir = open_scratch_dir("read");
    cv_file file;
    char bytes[16];
    size_t done;
    put_file_at(dir, "f", "0123456789");
    assert_int_equal(cv_dir_open_file(dir, "f", CV_OPEN_READ, 0, &file), 0);
    assert_int_equal(cv_file_read(file, bytes, 4, 3, &done), 0);
    assert_int_equal(done, 4);
    assert_memory_equal(bytes, "3456", 4);
    assert_int_equal(cv_file_read(file, bytes, 16, 8, &done), 0);
    assert_int_equal(done, 2);
    assert_int_equal(cv_file_read(file, bytes, 16, 100, &done), 0);
    assert_int_equal(done, 0);
    assert_int_equal(cv_file_read(file, bytes, 16, UINT64_MAX, &done), 0);
    assert_int_equal(done, 0);
    cv_file_close(&file);
    assert_int_equal(cv_file_read((cv_file){0}, bytes, 1, 0, &done), EBADF);
    cv_dir_close(&dir);
}

static void test_write_beyond_what_positions_can_say(void **state)
{
    (void)state;
    cv_dir dir = open_scratch_dir("far");
    cv_file file;
    put_file_at(dir, "f", "");
    assert_int_equal(cv_dir_open_file(dir, "f", CV_OPEN_BOTH, 0, &file), 0);
    assert_int_equal(cv_file_write(file, "x", 1, UINT64_MAX), EFBIG);
    assert_int_equal(cv_file_write(file, "xy", 2, INT64_MAX - 1), EFBIG);
    cv_file_close(&file);
    cv_dir_close(&dir);
}

/* Space is reserved for them, but the file is not longer than what was written. */
static void test_large_writes_behind_the_end(void **state)
{
    (void)state;
    enum { SIZE = 600 * 1000, GAP = 777 };
    cv_dir dir = open_scratch_dir("large");
    cv_file file;
    uint64_t end;
    size_t done;
    uint8_t *bytes = malloc(SIZE), *back = malloc(SIZE + GAP);
    assert_true(bytes && back);
    for (int i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(1 + i % 251);
    put_file_at(dir, "f", "head");
    assert_int_equal(cv_dir_open_file(dir, "f", CV_OPEN_BOTH, 0, &file), 0);
    for (uint64_t pos = 4; pos < 3 * SIZE; pos += SIZE + GAP) {
        assert_int_equal(cv_file_write(file, bytes, SIZE, pos), 0);
        assert_int_equal(cv_file_size(file, &end), 0);
        assert_int_equal(end, pos + SIZE);
        assert_int_equal(cv_file_read(file, back, SIZE + GAP, pos, &done), 0);
        assert_int_equal(done, SIZE);
        assert_memory_equal(back, bytes, SIZE);
    }
    assert_int_equal(cv_file_write(file, bytes, SIZE, end - SIZE / 2),
                     0); /* half of it exists */
    assert_int_equal(cv_file_read(file, back, SIZE, end - SIZE / 2, &done), 0);
    assert_memory_equal(back, bytes, SIZE);
    cv_file_close(&file);
    assert_int_equal(cv_dir_open_file(dir, "f", CV_OPEN_READ, 0, &file), 0);
    assert_int_equal(cv_file_write(file, bytes, SIZE, end), EBADF);
    cv_file_close(&file);
    cv_dir_close(&dir);
    free(bytes);
    free(back);
}

/* The limit makes the kernel write the first 1000 bytes and then refuse; only a loop sees
 * both results. */
static int write_into_the_limit(const char *path)
{
    struct rlimit limit = {1000, 1000};
    char bytes[3000];
    cv_file file;
    memset(bytes, 'x', sizeof bytes);
    signal(SIGXFSZ, SIG_IGN);
    if (cv_dir_open_file(cv_dir_here, path, CV_OPEN_BOTH | CV_OPEN_CREATE, 0666, &file))
        return 1;
    if (setrlimit(RLIMIT_FSIZE, &limit)) return 2;
    if (cv_file_write(file, bytes, sizeof bytes, 0) != EFBIG) return 3;
    struct stat st;
    return fstat(cv_posix_fd(file), &st) || st.st_size != 1000 ? 4 : 0;
}

static void test_short_write_is_continued(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    assert_int_equal(in_child(write_into_the_limit, scratch_path(path, "limited")), 0);
}

static void test_descriptors_close_on_exec_and_sync(void **state)
{
    (void)state;
    char temp[CV_OS_TEMP_NAME];
    cv_dir dir = open_scratch_dir("cloexec");
    cv_file file;
    assert_true(fcntl(cv_posix_dir(dir), F_GETFD) & FD_CLOEXEC);
    assert_int_equal(cv_dir_create_temp_file(dir, "a", 0666, temp, &file), 0);
    assert_true(fcntl(cv_posix_fd(file), F_GETFD) & FD_CLOEXEC);
    assert_int_equal(cv_file_sync(file), 0);
    assert_int_equal(cv_dir_sync(dir), 0);
    cv_file_close(&file);
    assert_int_equal(cv_file_sync((cv_file){0}), EBADF);
    assert_int_equal(cv_dir_sync((cv_dir){0}), EBADF);
    cv_dir_close(&dir);
}

static void test_names_fd_notices_replacing(void **state)
{
    (void)state;
    cv_dir dir = open_scratch_dir("named");
    cv_file file;
    put_file_at(dir, "a", "old");
    put_file_at(dir, "b", "new");
    assert_int_equal(cv_dir_open_file(dir, "a", CV_OPEN_READ, 0, &file), 0);
    assert_true(cv_dir_names(dir, "a", file));
    assert_false(cv_dir_names(dir, "b", file));
    assert_int_equal(cv_dir_rename(dir, "b", "a"), 0);
    assert_false(cv_dir_names(dir, "a", file));
    assert_false(cv_dir_names(dir, "a", (cv_file){0}));
    cv_file_info info;
    assert_int_equal(cv_dir_get_info(dir, "a", &info), 0);
    assert_true(cv_dir_leads_to(dir, "a", info.device, info.inode));
    assert_false(cv_dir_leads_to(dir, "b", info.device, info.inode));
    assert_false(cv_dir_leads_to(dir, "a", info.device, info.inode + 1));
    assert_false(cv_dir_leads_to(dir, "a", info.device + 1, info.inode));
    assert_int_equal(cv_file_get_info(file, &info), 0);
    assert_false(cv_dir_leads_to(dir, "a", info.device, info.inode));
    assert_int_equal(symlinkat("a", cv_posix_dir(dir), "link"), 0);
    assert_int_equal(cv_dir_get_info(dir, "a", &info), 0);
    assert_true(cv_dir_leads_to(dir, "link", info.device, info.inode));
    cv_file_close(&file);
    cv_dir_close(&dir);
}

/* ---- Locks -------------------------------------------------------------- */

/* 0: got the lock, 1: held elsewhere. */
static int try_lock(const char *path)
{
    cv_file file;
    if (cv_dir_open_file(cv_dir_here, path, CV_OPEN_BOTH | CV_OPEN_CREATE, 0666, &file))
        return 2;
    int error = cv_file_lock(file);
    cv_file_close(&file);
    return error == 0 ? 0 : error == EWOULDBLOCK ? 1 : 3;
}

static void test_lock_excludes_other_openings(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    cv_file file;
    scratch_path(path, "lock");
    assert_int_equal(
        cv_dir_open_file(cv_dir_here, path, CV_OPEN_BOTH | CV_OPEN_CREATE, 0666, &file), 0);
    assert_int_equal(cv_file_lock(file), 0);
    assert_int_equal(try_lock(path), 1);
    assert_int_equal(in_child(try_lock, path), 1);
    cv_file_close(&file);
    assert_int_equal(try_lock(path), 0);
    assert_int_equal(in_child(try_lock, path), 0);
}

/* ---- Renaming ----------------------------------------------------------- */

static void check_rename_new(cv_dir dir, rename_new_fn rename_new)
{
    put_file_at(dir, "from", "new");
    assert_int_equal(rename_new(dir, "from", "to"), 0);
    expect_file_at(dir, "to", "new");
    assert_false(exists_at(dir, "from"));

    put_file_at(dir, "from", "newer");
    assert_int_equal(rename_new(dir, "from", "to"), EEXIST);
    expect_file_at(dir, "to", "new");
    expect_file_at(dir, "from", "newer");

    assert_int_equal(mkdirat(cv_posix_dir(dir), "d", 0777), 0);
    assert_int_equal(rename_new(dir, "from", "d"), EEXIST);
    assert_int_equal(rename_new(dir, "d", "to"), EEXIST);
    assert_int_equal(rename_new(dir, "d", "e"), 0);
    assert_true(exists_at(dir, "e"));
    assert_int_equal(mkdirat(cv_posix_dir(dir), "d", 0777), 0);
    assert_int_equal(rename_new(dir, "d", "e"), EEXIST);
    assert_int_equal(rename_new(dir, "none", "fresh"), ENOENT);
    assert_false(exists_at(dir, "fresh"));
    cv_dir_close(&dir);
}

static void test_rename_new(void **state)
{
    (void)state;
    check_rename_new(open_scratch_dir("rename"), cv_dir_rename_new);
    check_rename_new(open_scratch_dir("rename2"), cv_dir_rename_new_portable);
}

static void test_exchange(void **state)
{
    (void)state;
    cv_dir dir = open_scratch_dir("exchange");
    put_file_at(dir, "a", "file");
    assert_int_equal(mkdirat(cv_posix_dir(dir), "b", 0777), 0);
    int error = cv_dir_exchange(dir, "a", "b");
    if (error == ENOTSUP) {
        expect_file_at(dir, "a", "file");
        cv_dir_close(&dir);
        skip();
    }
    assert_int_equal(error, 0);
    expect_file_at(dir, "b", "file");
    assert_int_equal(unlinkat(cv_posix_dir(dir), "a", AT_REMOVEDIR), 0);
    assert_int_equal(cv_dir_exchange(dir, "a", "b"), ENOENT);
    expect_file_at(dir, "b", "file");
    cv_dir_close(&dir);
}

/* ---- Temporary names ---------------------------------------------------- */

static void test_temp_names_are_new_and_hidden(void **state)
{
    (void)state;
    enum { N = 50 };
    char temps[N][CV_OS_TEMP_NAME];
    cv_dir dir = open_scratch_dir("temp");
    cv_file file;
    for (int i = 0; i < N; i++) {
        assert_int_equal(cv_dir_create_temp_file(dir, "a.b2nd", 0666, temps[i], &file), 0);
        cv_file_close(&file);
        assert_memory_equal(temps[i], ".a.b2nd.tmp-", 12);
        assert_int_equal(strlen(temps[i]), 18);
        for (int j = 0; j < i; j++) assert_string_not_equal(temps[i], temps[j]);
    }
    cv_dir made;
    cv_file_info info;
    assert_int_equal(cv_dir_create_temp_directory(dir, "d", 0777, temps[0], &made), 0);
    assert_int_equal(cv_file_get_info(cv_dir_as_file(made), &info), 0);
    assert_int_equal(info.kind, CV_KIND_DIRECTORY);
    cv_dir_close(&made);
    cv_dir_close(&dir);
}

static void test_temp_name_of_the_longest_name_fits(void **state)
{
    (void)state;
    char name[256], temp[CV_OS_TEMP_NAME];
    cv_dir dir = open_scratch_dir("long");
    cv_file file;
    memset(name, 'n', 255);
    name[255] = '\0';
    assert_int_equal(cv_dir_create_temp_file(dir, name, 0666, temp, &file), 0);
    assert_true(exists_at(dir, temp));
    cv_file_close(&file);
    cv_dir_close(&dir);
}

static void test_temp_files_have_umask_modes(void **state)
{
    (void)state;
    char temp[CV_OS_TEMP_NAME];
    cv_dir dir = open_scratch_dir("mode");
    cv_file file;
    struct stat st;
    mode_t before = umask(027);
    assert_int_equal(cv_dir_create_temp_file(dir, "f", 0666, temp, &file), 0);
    assert_int_equal(fstat(cv_posix_fd(file), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    cv_file_close(&file);
    cv_dir made;
    assert_int_equal(cv_dir_create_temp_directory(dir, "d", 0777, temp, &made), 0);
    assert_int_equal(fstat(cv_posix_dir(made), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0750);
    cv_dir_close(&made);
    umask(before);
    assert_int_equal(cv_dir_create_temp_file((cv_dir){0}, "f", 0666, temp, &file), EBADF);
    cv_dir_close(&dir);
}

/* ---- The machine -------------------------------------------------------- */

static void test_machine(void **state)
{
    (void)state;
    assert_in_range(cv_os_cores(), 1, 4096);
    size_t l2 = cv_os_l2_cache(), l3 = cv_os_l3_cache();
    assert_true(l2 == 0 || (l2 >= 16 << 10 && l2 <= (size_t)1 << 32));
    assert_true(l3 == 0 || (l3 >= 64 << 10 && l3 <= (size_t)1 << 36));
    uint64_t before = cv_os_clock_ns();
    usleep(2000);
    uint64_t passed = cv_os_clock_ns() - before;
    assert_in_range(passed, 2000000, UINT64_C(60000000000));
}

#ifdef F_OFD_SETLK

static cv_file open_shared(const char *path)
{
    cv_file file;
    assert_int_equal(cv_dir_open_file(cv_dir_here, path, CV_OPEN_READ, 0, &file), 0);
    assert_int_equal(cv_file_share(file), 0);
    return file;
}

/* As earlier versions did, which stored no number. */
static cv_file open_shared_as_before(const char *path)
{
    struct flock lock = {.l_type = F_RDLCK, .l_start = (off_t)(INT64_MAX / 2), .l_len = 1};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    return (cv_file){fd + 1};
}

static void test_sharing_says_a_number(void **state)
{
    (void)state;
    const uint64_t now = UINT64_C(1700000000000000000);
    char path[SCRATCH_PATH];
    cv_file file, first, second;
    scratch_path(path, "share");
    scratch_save(path, "x", 1);
    assert_int_equal(cv_dir_open_file(cv_dir_here, path, CV_OPEN_BOTH, 0, &file), 0);
    assert_false(cv_file_is_shared(file));
    assert_false(cv_file_is_shared_but(file, now));

    first = open_shared(path); /* may read anything */
    assert_true(cv_file_is_shared(file));
    assert_true(cv_file_is_shared_but(file, now));
    assert_int_equal(cv_file_share_number(first, now), 0);
    assert_true(cv_file_is_shared(file));
    assert_false(cv_file_is_shared_but(file, now));
    assert_true(cv_file_is_shared_but(file, now + 1));
    assert_true(cv_file_is_shared_but(file, now - 1));
    assert_true(cv_file_is_shared_but(file, 1));
    assert_true(cv_file_is_shared_but(file, UINT64_MAX));

    second = open_shared(path);
    assert_true(cv_file_is_shared_but(file, now));
    assert_int_equal(cv_file_share_number(second, now - 1), 0);
    assert_true(cv_file_is_shared_but(file, now));
    assert_true(cv_file_is_shared_but(file, now - 1));
    cv_file_close(&second);
    assert_false(cv_file_is_shared_but(file, now));
    cv_file_close(&first);
    assert_false(cv_file_is_shared(file));

    first = open_shared(path);
    assert_int_equal(cv_file_share_number(first, now), 0);
    cv_file_unshare(first);
    assert_false(cv_file_is_shared(file));
    assert_false(cv_file_is_shared_but(file, now + 1));
    cv_file_close(&first);

    first = open_shared_as_before(path);
    assert_true(cv_file_is_shared(file));
    assert_true(cv_file_is_shared_but(file, now));
    cv_file_close(&first);
    assert_false(cv_file_is_shared_but(file, now));
    cv_file_close(&file);
}

#else

static void test_sharing_says_a_number(void **state)
{
    (void)state;
    assert_true(cv_file_is_shared_but((cv_file){1}, 1)); /* unknown */
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_stops_only_at_the_end),
        cmocka_unit_test(test_write_beyond_what_positions_can_say),
        cmocka_unit_test(test_large_writes_behind_the_end),
        cmocka_unit_test(test_short_write_is_continued),
        cmocka_unit_test(test_descriptors_close_on_exec_and_sync),
        cmocka_unit_test(test_names_fd_notices_replacing),
        cmocka_unit_test(test_lock_excludes_other_openings),
        cmocka_unit_test(test_sharing_says_a_number),
        cmocka_unit_test(test_rename_new),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_temp_names_are_new_and_hidden),
        cmocka_unit_test(test_temp_name_of_the_longest_name_fits),
        cmocka_unit_test(test_temp_files_have_umask_modes),
        cmocka_unit_test(test_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
