/* Stores by path, whatever stands there. */
#ifndef CV_STORE_OPEN_H
#define CV_STORE_OPEN_H

#include "base/watch.h"
#include "store/store.h"

/* What stands at `path`: a directory, else a file. */
cv_status cv_store_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                        cv_error *err);

/* Creates an unpublished store at `path`: sparse directory, file, or memory ("mem:", never
 * sparse). */
cv_status cv_store_create(const char *path, caterva_layout layout, bool overwrite,
                          cv_store **out, cv_error *err);

/* CATERVA_EINVAL from stores without these operations, CATERVA_EREADONLY unless open for
 * writing. */
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

/* Appends the bytes to the regular file, made if missing; *pos is where they begin. Takes
 * the writer's lock. On failure the length is unchanged. */
cv_status cv_store_file_append(const cv_append *append, uint64_t *pos, cv_error *err);

/* ---- Another first part ---- */

/* A read-only store of `inner` with its first `size` bytes replaced by a copy of `head`;
 * `inner` holds at least as many. Owns `inner` on success. */
cv_status cv_store_headed(cv_store *inner, const void *head, size_t size, cv_store **out,
                          cv_error *err);

#endif
