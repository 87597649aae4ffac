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

/* Not for files of more than `most` bytes: *copy then never lends. The file is
 * borrowed. */
void cv_file_copy_init(cv_file_copy *copy, cv_file file, uint64_t offset, uint64_t size,
                       uint64_t most);
void cv_file_copy_free(cv_file_copy *copy);

/* The bytes, or NULL: to be read from the file. What was lent stays until cv_file_copy_free.
 * Any thread. */
const uint8_t *cv_file_copy_view(const cv_file_copy *copy, uint64_t pos, size_t size);

/* So many were read from the file: the read that makes it worth keeping makes the copy.
 * Any thread. */
void cv_file_copy_count(cv_file_copy *copy, size_t size);

/* Nothing is lent from now on. Any thread. */
void cv_file_copy_stop(cv_file_copy *copy);

/* ---- Stores ---- */

/* A regular file. `offset`: where the frame begins in it; only 0 for writing.
 * Writing takes an exclusive advisory lock, CATERVA_EBUSY when it is held (by
 * another process or another store of this one). */
cv_status cv_store_file_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                             cv_error *err);

/* `size` bytes from `offset` on of a file that is open as `file`, to be read; `path` names
 * it in sentences. The handle is borrowed: the store has one of its own. */
cv_status cv_store_file_part(cv_file file, const char *path, uint64_t offset, uint64_t size,
                             cv_store **out, cv_error *err);

cv_status cv_store_file_create(const char *path, bool overwrite, cv_store **out,
                               cv_error *err);

/* Where the frame begins in the file; 0 of other stores. */
uint64_t cv_store_file_offset(const cv_store *store);

/* When the file's bytes were changed last, by the system's clock; 0 of other stores. */
uint64_t cv_store_file_changed(const cv_store *store);

/* The name that a new file of this store has in its directory until it is published; NULL
 * of other stores. And whether it stays there when the store is closed before that, because
 * somebody else knows of it. */
const char *cv_store_file_temp(const cv_store *store);
void cv_store_file_leave_temp(cv_store *store, bool leave);

/* Before an unpublished store's commit is promised: what stands at its name and may not be
 * replaced is refused, as by publish, else kept from writers until it is let go or replaced.
 * Nothing of other stores. */
cv_status cv_store_file_hold_place(cv_store *store, cv_error *err);
void cv_store_file_let_place_go(cv_store *store);

/* From now on the store may close its file while nobody uses it, and opens it again: see
 * store/descriptors.h. `path` is where the file is, or a new one is to be, from the keeper's directory
 * on, and is copied; what lies elsewhere by way of links, and other stores, stay as they are.
 * Before other threads use the store. */
cv_status cv_store_file_rest(cv_store *store, cv_keeper *keeper, const char *path,
                             cv_error *err);

/* Lets a store of a file that is only read keep a copy of it, see cv_file_copy, when it has at
 * most `most` bytes; other stores: nothing. Before other threads use the store. */
void cv_store_file_keep(cv_store *store, uint64_t most);

#endif
