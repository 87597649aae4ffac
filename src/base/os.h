/* What differs between systems, and whole-or-error forms of the calls that may
 * do half their work. Keeps no state.
 *
 * Functions that return int return 0 or an errno number; the caller, who knows
 * what the file is to its user, makes the sentence. Names ending in `at` take
 * an open directory and a name inside it. */
#ifndef CV_BASE_OS_H
#define CV_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens with close-on-exec, never as one of the standard streams, and never hangs on a pipe. `flags` and `mode` as
 * openat's; `dir_fd` may be AT_FDCWD. */
int cv_os_open_at(int dir_fd, const char *name, int flags, int mode, int *fd);

/* Whether `name` is, now, the file or directory that is open as `fd`. */
bool cv_os_names_fd_at(int dir_fd, const char *name, int fd);

/* True when both paths lead to one and the same file or directory. */
bool cv_os_same_file(const char *a, const char *b);

/* The path from the root, as the working directory is now, or NULL without memory. Names
 * are not looked at: links stay links. Where nobody can tell the working directory's name
 * the path comes back as it was. Owned. */
char *cv_os_absolute(const char *path);

/* Reads up to `size` bytes and stops early only at the end of the file.
 * *done: bytes read, also on an error. */
int cv_os_read(int fd, void *dst, size_t size, uint64_t pos, size_t *done);

/* Writes all `size` bytes or fails; a part may have been written then. */
int cv_os_write(int fd, const void *src, size_t size, uint64_t pos);

/* Copies bytes of a file to another place in it, which must not overlap the
 * first, or fails as cv_os_write. ENOTSUP: not in this way. */
int cv_os_copy_within(int fd, uint64_t from, uint64_t to, size_t size);

/* Returns when the file's bytes and size are on the medium. */
int cv_os_sync_data(int fd);

/* The same for the names in a directory; fine where a system cannot. */
int cv_os_sync_directory(int fd);

/* Takes the exclusive advisory lock that goes with this opening of the file,
 * at once: EWOULDBLOCK when another opening, of any process, holds it. Closing
 * releases it; children of fork share it. */
int cv_os_lock(int fd);

/* Whether another opening holds that lock: 0 or EWOULDBLOCK. Who takes it at this very
 * moment may be refused; who only asks is not. */
int cv_os_ask_lock(int fd);

/* Shared locks that go with this opening of the file, beside the exclusive one of
 * cv_os_lock and not excluding it.
 *
 *     share         "somebody reads here", what is not said
 *     share_number  "somebody reads number n here": says what after a share
 *
 * Whoever shares is found by is_shared; by is_shared_but too, unless it has said
 * `number` (one that never says its number, as programs of older versions do not, may
 * hide behind one that does). Both ask about other openings, and answer true also when
 * that cannot be known. At each moment of a share, and of the share_number after it,
 * one of the locks is held. unshare gives back all of them. */
int cv_os_share(int fd);

/* Gives up all locks of this opening: children of fork hold the same opening, and
 * closing it here would leave them the locks. */
void cv_os_unlock(int fd);

/* A moment in the history of forks. Of one in the past: was the process a child's
 * forebear then (it is another process now), or has it forked since? */
typedef struct cv_os_moment {
    unsigned generation, forks;
} cv_os_moment;

cv_os_moment cv_os_now(void);
bool cv_os_is_other_process(cv_os_moment then);
bool cv_os_has_forked(cv_os_moment then);
int cv_os_share_number(int fd, uint64_t number);
void cv_os_unshare(int fd);
bool cv_os_is_shared(int fd);
bool cv_os_is_shared_but(int fd, uint64_t number);

/* Renames without replacing: EEXIST when `to` exists, decided by the system
 * and not by looking first. */
int cv_os_rename_new_at(int dir_fd, const char *from, const char *to);

/* What cv_os_rename_new_at does on file systems that lack the call: link and
 * unlink, or a placeholder made exclusively and then replaced. */
int cv_os_rename_new_portable_at(int dir_fd, const char *from, const char *to);

/* Exchanges two existing names in one step. ENOTSUP where system or file
 * system cannot; nothing has changed then. */
int cv_os_exchange_at(int dir_fd, const char *a, const char *b);

enum { CV_OS_TEMP_NAME = 256 };

/* An open directory for names in it only, not to be listed or synced: searching it is
 * the only permission that this takes, where systems have such openings. */
int cv_os_open_names(const char *path, int *fd);

/* Who may do what with a file or directory: permissions, owner and group. */
typedef struct cv_os_access {
    uint32_t mode;
    uint32_t user, group;
} cv_os_access;

int cv_os_get_access(int fd, cv_os_access *out);

/* Makes a file of the caller's own accessible like that. Where the process may not give
 * it the owner or group, the new group gets no more than everybody has. */
int cv_os_set_access(int fd, const cv_os_access *access);

/* The same, and nobody else gets access by inherited lists: it has those of `from`, which
 * is open, and its extended attributes ("user."), where the system has such; `from` -1:
 * none. What cannot be set of those is left out. */
int cv_os_take_access(int fd, const cv_os_access *access, int from);

/* ".<name>.<tag>-XXXXXX" into `temp`: a name likely, not sure, to be free; ask
 * again when it is not. Overlong names are cut to what file systems take. */
void cv_os_temp_name(const char *name, const char *tag, char temp[CV_OS_TEMP_NAME]);

/* Creates a new file (open for reading and writing) or directory (open for
 * reading) under such a name, with what umask leaves of `mode`. */
int cv_os_create_temp_file_at(int dir_fd, const char *name, int mode,
                              char temp[CV_OS_TEMP_NAME], int *fd);
int cv_os_create_temp_directory_at(int dir_fd, const char *name, int mode,
                                   char temp[CV_OS_TEMP_NAME], int *fd);

/* Processors this process may use; at least 1. */
int cv_os_cores(void);

/* Bytes of the level 2 cache of a core and of the shared level 3 cache; 0
 * when the system does not say. */
size_t cv_os_l2_cache(void);
size_t cv_os_l3_cache(void);

/* Nanoseconds since some fixed moment; never goes back. */
uint64_t cv_os_clock_ns(void);

/* Nanoseconds since 1970 as the system's clock has them; it may be set back. */
uint64_t cv_os_time_ns(void);

/* Memory for `size` bytes, in whole pages of this size and alignment, where the system
 * has pages so large: it is asked for them. NULL without memory; free() it. */
enum { CV_OS_LARGE_PAGE = 2 << 20 };
void *cv_os_large_pages(size_t size);

#endif
