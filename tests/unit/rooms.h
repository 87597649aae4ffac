/* Shared by the tests of os and stores: a child process, a fresh directory for each test, and
 * small text files. Include after cmocka. */
#ifndef UNIT_ROOMS_H
#define UNIT_ROOMS_H

#include "base/status.h"
#include "support/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns the exit status of `body` in a child process; 255 if it was killed. */
static inline int in_child(int (*body)(const char *path), const char *path)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(body(path));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* A fresh directory for one test; `path` is "target" in it. */
typedef struct room {
    char dir[SCRATCH_PATH];
    char path[SCRATCH_PATH + 16];
} room;

static inline room new_room(const char *name)
{
    room r;
    scratch_path(r.dir, name);
    scratch_remove(r.dir);
    assert_int_equal(mkdir(r.dir, 0777), 0);
    snprintf(r.path, sizeof r.path, "%s/target", r.dir);
    return r;
}

/* Without . and .. */
static inline int count_entries(const char *path)
{
    int n = -2; /* . and .. */
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

static inline void save_text(const char *path, const char *text)
{
    scratch_save(path, text, strlen(text));
}

static inline void expect_text(const char *path, const char *text)
{
    size_t size;
    uint8_t *bytes = scratch_load(path, &size);
    assert_non_null(bytes);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(bytes, text, size);
    free(bytes);
}

#endif
