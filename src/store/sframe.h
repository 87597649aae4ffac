/* The files of a directory that holds one array (an sframe), by name. */
#ifndef CV_STORE_SFRAME_H
#define CV_STORE_SFRAME_H

#include "base/heap.h"
#include "base/os_dir.h"
#include "base/thread.h"
#include "store/store.h"

#define CV_SFRAME_FRAME "chunks.b2frame"
#define CV_SFRAME_NEW_FRAME "chunks.b2frame.tmp"
#define CV_SFRAME_LOCK ".caterva.lock"

typedef struct cv_chunk_name {
    char text[24];
} cv_chunk_name;

/* "%08X.chunk" of the chunk's id; id >= 0. */
cv_chunk_name cv_sframe_chunk_name(cv_object id);

/* The ids of the chunk files in an open directory, in any order; owned, free with
 * cv_free. Returns 0 or an errno number. */
int cv_sframe_list(cv_dir dir, cv_object **ids, size_t *n);

/* Whether the directory `name` in `dir` holds a chunks.b2frame and beside
 * it nothing but what arrays are made of. False also when it cannot be read. */
bool cv_sframe_is_array_at(cv_dir dir, const char *name);

/* As cv_sframe_remove_at, the files of chunks first: `watch`, or NULL, hears of each, and when
 * it says stop, what is left is still an array. *n is how many are gone. The status is
 * CATERVA_ESTOPPED or CV_OK. */
cv_status cv_sframe_delete_at(cv_dir dir, const char *name, cv_watch *watch, size_t *n,
                              cv_error *err);

/* Removes the files of an array from the directory and then, when nothing else
 * is left, the directory. Does what it can. */
void cv_sframe_remove_at(cv_dir dir, const char *name);

/* ---- Chunk files ----
 *
 * The chunk files of a directory, and a bounded set of descriptors that stay
 * open so that repeated reads do not open again. All functions may run at once
 * in many threads. */

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

/* ---- Shared chunks ----
 *
 * Chunk files that a directory shares with another one, from the merge that gave them a second
 * name to the commit: whoever writes into a part in between would change the array. */

typedef struct cv_shared_chunks {
    cv_mutex lock;
    cv_buffer list; /* one entry for each */
} cv_shared_chunks;

void cv_shared_chunks_init(cv_shared_chunks *shared);
void cv_shared_chunks_destroy(cv_shared_chunks *shared);

/* Notes what the file is now. Any thread. False: it cannot be noted, and is not to be shared. */
bool cv_shared_chunks_add(cv_shared_chunks *shared, cv_object object, cv_file file);

/* CATERVA_ECORRUPT when the size or time of one that still has its name in `dir` is not what
 * was noted. One look at each. */
cv_status cv_shared_chunks_check(cv_shared_chunks *shared, cv_dir dir, cv_error *err);

void cv_shared_chunks_forget(cv_shared_chunks *shared); /* all of them */

#endif
