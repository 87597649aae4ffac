/* Stores that are one regular file. */
#ifndef CV_STORE_FILE_H
#define CV_STORE_FILE_H

#include "base/os_file.h"
#include "store/place.h"
#include "store/store.h"

#include <stdatomic.h>

/* ---- An in-memory copy of a file that is read often ----
 *
 * Belongs to the file store; declared here for its test. */

typedef struct cv_file_copy {
    cv_file file;
    uint64_t offset;            /* position in the file of the copy's first byte */
    size_t size;                /* bytes of the copy; 0 if no copy is made */
    atomic_uint_least64_t cost; /* cost of all reads so far, in bytes */
    atomic_bool stopped;
    _Atomic(uint8_t *) bytes; /* the copy, or NULL */
} cv_file_copy;

/* No copy is made if `size` exceeds `most`. The file is borrowed. */
void cv_file_copy_init(cv_file_copy *copy, cv_file file, uint64_t offset, uint64_t size,
                       uint64_t most);
void cv_file_copy_free(cv_file_copy *copy);

/* Returns `size` bytes of the copy, valid until cv_file_copy_free. Returns NULL if they must be
 * read from the file. Any thread. */
const uint8_t *cv_file_copy_view(const cv_file_copy *copy, uint64_t pos, size_t size);

/* Counts bytes read from the file, and makes the copy when it pays. Any thread. */
void cv_file_copy_count(cv_file_copy *copy, size_t size);

/* From now on cv_file_copy_view returns NULL. Any thread. */
void cv_file_copy_stop(cv_file_copy *copy);

/* ---- Stores ---- */

/* Opens a regular file whose frame begins at `offset` (0 for writing). For writing, takes an
 * exclusive advisory lock. Returns CATERVA_EBUSY if another opening holds the lock. */
cv_status cv_store_file_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                             cv_error *err);

/* Opens `size` bytes at `offset` of the open `file` for reading. Duplicates the handle. `path` is
 * for messages. */
cv_status cv_store_file_part(cv_file file, const char *path, uint64_t offset, uint64_t size,
                             cv_store **out, cv_error *err);

cv_status cv_store_file_create(const char *path, bool overwrite, cv_store **out,
                               cv_error *err);

/* Returns the position of the frame in the file; 0 for other stores. */
uint64_t cv_store_file_offset(const cv_store *store);

/* Returns the time of the file's last change, by the system's clock; 0 for other stores. */
uint64_t cv_store_file_changed(cv_store *store);

/* cv_store_file_temp returns the temporary name of an unpublished file, NULL for other stores.
 * cv_store_file_leave_temp, only for stores of files, sets whether closing before publish keeps the
 * file, because other processes know its name. */
const char *cv_store_file_temp(const cv_store *store);
void cv_store_file_leave_temp(cv_store *store, bool leave);

/* For a commit of several frames. hold_place fails if publish would fail; else it locks the target
 * until let_place_go or until the target is replaced. On other stores both do nothing. */
cv_status cv_store_file_hold_place(cv_store *store, cv_error *err);
void cv_store_file_let_place_go(cv_store *store);

/* From now on the store may close its idle file and reopen it (store/descriptors.h). `path`, which
 * is copied, leads from the keeper's directory to the file. Files behind symbolic links stay open,
 * as do other stores. Call before other threads use the store. */
cv_status cv_store_file_rest(cv_store *store, cv_keeper *keeper, const char *path,
                             cv_error *err);

/* Lets a read-only file store keep a cv_file_copy of at most `most` bytes. Call before other
 * threads use the store. */
void cv_store_file_keep(cv_store *store, uint64_t most);

#endif
