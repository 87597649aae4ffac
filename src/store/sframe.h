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

/* The chunk file ids, in any order; owned, cv_free. Returns 0 or an errno number. */
int cv_sframe_list(cv_dir dir, cv_object **ids, size_t *n);

/* Whether `name` in `dir` has chunks.b2frame and array files only; false if unreadable. */
bool cv_sframe_is_array_at(cv_dir dir, const char *name);

/* As cv_sframe_remove_at, chunk files first; `watch` (or NULL) may stop it before each, and
 * the rest is still an array. *n: files gone. Returns CATERVA_ESTOPPED or CV_OK. */
cv_status cv_sframe_delete_at(cv_dir dir, const char *name, cv_watch *watch, size_t *n,
                              cv_error *err);

/* Removes an array's files and, if then empty, the directory. Best effort. */
void cv_sframe_remove_at(cv_dir dir, const char *name);

/* ---- Chunk files ----
 *
 * Chunk files with a bounded set of open descriptors. Any thread. */

enum { CV_CHUNK_SLOTS = 64 };

/* Keeps one file of the ids with its number modulo the slots. A file that is in use when the
 * slot must forget it (removed, rewritten) loses its id and is closed by its last user. */
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

/* Opens or creates for writing. `anew`: unlinks, but does not empty, what has the name: it
 * may have another. */
int cv_chunk_acquire_writable(cv_chunk_files *files, cv_object id, bool anew,
                              cv_chunk_handle *out);

/* Gives `file`, chunk `there` of `from`, this id's name as well, replacing what had it. On
 * failure (errno returned) the id has no file. */
int cv_chunk_link(cv_chunk_files *files, cv_object id, const cv_chunk_files *from,
                  cv_object there, cv_file file);

void cv_chunk_release(cv_chunk_handle handle);

/* Removes the file, if it exists; open readers go on. Returns 0 or an errno number. */
int cv_chunk_remove(cv_chunk_files *files, cv_object id);

/* ---- Shared chunks ----
 *
 * Shared between merge and commit: a write into the part in between would change the
 * array. */

typedef struct cv_shared_chunks {
    cv_mutex lock;
    cv_buffer list; /* one entry for each */
} cv_shared_chunks;

void cv_shared_chunks_init(cv_shared_chunks *shared);
void cv_shared_chunks_destroy(cv_shared_chunks *shared);

/* Notes what the file is now. Any thread. False: it cannot be noted, and is not to be shared. */
bool cv_shared_chunks_add(cv_shared_chunks *shared, cv_object object, cv_file file);

/* CATERVA_ECORRUPT if a file with its name still in `dir` differs in size or time. Looks
 * once. */
cv_status cv_shared_chunks_check(cv_shared_chunks *shared, cv_dir dir, cv_error *err);

void cv_shared_chunks_forget(cv_shared_chunks *shared); /* all of them */

#endif
