/* A chunk index to bytes: what a commit puts into its tail. */
#ifndef CV_FRAME_INDEX_ENCODE_H
#define CV_FRAME_INDEX_ENCODE_H

#include "codec/encode.h"
#include "frame/index.h"

/* Appends the index to `out` as it stands in a file: a Blosc2 chunk of int64.
 * Costs the encoding of the pages that changed since they were last encoded,
 * and a copy of the streams of all. One thread at a time for all indexes that
 * share pages. *encoder is made at first need; the caller frees it. */
cv_status cv_index_encode(const cv_index *index, cv_encoder **encoder, cv_buffer *out,
                          cv_error *err);

#endif
