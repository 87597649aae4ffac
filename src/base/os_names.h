/* Names in an open directory: given, exchanged, and made up for what is temporary.
 * Functions that return int return 0 or an errno number. */
#ifndef CV_BASE_OS_NAMES_H
#define CV_BASE_OS_NAMES_H

#include "base/os_dir.h"

/* Renames; what is called `to` is replaced. */
int cv_dir_rename(cv_dir dir, const char *from, const char *to);

/* Renames without replacing: EEXIST when `to` exists, decided by the system
 * and not by looking first. */
int cv_dir_rename_new(cv_dir dir, const char *from, const char *to);

/* What cv_dir_rename_new does on file systems that lack the call: link and
 * unlink, or a placeholder made exclusively and then replaced. */
int cv_dir_rename_new_portable(cv_dir dir, const char *from, const char *to);

/* Gives what is called `from` in one directory a second name in another. EEXIST when `to` is
 * taken; EXDEV and others where the file systems do not go together or have no such names. */
int cv_dir_link(cv_dir dir, const char *from, cv_dir other, const char *to);

/* Exchanges two existing names in one step. ENOTSUP where system or file
 * system cannot; nothing has changed then. */
int cv_dir_exchange(cv_dir dir, const char *a, const char *b);

/* Makes a directory, with what umask leaves of 0777. EEXIST when the name is taken. */
int cv_dir_make(cv_dir dir, const char *name);

enum { CV_OS_TEMP_NAME = 256 };

/* ".<name>.<tag>-XXXXXX" into `temp`: a name likely, not sure, to be free; ask
 * again when it is not. Overlong names are cut to what file systems take. */
void cv_os_temp_name(const char *name, const char *tag, char temp[CV_OS_TEMP_NAME]);

/* Creates a new file (open for reading and writing) or directory (open for
 * reading) under such a name, with what umask leaves of `mode`. */
int cv_dir_create_temp_file(cv_dir dir, const char *name, uint32_t mode,
                            char temp[CV_OS_TEMP_NAME], cv_file *out);
int cv_dir_create_temp_directory(cv_dir dir, const char *name, uint32_t mode,
                                 char temp[CV_OS_TEMP_NAME], cv_dir *out);

#endif
