/* Converts a spec to libblosc2's parameters; for this room only. */
#ifndef CV_CODEC_PARAMS_H
#define CV_CODEC_PARAMS_H

#include "codec/spec.h"

#include <blosc2.h>

/* Calls blosc2_init once. blosc2_destroy is never called: the program may use libblosc2, too. */
void cv_codec_init(void);

/* Calls cv_codec_init, and sets *geometry (NULL unless needed) to an empty schunk from which the
 * codec reads the item size and `b2nd`. Release with blosc2_schunk_free. */
cv_status cv_codec_prepare(const cv_codec_spec *spec, blosc2_schunk **geometry,
                           cv_error *err);

blosc2_cparams cv_codec_cparams(const cv_codec_spec *spec);

#endif
