/* The name under which a store that is open for writing was found or published, held so
 * that neither chdir nor a rename of a directory above leads astray. What no longer has
 * its name is somebody else's or nobody's: what is committed there is lost. */
#ifndef CV_STORE_HOME_H
#define CV_STORE_HOME_H

#include "store/place.h"

typedef struct cv_home {
    int dir_fd; /* where the name is: a directory, AT_FDCWD, or -1: the array's own */
    char *name; /* in it: of a directory "../<name>". NULL: unknown, not asked for */
    bool is_directory;
    uint64_t device, inode; /* of the file; of a directory: of the one that it is in */
} cv_home;

extern const cv_home cv_home_unknown;

/* Of what was opened at `path` as `fd`, symbolic links followed. Without an error but with
 * another file's name when that has changed meanwhile: see cv_home_leads_to. */
cv_status cv_home_find(const char *path, int fd, bool is_directory, cv_home *out,
                       cv_error *err);

/* Of what `place` published as `fd`. Without memory or descriptors: unknown. */
void cv_home_take(const cv_place *place, int fd, cv_home *out);

bool cv_home_leads_to(const cv_home *home, int fd);

/* CATERVA_EIO, with what happened, when the name does not lead to `fd` any more. */
cv_status cv_home_check(const cv_home *home, int fd, const cv_shown_path *shown,
                        cv_error *err);

/* Where a new store goes that is to take the name of the one that is open for writing as
 * `fd`, whose lock serves; `frame_fd` as in cv_target. The old one stays open until the
 * place is closed. */
cv_status cv_home_place(const cv_home *home, int fd, int frame_fd, const cv_shown_path *shown,
                        cv_place *out, cv_error *err);

void cv_home_close(cv_home *home);

#endif
