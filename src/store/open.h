/* Opens and creates stores by path. */
#ifndef CV_STORE_OPEN_H
#define CV_STORE_OPEN_H

#include "base/watch.h"
#include "store/store.h"

/* Opens the directory or file at `path`, also the frame in the directory of a Zarr array. */
cv_status cv_store_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                        cv_error *err);

/* Creates an unpublished store at `path`: a sparse directory, a file, or memory ("mem:", never
 * sparse). */
cv_status cv_store_create(const char *path, caterva_layout layout, bool overwrite,
                          cv_store **out, cv_error *err);

/* Call the store's operation. CATERVA_EINVAL if the store lacks the operation, CATERVA_EREADONLY if
 * the store is not open for writing. */
cv_status cv_store_create_over(cv_store *old, cv_store **out, cv_error *err);
cv_status cv_store_delete(cv_store *store, cv_watch *watch, cv_error *err);

/* ---- Bytes appended to a file ----
 *
 * The file need not be a store of this library. */

typedef struct cv_append {
    const char *path;
    const void *bytes;
    size_t size;
    bool durable;
    cv_watch *watch; /* reports written bytes and may stop; or NULL */
} cv_append;

/* Appends the bytes to a regular file, which is created if it does not exist. Sets *pos to the
 * position of the first byte. Takes the writer's lock. On failure the file keeps its length. */
cv_status cv_store_file_append(const cv_append *append, uint64_t *pos, cv_error *err);

/* ---- Another header ---- */

/* Makes a read-only store of `inner` whose first `size` bytes are a copy of `head`. `inner` has
 * at least that many bytes. Owns `inner` on success. */
cv_status cv_store_headed(cv_store *inner, const void *head, size_t size, cv_store **out,
                          cv_error *err);

#endif
