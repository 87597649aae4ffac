/* Room: codec. The codecs and filters, and which of them need more than a block's bytes. */
#include "codec/spec.h"

#include "blosc2/codecs-registry.h"
#include "blosc2/filters-registry.h"

#include <blosc2.h>
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

cv_codec_spec cv_codec_with(const cv_codec_spec *spec, cv_pipeline pipeline)
{
    cv_codec_spec with = *spec;
    uint8_t *filter = &with.filters[CV_CODEC_FILTERS - 1]; /* earlier filters are unused */
    if (pipeline == CV_PIPELINE_LONG_MATCHES) with.level = 4;
    if (pipeline == CV_PIPELINE_BITSHUFFLE) *filter = BLOSC_BITSHUFFLE;
    if (pipeline == CV_PIPELINE_PLAIN) *filter = BLOSC_NOFILTER;
    return with;
}

cv_pipeline cv_codec_pipeline_of(const cv_codec_spec *spec, const uint8_t chunk_header[32])
{
    uint8_t filter = chunk_header[BLOSC2_CHUNK_FILTER_CODES + CV_CODEC_FILTERS - 1];
    if (!spec->automatic || filter == spec->filters[CV_CODEC_FILTERS - 1])
        return CV_PIPELINE_OWN;
    return filter == BLOSC_BITSHUFFLE ? CV_PIPELINE_BITSHUFFLE : CV_PIPELINE_PLAIN;
}

bool cv_codec_blocks_independent(const cv_codec_spec *spec)
{
    for (int i = 0; i < CV_CODEC_FILTERS; i++)
        if (spec->filters[i] == BLOSC_DELTA) return false;
    return !spec->use_dict;
}

/* For lz4 and lz4hc, libblosc2 (at least to 3.3.5) copies the dictionary from the chunk's streams
 * by an overlapping memcpy, unless there are more blocks than dictionary words. zstd trains its
 * dictionary elsewhere. */
bool cv_codec_makes_dict(int codec) { return codec == BLOSC_ZSTD; }

bool cv_codec_needs_geometry(const cv_codec_spec *spec)
{
    if (spec->codec >= BLOSC2_GLOBAL_REGISTERED_CODECS_START) return true;
    for (int i = 0; i < CV_CODEC_FILTERS; i++)
        if (spec->filters[i] >= BLOSC2_GLOBAL_REGISTERED_FILTERS_START) return true;
    return false;
}

/* Returns how many bytes a slow core encodes in a few hundred milliseconds. */
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
                   "an array with codec %s do not have",
                   cv_codec_name(spec->codec));
}

/* ---- Requirements of pipelines ----
 *
 * Refuses to write with pipelines that libblosc2 cannot reverse: libblosc2 would write unreadable
 * data without an error. tests/unit/codec/pipelines.c tries every pipeline of 1 to 6 filters.
 * Reading is not restricted. */

/* The effect of a filter on the items that later filters see. */
enum {
    MIXES = 1, /* the bytes of an item are separated, or changed */
    MOVES = 2, /* items change places, or are no longer numbers */
    DROPS = 4  /* items are not restored exactly */
};

static int effect(int filter)
{
    switch (filter) {
    case BLOSC_DELTA:
        return MOVES; /* bitwise XOR: bits that a later filter clears are lost in the items */
    case BLOSC_TRUNC_PREC:
    case BLOSC_FILTER_INT_TRUNC: return DROPS;
    case BLOSC_FILTER_NDCELL: return MOVES;
    case BLOSC_FILTER_NDMEAN: return MOVES | DROPS;
    default: return MIXES | MOVES; /* shuffle, bitshuffle, bytedelta */
    }
}

/* ---- Items ------------------------------------------------------------------- */

static const char *type_name(const cv_codec_spec *spec)
{
    if (spec->items_swapped) return "of the other byte order";
    switch (spec->item_kind) {
    case 'f': return "floats";
    case 'i':
    case 'u':
    case 'b': return "integers";
    case 'm':
    case 'M': return "times";
    case 'c': return "complex numbers";
    default: return "not numbers";
    }
}

static bool is_in(const char *kinds, char kind) { return strchr(kinds, kind) != NULL; }

/* Accepts items of `kinds` in this machine's byte order, and items of unknown kind. */
static cv_status check_items(const cv_codec_spec *spec, const char *who, const char *takes,
                             const char *kinds, cv_error *err)
{
    if (spec->item_kind == 0 || (!spec->items_swapped && is_in(kinds, spec->item_kind)))
        return CV_OK;
    return cv_fail(err, CATERVA_EPIPELINE, -1,
                   "%s takes %s in this machine's byte order, the items are %s", who, takes,
                   type_name(spec));
}

static cv_status check_floats(const cv_codec_spec *spec, const char *who, cv_error *err)
{
    if (spec->item_size != 4 && spec->item_size != 8)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "%s takes floats of 4 or 8 bytes, the items have %d", who,
                       spec->item_size);
    return check_items(spec, who, "floats of 4 or 8 bytes", "f", err);
}

/* ---- Requirements of filters ---------------------------------------------------- */

/* Checks a filter that keeps `bits` of `most` bits or, if negative, clears -bits; 1 must remain. */
static cv_status check_bits(int8_t bits, int most, const char *who, cv_error *err)
{
    if (bits >= 1 ? bits <= most : bits < 0 && -bits < most) return CV_OK;
    return cv_fail(err, CATERVA_EPIPELINE, -1,
                   "%s needs a number, 1 to %d bits to keep or -1 to -%d to clear, not %d",
                   who, most, most - 1, bits);
}

static cv_status check_trunc_prec(const cv_codec_spec *spec, int i, cv_error *err)
{
    enum { FLOAT_BITS = 23, DOUBLE_BITS = 52 };
    static const char who[] = "filter trunc-prec";
    CV_TRY(check_floats(spec, who, err));
    int most = spec->item_size == 4 ? FLOAT_BITS : DOUBLE_BITS;
    return check_bits((int8_t)spec->filters_meta[i], most, who, err);
}

static cv_status check_int_trunc(const cv_codec_spec *spec, int i, cv_error *err)
{
    static const char who[] = "filter int-trunc";
    int32_t size = spec->item_size;
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "%s takes integers of 1, 2, 4 or 8 bytes, the items have %d", who,
                       size);
    CV_TRY(check_items(spec, who, "integers", "iubmM", err));
    return check_bits((int8_t)spec->filters_meta[i], 8 * size, who, err);
}

static cv_status check_cells(const cv_codec_spec *spec, const char *who, int edge, int most,
                             cv_error *err)
{
    enum { MOST_DIMS = 8 };
    if (spec->ndim < 1 || spec->ndim > MOST_DIMS)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "%s takes 1 to %d dimensions, these are %d", who, MOST_DIMS,
                       spec->ndim);
    if (edge < 1 || edge > most)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "%s needs a number, the edge of its cells from 1 to %d, not %d", who,
                       most, edge);
    return CV_OK;
}

static cv_status check_ndcell(const cv_codec_spec *spec, int i, cv_error *err)
{
    static const char who[] = "filter ndcell";
    int edge = spec->filters_meta[i];
    int64_t cell = 1, block = spec->block_bytes / spec->item_size;
    CV_TRY(check_cells(spec, who, edge, 255, err));
    if (spec->item_size > 255)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "%s takes items of at most 255 bytes, these have %d", who,
                       spec->item_size);
    for (int d = 0; d < spec->ndim && cell <= block; d++) cell *= edge;
    if (cell <= block) return CV_OK;
    return cv_fail(err, CATERVA_EPIPELINE, -1,
                   "%s of edge %d needs blocks of at least %d items to the power of %d, "
                   "these have %lld",
                   who, edge, edge, spec->ndim, (long long)block);
}

static cv_status check_ndmean(const cv_codec_spec *spec, int i, cv_error *err)
{
    static const char who[] = "filter ndmean";
    CV_TRY(check_floats(spec, who, err));
    return check_cells(spec, who, (int8_t)spec->filters_meta[i], INT8_MAX, err);
}

static cv_status check_needs(const cv_codec_spec *spec, int i, cv_error *err)
{
    switch (spec->filters[i]) {
    case BLOSC_TRUNC_PREC: return check_trunc_prec(spec, i, err);
    case BLOSC_FILTER_INT_TRUNC: return check_int_trunc(spec, i, err);
    case BLOSC_FILTER_NDCELL: return check_ndcell(spec, i, err);
    case BLOSC_FILTER_NDMEAN: return check_ndmean(spec, i, err);
    case BLOSC_FILTER_BYTEDELTA_BUGGY: /* processors differ after the last 16-byte step */
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "filter bytedelta-old is only for reading: its output depends on the "
                       "processor; use bytedelta");
    default: return CV_OK;
    }
}

/* ---- Order ----------------------------------------------------------------------- */

/* Returns the last filter before filter `i` that has one of `effects`, or NULL. */
static const char *before(const cv_codec_spec *spec, int i, int effects)
{
    while (--i >= 0) {
        uint8_t filter = spec->filters[i];
        if (filter != BLOSC_NOFILTER && effect(filter) & effects)
            return cv_filter_name(filter);
    }
    return NULL;
}

static cv_status refuse_order(const cv_codec_spec *spec, int i, const char *other,
                              const char *why, cv_error *err)
{
    int place = 1;
    for (int k = 0; k < i; k++) place += spec->filters[k] != BLOSC_NOFILTER;
    return cv_fail(err, CATERVA_EPIPELINE, -1, "filter %s, number %d, cannot follow %s: %s",
                   cv_filter_name(spec->filters[i]), place, other, why);
}

/* Delta compares the items of block 0 with the items before them, and other blocks with block 0.
 * The encoder compares with block 0 of the source, which a third filter would have overwritten. The
 * decoder compares with the decoded block 0, in which a lossy filter would have dropped bits. */
static cv_status check_delta(const cv_codec_spec *spec, int i, cv_error *err)
{
    int n = cv_codec_n_filters(spec);
    if (n > 2)
        return cv_fail(
            err, CATERVA_EPIPELINE, -1,
            "filter delta works alone or with one other: with %d filters libblosc2 "
            "overwrites the data that delta compares with",
            n);
    const char *other = before(spec, i, DROPS);
    if (!other) return CV_OK;
    return refuse_order(spec, i, other, "it compares with the items before that filter", err);
}

static cv_status check_order(const cv_codec_spec *spec, int i, cv_error *err)
{
    uint8_t filter = spec->filters[i];
    if (filter == BLOSC_DELTA) return check_delta(spec, i, err);
    if (!(effect(filter) & DROPS)) return CV_OK;
    bool averages = filter == BLOSC_FILTER_NDMEAN;
    const char *other = before(spec, i, averages ? MOVES : MIXES);
    if (!other) return CV_OK;
    return refuse_order(spec, i, other,
                        averages ? "the items that it averages would not be neighbours"
                                 : "the bits it drops would not be the lowest of an item",
                        err);
}

/* ---- Codecs ------------------------------------------------------------------------ */

static bool is_zfp(int codec)
{
    return codec >= BLOSC_CODEC_ZFP_FIXED_ACCURACY && codec <= BLOSC_CODEC_ZFP_FIXED_RATE;
}

static cv_status check_zfp_filters(const cv_codec_spec *spec, const char *who, cv_error *err)
{
    for (int i = 0; i < CV_CODEC_FILTERS; i++) {
        uint8_t filter = spec->filters[i];
        if (filter != BLOSC_NOFILTER && (effect(filter) & MIXES || filter == BLOSC_DELTA))
            return cv_fail(err, CATERVA_EPIPELINE, -1,
                           "%s compresses floats, but filter %s produces other bytes", who,
                           cv_filter_name(filter));
    }
    return CV_OK;
}

static cv_status check_zfp(const cv_codec_spec *spec, cv_error *err)
{
    enum { MOST_DIMS = 4, EDGE = 4, WHOLE = 100 };
    const char *who = cv_codec_name(spec->codec);
    CV_TRY(check_floats(spec, who, err));
    if (spec->ndim < 1 || spec->ndim > MOST_DIMS)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "%s takes 1 to %d dimensions, these are %d", who, MOST_DIMS,
                       spec->ndim);
    for (int d = 0; d < spec->ndim; d++)
        if (spec->block_shape[d] < EDGE)
            return cv_fail(err, CATERVA_EPIPELINE, -1,
                           "%s needs blocks of at least %d items along each axis, "
                           "block shape[%d] is %lld",
                           who, EDGE, d, (long long)spec->block_shape[d]);
    if (spec->codec == BLOSC_CODEC_ZFP_FIXED_RATE &&
        (spec->codec_meta < 1 || spec->codec_meta > WHOLE))
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "%s needs a number, 1 to %d percent of the size, not %d", who, WHOLE,
                       spec->codec_meta);
    return check_zfp_filters(spec, who, err);
}

static cv_status check_ndlz(const cv_codec_spec *spec, cv_error *err)
{
    enum { FEWEST = 16 };
    if (spec->codec_meta != 4 && spec->codec_meta != 8)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "ndlz needs a number, the edge of its cells: 4 or 8, not %d",
                       spec->codec_meta);
    if (spec->item_size != 1)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "ndlz takes items of 1 byte, these have %d", spec->item_size);
    if (spec->ndim != 2)
        return cv_fail(err, CATERVA_EPIPELINE, -1, "ndlz takes 2 dimensions, these are %d",
                       spec->ndim);
    if (spec->block_bytes < FEWEST)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "ndlz needs blocks of at least %d items, these have %d", FEWEST,
                       spec->block_bytes);
    return CV_OK;
}

static cv_status check_dictionary(const cv_codec_spec *spec, cv_error *err)
{
    if (spec->codec != BLOSC_ZSTD && spec->codec != BLOSC_LZ4 && spec->codec != BLOSC_LZ4HC)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "%s does not support a dictionary; zstd does",
                       cv_codec_name(spec->codec));
    int n = cv_codec_n_filters(spec); /* they run twice, the second time over scratch */
    if (n > 2)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "a dictionary allows at most 2 filters, there are %d", n);
    return CV_OK;
}

/* libblosc2's BloscLZ decoder overflows on longer streams. Only the encoder decides whether a block
 * is split into shorter streams. */
enum { MAX_BLOSCLZ_BLOCK = 8 << 20 };

static cv_status check_stored_codec(const cv_codec_spec *spec, cv_error *err)
{
    if (spec->use_dict) CV_TRY(check_dictionary(spec, err));
    if (is_zfp(spec->codec)) return check_zfp(spec, err);
    if (spec->codec == BLOSC_CODEC_NDLZ) return check_ndlz(spec, err);
    if (spec->codec == BLOSC_BLOSCLZ && spec->block_bytes > MAX_BLOSCLZ_BLOCK)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "blosclz takes blocks of at most %d bytes, these have %d",
                       MAX_BLOSCLZ_BLOCK, spec->block_bytes);
    return CV_OK;
}

cv_status cv_codec_check_encoding(const cv_codec_spec *spec, cv_error *err)
{
    CV_TRY(cv_codec_check(spec, err));
    CV_TRY(check_stored_codec(spec, err));
    for (int i = 0; i < CV_CODEC_FILTERS; i++) {
        if (spec->filters[i] == BLOSC_NOFILTER) continue;
        CV_TRY(check_needs(spec, i, err));
        CV_TRY(check_order(spec, i, err));
    }
    return CV_OK;
}
