/* Open files, by a handle that says nothing about the system: what a port gives another
 * meaning to. Whole-or-error forms of the calls that may do half their work.
 *
 * Functions that return int return 0 or an errno number, of which this header brings the
 * names; the caller, who knows what the file is to its user, makes the sentence. */
#ifndef CV_BASE_OS_FILE_H
#define CV_BASE_OS_FILE_H

#include "base/os_handle.h"

#include <errno.h>
#include <stddef.h>

/* Closes and leaves none; fine for none. */
void cv_file_close(cv_file *file);

/* Another handle on the same opening, whose locks it shares: closed for itself. */
int cv_file_again(cv_file file, cv_file *out);

int cv_file_get_info(cv_file file, cv_file_info *out);
int cv_file_size(cv_file file, uint64_t *size);

/* Reads up to `size` bytes and stops early only at the end of the file.
 * *done: bytes read, also on an error. */
int cv_file_read(cv_file file, void *dst, size_t size, uint64_t pos, size_t *done);

/* Reads all the bytes if they are in memory, without waiting for the medium; if some are not,
 * which of them were read is not known. */
typedef enum cv_at_once { CV_AT_ONCE_NO, CV_AT_ONCE_READ, CV_AT_ONCE_UNKNOWN } cv_at_once;
cv_at_once cv_file_read_at_once(cv_file file, void *dst, size_t size, uint64_t pos);

/* Has the system fetch bytes that are read soon, and does not wait for them: several such
 * stand in the medium's queue together. A hint. */
void cv_file_fetch(cv_file file, uint64_t pos, uint64_t size);

/* Takes room for bytes that are about to be written behind the end, by many writes: the file
 * grows by zeros. A hint, and nothing where it is of no use. */
void cv_file_take_room(cv_file file, uint64_t pos, uint64_t size);

/* Writes all `size` bytes or fails; a part may have been written then. */
int cv_file_write(cv_file file, const void *src, size_t size, uint64_t pos);

/* Copies bytes of a file to another place in it, which must not overlap the
 * first, or fails as cv_file_write. ENOTSUP: not in this way. */
int cv_file_copy_within(cv_file file, uint64_t from, uint64_t to, size_t size);

/* Makes bytes of one file those of another one as well, without a copy: the medium has them
 * once, until either is written there. Positions and size are multiples of CV_CLONE_UNIT; what
 * was not on the medium yet is brought there. ENOTSUP and others: it cannot be, and what is at
 * `pos` is undefined. */
enum { CV_CLONE_UNIT = 4096 };
int cv_file_clone(cv_file file, uint64_t pos, cv_file from, uint64_t there, uint64_t size);

/* Whether it is worth trying: the file system is of a kind that can. */
bool cv_file_may_clone(cv_file file, cv_file from);

/* As if its bytes had been changed now. */
int cv_file_touch(cv_file file);

/* Cuts it, or lets it grow by zeros. */
int cv_file_truncate(cv_file file, uint64_t size);

/* Returns when the file's bytes and size are on the medium. */
int cv_file_sync(cv_file file);

#endif
