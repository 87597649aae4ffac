/* The temporary name and the target name of a new store. Their directory is kept open, so that
 * chdir and renames of parent directories do not matter. */
#ifndef CV_STORE_PLACE_H
#define CV_STORE_PLACE_H

#include "base/os_dir.h"
#include "base/os_file.h"
#include "base/status.h"
#include "store/path.h"

#include <stdatomic.h>

/* A temporary file or directory in the process's list; a member of the struct that knows its
 * name. */
typedef struct cv_temporary {
    void (*remove)(struct cv_temporary *temporary); /* called under the list's lock */
    cv_os_moment made;                              /* identifies the process that made it */
    bool is_listed;
    struct cv_temporary *next, *before;
} cv_temporary;

/* Takes the temporary off the list. Does nothing if it is not listed. */
void cv_temporaries_remove(cv_temporary *temporary);

/* Removes all temporaries of this process. */
void cv_temporaries_abandon(void);

/* ---- The keeper ----
 *
 * Marks files in or below a directory. A marked file is open for writing, but its descriptors are
 * closed for a while.
 *
 * Closing a file releases its lock. So the keeper marks the file first: it sets a record lock on
 * the directory, at a byte for the file's inode. A mark needs only the keeper's descriptor and ends
 * with the process. A process that opens a file for writing looks for a mark in all directories
 * above the file. Programs that do not look (python-blosc2, earlier versions) are detected when the
 * file is reopened, by its size and time (store/file.c). */

typedef struct cv_keeper {
    cv_dir root; /* a separate opening, because an opening does not see its own marks */
    atomic_size_t references;
} cv_keeper;

/* Makes a keeper, which opens `dir` again. Release with cv_keeper_release. */
cv_status cv_keeper_new(cv_dir dir, const char *shown, cv_keeper **out, cv_error *err);
cv_keeper *cv_keeper_retain(cv_keeper *keeper);
void cv_keeper_release(cv_keeper *keeper); /* NULL is fine */

/* Whether another opening of `dir` or of a directory above marked the file. False if unknown. */
bool cv_keeper_has(cv_dir dir, cv_file file);

/* Do the same as cv_file_ask_lock and cv_file_lock for a file in `dir`, but also return EWOULDBLOCK
 * if the file is marked. */
int cv_keeper_ask(cv_dir dir, cv_file file);
int cv_keeper_lock(cv_dir dir, cv_file file);

/* ---- The target ----
 *
 * The file or directory that a new array replaces. A target is checked for use and locked until the
 * new array has the name. The new array gets its access.
 *
 * Writers lock a file, or the lock file in a directory. Readers of a directory lock the directory
 * (store.h). Readers of a file keep their open file after the file was replaced. */

typedef struct cv_target {
    cv_file self;  /* the file or directory; not open if the target does not exist */
    cv_file lock;  /* the lock file of a directory; else not open */
    cv_file frame; /* the frame of a directory, metadata of a Zarr group; else not open */
    bool is_directory;
    bool is_zarr;  /* a Zarr array or group */
    bool borrowed; /* the lock and descriptors belong to another object */
    bool is_locked;
} cv_target;

/* Opens the file or directory `name`. CATERVA_ENOTFOUND if it does not exist. Release with
 * cv_target_close. */
cv_status cv_target_open(cv_dir dir, const char *name, bool is_directory,
                         const cv_shown_path *shown, cv_target *out, cv_error *err);

cv_status cv_target_refuse_readers(const cv_target *target, const cv_shown_path *shown,
                                   cv_error *err);

void cv_target_close(cv_target *target);

/* ---- Access -------------------------------------------------------------- */

/* The access that a new array's files, or its directory and files, will have. A file that replaces
 * a directory is as accessible as the directory's frame was. */
typedef struct cv_likeness {
    bool known;         /* if false, there is no target, and the umask decides */
    cv_os_access outer; /* the file or directory itself */
    cv_os_access inner; /* the files of a directory */
} cv_likeness;

cv_likeness cv_target_likeness(const cv_target *target, bool to_directory);

/* ---- The place ---- */

typedef struct cv_place {
    cv_dir dir;
    char *name;                 /* name of the target */
    char temp[CV_OS_TEMP_NAME]; /* set when the temporary is created */
    bool overwrite;
    bool is_directory;   /* the new array is a directory */
    bool is_held;        /* `old` is open for writing; only it may be replaced */
    bool is_left;        /* the replaced directory, still being read, has the name `temp` */
    cv_target old;       /* the target when it was last opened */
    cv_shown_path shown; /* the target's path, for messages */
    cv_dir root;         /* borrowed; for a `dir` that may be closed for a while */
    const char *folder;  /* path of `dir` in `root`; NULL if `dir` stays open */
    cv_temporary listed; /* in the list while `temp` exists and is not published */
} cv_place;

/* Prepares to create an array at `path`. If `overwrite`, follows a symbolic link. CATERVA_EEXIST if
 * the target exists and either `overwrite` is false or the target is neither a file nor an array.
 * CATERVA_EBUSY if the target is in use. After success release with cv_place_close. */
cv_status cv_place_open(const char *path, bool overwrite, cv_place *out, cv_error *err);

/* Create and open the temporary file or directory. If there is a target to replace, only the owner
 * has access to the temporary until it is published. Return 0 or an errno number. */
int cv_place_create_file(cv_place *place, cv_file *out);
int cv_place_create_directory(cv_place *place, cv_dir *out);

/* Makes the path of `member` in the temporary directory ("": of the directory itself), as it is
 * reached from `path`, with which the place was opened. Owned: cv_free. */
cv_status cv_place_path(const cv_place *place, const char *path, const char *member,
                        char **out, cv_error *err);

/* Adds the existing temporary to the list. The place must not move until it is closed. */
void cv_place_list(cv_place *place);

/* Renames the temporary to the target. Locks an old target meanwhile; CATERVA_EBUSY if it is in
 * use. Then removes the old target; if `durable`, after the new name is durable. Gives the target's
 * access to `made` and, for a directory, to `frame`. Sets *moved to whether the new array has the
 * name, which may be true if an error is returned. */
cv_status cv_place_publish(cv_place *place, cv_file made, cv_file frame, bool durable,
                           bool *moved, cv_error *err);

/* The first half of publishing. Refuses a target that may not be replaced or is in use. Otherwise
 * locks the target until cv_place_let_go or until the target is replaced. */
cv_status cv_place_hold(cv_place *place, cv_error *err);
void cv_place_let_go(cv_place *place);

/* Removes the file or directory that has the temporary name. */
void cv_place_remove_temp(cv_place *place);

void cv_place_close(cv_place *place);

/* ---- The home ----
 *
 * The name of a store that is open for writing. The name stays valid after chdir, and after renames
 * of parent directories. A store that lost its name must not commit: its commits would be lost. */

typedef struct cv_home {
    cv_dir dir; /* directory of `name`; not open if that is the array's own directory */
    char *name; /* "<name>", or "../<name>" for a directory. NULL if unknown: not checked */
    bool is_directory;
    uint64_t device, inode; /* numbers of the file, or of a directory's parent */
} cv_home;

/* Finds the home of `self`, which was opened at `path` with links followed. Does not check that the
 * name leads to `self`: see cv_home_leads_to. */
cv_status cv_home_find(const char *path, cv_file self, bool is_directory, cv_home *out,
                       cv_error *err);

/* Gets the home of `self`, which `place` published. If out of memory or descriptors, the name is
 * unknown. */
void cv_home_take(const cv_place *place, cv_file self, cv_home *out);

bool cv_home_leads_to(const cv_home *home, cv_file self);

/* CATERVA_EIO, with the reason, if the name does not lead to `self` any more. */
cv_status cv_home_check(const cv_home *home, cv_file self, const cv_shown_path *shown,
                        cv_error *err);

/* Prepares to create a store that replaces the open `self` (`frame` as in cv_target), whose lock
 * excludes other writers. `self` must stay open until the place is closed. */
cv_status cv_home_place(const cv_home *home, cv_file self, cv_file frame,
                        const cv_shown_path *shown, cv_place *out, cv_error *err);

void cv_home_close(cv_home *home);

#endif
