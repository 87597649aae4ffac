/* Open files, by a handle that says nothing about the system: what a port gives another
 * meaning to. Whole-or-error forms of the calls that may do half their work.
 *
 * Functions that return int return 0 or an errno number, of which this header brings the
 * names; the caller, who knows what the file is to its user, makes the sentence. */
#ifndef CV_BASE_OS_FILE_H
#define CV_BASE_OS_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file that is open; {0} is none, which every function refuses with EBADF. Never one of
 * the standard streams, not inherited by other programs; any thread. */
typedef struct cv_file {
    int number; /* of a POSIX system: the descriptor, plus one */
} cv_file;

static inline bool cv_file_is_open(cv_file file) { return file.number != 0; }

/* Closes and leaves none; fine for none. */
void cv_file_close(cv_file *file);

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
} cv_file_info;

int cv_file_get_info(cv_file file, cv_file_info *out);
int cv_file_size(cv_file file, uint64_t *size);

/* Reads up to `size` bytes and stops early only at the end of the file.
 * *done: bytes read, also on an error. */
int cv_file_read(cv_file file, void *dst, size_t size, uint64_t pos, size_t *done);

/* Writes all `size` bytes or fails; a part may have been written then. */
int cv_file_write(cv_file file, const void *src, size_t size, uint64_t pos);

/* Copies bytes of a file to another place in it, which must not overlap the
 * first, or fails as cv_file_write. ENOTSUP: not in this way. */
int cv_file_copy_within(cv_file file, uint64_t from, uint64_t to, size_t size);

/* Cuts it, or lets it grow by zeros. */
int cv_file_truncate(cv_file file, uint64_t size);

/* Returns when the file's bytes and size are on the medium. */
int cv_file_sync(cv_file file);

#endif
