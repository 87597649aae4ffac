/* How the chunks of one array are encoded, and what codecs and filters there are. This
 * room is the only one that knows libblosc2: chunks and blocks to bytes and back.
 * What a chunk belongs to, and where it is stored, is not known here; headers
 * were checked in format/ before bytes come here. */
#ifndef CV_CODEC_SPEC_H
#define CV_CODEC_SPEC_H

#include "base/grid.h"

#define CV_CODEC_FILTERS 6

/* How the chunks of one array are encoded. */
typedef struct cv_codec_spec {
    int codec; /* compcode, as in the frame header */
    int codec_meta;
    int level;      /* 0..9 */
    int split_mode; /* 1..4 */
    bool use_dict; /* chunks may have dictionaries; see cv_codec_makes_dict */
    uint8_t filters[CV_CODEC_FILTERS];
    uint8_t filters_meta[CV_CODEC_FILTERS];
    int32_t item_size;
    int32_t block_bytes;
    int32_t chunk_bytes;
    char item_kind;     /* as in a dtype: 'f', 'i', ...; 'V' is no number, 0: not known */
    bool items_swapped; /* in the byte order that this machine has not */
    int ndim;
    int64_t block_shape[CV_MAX_DIMS];
    /* The `b2nd` metalayer's bytes, which n-d codecs and filters read their
     * geometry from; borrowed for the call. */
    const uint8_t *geometry;
    int32_t geometry_size;
} cv_codec_spec;

/* CATERVA_EUNSUPPORTED naming codec or filter when libblosc2 has it not (a plugin
 * that is not built in), CATERVA_EINVAL for a level that there is not. */
cv_status cv_codec_check(const cv_codec_spec *spec, cv_error *err);

/* False for a codec whose dictionaries are read but not made: chunks get none. */
bool cv_codec_makes_dict(int codec);

const char *cv_codec_engine_version(void);

/* Codec and filter names as in caterva_codec_name; NULL or -1 without. */
const char *cv_codec_name(int codec);
int cv_codec_number(const char *name);
const char *cv_filter_name(int filter);
int cv_filter_number(const char *name);

/* Filters that do something: all but CATERVA_FILTER_NONE. */
int cv_codec_n_filters(const cv_codec_spec *spec);

/* True when chunks encoded by this spec are CV_ACCESS_BLOCK (or raw). */
bool cv_codec_blocks_independent(const cv_codec_spec *spec);

/* True when libblosc2 reads the array's geometry from the schunk behind the
 * context: the n-d plugins, and bytedelta that takes its stream count there. */
bool cv_codec_needs_geometry(const cv_codec_spec *spec);

/* True when a chunk may take so long to encode that somebody who watches should hear
 * between its blocks. Decoding is not as slow with any codec. */
bool cv_codec_is_slow(const cv_codec_spec *spec);

/* CATERVA_EUNSUPPORTED for a chunk whose codec or filters need the array's geometry
 * where decoders made by `spec` have none. */
cv_status cv_codec_check_chunk(const cv_codec_spec *spec, const uint8_t chunk_header[32],
                               cv_error *err);

/* ---- What a pipeline needs ----
 *
 * Codecs and filters that give back what went in. */

/* As cv_codec_check, for writing: CATERVA_EPIPELINE, with a sentence that says what is needed, for
 * codecs, filters, items and blocks that libblosc2 cannot encode together, or of
 * which something else than what went in would come out. */
cv_status cv_codec_check_encoding(const cv_codec_spec *spec, cv_error *err);

#endif
