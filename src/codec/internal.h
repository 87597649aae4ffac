/* What the files of this room share. */
#ifndef CV_CODEC_INTERNAL_H
#define CV_CODEC_INTERNAL_H

#include "codec/codec.h"

#include <blosc2.h>

/* blosc2_init, once in the process; blosc2_destroy never, since the host
 * program may use libblosc2 too. */
void cv_codec_init(void);

/* An empty in-memory schunk that carries nothing but item size and `b2nd`
 * metalayer. Release with blosc2_schunk_free. */
cv_status cv_codec_geometry_schunk(const cv_codec_spec *spec, blosc2_schunk **out,
                                   cv_error *err);

blosc2_cparams cv_codec_cparams(const cv_codec_spec *spec);

/* Unshuffles a part of a block into its place in `dst`, which is a block; the rest of it
 * stays as it is. And whether that takes less time than all of the block by libblosc2. */
void cv_unshuffle_part(const uint8_t *shuffled, int32_t block_bytes, int32_t item_size,
                       const cv_block_part *part, uint8_t *dst);
bool cv_unshuffle_is_cheaper(int32_t block_bytes, int32_t item_size,
                             const cv_block_part *part);

#endif
