/* Stores that are one regular file. */
#ifndef CV_STORE_FILE_H
#define CV_STORE_FILE_H

#include "base/os_file.h"
#include "store/place.h"
#include "store/store.h"

#include <stdatomic.h>

/* ---- A copy of a file that is read often ----
 *
 * Part of a file store; its functions are declared for its test. */

typedef struct cv_file_copy {
    cv_file file;
    uint64_t offset;            /* of its first byte in the file */
    size_t size;                /* 0: nothing is ever copied */
    atomic_uint_least64_t cost; /* of all reads */
    atomic_bool stopped;
    _Atomic(uint8_t *) bytes; /* NULL: not yet */
} cv_file_copy;

/* `copy` lends only files of at most `most` bytes. The file is borrowed. */
void cv_file_copy_init(cv_file_copy *copy, cv_file file, uint64_t offset, uint64_t size,
                       uint64_t most);
void cv_file_copy_free(cv_file_copy *copy);

/* The bytes, or NULL: read the file. Valid until cv_file_copy_free. Any thread. */
const uint8_t *cv_file_copy_view(const cv_file_copy *copy, uint64_t pos, size_t size);

/* Counts bytes read from the file; makes the copy once that is worth it. Any thread. */
void cv_file_copy_count(cv_file_copy *copy, size_t size);

/* Nothing is lent from now on. Any thread. */
void cv_file_copy_stop(cv_file_copy *copy);

/* ---- Stores ---- */

/* A regular file with the frame at `offset` (0 for writing). Writing takes an exclusive
 * advisory lock; CATERVA_EBUSY if it is held. */
cv_status cv_store_file_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                             cv_error *err);

/* Opens `size` bytes of the open `file` for reading; `path` is for messages. Duplicates the
 * handle. */
cv_status cv_store_file_part(cv_file file, const char *path, uint64_t offset, uint64_t size,
                             cv_store **out, cv_error *err);

cv_status cv_store_file_create(const char *path, bool overwrite, cv_store **out,
                               cv_error *err);

/* Where the frame begins in the file; 0 of other stores. */
uint64_t cv_store_file_offset(const cv_store *store);

/* When the file's bytes were changed last, by the system's clock; 0 of other stores. */
uint64_t cv_store_file_changed(const cv_store *store);

/* A new file's temporary name, NULL for other stores; and whether it survives closing
 * before publish, because others know of it. */
const char *cv_store_file_temp(const cv_store *store);
void cv_store_file_leave_temp(cv_store *store, bool leave);

/* Before a commit is promised: refuses what publish would refuse, else keeps writers from
 * the target until it is let go or replaced. Other stores: nothing. */
cv_status cv_store_file_hold_place(cv_store *store, cv_error *err);
void cv_store_file_let_place_go(cv_store *store);

/* From now on the store may close its idle file and reopen it (store/descriptors.h).
 * `path`, copied, leads from the keeper's directory; files behind links, and other stores,
 * stay open. Call before other threads use the store. */
cv_status cv_store_file_rest(cv_store *store, cv_keeper *keeper, const char *path,
                             cv_error *err);

/* Lets a read-only file store keep a cv_file_copy if it has at most `most` bytes. Call
 * before other threads use the store. */
void cv_store_file_keep(cv_store *store, uint64_t most);

#endif
