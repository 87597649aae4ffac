/* What stands where a new array is to go: is it in use, keep it from being written until
 * the new one has the name, and let that be accessible like it.
 *
 * A file's writer has the lock on the file, a directory's on a file in it, and readers of
 * a directory one on the directory (store.h). A reader of a file keeps the file. */
#ifndef CV_STORE_TARGET_H
#define CV_STORE_TARGET_H

#include "base/os_dir.h"
#include "store/refusals.h"

typedef struct cv_target {
    cv_file self;  /* the file or directory; none: nothing stands there */
    cv_file lock;  /* of a directory: its lock file; else none */
    cv_file frame; /* of a directory: its frame; else none */
    bool is_directory;
    bool borrowed; /* its lock and descriptors are somebody else's */
    bool is_locked;
} cv_target;

/* Opens the file or directory `name`; CATERVA_ENOTFOUND when it is not there any more.
 * Release with cv_target_close. */
cv_status cv_target_open(cv_dir dir, const char *name, bool is_directory,
                         const cv_shown_path *shown, cv_target *out, cv_error *err);

/* CATERVA_EBUSY when it is written, or is a directory that is read. An answer of the
 * moment, for who would otherwise work in vain. `dir` is where it lies. */
cv_status cv_target_ask(const cv_target *target, cv_dir dir, const cv_shown_path *shown,
                        cv_error *err);

/* The same, and keeps writers out until the target is unlocked or closed. */
cv_status cv_target_lock(cv_target *target, cv_dir dir, const cv_shown_path *shown,
                         cv_error *err);
void cv_target_unlock(cv_target *target);

/* May somebody read the directory? And the same as CATERVA_EBUSY. */
bool cv_target_has_readers(const cv_target *target);

cv_status cv_target_refuse_readers(const cv_target *target, const cv_shown_path *shown,
                                   cv_error *err);

void cv_target_close(cv_target *target);

/* ---- Access -------------------------------------------------------------- */

/* Whom a new array lets in that takes this one's place: the file, or the directory and
 * the files in it. A file is as open as the way to the old frame was. */
typedef struct cv_likeness {
    bool known;         /* else nothing stands there: as umask has it */
    cv_os_access outer; /* the file or directory itself */
    cv_os_access inner; /* of a directory: its files */
} cv_likeness;

cv_likeness cv_target_likeness(const cv_target *target, bool to_directory);

/* Gives the new file or directory (and its frame, when that is not none) this access, and what
 * else goes with it, attributes and lists. Returns an errno number. */
int cv_target_give(const cv_target *target, const cv_likeness *likeness, cv_file made,
                   cv_file frame);

#endif
