/* Codecs and filters that give back what went in. */
#ifndef CV_CODEC_PIPELINE_H
#define CV_CODEC_PIPELINE_H

#include "codec/spec.h"

/* As cv_codec_check, for writing: CATERVA_EPIPELINE, with a sentence that says what is needed, for
 * codecs, filters, items and blocks that libblosc2 cannot encode together, or of
 * which something else than what went in would come out. */
cv_status cv_codec_check_encoding(const cv_codec_spec *spec, cv_error *err);

#endif
