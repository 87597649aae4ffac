/* A spec in libblosc2's own terms; for this room only. */
#ifndef CV_CODEC_PARAMS_H
#define CV_CODEC_PARAMS_H

#include "codec/spec.h"

#include <blosc2.h>

/* blosc2_init, once in the process; blosc2_destroy never, since the host
 * program may use libblosc2 too. */
void cv_codec_init(void);

/* The same; and *geometry, NULL unless the codec needs it: an empty in-memory schunk that
 * carries nothing but item size and `b2nd` metalayer. Release with blosc2_schunk_free. */
cv_status cv_codec_prepare(const cv_codec_spec *spec, blosc2_schunk **geometry, cv_error *err);

blosc2_cparams cv_codec_cparams(const cv_codec_spec *spec);

#endif
