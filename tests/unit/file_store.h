/* Shared by the file store tests: the last error, a store that contains some text, and a
 * kernel without the renames that some file systems lack. Include after cmocka. */
#ifndef UNIT_FILE_STORE_H
#define UNIT_FILE_STORE_H

#include "store/file.h"
#include "unit/rooms.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

static cv_error error;

/* A fresh directory, and no error yet. */
static inline room begin(const char *name)
{
    memset(&error, 0, sizeof error);
    return new_room(name);
}

static inline cv_status write_text(cv_store *store, uint64_t pos, const char *text)
{
    return cv_store_write(store, CV_FRAME_OBJECT, pos, text, strlen(text), &error);
}

/* Open for writing, not published yet. */
static inline cv_store *create(const char *path, bool overwrite, const char *text)
{
    cv_store *store;
    assert_int_equal(cv_store_file_create(path, overwrite, &store, &error), CV_OK);
    assert_int_equal(write_text(store, 0, text), CV_OK);
    return store;
}

/* As an exit status: 0, or minus the status. */
static inline int open_writable_status(const char *path)
{
    cv_store *store;
    cv_status status = cv_store_file_open(path, 0, true, &store, &error);
    if (status == CV_OK) cv_store_close(store);
    return -(int)status;
}

/* Simulates a file system that cannot rename without replacing, or exchange: the kernel
 * returns EINVAL. False if this cannot be simulated. */
static inline bool forbid_special_renames(void)
{
#ifdef __linux__
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
    return false;
#endif
}

enum { CANNOT_PRETEND = 77 };

/* Runs the tests in a child, without special renames; skips them if this cannot be
 * simulated. */
static inline void run_portably(void (*const *tests)(void **state), int n)
{
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!forbid_special_renames()) _exit(CANNOT_PRETEND);
        /* A failing assertion jumps out of cmocka's call, which must not happen in a
         * child. */
        for (int i = 0; i < n; i++) {
            const struct CMUnitTest one[] = {
                {"without renameat2", tests[i], NULL, NULL, NULL}};
            if (cmocka_run_group_tests(one, NULL, NULL) != 0) _exit(i + 1);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_PRETEND) skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
