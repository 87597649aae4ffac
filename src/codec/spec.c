/* Room: codec. What codecs and filters there are, and which of them need more than
 * a block's bytes. Nothing is encoded or decoded here. */
#include "codec/spec.h"

#include <blosc2.h>

#include "blosc2/codecs-registry.h"
#include "blosc2/filters-registry.h"

#include <string.h>

typedef struct named_id {
    int id;
    const char *name;
} named_id;

static const named_id codecs[] = {
    {BLOSC_BLOSCLZ, "blosclz"},
    {BLOSC_LZ4, "lz4"},
    {BLOSC_LZ4HC, "lz4hc"},
    {BLOSC_ZLIB, "zlib"},
    {BLOSC_ZSTD, "zstd"},
    {BLOSC_CODEC_NDLZ, "ndlz"},
    {BLOSC_CODEC_ZFP_FIXED_ACCURACY, "zfp-accuracy"},
    {BLOSC_CODEC_ZFP_FIXED_PRECISION, "zfp-precision"},
    {BLOSC_CODEC_ZFP_FIXED_RATE, "zfp-rate"},
};

static const named_id filters[] = {
    {BLOSC_NOFILTER, "none"},
    {BLOSC_SHUFFLE, "shuffle"},
    {BLOSC_BITSHUFFLE, "bitshuffle"},
    {BLOSC_DELTA, "delta"},
    {BLOSC_TRUNC_PREC, "trunc-prec"},
    {BLOSC_FILTER_NDCELL, "ndcell"},
    {BLOSC_FILTER_NDMEAN, "ndmean"},
    {BLOSC_FILTER_BYTEDELTA_BUGGY, "bytedelta-old"},
    {BLOSC_FILTER_BYTEDELTA, "bytedelta"},
    {BLOSC_FILTER_INT_TRUNC, "int-trunc"},
};

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static const char *name_of(const named_id *table, int n, int id)
{
    for (int i = 0; i < n; i++)
        if (table[i].id == id) return table[i].name;
    return NULL;
}

static int id_of(const named_id *table, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (name && strcmp(table[i].name, name) == 0) return table[i].id;
    return -1;
}

const char *cv_codec_name(int codec) { return name_of(codecs, COUNT(codecs), codec); }
int cv_codec_number(const char *name) { return id_of(codecs, COUNT(codecs), name); }
const char *cv_filter_name(int filter) { return name_of(filters, COUNT(filters), filter); }
int cv_filter_number(const char *name) { return id_of(filters, COUNT(filters), name); }

const char *cv_codec_engine_version(void) { return blosc2_get_version_string(); }

static cv_status check_codec(const cv_codec_spec *spec, cv_error *err)
{
    if (!cv_codec_name(spec->codec))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "codec %d is not built into libblosc2 %s", spec->codec,
                       cv_codec_engine_version());
    if (spec->level < 0 || spec->level > 9)
        return cv_fail(err, CATERVA_EINVAL, -1, "compression level %d is not in 0..9",
                       spec->level);
    return CV_OK;
}

static cv_status check_filter(int filter, cv_error *err)
{
    if (!cv_filter_name(filter))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "filter %d is not built into libblosc2 %s", filter,
                       cv_codec_engine_version());
    return CV_OK;
}

cv_status cv_codec_check(const cv_codec_spec *spec, cv_error *err)
{
    CV_TRY(check_codec(spec, err));
    for (int i = 0; i < CV_CODEC_FILTERS; i++) CV_TRY(check_filter(spec->filters[i], err));
    return CV_OK;
}

int cv_codec_n_filters(const cv_codec_spec *spec)
{
    int n = 0;
    for (int i = 0; i < CV_CODEC_FILTERS; i++) n += spec->filters[i] != BLOSC_NOFILTER;
    return n;
}

bool cv_codec_blocks_independent(const cv_codec_spec *spec)
{
    for (int i = 0; i < CV_CODEC_FILTERS; i++)
        if (spec->filters[i] == BLOSC_DELTA) return false;
    return !spec->use_dict;
}

/* For lz4 and lz4hc libblosc2 (up to 3.3.5 at least) makes the dictionary of the chunk's own
 * streams in place: it copies them behind the block starts with memcpy, and the ranges overlap
 * unless there are more blocks than the dictionary has words. zstd trains one elsewhere. */
bool cv_codec_makes_dict(int codec) { return codec == BLOSC_ZSTD; }

bool cv_codec_needs_geometry(const cv_codec_spec *spec)
{
    if (spec->codec >= BLOSC2_GLOBAL_REGISTERED_CODECS_START) return true;
    for (int i = 0; i < CV_CODEC_FILTERS; i++)
        if (spec->filters[i] >= BLOSC2_GLOBAL_REGISTERED_FILTERS_START) return true;
    return false;
}

/* Bytes that take a few hundred milliseconds on a slow core. */
static int32_t quick_bytes(const cv_codec_spec *spec)
{
    enum { KIB = 1024, MIB = 1024 * 1024 };
    switch (spec->codec) {
    case BLOSC_BLOSCLZ:
    case BLOSC_LZ4: return 64 * MIB;
    case BLOSC_ZSTD:
        if (spec->level <= 3) return 16 * MIB;
        if (spec->level <= 6) return 4 * MIB;
        return spec->level <= 8 ? MIB : 256 * KIB;
    default: return 2 * MIB;
    }
}

bool cv_codec_is_slow(const cv_codec_spec *spec)
{
    return spec->level > 0 && spec->chunk_bytes > quick_bytes(spec);
}

cv_status cv_codec_check_chunk(const cv_codec_spec *spec, const uint8_t chunk_header[32],
                               cv_error *err)
{
    enum { PLUGIN_FORMAT = 6 };
    bool plugin = chunk_header[BLOSC2_CHUNK_FLAGS] >> 5 == PLUGIN_FORMAT;
    for (int i = 0; i < CV_CODEC_FILTERS; i++)
        plugin = plugin || chunk_header[BLOSC2_CHUNK_FILTER_CODES + i] >=
                               BLOSC2_GLOBAL_REGISTERED_FILTERS_START;
    if (!plugin || cv_codec_needs_geometry(spec)) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "the chunk's codec or filters need the array's geometry, which readers of "
                   "an array with codec %s do not look up",
                   cv_codec_name(spec->codec));
}
