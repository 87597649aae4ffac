/* Copies that are also Zarr v3 arrays (docs/zarr.md). Private to upkeep. */
#ifndef CV_UPKEEP_ZARR_H
#define CV_UPKEEP_ZARR_H

#include "array/array.h"
#include "store/place.h"
#include "store/zarr.h"

/* Changes what the options of the new array take from `source` (partition, codec, filters) to what
 * Zarr readers can read. CATERVA_EINVAL if the caller has set something else, CATERVA_EUNSUPPORTED
 * for a dtype without a name in Zarr. `dtype` is that of the new array. `chunk_shape` and
 * `block_shape` are memory for the options. */
cv_status cv_zarr_adapt(caterva_create_options *create, const cv_snapshot *source,
                        const char *dtype, int32_t *chunk_shape, int32_t *block_shape,
                        cv_error *err);

/* A directory in the making. Must not move. */
typedef struct cv_zarr_place {
    cv_place place;
    cv_dir dir;
    cv_zarr_name shard;
    char *path; /* of the frame to be created */
} cv_zarr_place;

/* Makes a new array, still empty, store its chunks so that Zarr readers can read them. */
void cv_zarr_write_dual(caterva_array *array);

/* Makes a temporary directory beside `path`. End with cv_zarr_install or cv_zarr_drop. */
cv_status cv_zarr_begin(const char *path, bool overwrite, int ndim, cv_zarr_place *z,
                        cv_error *err);

/* Adds index and metadata to the committed frame in the directory, and gives the directory its
 * name. `durable`: everything is synced before. */
cv_status cv_zarr_install(cv_zarr_place *z, bool durable, cv_watch *watch, cv_error *err);

/* Removes the directory unless it was installed. */
void cv_zarr_drop(cv_zarr_place *z);

/* Appends the array's metadata; `is_shard` as in cv_zarr_meta. A codec that Blosc 1 lacks becomes
 * zstd. */
cv_status cv_zarr_describe(caterva_array *array, const cv_snapshot *snapshot, bool is_shard,
                           cv_buffer *out, cv_error *err);

/* Deletes the directory of a Zarr array or group; *is_zarr is false, and nothing is done, if `url` is
 * neither. CATERVA_EEXIST if other files are in it, CATERVA_EBUSY if it is open for writing. */
cv_status cv_zarr_delete(const char *url, bool *is_zarr, cv_error *err);

/* Compares index and metadata with what the array's frame says; for an array that was not opened
 * as a Zarr array does nothing. Behind a URL compares the index only. `quick`: only the checksum of
 * the index. Calls `report` for each difference. Other failures end it. */
cv_status cv_zarr_verify(caterva_array *array, cv_snapshot *snapshot, bool quick,
                         void (*report)(void *context, const cv_error *error), void *context,
                         cv_error *err);

#endif
