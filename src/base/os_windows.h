/* Shared by the os_windows*.c files only: the table of open files, names for the kernel, and
 * error numbers. */
#ifndef CV_BASE_OS_WINDOWS_H
#define CV_BASE_OS_WINDOWS_H

#include "base/os_dir.h"
#include "base/thread.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <winternl.h>

/* ---- Errors ---- */

/* The errno number of an error of Win32, or of a status of the kernel. */
int cv_windows_errno(DWORD error);
int cv_windows_errno_of_status(NTSTATUS status);

/* Nanoseconds since 1970 of a time of the system, which counts 100 ns since 1601. */
uint64_t cv_windows_time_ns(uint64_t ticks);

/* Whether the system is wine, which lacks what NTFS has. */
bool cv_windows_is_wine(void);

/* ---- Text ---- */

/* Memory from the system for what a kernel or a C library keeps elsewhere: names and openings. So
 * operations on names that need no memory on POSIX fail for want of it only if the system has none.
 * cv_windows_allocate returns zeros. */
void *cv_windows_allocate(size_t size);
void cv_windows_release(void *memory); /* NULL is fine */

/* Convert between UTF-8 and UTF-16. NULL without memory, or for text that is not valid (EILSEQ in
 * *error). Release wide text with cv_windows_release, narrow text with cv_free. */
wchar_t *cv_windows_wide(const char *text, int *error);
char *cv_windows_narrow(const wchar_t *text);

/* ---- Open files ----
 *
 * cv_file and cv_dir are numbers of openings, as descriptors are. Several numbers may have one
 * opening (cv_file_again), whose locks they share. */

typedef struct cv_windows_locks {
    uint64_t *list; /* positions of the locked bytes, ascending */
    size_t n, room;
} cv_windows_locks;

typedef struct cv_windows_opening {
    HANDLE handle;
    HANDLE lock_file; /* of a directory; NULL: not needed until now */
    bool is_directory, reads, writes;
    uint64_t device, inode;
    cv_mutex lock; /* guards `lock_file`, `held`, `is_locked` */
    cv_windows_locks held;
    bool is_locked;      /* holds the exclusive lock */
    unsigned references; /* guarded by the table's lock */
} cv_windows_opening;

/* Adds an opening of the handle, which it owns even on failure. Returns 0 or ENOMEM. */
int cv_windows_add(HANDLE handle, bool is_directory, unsigned how, int *number);

/* NULL for numbers that are not open, and for cv_dir_here. */
cv_windows_opening *cv_windows_opening_of(int number);

/* ---- Moving directories ----
 *
 * The system renames no directory in which files are open. So a rename closes the files that this
 * process has open there, and opens them again under the new name with the same locks. Others that
 * are open there make it fail.
 *
 * Every use of an opening's handle is between enter and leave, which may be nested. No handle
 * changes meanwhile. */
void cv_windows_enter(void);
void cv_windows_leave(void);

/* Enters until the end of the block. */
static inline void cv_windows_leave_block(const int *used)
{
    (void)used;
    cv_windows_leave();
}
#define CV_WINDOWS_USE                                                                       \
    __attribute__((cleanup(cv_windows_leave_block), unused)) const int cv_used =             \
        (cv_windows_enter(), 0)

typedef struct cv_windows_parked cv_windows_parked;

/* Waits until no handle is in use, and closes all at or below `path`, which begins with \\?\; if `file` is
 * not NULL, those of this file, whatever path they have. Call outside of enter, and cv_windows_unpark or
 * cv_windows_drop afterwards, also on failure. Returns 0 or ENOMEM. */
int cv_windows_park(const wchar_t *path, const cv_file_info *file, cv_windows_parked **out);

/* Instead of cv_windows_unpark, if the files are gone: their openings have ESTALE from then on. */
void cv_windows_drop(cv_windows_parked *parked);

/* Opens them again at or below the path of `moved`, or `path` if it has none. Allocates nothing. */
void cv_windows_unpark(cv_windows_parked *parked, HANDLE moved, const wchar_t *path);

/* The path of an open file, with \\?\ in front. NULL if it has none. Release with
 * cv_windows_release. */
wchar_t *cv_windows_path_of(HANDLE handle);

/* ---- Names ---- */

/* A name as the kernel takes it: an absolute path, or relative to an open directory. */
typedef struct cv_windows_name {
    wchar_t *text;
    size_t length;
    HANDLE root;       /* NULL for an absolute path */
    bool is_directory; /* ended with a slash */
} cv_windows_name;

/* EINVAL for a name that Windows does not allow: with reserved characters, a name of a device, or
 * one that ends with a dot or space. Release out->text with cv_windows_release. */
int cv_windows_name_of(cv_dir dir, const char *name, cv_windows_name *out);

/* How to open: arguments of NtCreateFile. */
typedef struct cv_windows_how {
    ACCESS_MASK access;
    ULONG disposition, options;
} cv_windows_how;

int cv_windows_open(cv_dir dir, const char *name, cv_windows_how how, HANDLE *out);

/* Information about the open file; `is_link`: the handle was opened without following links. */
int cv_windows_get_info(HANDLE handle, bool is_link, cv_file_info *out);

#endif
