/* Open directories, and operations on names in them. A name in an open directory keeps its meaning
 * after chdir, and after renames of this directory or of its parents. Functions that return int
 * return 0 or an errno number. Names may be paths; cv_dir_here is the current working directory. */
#ifndef CV_BASE_OS_DIR_H
#define CV_BASE_OS_DIR_H

#include "base/os_file.h"

extern const cv_dir cv_dir_here;

static inline bool cv_dir_is_here(cv_dir dir) { return dir.number == cv_dir_here.number; }

/* Closes *dir and sets it to {0}. Closes nothing if it is {0} or cv_dir_here. */
void cv_dir_close(cv_dir *dir);

/* ---- Opening ------------------------------------------------------------ */

/* Flags for opening a file: one of the first three, combined with any of the others. */
enum {
    CV_OPEN_READ = 1,
    CV_OPEN_WRITE = 2, /* for writing only */
    CV_OPEN_BOTH = CV_OPEN_READ | CV_OPEN_WRITE,
    CV_OPEN_CREATE = 4,  /* create the file if it does not exist */
    CV_OPEN_NEW = 8,     /* with CREATE: EEXIST if the file exists */
    CV_OPEN_EMPTY = 16,  /* truncate the file */
    CV_OPEN_NO_LINK = 32 /* ELOOP if the name is a symbolic link */
};

/* Opens a file, or a directory for reading. If the file is created, its permissions are `mode`
 * without the umask's bits. */
int cv_dir_open_file(cv_dir dir, const char *name, unsigned how, uint32_t mode, cv_file *out);

/* Opens a directory; `how` is 0 or CV_OPEN_NO_LINK. */
int cv_dir_open(cv_dir dir, const char *name, unsigned how, cv_dir *out);

/* Opens a directory for operations on names in it, but not for listing or sync. If the system
 * supports it, search permission suffices. */
int cv_dir_open_names(const char *path, cv_dir *out);

/* ---- Information -------------------------------------------------------- */

/* cv_dir_get_info follows symbolic links; cv_dir_get_link_info describes the link itself. */
int cv_dir_get_info(cv_dir dir, const char *name, cv_file_info *out);
int cv_dir_get_link_info(cv_dir dir, const char *name, cv_file_info *out);

/* Whether `name` (links are followed) leads to the file with these numbers. For a file that is
 * being written, this is cheaper than other queries. */
bool cv_dir_leads_to(cv_dir dir, const char *name, uint64_t device, uint64_t inode);

/* Whether `name` currently leads to the open `file`. */
bool cv_dir_names(cv_dir dir, const char *name, cv_file file);

/* Whether the names of a relative path are spelled as the directory has them. Where the system ignores
 * case, "T" leads to a file "t", but is not its spelling. True for names that do not exist. */
bool cv_dir_is_spelled(cv_dir dir, const char *path);

/* Whether both paths lead to the same file or directory. */
bool cv_os_same_file(const char *a, const char *b);

/* Whether a file in a directory can have this relative path, whose names end at slashes. On Windows a
 * backslash, a colon and names of devices are refused; elsewhere nothing. */
bool cv_os_can_name(const char *path);

/* Replaces what the system also takes for a slash in paths: the backslash on Windows. */
void cv_os_use_slashes(char *path);

/* Returns whether the path does not depend on the working directory. */
bool cv_os_is_absolute(const char *path);

/* Returns the absolute path, with links unresolved. NULL if out of memory. If the working directory
 * is unknown, returns a copy of `path`. Release with cv_free. */
char *cv_os_absolute(const char *path);

/* Returns the absolute path of an existing file, with links resolved. NULL if the file does not
 * exist, or if out of memory. Release with cv_free. */
char *cv_os_real_path(const char *path);

/* ---- Changing ----------------------------------------------------------- */

/* Makes the names in the directory durable. Does nothing if the system cannot do that. */
int cv_dir_sync(cv_dir dir);

/* Syncs the whole file system, for callers that wrote many files. ENOTSUP if the system cannot. */
int cv_dir_sync_all(cv_dir dir);

int cv_dir_remove(cv_dir dir, const char *name);
int cv_dir_remove_directory(cv_dir dir, const char *name);

/* ---- Listing ------------------------------------------------------------ */

/* Iterates over the names in a directory, without "." and "..". */
typedef struct cv_listing {
    void *system; /* the system's handle; NULL if not open */
    cv_dir dir;   /* the listed directory; belongs to the listing */
} cv_listing;

/* Opens a listing of `dir`. Takes ownership of `dir`, and closes it on failure. */
int cv_listing_open(cv_dir dir, cv_listing *out);

/* Returns the next name, valid until the next call. At the end or on an error, returns NULL and
 * sets *error to 0 or to the errno number. */
const char *cv_listing_next(cv_listing *listing, int *error);

void cv_listing_close(cv_listing *listing);

/* ---- Names ----
 *
 * Renames, links, and names for temporary files. */

/* Renames, replacing `to`. */
int cv_dir_rename(cv_dir dir, const char *from, const char *to);

/* Renames atomically without replacing `to`: EEXIST if it exists. */
int cv_dir_rename_new(cv_dir dir, const char *from, const char *to);

/* Implements cv_dir_rename_new without a special system call: links and unlinks a file, or first
 * reserves `to` by an exclusively created file or directory. */
int cv_dir_rename_new_portable(cv_dir dir, const char *from, const char *to);

/* Makes `to` in `other` a hard link of `from`. EEXIST if `to` exists; EXDEV and others. */
int cv_dir_link(cv_dir dir, const char *from, cv_dir other, const char *to);

/* Exchanges two names atomically. If the system cannot, returns ENOTSUP and changes nothing. */
int cv_dir_exchange(cv_dir dir, const char *a, const char *b);

/* Creates a directory with mode `mode` without the umask's bits. EEXIST if the name exists. */
int cv_dir_make(cv_dir dir, const char *name, uint32_t mode);

enum { CV_OS_TEMP_NAME = 256 };

/* Makes ".<name>.<tag>-XXXXXX" with a random XXXXXX; truncates long names. The name may exist. */
void cv_os_temp_name(const char *name, const char *tag, char temp[CV_OS_TEMP_NAME]);

/* Create a temporary file or directory with mode `mode` without the umask's bits, and open the file
 * for reading and writing, or the directory for reading. */
int cv_dir_create_temp_file(cv_dir dir, const char *name, uint32_t mode,
                            char temp[CV_OS_TEMP_NAME], cv_file *out);
int cv_dir_create_temp_directory(cv_dir dir, const char *name, uint32_t mode,
                                 char temp[CV_OS_TEMP_NAME], cv_dir *out);

/* ---- Access ---- */

/* Permissions, owner and group. */
typedef struct cv_os_access {
    uint32_t mode;
    uint32_t user, group;
} cv_os_access;

int cv_file_get_access(cv_file file, cv_os_access *out);

/* Sets the access of a file that this process owns. If the system refuses to change owner or group,
 * the file's group gets only the rights that all users have. */
int cv_file_set_access(cv_file file, const cv_os_access *access);

/* Calls cv_file_set_access and removes the access control lists that the file inherited. If `from`
 * is open, copies its lists and "user." attributes. Ignores those that cannot be set. */
int cv_file_take_access(cv_file file, const cv_os_access *access, cv_file from);

#endif
