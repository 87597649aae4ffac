/* Stores by path, whatever stands there. */
#ifndef CV_STORE_OPEN_H
#define CV_STORE_OPEN_H

#include "base/watch.h"
#include "store/store.h"

/* What stands at `path`: a directory, else a file. */
cv_status cv_store_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                        cv_error *err);

/* A new one at `path`: a directory when the layout says sparse, else a file; memory when the
 * path is "mem:", which cannot be a directory. Unpublished, as store.h says. */
cv_status cv_store_create(const char *path, caterva_layout layout, bool overwrite,
                          cv_store **out, cv_error *err);

/* The operations of these names; CATERVA_EINVAL from a store that does not have them,
 * CATERVA_EREADONLY from one that is not open for writing. */
cv_status cv_store_create_over(cv_store *old, cv_store **out, cv_error *err);
cv_status cv_store_delete(cv_store *store, cv_watch *watch, cv_error *err);

/* ---- Bytes behind a file ----
 *
 * Bytes behind the end of a file that is no store of ours. */

typedef struct cv_append {
    const char *path;
    const void *bytes;
    size_t size;
    bool durable;
    cv_watch *watch; /* hears of bytes, and may stop; or NULL */
} cv_append;

/* Writes the bytes behind the end of the regular file at the path, which is made when
 * there is none; *pos is where they begin. Takes the writer's lock. On failure the
 * file's length is as before. */
cv_status cv_store_file_append(const cv_append *append, uint64_t *pos, cv_error *err);

/* ---- Another first part ----
 *
 * A store that is another one but for its first bytes. */

/* Reads `size` bytes of `head`, which are copied, in the place of those that `inner` begins
 * with, and everything else from `inner`, which holds at least so many. Owns `inner`, unless
 * it fails. To be read only. */
cv_status cv_store_headed(cv_store *inner, const void *head, size_t size, cv_store **out,
                          cv_error *err);

#endif
