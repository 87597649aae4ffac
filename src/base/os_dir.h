/* Open directories and names in them, safe from chdir and renames above. Functions
 * returning int return 0 or an errno number. Names may be paths; cv_dir_here is the current
 * working directory. */
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

/* `mode`: permissions of a created file, less umask. Directories open for reading, too. */
int cv_dir_open_file(cv_dir dir, const char *name, unsigned how, uint32_t mode, cv_file *out);

/* Opens a directory; `how` is 0 or CV_OPEN_NO_LINK. */
int cv_dir_open(cv_dir dir, const char *name, unsigned how, cv_dir *out);

/* A directory for names only, not for listing or sync: needs search permission only, if the
 * system can. */
int cv_dir_open_names(const char *path, cv_dir *out);

/* ---- Asking ------------------------------------------------------------- */


/* Of what the name leads to, links followed; or of the link itself. */
int cv_dir_get_info(cv_dir dir, const char *name, cv_file_info *out);
int cv_dir_get_link_info(cv_dir dir, const char *name, cv_file_info *out);

/* Whether `name` leads to the file of this number, following links; cheaper than other
 * queries for a file being written. */
bool cv_dir_leads_to(cv_dir dir, const char *name, uint64_t device, uint64_t inode);

/* Whether `name` is, now, what is open as `file`. */
bool cv_dir_names(cv_dir dir, const char *name, cv_file file);

/* True when both paths lead to one and the same file or directory. */
bool cv_os_same_file(const char *a, const char *b);

/* The absolute path, links unresolved; NULL: no memory. Unchanged if the working directory
 * is unknown. Owned: cv_free. */
char *cv_os_absolute(const char *path);

/* The absolute path without links of what exists; else, or without memory, NULL. cv_free. */
char *cv_os_real_path(const char *path);

/* ---- Changing ----------------------------------------------------------- */


/* Returns when the names in the directory are on the medium; fine where a system cannot. */
int cv_dir_sync(cv_dir dir);

/* Syncs the whole file system, for callers that wrote many files. ENOTSUP if the system
 * cannot. */
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

/* The next name, valid until the next call; NULL at the end or on an error (*error). */
const char *cv_listing_next(cv_listing *listing, int *error);

void cv_listing_close(cv_listing *listing);

/* ---- Names ----
 *
 * Names are given, exchanged, and made up for temporary files. */

/* Renames; what is called `to` is replaced. */
int cv_dir_rename(cv_dir dir, const char *from, const char *to);

/* Renames atomically without replacing: EEXIST when `to` exists. */
int cv_dir_rename_new(cv_dir dir, const char *from, const char *to);

/* cv_dir_rename_new for other file systems: link and unlink, or by an exclusive
 * placeholder. */
int cv_dir_rename_new_portable(cv_dir dir, const char *from, const char *to);

/* Hard-links `from`. EEXIST: `to` is taken; EXDEV and others: the file systems cannot. */
int cv_dir_link(cv_dir dir, const char *from, cv_dir other, const char *to);

/* Exchanges two names atomically. ENOTSUP: cannot, nothing has changed. */
int cv_dir_exchange(cv_dir dir, const char *a, const char *b);

/* Makes a directory, with what umask leaves of 0777. EEXIST when the name is taken. */
int cv_dir_make(cv_dir dir, const char *name);

enum { CV_OS_TEMP_NAME = 256 };

/* Makes ".<name>.<tag>-XXXXXX", probably free: ask again if not. Cuts long names. */
void cv_os_temp_name(const char *name, const char *tag, char temp[CV_OS_TEMP_NAME]);

/* Creates a temporary file (read-write) or directory (read-only), with `mode` less umask. */
int cv_dir_create_temp_file(cv_dir dir, const char *name, uint32_t mode,
                            char temp[CV_OS_TEMP_NAME], cv_file *out);
int cv_dir_create_temp_directory(cv_dir dir, const char *name, uint32_t mode,
                                 char temp[CV_OS_TEMP_NAME], cv_dir *out);

/* ---- Who may use a file ---- */

/* Permissions, owner and group. */
typedef struct cv_os_access {
    uint32_t mode;
    uint32_t user, group;
} cv_os_access;

int cv_file_get_access(cv_file file, cv_os_access *out);

/* Gives a file of the caller's this access. If owner or group are refused, the new group
 * gets only others' rights. */
int cv_file_set_access(cv_file file, const cv_os_access *access);

/* The same, replacing inherited lists by those of `from`, with its "user." attributes;
 * `from` none: none. What cannot be set is left out. */
int cv_file_take_access(cv_file file, const cv_os_access *access, cv_file from);

#endif
