/* Open files, behind a handle that a port redefines. Reads and writes complete all bytes or fail.
 *
 * Functions that return int return 0 or an errno number, whose names this header provides. The
 * caller makes the error message, because it knows what the file is for. */
#ifndef CV_BASE_OS_FILE_H
#define CV_BASE_OS_FILE_H

#include "base/os_handle.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* Closes the file and sets it to none. None is fine. */
void cv_file_close(cv_file *file);

/* Duplicates the handle: the same opening with the same locks, closed separately. */
int cv_file_again(cv_file file, cv_file *out);

int cv_file_get_info(cv_file file, cv_file_info *out);
int cv_file_size(cv_file file, uint64_t *size);

/* Reads up to `size` bytes, fewer only at the end of the file. Sets *done to the bytes read, even
 * on an error. */
int cv_file_read(cv_file file, void *dst, size_t size, uint64_t pos, size_t *done);

/* Reads all bytes if they are in memory. Otherwise it is undefined which bytes were read. */
typedef enum cv_at_once { CV_AT_ONCE_NO, CV_AT_ONCE_READ, CV_AT_ONCE_UNKNOWN } cv_at_once;
cv_at_once cv_file_read_at_once(cv_file file, void *dst, size_t size, uint64_t pos);

/* Hint: the bytes will be read. Does not wait; several hints are queued at the medium. */
void cv_file_fetch(cv_file file, uint64_t pos, uint64_t size);

/* Hint: many writes behind the end will follow. May allocate zeros. */
void cv_file_take_room(cv_file file, uint64_t pos, uint64_t size);

/* Writes all `size` bytes or fails; then some may have been written. */
int cv_file_write(cv_file file, const void *src, size_t size, uint64_t pos);

/* Copies within a file; the ranges must not overlap. Fails as cv_file_write does, or with
 * ENOTSUP. */
int cv_file_copy_within(cv_file file, uint64_t from, uint64_t to, size_t size);

/* Shares bytes between two files until either is written. Positions and size are multiples of
 * CV_CLONE_UNIT. Syncs the source. On failure (ENOTSUP and others) the bytes at `pos` are
 * undefined. */
enum { CV_CLONE_UNIT = 4096 };
int cv_file_clone(cv_file file, uint64_t pos, cv_file from, uint64_t there, uint64_t size);

/* Whether cv_file_clone is worth trying: the file system is of a kind that supports it. */
bool cv_file_may_clone(cv_file file, cv_file from);

/* Sets the time of the last change to now. */
int cv_file_touch(cv_file file);

/* Truncates the file, or extends it with zeros. */
int cv_file_truncate(cv_file file, uint64_t size);

/* Returns when the file's bytes and size are durable. */
int cv_file_sync(cv_file file);

/* ---- Locks ----
 *
 * Advisory locks that belong to an opening: closing it releases them, forked children share
 * them. */

/* Takes the exclusive lock. EWOULDBLOCK if another opening, in any process, holds it. */
int cv_file_lock(cv_file file);

/* Returns 0, or EWOULDBLOCK if another opening holds the exclusive lock. May make a concurrent
 * cv_file_lock fail, but no concurrent question. */
int cv_file_ask_lock(cv_file file);

/* Shared locks, which do not exclude the exclusive one.
 *
 *   share         this opening reads
 *   share_number  this opening reads state `number`; after share
 *
 * is_shared finds all other openings that share; is_shared_but all except those with `number` (one
 * without a number, as in older versions, may be missed if another one has `number`). Both return
 * true if unknown. From share through share_number at least one lock is held. unshare releases all
 * of them. */
int cv_file_share(cv_file file);
int cv_file_share_number(cv_file file, uint64_t number);
void cv_file_unshare(cv_file file);
bool cv_file_is_shared(cv_file file);
bool cv_file_is_shared_but(cv_file file, uint64_t number);

/* Marks: an opening marks a number of a directory, the number of a file in it. They are independent
 * of each other and of all locks. is_marked: whether another opening set the mark; false if
 * unknown, and then mark fails (ENOTSUP or others). unshare keeps marks. */
int cv_file_mark(cv_file file, uint64_t number);
void cv_file_unmark(cv_file file, uint64_t number);
bool cv_file_is_marked(cv_file file, uint64_t number);

/* Releases all locks of this opening. Closing would leave them to forked children. */
void cv_file_unlock(cv_file file);

/* A moment in the history of forks: tells whether this process is a fork made since, or has forked
 * since. */
typedef struct cv_os_moment {
    unsigned generation, forks;
} cv_os_moment;

cv_os_moment cv_os_now(void);
bool cv_os_is_other_process(cv_os_moment then);
bool cv_os_has_forked(cv_os_moment then);

/* ---- Prefetching memory ----
 *
 * Prefetches bytes into the CPU's cache: a miss costs some hundred instructions. */

enum { CV_LINE_BYTES = 64 };

/* gcc drops calls of functions that only prefetch, unless they are always inlined. */
#define CV_WARMING __attribute__((always_inline)) static inline

/* For reading; at most a few hundred bytes. NULL: does nothing. */
CV_WARMING void cv_warm_bytes(const uint8_t *bytes, size_t size)
{
    if (!bytes) return;
    for (size_t at = 0; at < size; at += CV_LINE_BYTES) __builtin_prefetch(bytes + at);
    if (size > 0) __builtin_prefetch(bytes + size - 1);
}

/* For writing; at least one byte. */
CV_WARMING void cv_warm_to_write(const uint8_t *dst, size_t size)
{
    for (size_t at = 0; at < size; at += CV_LINE_BYTES) __builtin_prefetch(dst + at, 1);
    __builtin_prefetch(dst + size - 1, 1);
}

#endif
