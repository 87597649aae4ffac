/* The store of a directory, shared by its two files. */
#ifndef CV_STORE_DIRECTORY_H
#define CV_STORE_DIRECTORY_H

#include "base/thread.h"
#include "store/chunk_files.h"
#include "store/descriptors.h"
#include "store/home.h"
#include "store/shared_chunks.h"

typedef struct directory_store {
    cv_store base;
    cv_dir dir;
    cv_file lock;         /* none: opened for reading */
    cv_file frame;        /* none: not yet, or given up */
    uint8_t *frame_bytes; /* a reader's frame whose file was given up */
    uint64_t frame_size;  /* of them */
    cv_rwlock frame_lock; /* over these three: held while they are used */
    cv_fd_holder holder;  /* of chunk files, and a reader's frame */
    cv_chunk_files chunks;
    cv_shared_chunks shared; /* since the frame was put there */
    cv_place place;          /* of a created one; closed: without a directory */
    cv_home home;            /* of one that is written and has its name */
    cv_shown_path shown;
} directory_store;

/* The directory itself: for its locks, access and name. */
static inline cv_file cv_directory_self(const directory_store *d)
{
    return cv_dir_as_file(d->dir);
}

/* The operations on bytes, for the table of operations. */
cv_status cv_directory_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err);
void cv_directory_stamp(cv_store *store, cv_stamp *out);
cv_status cv_directory_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                            size_t size, cv_error *err);
cv_status cv_directory_check_frame(cv_store *store, cv_error *err);
cv_status cv_directory_read_many(cv_store *store, const cv_store_range *ranges, size_t n,
                                 const cv_arrivals *arrivals, cv_error *err);
cv_at_once cv_directory_read_at_once(cv_store *store, const cv_store_range *r);
cv_status cv_directory_write(cv_store *store, cv_object object, uint64_t pos, const void *src,
                             size_t size, cv_error *err);
bool cv_directory_share(cv_store *store, cv_object object, cv_store *from, cv_object there,
                        uint64_t size);
cv_status cv_directory_truncate(cv_store *store, cv_object object, uint64_t size,
                                cv_error *err);
cv_status cv_directory_sync(cv_store *store, cv_object object, cv_error *err);
cv_status cv_directory_replace(cv_store *store, const void *bytes, size_t size, bool durable,
                               cv_error *err);
cv_status cv_directory_remove(cv_store *store, cv_object object, cv_error *err);
cv_status cv_directory_list(cv_store *store, cv_object **objects, size_t *n, cv_error *err);

/* Complete: from now on its descriptors are at others' disposal. */
void cv_directory_share_descriptors(directory_store *d);

/* Turns to the frame that is in place now. */
void cv_directory_follow(directory_store *d);

#endif
