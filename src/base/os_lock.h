/* Advisory locks that go with one opening of a file or directory: closing gives them up,
 * children of fork share them. Functions that return int return 0 or an errno number. */
#ifndef CV_BASE_OS_LOCK_H
#define CV_BASE_OS_LOCK_H

#include "base/os_file.h"

/* Takes the exclusive lock at once: EWOULDBLOCK when another opening, of any process,
 * holds it. */
int cv_file_lock(cv_file file);

/* Whether another opening holds that lock: 0 or EWOULDBLOCK. Who takes it at this very
 * moment may be refused; who only asks is not. */
int cv_file_ask_lock(cv_file file);

/* Shared locks, beside the exclusive one and not excluding it.
 *
 *     share         "somebody reads here", what is not said
 *     share_number  "somebody reads number n here": says what after a share
 *
 * Whoever shares is found by is_shared; by is_shared_but too, unless it has said
 * `number` (one that never says its number, as programs of older versions do not, may
 * hide behind one that does). Both ask about other openings, and answer true also when
 * that cannot be known. At each moment of a share, and of the share_number after it,
 * one of the locks is held. unshare gives back all of them. */
int cv_file_share(cv_file file);
int cv_file_share_number(cv_file file, uint64_t number);
void cv_file_unshare(cv_file file);
bool cv_file_is_shared(cv_file file);
bool cv_file_is_shared_but(cv_file file, uint64_t number);

/* Marks of numbers, which exclude neither each other nor any of the other locks: a directory
 * is marked with numbers of files in it (store/keeper.h). Whether another opening has set one;
 * false where that cannot be known, and mark then fails with ENOTSUP or what the system says.
 * unshare takes no marks away. */
int cv_file_mark(cv_file file, uint64_t number);
void cv_file_unmark(cv_file file, uint64_t number);
bool cv_file_is_marked(cv_file file, uint64_t number);

/* Gives up all locks of this opening: children of fork hold the same opening, and
 * closing it here would leave them the locks. */
void cv_file_unlock(cv_file file);

/* A moment in the history of forks. Of one in the past: was the process a child's
 * forebear then (it is another process now), or has it forked since? */
typedef struct cv_os_moment {
    unsigned generation, forks;
} cv_os_moment;

cv_os_moment cv_os_now(void);
bool cv_os_is_other_process(cv_os_moment then);
bool cv_os_has_forked(cv_os_moment then);

#endif
