/* The files of a directory that contains one array (an sframe). */
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

/* Returns "%08X.chunk" for id >= 0. */
cv_chunk_name cv_sframe_chunk_name(cv_object id);

/* Lists the ids of the chunk files in any order; release with cv_free. Returns 0 or an errno
 * number. */
int cv_sframe_list(cv_dir dir, cv_object **ids, size_t *n);

/* Whether directory `name` contains chunks.b2frame and only files of an array. False if the
 * directory cannot be read. */
bool cv_sframe_is_array_at(cv_dir dir, const char *name);

/* Does the same as cv_sframe_remove_at, but deletes the chunk files first. `watch` (or NULL) may
 * stop it before each chunk file; the remaining files are still an array. Sets *n to the number of
 * deleted files. Returns CATERVA_ESTOPPED or CV_OK. */
cv_status cv_sframe_delete_at(cv_dir dir, const char *name, cv_watch *watch, size_t *n,
                              cv_error *err);

/* Removes the files of an array, and the directory if it is empty then. Ignores errors. */
void cv_sframe_remove_at(cv_dir dir, const char *name);

/* ---- Chunk files ----
 *
 * Keeps a limited number of chunk files open. Any thread. */

enum { CV_CHUNK_SLOTS = 64 };

/* Slot i keeps one file whose id is i modulo the number of slots. If the slot's file is removed or
 * rewritten while in use, the slot forgets the id, and the last user closes the file. */
typedef struct cv_chunk_slot {
    cv_mutex lock;
    cv_object id; /* -1 if empty or forgotten */
    cv_file file; /* {0} if not open */
    int users;
} cv_chunk_slot;

typedef struct cv_chunk_files {
    cv_dir dir;      /* borrowed */
    bool has_access; /* if false, new files get what the umask leaves instead of `access` */
    cv_os_access access;
    cv_chunk_slot slots[CV_CHUNK_SLOTS];
} cv_chunk_files;

/* An open chunk file; release with cv_chunk_release. */
typedef struct cv_chunk_handle {
    cv_file file;
    cv_chunk_slot *slot; /* NULL if cv_chunk_release closes the file */
} cv_chunk_handle;

void cv_chunk_files_init(cv_chunk_files *files, cv_dir dir);
void cv_chunk_files_close(cv_chunk_files *files); /* no file may be in use */

/* Closes open files that are not in use, and returns their number. Waits for no lock. */
int cv_chunk_files_give_up(cv_chunk_files *files);

/* Sets the access of files created from now on. No other thread may use `files` meanwhile. */
void cv_chunk_files_set_access(cv_chunk_files *files, const cv_os_access *access);

/* Opens a chunk file for reading and syncing. Returns 0 or an errno number. */
int cv_chunk_acquire(cv_chunk_files *files, cv_object id, cv_chunk_handle *out);

/* Opens or creates a chunk file for writing. If `anew`, unlinks an existing file instead of
 * truncating it, because the file may have a second name. */
int cv_chunk_acquire_writable(cv_chunk_files *files, cv_object id, bool anew,
                              cv_chunk_handle *out);

/* Hard-links `file`, which is chunk `there` of `from`, as chunk `id`. Replaces an existing file.
 * Returns 0 or an errno number. On an error, `id` has no file. */
int cv_chunk_link(cv_chunk_files *files, cv_object id, const cv_chunk_files *from,
                  cv_object there, cv_file file);

void cv_chunk_release(cv_chunk_handle handle);

/* Removes the file if it exists; open readers continue. Returns 0 or an errno number. */
int cv_chunk_remove(cv_chunk_files *files, cv_object id);

/* ---- Shared chunks ----
 *
 * Chunk files that a merge linked from a part and that are not committed yet. A write into the
 * part before the commit would change this array. */

typedef struct cv_shared_chunks {
    cv_mutex lock;
    cv_buffer list; /* array of entries */
} cv_shared_chunks;

void cv_shared_chunks_init(cv_shared_chunks *shared);
void cv_shared_chunks_destroy(cv_shared_chunks *shared);

/* Records the file's current size and time. If it returns false, do not share the file. Any
 * thread. */
bool cv_shared_chunks_add(cv_shared_chunks *shared, cv_object object, cv_file file);

/* CATERVA_ECORRUPT if a file that still has its name in `dir` has changed in size or time. */
cv_status cv_shared_chunks_check(cv_shared_chunks *shared, cv_dir dir, cv_error *err);

void cv_shared_chunks_forget(cv_shared_chunks *shared); /* removes all entries */

#endif
