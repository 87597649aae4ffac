/* Specifies how the chunks of an array are encoded, and lists codecs and filters. This room, which
 * converts items to compressed bytes and back, is the only one that knows libblosc2. It knows
 * neither arrays nor storage. format/ has checked headers before bytes come here. */
#ifndef CV_CODEC_SPEC_H
#define CV_CODEC_SPEC_H

#include "base/grid.h"

#define CV_CODEC_FILTERS 6

/* The encoding of an array's chunks. */
typedef struct cv_codec_spec {
    int codec; /* compcode, as in the frame header */
    int codec_meta;
    int level;      /* 0..9 */
    int split_mode; /* 1..4 */
    bool use_dict;  /* chunks may have dictionaries; see cv_codec_makes_dict */
    bool automatic; /* each chunk may have another pipeline: see cv_codec_with */
    uint8_t filters[CV_CODEC_FILTERS];
    uint8_t filters_meta[CV_CODEC_FILTERS];
    int32_t item_size;
    int32_t block_bytes;
    int32_t chunk_bytes;
    char item_kind;     /* as in a dtype: 'f', 'i', ...; 'V': not a number, 0: unknown */
    bool items_swapped; /* not in this machine's byte order */
    int ndim;
    int64_t block_shape[CV_MAX_DIMS];
    /* The bytes of the `b2nd` metalayer, from which n-d codecs and filters read the geometry;
     * borrowed for the call. */
    const uint8_t *geometry;
    int32_t geometry_size;
} cv_codec_spec;

/* CATERVA_EUNSUPPORTED, with the name of the codec or filter, if libblosc2 lacks it (a plug-in that
 * is not built in). CATERVA_EINVAL for an invalid level. */
cv_status cv_codec_check(const cv_codec_spec *spec, cv_error *err);

/* Whether chunks of this codec are written with dictionaries. Reading supports all of them. */
bool cv_codec_makes_dict(int codec);

const char *cv_codec_engine_version(void);

/* Convert names, as in caterva_codec_name, to numbers and back; NULL or -1 if unknown. */
const char *cv_codec_name(int codec);
int cv_codec_number(const char *name);
const char *cv_filter_name(int filter);
int cv_filter_number(const char *name);

/* Number of filters except CATERVA_FILTER_NONE. */
int cv_codec_n_filters(const cv_codec_spec *spec);

/* Pipelines for chunks of an automatic spec. */
typedef enum cv_pipeline {
    CV_PIPELINE_OWN,          /* the level and filter of the spec */
    CV_PIPELINE_LONG_MATCHES, /* a level that finds long matches */
    CV_PIPELINE_BITSHUFFLE,   /* bitshuffle instead of the spec's filter */
    CV_PIPELINE_PLAIN,        /* no filter */
    CV_N_PIPELINES
} cv_pipeline;

/* Returns a copy of the spec, changed to `pipeline`. */
cv_codec_spec cv_codec_with(const cv_codec_spec *spec, cv_pipeline pipeline);

/* Returns the pipeline that has the filter of a stored chunk, so that new blocks fit into the
 * chunk. The caller checks that they fit, because another program may have written the chunk. */
cv_pipeline cv_codec_pipeline_of(const cv_codec_spec *spec, const uint8_t chunk_header[32]);

/* Whether chunks encoded with this spec are CV_ACCESS_BLOCK or CV_ACCESS_RAW. */
bool cv_codec_blocks_independent(const cv_codec_spec *spec);

/* Whether libblosc2 reads the array's geometry from its context's schunk. The n-d plug-ins do, and
 * bytedelta, which reads its stream count there. */
bool cv_codec_needs_geometry(const cv_codec_spec *spec);

/* Whether a chunk may take so long to encode that progress should be reported between its blocks.
 * Decoding is never that slow. */
bool cv_codec_is_slow(const cv_codec_spec *spec);

/* CATERVA_EUNSUPPORTED if the chunk's codec or filters need the array's geometry, but decoders for
 * `spec` do not have it. */
cv_status cv_codec_check_chunk(const cv_codec_spec *spec, const uint8_t chunk_header[32],
                               cv_error *err);

/* ---- Requirements of pipelines ----
 *
 * They say which codecs and filters restore their input. */

/* Calls cv_codec_check, then checks the spec for writing. CATERVA_EPIPELINE, with a message about
 * the requirement, if libblosc2 cannot encode these items and blocks with these codecs and filters,
 * or would not restore the items. */
cv_status cv_codec_check_encoding(const cv_codec_spec *spec, cv_error *err);

#endif
