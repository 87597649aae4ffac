/* Open directories, and what is done by a name in one: neither chdir nor the rename of a
 * directory above leads astray. Functions that return int return 0 or an errno number.
 * Names may be paths; cv_dir_here is the working directory, as it is at each call. */
#ifndef CV_BASE_OS_DIR_H
#define CV_BASE_OS_DIR_H

#include "base/os_file.h"

extern const cv_dir cv_dir_here;

static inline bool cv_dir_is_here(cv_dir dir) { return dir.number == cv_dir_here.number; }

/* Closes and leaves none; fine for none and for cv_dir_here. */
void cv_dir_close(cv_dir *dir);

/* ---- Opening ------------------------------------------------------------ */


/* How a file is opened; one of the first three. */
enum {
    CV_OPEN_READ = 1,
    CV_OPEN_WRITE = 2, /* only */
    CV_OPEN_BOTH = CV_OPEN_READ | CV_OPEN_WRITE,
    CV_OPEN_CREATE = 4,  /* where there is none */
    CV_OPEN_NEW = 8,     /* with CREATE: EEXIST where there is one */
    CV_OPEN_EMPTY = 16,  /* what it held is cut off */
    CV_OPEN_NO_LINK = 32 /* ELOOP where the name is a symbolic link's */
};

/* `mode`: permissions of a file that is created, of which umask takes away. A directory
 * opens for reading, too: who wants a file looks at the kind. */
int cv_dir_open_file(cv_dir dir, const char *name, unsigned how, uint32_t mode, cv_file *out);

/* Opens a directory; `how` is 0 or CV_OPEN_NO_LINK. */
int cv_dir_open(cv_dir dir, const char *name, unsigned how, cv_dir *out);

/* An open directory for names in it only, not to be listed or synced: searching it is
 * the only permission that this takes, where systems have such openings. */
int cv_dir_open_names(const char *path, cv_dir *out);

/* ---- Asking ------------------------------------------------------------- */


/* Of what the name leads to, links followed; or of the link itself. */
int cv_dir_get_info(cv_dir dir, const char *name, cv_file_info *out);
int cv_dir_get_link_info(cv_dir dir, const char *name, cv_file_info *out);

/* Whether `name` leads to the file of this number, links followed; and nothing else is asked
 * about it, which costs less of a file that is being written. */
bool cv_dir_leads_to(cv_dir dir, const char *name, uint64_t device, uint64_t inode);

/* Whether `name` is, now, what is open as `file`. */
bool cv_dir_names(cv_dir dir, const char *name, cv_file file);

/* True when both paths lead to one and the same file or directory. */
bool cv_os_same_file(const char *a, const char *b);

/* The path from the root, as the working directory is now, or NULL without memory. Names
 * are not looked at: links stay links. Where nobody can tell the working directory's name
 * the path comes back as it was. Owned: cv_free. */
char *cv_os_absolute(const char *path);

/* The path from the root without symbolic links, of what exists; else, and without
 * memory, NULL. Owned: cv_free. */
char *cv_os_real_path(const char *path);

/* ---- Changing ----------------------------------------------------------- */


/* Returns when the names in the directory are on the medium; fine where a system cannot. */
int cv_dir_sync(cv_dir dir);

/* Returns when all that was written to files and directories of its file system is on the
 * medium, others' too: for who has written very many. ENOTSUP where a system cannot. */
int cv_dir_sync_all(cv_dir dir);

/* Removes a file, or an empty directory. */
int cv_dir_remove(cv_dir dir, const char *name);
int cv_dir_remove_directory(cv_dir dir, const char *name);

/* ---- Listing ------------------------------------------------------------ */


/* The names in a directory, one after the other, without "." and "..". */
typedef struct cv_listing {
    void *system; /* the system's own, NULL: none */
    cv_dir dir;   /* that is listed; borrowed from it */
} cv_listing;

/* Takes over `dir`, also on failure. */
int cv_listing_open(cv_dir dir, cv_listing *out);

/* The next name, valid until the one after it, or NULL at the end and on an error, which
 * *error says. */
const char *cv_listing_next(cv_listing *listing, int *error);

void cv_listing_close(cv_listing *listing);

/* ---- Names ----
 *
 * Names in an open directory: given, exchanged, and made up for what is temporary.
 * Functions that return int return 0 or an errno number. */

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

/* ---- Who may use a file ----
 *
 * Who may do what with a file or directory. Functions that return int return 0 or an errno
 * number. */

/* Permissions, owner and group. */
typedef struct cv_os_access {
    uint32_t mode;
    uint32_t user, group;
} cv_os_access;

int cv_file_get_access(cv_file file, cv_os_access *out);

/* Makes a file of the caller's own accessible like that. Where the process may not give
 * it the owner or group, the new group gets no more than everybody has. */
int cv_file_set_access(cv_file file, const cv_os_access *access);

/* The same, and nobody else gets access by inherited lists: it has those of `from`, and
 * its extended attributes ("user."), where the system has such; `from` none: none. What
 * cannot be set of those is left out. */
int cv_file_take_access(cv_file file, const cv_os_access *access, cv_file from);

#endif
