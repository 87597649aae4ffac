/* The files of a directory that holds one array (an sframe), by name. */
#ifndef CV_STORE_SFRAME_H
#define CV_STORE_SFRAME_H

#include "base/os_dir.h"
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

#endif
