/* Handles of open files and directories, and information about them. A port redefines them. */
#ifndef CV_BASE_OS_HANDLE_H
#define CV_BASE_OS_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

/* An open file, never a standard stream. {0} is no file: all functions return EBADF for it.
 * Programs that this process executes do not inherit the file. Any thread. */
typedef struct cv_file {
    int number; /* on POSIX: descriptor + 1 */
} cv_file;

static inline bool cv_file_is_open(cv_file file) { return file.number != 0; }

/* An open directory. {0} is no directory. */
typedef struct cv_dir {
    int number;
} cv_dir;

static inline bool cv_dir_is_open(cv_dir dir) { return dir.number != 0; }

/* Convert a directory to a file, for locks and access, and back. Both are one handle: close it
 * once. */
static inline cv_file cv_dir_as_file(cv_dir dir) { return (cv_file){dir.number}; }
static inline cv_dir cv_dir_of_file(cv_file file) { return (cv_dir){file.number}; }

typedef enum cv_file_kind {
    CV_KIND_FILE,
    CV_KIND_DIRECTORY,
    CV_KIND_LINK, /* returned only by functions that do not follow links */
    CV_KIND_OTHER /* pipe, device, ... */
} cv_file_kind;

typedef struct cv_file_info {
    cv_file_kind kind;
    uint64_t size;
    uint64_t n_names;       /* number of hard links; 0 if the file was deleted */
    uint64_t device, inode; /* together they identify the file */
    uint64_t changed_ns;    /* last change of its bytes, by the system's clock */
} cv_file_info;

#endif
