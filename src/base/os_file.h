/* Open files, behind a handle that a port redefines. Reads and writes transfer all bytes or fail.
 *
 * Functions that return int return 0 or an errno number, whose names this header provides. The
 * caller makes the error message, because only the caller knows what the file is for. */
#ifndef CV_BASE_OS_FILE_H
#define CV_BASE_OS_FILE_H

#include "base/os_handle.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifndef ESTALE
#define ESTALE 1116 /* Windows has no such number */
#endif

/* Closes *file and sets it to {0}. Does nothing if it is {0}. */
void cv_file_close(cv_file *file);

/* Duplicates the handle: *out is the same opening with the same locks, but is closed separately. */
int cv_file_again(cv_file file, cv_file *out);

int cv_file_get_info(cv_file file, cv_file_info *out);
int cv_file_size(cv_file file, uint64_t *size);

/* Reads up to `size` bytes, fewer only at the end of the file. Sets *done to the bytes read, even
 * on an error. */
int cv_file_read(cv_file file, void *dst, size_t size, uint64_t pos, size_t *done);

/* Reads all bytes if they are in the system's memory. READ: done. NO: they are not in memory.
 * UNKNOWN: the system does not report that. Except after READ, `dst` is undefined. */
typedef enum cv_at_once { CV_AT_ONCE_NO, CV_AT_ONCE_READ, CV_AT_ONCE_UNKNOWN } cv_at_once;
cv_at_once cv_file_read_at_once(cv_file file, void *dst, size_t size, uint64_t pos);

/* Hint: these bytes will be read. Does not wait, so several hints can be in the device's queue. */
void cv_file_fetch(cv_file file, uint64_t pos, uint64_t size);

/* Hint: these bytes behind the file's end will be written. May extend the file with zeros. */
void cv_file_take_room(cv_file file, uint64_t pos, uint64_t size);

/* Writes all `size` bytes. If it fails, some of them may have been written. */
int cv_file_write(cv_file file, const void *src, size_t size, uint64_t pos);

/* Copies within a file; the ranges must not overlap. Fails as cv_file_write does, or with
 * ENOTSUP. */
int cv_file_copy_within(cv_file file, uint64_t from, uint64_t to, size_t size);

/* Makes bytes of `file` at `pos` share storage with those of `from` at `there`, until either are
 * written. Positions and size are multiples of CV_CLONE_UNIT. Syncs `from`. On failure (ENOTSUP and
 * others) the bytes at `pos` are undefined. */
enum { CV_CLONE_UNIT = 4096 };
int cv_file_clone(cv_file file, uint64_t pos, cv_file from, uint64_t there, uint64_t size);

/* Whether the file system is of a kind that supports cv_file_clone. */
bool cv_file_may_clone(cv_file file, cv_file from);

/* Sets the time of the last change to now. */
int cv_file_touch(cv_file file);

/* Truncates the file, or extends it with zeros. */
int cv_file_truncate(cv_file file, uint64_t size);

/* Makes the file's bytes and size durable. */
int cv_file_sync(cv_file file);

/* ---- Locks ----
 *
 * Advisory locks. A lock belongs to an opening (POSIX: an open file description), which duplicated
 * handles and forked children share. It is released when the opening's last handle is closed. */

/* Takes the exclusive lock. EWOULDBLOCK if another opening, in any process, holds it. */
int cv_file_lock(cv_file file);

/* Returns 0, or EWOULDBLOCK if another opening holds the exclusive lock. This call may make a
 * concurrent cv_file_lock fail, but not a concurrent cv_file_ask_lock. */
int cv_file_ask_lock(cv_file file);

/* Shared locks, which do not exclude the exclusive lock.
 *
 *   share         this opening reads
 *   share_number  this opening reads state `number`; call share first
 *   is_shared     another opening shares
 *   is_shared_but another opening shares, and has not set `number`
 *
 * The last two return true if the system cannot know. is_shared_but may miss an opening without a
 * number (older versions set none) if a third opening has set `number`. From share until unshare an
 * opening holds at least one shared lock. unshare releases all shared locks of the opening. */
int cv_file_share(cv_file file);
int cv_file_share_number(cv_file file, uint64_t number);
void cv_file_unshare(cv_file file);
bool cv_file_is_shared(cv_file file);
bool cv_file_is_shared_but(cv_file file, uint64_t number);

/* Marks. An opening of a directory marks numbers, each of which belongs to a file in the directory.
 * Marks are independent of each other and of the locks: unshare keeps them. is_marked returns
 * whether another opening set the mark. Without system support, mark fails and is_marked returns
 * false. */
int cv_file_mark(cv_file file, uint64_t number);
void cv_file_unmark(cv_file file, uint64_t number);
bool cv_file_is_marked(cv_file file, uint64_t number);

/* Releases the exclusive and the shared locks of this opening, but not its marks. While a forked
 * child has the opening, closing the file would not release the locks. */
void cv_file_unlock(cv_file file);

/* A moment, taken by cv_os_now. cv_os_is_other_process returns whether this process was forked
 * after the moment, cv_os_has_forked whether this process has forked a child after it. */
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

/* Prefetches at most a few hundred bytes for reading. NULL is fine. */
CV_WARMING void cv_warm_bytes(const uint8_t *bytes, size_t size)
{
    if (!bytes) return;
    for (size_t at = 0; at < size; at += CV_LINE_BYTES) __builtin_prefetch(bytes + at);
    if (size > 0) __builtin_prefetch(bytes + size - 1);
}

/* Prefetches at least one byte for writing. */
CV_WARMING void cv_warm_to_write(const uint8_t *dst, size_t size)
{
    for (size_t at = 0; at < size; at += CV_LINE_BYTES) __builtin_prefetch(dst + at, 1);
    __builtin_prefetch(dst + size - 1, 1);
}

#endif
