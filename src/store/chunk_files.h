/* The chunk files of a directory, and a bounded set of descriptors that stay
 * open so that repeated reads do not open again. All functions may run at once
 * in many threads. */
#ifndef CV_STORE_CHUNK_FILES_H
#define CV_STORE_CHUNK_FILES_H

#include "base/os_dir.h"
#include "base/thread.h"
#include "store/store.h"

enum { CV_CHUNK_SLOTS = 64 };

/* A slot keeps one file of those whose id is its number modulo the number of
 * slots. An open file that `users` still use while its slot must forget it
 * (removed, or written anew) gets no id and is closed by the last user. */
typedef struct cv_chunk_slot {
    cv_mutex lock;
    cv_object id; /* -1: none, or forgotten */
    cv_file file; /* none: not open */
    int users;
} cv_chunk_slot;

typedef struct cv_chunk_files {
    cv_dir dir;      /* borrowed */
    bool has_access; /* new files get this one, else what umask leaves */
    cv_os_access access;
    cv_chunk_slot slots[CV_CHUNK_SLOTS];
} cv_chunk_files;

/* An open chunk file; give it back with cv_chunk_release. */
typedef struct cv_chunk_handle {
    cv_file file;
    cv_chunk_slot *slot; /* NULL: not kept, release closes it */
} cv_chunk_handle;

void cv_chunk_files_init(cv_chunk_files *files, cv_dir dir);
void cv_chunk_files_close(cv_chunk_files *files); /* nobody uses one any more */

/* Closes what is open and not in use, and returns how many; waits for nobody. */
int cv_chunk_files_give_up(cv_chunk_files *files);

/* Files made from now on are accessible like that. Nobody uses the files meanwhile. */
void cv_chunk_files_set_access(cv_chunk_files *files, const cv_os_access *access);

/* Opens for reading and syncing. Returns 0 or an errno number. */
int cv_chunk_acquire(cv_chunk_files *files, cv_object id, cv_chunk_handle *out);

/* Creates or opens for writing. `anew`: what has the name goes first, and is not emptied: the
 * same file may have another name elsewhere. */
int cv_chunk_acquire_writable(cv_chunk_files *files, cv_object id, bool anew,
                              cv_chunk_handle *out);

/* Makes `file`, a chunk file of `from` that has the id `there`, the one of this id as well; what
 * had its name goes. Returns 0 or an errno number: then the id has no file. */
int cv_chunk_link(cv_chunk_files *files, cv_object id, const cv_chunk_files *from,
                  cv_object there, cv_file file);

void cv_chunk_release(cv_chunk_handle handle);

/* Removes the file; who has it open can read on. One that does not exist is
 * fine. Returns 0 or an errno number. */
int cv_chunk_remove(cv_chunk_files *files, cv_object id);

#endif
