/* Room: base. Which file a name leads to, and temporary names: the functions of os_dir.h that are
 * the same on every system. */
#include "base/os_dir.h"

#include "base/arith.h"
#include "base/os.h"

#include <stdio.h>

static bool are_same(const cv_file_info *a, const cv_file_info *b)
{
    return a->device == b->device && a->inode == b->inode;
}

bool cv_dir_names(cv_dir dir, const char *name, cv_file file)
{
    cv_file_info opened = {0}, named = {0};
    return cv_file_get_info(file, &opened) == 0 && cv_dir_get_info(dir, name, &named) == 0 &&
           are_same(&opened, &named);
}

bool cv_os_same_file(const char *a, const char *b)
{
    cv_file_info x = {0}, y = {0};
    return cv_dir_get_info(cv_dir_here, a, &x) == 0 &&
           cv_dir_get_info(cv_dir_here, b, &y) == 0 && are_same(&x, &y);
}

/* ---- Temporary names ---------------------------------------------------- */

void cv_os_temp_name(const char *name, const char *tag, char temp[CV_OS_TEMP_NAME])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    enum { LETTERS = sizeof letters - 1, SUFFIX = 6, MAX_NAME = 200 };

    /* Time, process and stack address distinguish concurrent callers. */
    uint64_t seed = cv_mix(cv_os_clock_ns()) + cv_mix(cv_os_process()) + (uintptr_t)&seed;
    uint64_t bits = cv_mix(seed);
    char suffix[SUFFIX + 1] = {0};
    for (int i = 0; i < SUFFIX; i++, bits /= LETTERS) suffix[i] = letters[bits % LETTERS];
    (void)snprintf(temp, CV_OS_TEMP_NAME, ".%.*s.%.16s-%s", (int)MAX_NAME, name, tag, suffix);
}

enum { TEMP_TRIES = 100 };

int cv_dir_create_temp_file(cv_dir dir, const char *name, uint32_t mode,
                            char temp[CV_OS_TEMP_NAME], cv_file *out)
{
    unsigned how = CV_OPEN_BOTH | CV_OPEN_CREATE | CV_OPEN_NEW;
    int error = EEXIST;
    for (int i = 0; i < TEMP_TRIES && error == EEXIST; i++) {
        cv_os_temp_name(name, "tmp", temp);
        error = cv_dir_open_file(dir, temp, how, mode, out);
    }
    return error;
}

int cv_dir_create_temp_directory(cv_dir dir, const char *name, uint32_t mode,
                                 char temp[CV_OS_TEMP_NAME], cv_dir *out)
{
    int error = EEXIST;
    for (int i = 0; i < TEMP_TRIES && error == EEXIST; i++) {
        cv_os_temp_name(name, "tmp", temp);
        error = cv_dir_make(dir, temp, mode);
    }
    if (error) return error;
    error = cv_dir_open(dir, temp, 0, out);
    if (error) (void)cv_dir_remove_directory(dir, temp);
    return error;
}
