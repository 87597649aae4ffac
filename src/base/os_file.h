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
#include <stdint.h>

/* Closes and leaves none; fine for none. */
void cv_file_close(cv_file *file);

/* Another handle on the same opening, whose locks it shares: closed for itself. */
int cv_file_again(cv_file file, cv_file *out);

int cv_file_get_info(cv_file file, cv_file_info *out);
int cv_file_size(cv_file file, uint64_t *size);

/* Reads up to `size` bytes, fewer only at the end of the file. *done: bytes read, also on
 * an error. */
int cv_file_read(cv_file file, void *dst, size_t size, uint64_t pos, size_t *done);

/* Reads all bytes if they are in memory; else which were read is undefined. */
typedef enum cv_at_once { CV_AT_ONCE_NO, CV_AT_ONCE_READ, CV_AT_ONCE_UNKNOWN } cv_at_once;
cv_at_once cv_file_read_at_once(cv_file file, void *dst, size_t size, uint64_t pos);

/* Hint: prefetches bytes without waiting; several queue at the medium. */
void cv_file_fetch(cv_file file, uint64_t pos, uint64_t size);

/* Hint: allocates zeros for many writes behind the end, if useful. */
void cv_file_take_room(cv_file file, uint64_t pos, uint64_t size);

/* Writes all `size` bytes or fails; a part may have been written then. */
int cv_file_write(cv_file file, const void *src, size_t size, uint64_t pos);

/* Copies within a file without overlap, or fails as cv_file_write. ENOTSUP: not
 * supported. */
int cv_file_copy_within(cv_file file, uint64_t from, uint64_t to, size_t size);

/* Shares bytes between two files until either is written. Positions and size are multiples
 * of CV_CLONE_UNIT; syncs the source. On failure (ENOTSUP and others) bytes at `pos` are
 * undefined. */
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

/* ---- Locks ----
 *
 * Advisory locks of one opening: closing releases them, forked children share them. */

/* Takes the exclusive lock: EWOULDBLOCK if another opening, of any process, holds it. */
int cv_file_lock(cv_file file);

/* 0, or EWOULDBLOCK if another opening holds it. A lock taken during the question may be
 * refused, another question is not. */
int cv_file_ask_lock(cv_file file);

/* Shared locks, which do not exclude the exclusive one.
 *
 *   share         "somebody reads here"
 *   share_number  "somebody reads number n here": after a share
 *
 * is_shared finds all; is_shared_but all without `number` (one without a number, as in
 * older versions, may hide behind one with it). Both ask about other openings; true also if
 * unknown. At least one lock is held from share through share_number. unshare releases
 * all. */
int cv_file_share(cv_file file);
int cv_file_share_number(cv_file file, uint64_t number);
void cv_file_unshare(cv_file file);
bool cv_file_is_shared(cv_file file);
bool cv_file_is_shared_but(cv_file file, uint64_t number);

/* Marks of numbers, independent of each other and all locks: a directory is marked with
 * file numbers. Whether another opening set one; false if unknown, then mark fails (ENOTSUP
 * or others). unshare keeps marks. */
int cv_file_mark(cv_file file, uint64_t number);
void cv_file_unmark(cv_file file, uint64_t number);
bool cv_file_is_marked(cv_file file, uint64_t number);

/* Releases all locks of this opening, which closing would leave to forked children. */
void cv_file_unlock(cv_file file);

/* A moment in the history of forks: was the process then an ancestor, or has it forked
 * since? */
typedef struct cv_os_moment {
    unsigned generation, forks;
} cv_os_moment;

cv_os_moment cv_os_now(void);
bool cv_os_is_other_process(cv_os_moment then);
bool cv_os_has_forked(cv_os_moment then);

/* ---- Warming memory ----
 *
 * Prefetches bytes: waiting for memory costs some hundred instructions. */

enum { CV_LINE_BYTES = 64 };

/* gcc drops calls of functions that do nothing else: such are inlined always. */
#define CV_WARMING __attribute__((always_inline)) static inline

/* For reading; a few hundred bytes at most. NULL: nothing is warmed. */
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
