/* Directories of Zarr v3 whose arrays have one shard each, which is a frame. An array:
 *
 *     a.zarr/zarr.json   metadata
 *     a.zarr/c/0/0       the frame, and behind it the shard's index; one 0 for each axis
 *
 * A group is a directory with its zarr.json, and with arrays and groups in it. */
#ifndef CV_STORE_ZARR_H
#define CV_STORE_ZARR_H

#include "base/heap.h"
#include "base/os_dir.h"
#include "base/status.h"

#define CV_ZARR_META "zarr.json"

/* The path of the shard in the directory: "c/0/0". */
typedef struct cv_zarr_name {
    char text[2 * CATERVA_MAX_DIMS + 2];
} cv_zarr_name;

cv_zarr_name cv_zarr_name_of(int ndim);

typedef enum cv_zarr_node {
    CV_ZARR_NONE,  /* no directory with metadata */
    CV_ZARR_ARRAY, /* its only shard is a frame */
    CV_ZARR_GROUP,
    CV_ZARR_OTHER /* an array with other chunks, or another version of Zarr */
} cv_zarr_node;

/* Whether a file that begins so is a frame. Up to half of these bytes may be damaged. */
enum { CV_ZARR_HEAD = 10 };
bool cv_zarr_is_frame(const char *bytes, size_t size);

/* Examines directory `name`. Sets *shard to the shard's path in an array. */
cv_zarr_node cv_zarr_look(cv_dir dir, const char *name, cv_zarr_name *shard);

/* Appends the paths of `root` ("") and of all directories below it, each with its NUL and after its
 * parent. Follows no links. */
cv_status cv_zarr_list(cv_dir root, cv_buffer *paths, cv_error *err);

/* Sets *own to whether it is an array or group that contains only what cv_zarr_remove_at removes. */
cv_status cv_zarr_check_own(cv_dir dir, const char *name, bool *own, cv_error *err);

/* Removes all metadata and shards in the directory, and the directories that are empty then. Ignores
 * errors. */
void cv_zarr_remove_at(cv_dir dir, const char *name);

/* Append the metadata of directory `name` to `out`; write new metadata of it. */
cv_status cv_zarr_read_meta(cv_dir dir, const char *name, cv_buffer *out, cv_error *err);
cv_status cv_zarr_write_meta(cv_dir dir, const char *name, const cv_buffer *meta,
                             cv_error *err);

/* Sets *out to the path of the frame of the Zarr array at `path`, or to NULL if there is no Zarr
 * metadata. CATERVA_EUNSUPPORTED: a group, or chunks that are no frame. Release with cv_free. */
cv_status cv_zarr_frame_path(const char *path, char **out, cv_error *err);

#endif
