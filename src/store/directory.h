/* The store of a directory, shared by its two files. */
#ifndef CV_STORE_DIRECTORY_H
#define CV_STORE_DIRECTORY_H

#include "store/chunk_files.h"
#include "store/home.h"

#include <pthread.h>

typedef struct directory_store {
    cv_store base;
    int dir_fd;
    int lock_fd;                 /* -1: opened for reading */
    int frame_fd;                /* -1: none yet */
    pthread_rwlock_t frame_lock; /* over frame_fd: held while it is used */
    cv_chunk_files chunks;
    cv_place place; /* of a created one; closed: dir_fd is -1 */
    cv_home home;   /* of one that is written and has its name */
    cv_shown_path shown;
} directory_store;

/* A store of nothing but the open directory. Takes over `dir_fd` and, when it is not NULL,
 * `place`, also on failure. */
cv_status cv_directory_new(int dir_fd, const char *path, cv_place *place,
                           directory_store **out, cv_error *err);

/* Turns to the frame that is in place now. */
void cv_directory_follow(directory_store *d);

#endif
