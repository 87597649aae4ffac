/* The registry of the wings that a build may leave out. It lists the functions that the core and
 * other wings call. src/wings.c fills it. The pointer to a wing that was left out is NULL: check it
 * with cv_check_built before a call. */
#ifndef CV_ARRAY_WINGS_H
#define CV_ARRAY_WINGS_H

#include "base/status.h"
#include "base/watch.h"
#include "store/store.h"

#include <caterva_remote.h>

/* The state that all stores of one opening share. */
typedef struct cv_session cv_session;

/* Stores behind URLs; remote/remote.h has the contracts. */
typedef struct cv_remote_calls {
    cv_status (*begin)(const char *url, const caterva_remote_options *options,
                       cv_session **out, cv_error *err);
    void (*retain)(cv_session *session);
    void (*release)(cv_session *session);
    cv_status (*open)(cv_session *session, const char *url, uint64_t offset, cv_watch *watch,
                      cv_store **out, cv_error *err);
    cv_status (*reopen)(cv_store *store, cv_watch *watch, cv_store **out, cv_error *err);
    cv_status (*part)(cv_store *store, uint64_t offset, uint64_t size, cv_store **out,
                      cv_error *err);
    cv_session *(*session)(const cv_store *store);
} cv_remote_calls;

/* An archive of arrays to be published. */
typedef struct cv_archive {
    struct cv_tree *tree;
    cv_store *store;   /* contains all bytes of the archive */
    uint64_t size;     /* of the archive */
    uint64_t vouching; /* size of the archive's tail, with checksums of all other bytes */
} cv_archive;

/* Arrays in trees, and archives of them; tree/tree.h has the contracts. */
typedef struct cv_tree_calls {
    cv_status (*open_leaf)(const char *url, const caterva_open_options *options,
                           caterva_array **out, cv_error *err);
    cv_status (*leaf_place)(const char *url, bool overwrite, char **path, cv_error *err);
    cv_status (*leaf_file)(const char *url, char **path, cv_error *err);
    cv_status (*parts_place)(const char *url, char **path, cv_error *err);
    bool (*is_tree)(const char *path);
    cv_status (*pack_for_zarr)(const char *path, const char *to,
                               const caterva_progress *progress, cv_error *err);
    cv_status (*archive_open)(const char *path, cv_archive *out, cv_error *err);
    cv_status (*archive_check)(const cv_archive *archive, cv_watch *watch, cv_error *err);
    void (*archive_close)(cv_archive *archive);
} cv_tree_calls;

/* Jobs beside an array; jobs/jobs.h has the contracts. */
typedef struct cv_jobs_calls {
    void (*committed)(caterva_array *array, bool is_first);
    cv_status (*check_none)(const char *path, const char *name, cv_error *err);
    cv_status (*has_folder)(const char *path, bool *out, cv_error *err);
} cv_jobs_calls;

extern const struct cv_wings {
    const cv_remote_calls *remote;
    const cv_tree_calls *tree;
    const cv_jobs_calls *jobs;
} cv_wings;

/* The folder of an array's jobs has the array's path with this suffix. */
#define CV_JOB_FOLDERS ".parts"

/* CATERVA_EUNSUPPORTED if the wing is NULL; `option` is the build option that left it out. */
static inline cv_status cv_check_built(const void *wing, const char *option, cv_error *err)
{
    if (wing) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "this libcaterva was built with %s=OFF",
                   option);
}

#endif
