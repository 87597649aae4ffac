/* Keeps writers away from files of a directory, or below it, that their own writer has closed
 * for a while to spare descriptors.
 *
 * The writer's lock on a file goes when the file is closed. Before that the keeper marks the
 * file: a record lock on the directory at a byte that stands for the file's inode. It costs no
 * descriptor but the keeper's own, it belongs to an opening and so ends with the process, and
 * whoever opens a file for writing looks for it in all directories above the file. Programs
 * that do not look, python-blosc2 and earlier versions, are noticed when the writer opens the
 * file again: store/file.c compares size and time. */
#ifndef CV_STORE_KEEPER_H
#define CV_STORE_KEEPER_H

#include "base/os_dir.h"
#include "base/status.h"

#include <stdatomic.h>

typedef struct cv_keeper {
    cv_dir root; /* an opening of its own: marks are seen from every other one */
    atomic_size_t references;
} cv_keeper;

/* Opens the directory again. One reference; release with cv_keeper_release. */
cv_status cv_keeper_new(cv_dir dir, const char *shown, cv_keeper **out, cv_error *err);
cv_keeper *cv_keeper_retain(cv_keeper *keeper);
void cv_keeper_release(cv_keeper *keeper); /* NULL is fine */

/* Whether another opening has marked the file in a directory that is `dir` or above it. False
 * where that cannot be found out. */
bool cv_keeper_has(cv_dir dir, cv_file file);

/* As cv_file_ask_lock and cv_file_lock of a file in `dir`: EWOULDBLOCK also while the file is
 * marked. */
int cv_keeper_ask(cv_dir dir, cv_file file);
int cv_keeper_lock(cv_dir dir, cv_file file);

#endif
