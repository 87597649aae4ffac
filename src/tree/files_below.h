/* The files below a directory. */
#ifndef CV_TREE_FILES_BELOW_H
#define CV_TREE_FILES_BELOW_H

#include "base/os_dir.h"
#include "base/watch.h"
#include "tree/members.h"

/* Adds every file below `dir`, by its path from there. Links to directories are not
 * followed, so there is no way round; links to files are files. What cannot be the name of
 * a leaf, hidden files, and the parts of many writers are passed over: they are nobody's
 * here. Each file is announced to the watch, or NULL, which may stop it. CATERVA_EIO if a
 * directory cannot be listed or a file cannot be looked at. */
cv_status cv_files_below(cv_dir dir, const char *shown, cv_watch *watch, cv_members *out,
                         cv_error *err);

/* The same with nothing passed over, for who removes it: links are files, hidden ones are
 * there, and `directories` gets the paths of directories, each behind the one it is in and
 * with its NUL. `announced` files the watch has heard of before. */
cv_status cv_all_files_below(cv_dir dir, const char *shown, cv_watch *watch,
                             int64_t announced, cv_members *out, cv_buffer *directories,
                             cv_error *err);

#endif
