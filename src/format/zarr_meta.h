/* The metadata of a Zarr v3 array (zarr.json), as JSON text: of one shard, or of chunks that are the
 * array's blocks. The same array has always the same text, so that damage is found by comparing. */
#ifndef CV_FORMAT_ZARR_META_H
#define CV_FORMAT_ZARR_META_H

#include "base/grid.h"
#include "base/heap.h"

/* An attribute: its value in MessagePack. */
typedef struct cv_zarr_attribute {
    const char *name;
    const uint8_t *value;
    size_t size;
} cv_zarr_attribute;

/* All members are borrowed. */
typedef struct cv_zarr_meta {
    const cv_grid *grid;
    const caterva_dtype *dtype;
    const uint8_t *fill; /* one item; NULL: zeros */
    const char *codec;   /* Blosc's name: "zstd" */
    int level;           /* 0..9 */
    int filter;          /* 0, CATERVA_FILTER_SHUFFLE or CATERVA_FILTER_BITSHUFFLE */
    bool is_shard;       /* the array's chunks are one shard, its blocks the inner chunks */
    const char *const *dims; /* a name for each axis, or NULL; NULL: no names */
    const cv_zarr_attribute *attributes;
    int n_attributes;
} cv_zarr_meta;

/* CATERVA_EUNSUPPORTED, with the reason, if Zarr has no name for the dtype. */
cv_status cv_zarr_check_dtype(const caterva_dtype *t, cv_error *err);

/* Appends the text. Leaves out attributes that JSON cannot express. */
cv_status cv_zarr_meta_write(const cv_zarr_meta *meta, cv_buffer *out, cv_error *err);

/* Appends the metadata of a group. `members` (or NULL) are those of everything in it, at all
 * levels, as the members of a JSON object: consolidated metadata. */
cv_status cv_zarr_group_write(const cv_zarr_attribute *attributes, int n,
                              const cv_buffer *members, cv_buffer *out, cv_error *err);

/* Appends the text as a JSON string. */
cv_status cv_zarr_string_write(const char *text, cv_buffer *out, cv_error *err);

#endif
