/* A directory that is a Zarr array of one shard, which is a frame:
 *
 *     a.zarr/zarr.json   metadata
 *     a.zarr/c/0/0       the frame, and behind it the shard's index; one 0 for each axis */
#ifndef CV_STORE_ZARR_H
#define CV_STORE_ZARR_H

#include "base/os_dir.h"
#include "base/status.h"

#define CV_ZARR_META "zarr.json"

/* The path of the shard in the directory: "c/0/0". */
typedef struct cv_zarr_name {
    char text[2 * CATERVA_MAX_DIMS + 2];
} cv_zarr_name;

cv_zarr_name cv_zarr_name_of(int ndim);

/* Whether directory `name` has metadata and a shard; sets *out to the shard's path in it. */
bool cv_zarr_find(cv_dir dir, const char *name, cv_zarr_name *out);

/* Whether it is a Zarr array whose only shard is a frame, and nothing else is in it. */
bool cv_zarr_is_array_at(cv_dir dir, const char *name);

/* Sets *out to the path of the frame of the Zarr array at `path`, or to NULL if it is none.
 * CATERVA_EUNSUPPORTED if it is a Zarr array, but no frame. Release with cv_free. */
cv_status cv_zarr_frame_path(const char *path, char **out, cv_error *err);

/* Removes metadata, shard and, if nothing else is in them, the directories. Ignores errors. */
void cv_zarr_remove_at(cv_dir dir, const char *name);

#endif
