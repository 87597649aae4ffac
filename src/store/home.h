/* The name under which a store that is open for writing was found or published, held so
 * that neither chdir nor a rename of a directory above leads astray. What no longer has
 * its name is somebody else's or nobody's: what is committed there is lost. */
#ifndef CV_STORE_HOME_H
#define CV_STORE_HOME_H

#include "store/place.h"

typedef struct cv_home {
    cv_dir dir; /* where the name is; none: the array's own directory */
    char *name; /* in it: of a directory "../<name>". NULL: unknown, not asked for */
    bool is_directory;
    uint64_t device, inode; /* of the file; of a directory: of the one that it is in */
} cv_home;

/* Of what was opened at `path` as `self`, symbolic links followed. Without an error but with
 * another file's name when that has changed meanwhile: see cv_home_leads_to. */
cv_status cv_home_find(const char *path, cv_file self, bool is_directory, cv_home *out,
                       cv_error *err);

/* Of what `place` published as `self`. Without memory or descriptors: unknown. */
void cv_home_take(const cv_place *place, cv_file self, cv_home *out);

bool cv_home_leads_to(const cv_home *home, cv_file self);

/* CATERVA_EIO, with what happened, when the name does not lead to `self` any more. */
cv_status cv_home_check(const cv_home *home, cv_file self, const cv_shown_path *shown,
                        cv_error *err);

/* Where a new store goes that is to take the name of the one that is open for writing as
 * `self`, whose lock serves; `frame` as in cv_target. The old one stays open until the
 * place is closed. */
cv_status cv_home_place(const cv_home *home, cv_file self, cv_file frame,
                        const cv_shown_path *shown, cv_place *out, cv_error *err);

void cv_home_close(cv_home *home);

#endif
