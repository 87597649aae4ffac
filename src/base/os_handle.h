/* Open files and directories, and what is known of one; defined anew by a port. */
#ifndef CV_BASE_OS_HANDLE_H
#define CV_BASE_OS_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

/* An open file; {0}: none, EBADF everywhere. Never a standard stream, not inherited; any
 * thread. */
typedef struct cv_file {
    int number; /* of a POSIX system: the descriptor, plus one */
} cv_file;

static inline bool cv_file_is_open(cv_file file) { return file.number != 0; }

/* A directory that is open; {0} is none. */
typedef struct cv_dir {
    int number;
} cv_dir;

static inline bool cv_dir_is_open(cv_dir dir) { return dir.number != 0; }

/* The directory as a file, to lock or give access; the same handle, closed once. */
static inline cv_file cv_dir_as_file(cv_dir dir) { return (cv_file){dir.number}; }
static inline cv_dir cv_dir_of_file(cv_file file) { return (cv_dir){file.number}; }

/* What stands behind a handle or a name. */
typedef enum cv_file_kind {
    CV_KIND_FILE,
    CV_KIND_DIRECTORY,
    CV_KIND_LINK, /* asked for by name only, where it was not to be followed */
    CV_KIND_OTHER /* a pipe, a device */
} cv_file_kind;

typedef struct cv_file_info {
    cv_file_kind kind;
    uint64_t size;
    uint64_t n_names;       /* 0: deleted, and there as long as it is open */
    uint64_t device, inode; /* together: which file it is */
    uint64_t changed_ns;    /* when its bytes were changed last, by the system's clock */
} cv_file_info;

#endif
