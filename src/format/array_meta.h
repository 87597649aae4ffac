/* The metalayer of n-d arrays: `b2nd` (7 entries, with dtype) or the older `caterva` (5).
 * See README_B2ND_METALAYER.rst of C-Blosc2. */
#ifndef CV_FORMAT_ARRAY_META_H
#define CV_FORMAT_ARRAY_META_H

#include "base/grid.h"
#include "base/heap.h"

typedef struct cv_array_meta {
    bool legacy; /* the `caterva` metalayer */
    bool plain;  /* the frame has plain items and no metalayer */
    int ndim;    /* 0..16 */
    int64_t shape[CV_MAX_DIMS];
    int32_t chunk_shape[CV_MAX_DIMS];
    int32_t block_shape[CV_MAX_DIMS];
    uint8_t dtype_format; /* 0: NumPy */
    const char *dtype;    /* borrowed, not terminated; NULL if legacy */
    uint32_t dtype_size;  /* bytes */
} cv_array_meta;

/* Parses the metalayer at frame position `pos`. Requires the markers that C-Blosc2 writes. Its
 * marker for 16 dimensions is malformed. */
cv_status cv_array_meta_parse(const uint8_t *bytes, size_t size, bool legacy, int64_t pos,
                              cv_array_meta *out, cv_error *err);

cv_status cv_array_meta_write(const cv_array_meta *meta, cv_buffer *out, cv_error *err);

/* ---- The library's own attribute ----
 *
 * `_caterva`: a msgpack map, which python-blosc2 can unpack, too.
 *
 *   version  1
 *   fill     one item (bin): the value of cells that were never written
 *   job      in a part: the id of its job (bin)
 *   origin   in a part: its start in the array, a big-endian int64 for each axis (bin)
 *   marks    in a part: which items of chunks were written (bin, jobs/marks.h)
 *
 * Unknown keys are skipped. */

#define CV_OWN_ATTRIBUTE "_caterva"

typedef struct cv_own {
    const uint8_t *fill; /* borrowed; NULL means zeros */
    uint32_t fill_size;
    const uint8_t *job; /* borrowed, as are origin and marks; NULL if not a part */
    uint32_t job_size;
    const uint8_t *origin;
    uint32_t origin_size;
    const uint8_t *marks;
    uint32_t marks_size;
} cv_own;

/* Parses the decoded attribute. CATERVA_EUNSUPPORTED for a newer version. */
cv_status cv_own_parse(const uint8_t *bytes, size_t size, cv_own *out, cv_error *err);

cv_status cv_own_write(const cv_own *own, cv_buffer *out, cv_error *err);

#endif
