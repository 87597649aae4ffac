/* Where an unpublished store lives and where it goes: a temporary name beside
 * a target name, both in one directory that is held open, so that neither
 * chdir nor a rename of that directory leads astray. */
#ifndef CV_STORE_PLACE_H
#define CV_STORE_PLACE_H

#include "base/os_dir.h"
#include "base/os_file.h"
#include "store/target.h"
#include "store/temporaries.h"

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

/* Finds the place of `path`, trailing slashes or not. With `overwrite`, of
 * what a symbolic link there leads to. CATERVA_EEXIST when the target exists
 * and may not be replaced: not asked for, or neither file nor array.
 * CATERVA_EBUSY when it is in use now, see target.h. Release with cv_place_close;
 * nothing to release on failure. */
cv_status cv_place_open(const char *path, bool overwrite, cv_place *out, cv_error *err);

/* Makes the file or directory with the temporary name, open as *out. Nobody else may look
 * into what replaces something before it has its access. Returns an errno number. */
int cv_place_create_file(cv_place *place, cv_file *out);
int cv_place_create_directory(cv_place *place, cv_dir *out);

/* Lists the temporary, which is there, among the process's; the place stays where it is in
 * memory until it is closed. */
void cv_place_list(cv_place *place);

/* Renames the temporary to the target. Until that has happened, an old target
 * is untouched; it is removed after the new name is durable (`durable`). It is locked
 * from before the rename until it is replaced: CATERVA_EBUSY when it is in use. `made`
 * is the new one, `frame` its frame when it is a directory, else none: they get the old
 * one's access. *moved: the new one is in place, which may be the case on an error, too. */
cv_status cv_place_publish(cv_place *place, cv_file made, cv_file frame, bool durable,
                           bool *moved, cv_error *err);

/* The first half of that, for who has more to do before the rename: what must stay at the
 * target, or is in use, is refused; else it is locked, until it is let go or replaced. */
cv_status cv_place_hold(cv_place *place, cv_error *err);
void cv_place_let_go(cv_place *place);

/* Removes what lies under the temporary name. */
void cv_place_remove_temp(cv_place *place);

void cv_place_close(cv_place *place);

#endif
