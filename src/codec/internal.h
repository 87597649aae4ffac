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

/* Filters that do something: all but CATERVA_FILTER_NONE. */
int cv_codec_n_filters(const cv_codec_spec *spec);

blosc2_cparams cv_codec_cparams(const cv_codec_spec *spec);

#endif
