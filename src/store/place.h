/* Temporary and target name of an unpublished store in one directory, held open against
 * chdir and renames. */
#ifndef CV_STORE_PLACE_H
#define CV_STORE_PLACE_H

#include "base/os_dir.h"
#include "base/os_file.h"
#include "base/status.h"
#include "store/path.h"

#include <stdatomic.h>

/* One of them; part of whatever knows where it is. */
typedef struct cv_temporary {
    void (*remove)(struct cv_temporary *temporary); /* called with the list's lock */
    cv_os_moment made;                              /* by this process? */
    bool is_listed;
    struct cv_temporary *next, *before;
} cv_temporary;

/* Takes it off; does nothing for one that is not listed. */
void cv_temporaries_remove(cv_temporary *temporary);

/* Removes all of them. */
void cv_temporaries_abandon(void);

/* ---- The keeper ----
 *
 * Protects files in or below a directory that their writer has closed for a while to spare
 * descriptors.
 *
 * Closing a file releases its lock. Before that the keeper marks it: a record lock on the
 * directory at a byte for the file's inode. That needs only the keeper's descriptor and
 * ends with the process; whoever opens a file for writing looks for it in all directories
 * above. Programs that do not look (python-blosc2, earlier versions) are noticed at
 * reopening, by size and time (store/file.c). */

typedef struct cv_keeper {
    cv_dir root; /* an opening of its own: marks are seen from every other one */
    atomic_size_t references;
} cv_keeper;

/* Opens the directory again. One reference; release with cv_keeper_release. */
cv_status cv_keeper_new(cv_dir dir, const char *shown, cv_keeper **out, cv_error *err);
cv_keeper *cv_keeper_retain(cv_keeper *keeper);
void cv_keeper_release(cv_keeper *keeper); /* NULL is fine */

/* Whether another opening marked the file in `dir` or above; false if that is unknown. */
bool cv_keeper_has(cv_dir dir, cv_file file);

/* As cv_file_ask_lock and cv_file_lock of a file in `dir`: EWOULDBLOCK also while the file is
 * marked. */
int cv_keeper_ask(cv_dir dir, cv_file file);
int cv_keeper_lock(cv_dir dir, cv_file file);

/* ---- The target ----
 *
 * Whether a new array's target is in use; locking it until the new one has the name; its
 * access.
 *
 * Writers lock a file, or a file in a directory; readers of a directory lock it (store.h).
 * Readers of a file keep the open file. */

typedef struct cv_target {
    cv_file self;  /* the file or directory; none: nothing stands there */
    cv_file lock;  /* of a directory: its lock file; else none */
    cv_file frame; /* of a directory: its frame; else none */
    bool is_directory;
    bool borrowed; /* its lock and descriptors are somebody else's */
    bool is_locked;
} cv_target;

/* Opens file or directory `name`; CATERVA_ENOTFOUND if it is gone. Release with
 * cv_target_close. */
cv_status cv_target_open(cv_dir dir, const char *name, bool is_directory,
                         const cv_shown_path *shown, cv_target *out, cv_error *err);

cv_status cv_target_refuse_readers(const cv_target *target, const cv_shown_path *shown,
                                   cv_error *err);

void cv_target_close(cv_target *target);

/* ---- Access -------------------------------------------------------------- */


/* Access of a new array's files, or directory and files. A file is as open as the way to
 * the old frame. */
typedef struct cv_likeness {
    bool known;         /* else nothing stands there: as umask has it */
    cv_os_access outer; /* the file or directory itself */
    cv_os_access inner; /* of a directory: its files */
} cv_likeness;

cv_likeness cv_target_likeness(const cv_target *target, bool to_directory);

/* ---- The place ---- */

typedef struct cv_place {
    cv_dir dir;
    char *name;                 /* of the target */
    char temp[CV_OS_TEMP_NAME]; /* filled by who creates it */
    bool overwrite;
    bool is_directory;   /* what is to be published */
    bool is_held;        /* `old` is open for writing, and nothing else is replaced */
    bool is_left;        /* the replaced directory is still read, under `temp` */
    cv_target old;       /* what stood at the target when it was last looked at */
    cv_shown_path shown; /* the target, for sentences */
    cv_dir root;         /* borrowed, and where `dir` is in it: of a place whose `dir` is */
    const char *folder;  /* closed at times, see cv_store_file_rest; else NULL */
    cv_temporary listed; /* while `temp` is there, and not yet published */
} cv_place;

/* Finds the place of `path`; with `overwrite` follows a symbolic link. CATERVA_EEXIST: the
 * target exists and may not be replaced (not asked for, or neither file nor array).
 * CATERVA_EBUSY: it is in use now. Release with cv_place_close; nothing on failure. */
cv_status cv_place_open(const char *path, bool overwrite, cv_place *out, cv_error *err);

/* Makes the open temporary file or directory. It is private until it has its access.
 * Returns an errno number. */
int cv_place_create_file(cv_place *place, cv_file *out);
int cv_place_create_directory(cv_place *place, cv_dir *out);

/* Lists the existing temporary; the place must not move until closed. */
void cv_place_list(cv_place *place);

/* Renames the temporary to the target. An old target is locked meanwhile (CATERVA_EBUSY: in
 * use), and removed after the new name is durable (`durable`). `made` and, for a directory,
 * `frame` get its access. *moved: the new one is in place, possibly despite an error. */
cv_status cv_place_publish(cv_place *place, cv_file made, cv_file frame, bool durable,
                           bool *moved, cv_error *err);

/* The first half: refuses a target that must stay or is in use, else locks it until it is
 * let go or replaced. */
cv_status cv_place_hold(cv_place *place, cv_error *err);
void cv_place_let_go(cv_place *place);

/* Removes what lies under the temporary name. */
void cv_place_remove_temp(cv_place *place);

void cv_place_close(cv_place *place);

/* ---- The home ----
 *
 * The name of a store open for writing, held against chdir and renames above. After losing
 * its name, commits are lost. */

typedef struct cv_home {
    cv_dir dir; /* where the name is; none: the array's own directory */
    char *name; /* in it: of a directory "../<name>". NULL: unknown, not asked for */
    bool is_directory;
    uint64_t device, inode; /* of the file; of a directory: of the one that it is in */
} cv_home;

/* Finds the home of `self`, opened at `path` through links. A changed name is no error
 * here: see cv_home_leads_to. */
cv_status cv_home_find(const char *path, cv_file self, bool is_directory, cv_home *out,
                       cv_error *err);

/* Of what `place` published as `self`. Without memory or descriptors: unknown. */
void cv_home_take(const cv_place *place, cv_file self, cv_home *out);

bool cv_home_leads_to(const cv_home *home, cv_file self);

/* CATERVA_EIO, with what happened, when the name does not lead to `self` any more. */
cv_status cv_home_check(const cv_home *home, cv_file self, const cv_shown_path *shown,
                        cv_error *err);

/* The place of a new store that replaces the open `self`, whose lock serves; `frame` as in
 * cv_target. The old one stays open until the place is closed. */
cv_status cv_home_place(const cv_home *home, cv_file self, cv_file frame,
                        const cv_shown_path *shown, cv_place *out, cv_error *err);

void cv_home_close(cv_home *home);

#endif
