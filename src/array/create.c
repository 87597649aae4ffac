/* Room: array. Creates arrays: checks all options, and makes the header of a frame from them. */
#include "array/create.h"

#include "array/array.h"
#include "array/library.h"
#include "array/open.h"
#include "array/wings.h"
#include "base/heap.h"
#include "base/os_dir.h"
#include "base/status.h"
#include "codec/spec.h"
#include "engine/items/copy.h"
#include "engine/plan/partition.h"
#include "format/array_meta.h"
#include "format/dtype.h"
#include "frame/attributes.h"
#include "store/custom.h"
#include "store/open.h"
#include "store/place.h"

#include <caterva_store.h>
#include <stdio.h>
#include <string.h>

/* A new array: everything that is decided and checked before its store is created. */
typedef struct blueprint {
    caterva_create_options options;
    const cv_snapshot *like; /* of a copy: the source, for all that the options leave unset */
    char dtype[24];          /* "|V<n>" if the options have no dtype */
    const char *dtype_text;
    size_t dtype_size;
    uint8_t dtype_format;
    int64_t item_size;
    int32_t chunk_shape[CV_MAX_DIMS];
    int32_t block_shape[CV_MAX_DIMS];
    cv_grid grid;
    cv_buffer meta;           /* the b2nd or caterva metalayer */
    uint8_t nan[8];           /* the item that fills the array, if it is NaN */
    cv_buffer own;            /* value of the library's own attribute */
    cv_metalayer *attributes; /* the library's own attribute and those of `like` */
    cv_placed placed;         /* `attributes`, if some of them had to be moved */
    cv_frame_seed seed;
} blueprint;

enum { SPLIT_AUTO = 3 };

/* ---- Checking options --------------------------------------------------- */

static cv_status check_choices(const caterva_create_options *o, cv_error *err)
{
    CV_TRY(cv_progress_check(&o->progress, err));
    if (o->ndim < 0 || o->ndim > CATERVA_MAX_WRITE_DIMS)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d dimensions: 0 to %d can be written",
                       o->ndim, CATERVA_MAX_WRITE_DIMS);
    if (o->ndim > 0 && !o->shape) return cv_fail(err, CATERVA_EINVAL, -1, "shape is NULL");
    if (o->layout < CATERVA_LAYOUT_DEFAULT || o->layout > CATERVA_LAYOUT_SPARSE)
        return cv_fail(err, CATERVA_EINVAL, -1, "layout %d is not known", (int)o->layout);
    if (o->metalayer < CATERVA_METALAYER_DEFAULT || o->metalayer > CATERVA_METALAYER_CATERVA)
        return cv_fail(err, CATERVA_EINVAL, -1, "metalayer %d is not known",
                       (int)o->metalayer);
    if (o->fill < CATERVA_FILL_DEFAULT || o->fill > CATERVA_FILL_VALUE)
        return cv_fail(err, CATERVA_EINVAL, -1, "fill %d is not known", (int)o->fill);
    if (o->fill == CATERVA_FILL_VALUE && !o->fill_value)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the fill is a value, but fill_value is NULL");
    if (o->durability < CATERVA_DURABILITY_FULL || o->durability > CATERVA_DURABILITY_NONE)
        return cv_fail(err, CATERVA_EINVAL, -1, "durability %d is not known",
                       (int)o->durability);
    if (o->dirty_budget < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "dirty_budget is %lld, less than 0",
                       (long long)o->dirty_budget);
    if (o->threads < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "threads is %d, less than 0", o->threads);
    CV_TRY(cv_array_check_compact(o->compact_percent, err));
    return cv_array_check_cache(o->cache_bytes, err);
}

/* Takes the dtype of `like` without a check, because a copy keeps even an unknown dtype. */
static void copy_dtype(blueprint *b)
{
    const cv_snapshot *like = b->like;
    b->item_size = like->grid.item_size;
    snprintf(b->dtype, sizeof b->dtype, "|V%d", like->grid.item_size);
    b->dtype_text = like->meta.dtype ? like->meta.dtype : b->dtype;
    b->dtype_size = like->meta.dtype ? like->meta.dtype_size : strlen(b->dtype);
    b->dtype_format = like->meta.dtype ? like->meta.dtype_format : 0;
}

static cv_status check_item_size(blueprint *b, cv_error *err)
{
    const caterva_create_options *o = &b->options;
    if (b->like && !o->dtype) {
        copy_dtype(b);
        return CV_OK;
    }
    if (!o->dtype) {
        if (o->item_size == 0)
            return cv_fail(err, CATERVA_EINVAL, -1, "neither dtype nor item_size is given");
        if (o->item_size < 0)
            return cv_fail(err, CATERVA_EINVAL, -1, "item_size is %d, less than 0",
                           o->item_size);
        b->item_size = o->item_size;
        snprintf(b->dtype, sizeof b->dtype, "|V%d", o->item_size);
        b->dtype_text = b->dtype;
        b->dtype_size = strlen(b->dtype);
        return CV_OK;
    }
    if (!cv_is_utf8(o->dtype))
        return cv_fail(err, CATERVA_EINVAL, -1, "dtype %.100s is not UTF-8", o->dtype);
    b->dtype_text = o->dtype;
    b->dtype_size = strlen(o->dtype);
    CV_TRY(cv_dtype_item_size(o->dtype, strlen(o->dtype), &b->item_size, err));
    if (b->item_size < 1)
        return cv_fail(err, CATERVA_EINVAL, -1, "dtype %.100s has items of 0 bytes",
                       o->dtype);
    if (o->item_size != 0 && o->item_size != b->item_size)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "item_size is %d, but items of dtype %.100s have %lld bytes",
                       o->item_size, o->dtype, (long long)b->item_size);
    bool converts = o->item_size != 0; /* only a copy that converts sets item_size */
    if (b->like && !converts && b->item_size != b->like->grid.item_size)
        return cv_fail(
            err, CATERVA_EDTYPE, -1,
            "items of dtype %.100s have %lld bytes, but those of the array have %d", o->dtype,
            (long long)b->item_size, b->like->grid.item_size);
    return CV_OK;
}

static cv_status check_fill(const blueprint *b, cv_error *err)
{
    if (b->options.fill == CATERVA_FILL_NAN && b->item_size != 4 && b->item_size != 8)
        return cv_fail(err, CATERVA_EDTYPE, -1,
                       "NaN can fill items of 4 or 8 bytes, but these have %lld",
                       (long long)b->item_size);
    return CV_OK;
}

/* ---- Building the header ------------------------------------------------ */

/* Converts a public constant of a codec or filter to its byte in a header. */
static bool byte_of(int number, uint8_t *out)
{
    *out = (uint8_t)number;
    return number >= 0 && number <= CATERVA_CODEC_BLOSCLZ;
}

static cv_status set_filters(const caterva_create_options *o, cv_frame_header *h,
                             cv_error *err)
{
    for (int i = 0; i < CV_MAX_FILTERS; i++) {
        if (!byte_of(o->filters[i], &h->filters[i]))
            return cv_fail(err, CATERVA_EINVAL, -1, "filters[%d] is %d, not in 0..256", i,
                           o->filters[i]);
        if (o->filters_meta[i] < -128 || o->filters_meta[i] > 255)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "filters_meta[%d] is %d, not in -128..255", i, o->filters_meta[i]);
        h->filters_meta[i] = (uint8_t)o->filters_meta[i];
    }
    bool is_mark = h->filters[0] == 0 && h->filters_meta[0] == CV_META_AUTOMATIC;
    if (is_mark) h->filters_meta[0] = 0; /* given filters hold for every chunk */
    return CV_OK;
}

/* Sets a shuffle, except for n-d codecs, which work on whole numbers, and for items of one byte,
 * which a shuffle does not change. */
static void set_default_filters(cv_frame_header *h, int64_t item_size)
{
    if (h->codec < CATERVA_CODEC_NDLZ && item_size > 1)
        h->filters[CV_MAX_FILTERS - 1] = CATERVA_FILTER_SHUFFLE;
}

static cv_status set_level(const blueprint *b, cv_frame_header *h, cv_error *err)
{
    int level = b->options.level;
    if (level < CATERVA_NONE || level > 9)
        return cv_fail(err, CATERVA_EINVAL, -1, "compression level %d is not in -1..9",
                       level);
    if (level != 0) h->level = level == CATERVA_NONE ? 0 : (uint8_t)level;
    return CV_OK;
}

/* Sets codec, level and filters: from the options, else from `like`, else to the defaults. */
static cv_status set_codec(const blueprint *b, cv_frame_header *h, cv_error *err)
{
    const caterva_create_options *o = &b->options;
    const cv_frame_header *like =
        b->like && o->codec == CATERVA_CODEC_DEFAULT ? &b->like->header : NULL;
    if (!byte_of(o->codec, &h->codec) || o->codec_meta < 0 || o->codec_meta > 255)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "codec %d is not in 0..256, or its meta %d is not in 0..255", o->codec,
                       o->codec_meta);
    h->split_mode = SPLIT_AUTO;
    h->use_dict = o->use_dict != 0;
    h->codec_meta = (uint8_t)o->codec_meta;
    if (like) {
        h->codec = like->codec;
        h->codec_meta = like->codec_meta;
        h->split_mode = like->split_mode;
        h->use_dict = h->use_dict || like->use_dict;
    } else if (o->codec == CATERVA_CODEC_DEFAULT) {
        h->codec = CATERVA_CODEC_ZSTD;
    }
    /* Levels 2 and 3 of zstd write two to seven times as fast as level 5; files are a few per cent
     * larger. For items of one byte, level 2 costs more (docs/performance.md, "Defaults"). */
    int level = h->codec != CATERVA_CODEC_ZSTD ? 5 : b->item_size == 1 ? 3 : 2;
    h->level = like ? like->level : (uint8_t)level;
    CV_TRY(set_level(b, h, err));
    if (o->use_dict && !cv_codec_makes_dict(h->codec))
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "%s does not support a dictionary; zstd does",
                       cv_codec_name(h->codec));
    static const int unset[CV_MAX_FILTERS];
    if (memcmp(o->filters, unset, sizeof o->filters) != 0) return set_filters(o, h, err);
    if (like) {
        memcpy(h->filters, like->filters, sizeof h->filters);
        memcpy(h->filters_meta, like->filters_meta, sizeof h->filters_meta);
    } else {
        set_default_filters(h, b->item_size);
    }
    if (o->level != 0 && h->filters_meta[0] == CV_META_AUTOMATIC) h->filters_meta[0] = 0;
    if (o->level == 0 && !like && h->codec == CATERVA_CODEC_ZSTD)
        h->filters_meta[0] = CV_META_AUTOMATIC;
    return CV_OK;
}

static cv_status add_metalayer(cv_frame_header *h, const char *name, const void *content,
                               size_t size, cv_error *err)
{
    if (!name || !name[0] || strlen(name) > CV_MAX_NAME)
        return cv_fail(err, CATERVA_EINVAL, -1, "a metalayer's name has 1 to %d bytes",
                       CV_MAX_NAME);
    if (size > 0 && !content)
        return cv_fail(err, CATERVA_EINVAL, -1, "the content of metalayer \"%s\" is NULL",
                       name);
    if (size > INT32_MAX)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "metalayer \"%s\" has %zu bytes, more than a frame can store", name,
                       size);
    if (cv_metalayers_find(h->metalayers, h->n_metalayers, name))
        return cv_fail(err, CATERVA_EINVAL, -1, "metalayer \"%s\" is given twice", name);
    if (h->n_metalayers == CV_MAX_METALAYERS)
        return cv_fail(err, CATERVA_EINVAL, -1, "more than %d metalayers", CV_MAX_METALAYERS);
    cv_metalayer *layer = &h->metalayers[h->n_metalayers++];
    snprintf(layer->name, sizeof layer->name, "%s", name);
    layer->data = content;
    layer->size = (uint32_t)size;
    return CV_OK;
}

static bool is_array_meta(const char *name)
{
    return strcmp(name, "b2nd") == 0 || strcmp(name, "caterva") == 0;
}

static cv_status copy_metalayers(const cv_frame_header *like, cv_frame_header *h,
                                 cv_error *err)
{
    for (int i = 0; i < like->n_metalayers; i++) {
        const cv_metalayer *m = &like->metalayers[i];
        if (is_array_meta(m->name)) continue;
        CV_TRY(add_metalayer(h, m->name, m->data, m->size, err));
    }
    return CV_OK;
}

static cv_status set_metalayers(blueprint *b, cv_error *err)
{
    const caterva_create_options *o = &b->options;
    cv_array_meta meta = {
        .legacy = o->metalayer == CATERVA_METALAYER_CATERVA,
        .ndim = o->ndim,
        .dtype_format = b->dtype_format,
        .dtype = b->dtype_text,
        .dtype_size = (uint32_t)b->dtype_size,
    };
    for (int d = 0; d < o->ndim; d++) {
        meta.shape[d] = o->shape[d];
        meta.chunk_shape[d] = b->chunk_shape[d];
        meta.block_shape[d] = b->block_shape[d];
    }
    CV_TRY(cv_array_meta_write(&meta, &b->meta, err));

    cv_frame_header *h = &b->seed.header;
    CV_TRY(
        add_metalayer(h, meta.legacy ? "caterva" : "b2nd", b->meta.data, b->meta.size, err));
    if (o->n_metalayers == 0 && b->like) return copy_metalayers(&b->like->header, h, err);
    if (o->n_metalayers < 0 || (o->n_metalayers > 0 && !o->metalayers))
        return cv_fail(err, CATERVA_EINVAL, -1, "n_metalayers is %d, but metalayers is NULL",
                       o->n_metalayers);
    for (int i = 0; i < o->n_metalayers; i++) {
        const caterva_metalayer *m = &o->metalayers[i];
        if (m->name && is_array_meta(m->name))
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "metalayer \"%s\" is reserved for the array", m->name);
        if (m->name && !cv_is_utf8(m->name))
            return cv_fail(err, CATERVA_EINVAL, -1, "the metalayer name \"%s\" is not UTF-8",
                           m->name);
        CV_TRY(add_metalayer(h, m->name, m->content, m->size, err));
    }
    return CV_OK;
}

static void swap_bytes(uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size / 2; i++) {
        uint8_t byte = bytes[i];
        bytes[i] = bytes[size - 1 - i];
        bytes[size - 1 - i] = byte;
    }
}

/* Sets the fill. A value other than zeros, even NaN, is stored in the library's own attribute. */
static cv_status set_fill(blueprint *b, cv_error *err)
{
    caterva_create_options *o = &b->options;
    size_t size = (size_t)b->item_size;
    if (o->fill == CATERVA_FILL_NAN) {
        uint8_t *nan = b->nan;
        memcpy(nan, cv_nan_item(b->item_size), size);
        if (b->dtype_size > 0 && b->dtype_text[0] == '>') swap_bytes(nan, size);
        o->fill_value = nan;
        o->fill = CATERVA_FILL_VALUE;
    }
    cv_ref_kind kind = o->fill == CATERVA_FILL_UNINIT ? CV_REF_UNINIT : CV_REF_ZEROS;
    bool is_value = o->fill == CATERVA_FILL_VALUE && !cv_all_zero(o->fill_value, size);
    if (is_value) /* cv_pending_fill makes UNINIT mean the fill */
        kind = cv_is_nan(o->fill_value, size) ? CV_REF_NAN : CV_REF_UNINIT;
    b->seed.initial_offset = cv_offset_of_kind(kind);
    if (!is_value) return CV_OK;

    cv_own own = {.fill = o->fill_value, .fill_size = (uint32_t)size};
    cv_buffer value = {0};
    cv_status status = cv_own_write(&own, &value, err);
    if (status == CV_OK) status = cv_encode_plain(value.data, value.size, NULL, &b->own, err);
    cv_buffer_free(&value);
    return status;
}

/* Moves some attributes of `like`, to make room for the library's own attribute in the trailer. */
static cv_status place_attributes(blueprint *b, const cv_metalayer *own, cv_error *err)
{
    const cv_attributes *all;
    CV_TRY(cv_snapshot_attributes(b->like, &all, err));
    CV_TRY(cv_attributes_place(all->list, all->n, own, 0, &b->placed, err));
    b->seed.attributes = b->placed.layers;
    b->seed.n_attributes = b->placed.n;
    return CV_OK;
}

/* Takes the attributes of `like`, except the library's own attribute; adds b->own unless empty. */
static cv_status set_attributes(blueprint *b, cv_error *err)
{
    int n = b->like ? b->like->trailer.n_attributes : 0;
    size_t size = ((size_t)n + 1) * sizeof b->attributes[0];
    b->attributes = cv_malloc(size);
    if (!b->attributes) return cv_fail_memory(err, size, "the attributes");
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const cv_metalayer *attribute = &b->like->trailer.attributes[i];
        if (strcmp(attribute->name, CV_OWN_ATTRIBUTE) != 0)
            b->attributes[kept++] = *attribute;
    }
    if (b->own.size > 0) {
        cv_metalayer own = {.name = CV_OWN_ATTRIBUTE, .data = b->own.data};
        own.size = (uint32_t)b->own.size;
        b->attributes[kept++] = own;
        if (kept > CV_MAX_METALAYERS) return place_attributes(b, &own, err);
    }
    b->seed.attributes = b->attributes;
    b->seed.n_attributes = kept;
    return CV_OK;
}

/* Checks that codec and filters can encode these items, before a file is created or overwritten. */
static cv_status check_encoding(const blueprint *b, cv_error *err)
{
    const cv_frame_header *h = &b->seed.header;
    cv_snapshot state = {.header = *h, .grid = b->grid};
    cv_buffer geometry = {0};
    cv_codec_spec spec;
    CV_TRY(cv_array_meta_parse(h->metalayers[0].data, h->metalayers[0].size,
                               b->options.metalayer == CATERVA_METALAYER_CATERVA, -1,
                               &state.meta, err));
    cv_status status = cv_frame_codec_spec(&state, &geometry, &spec, err);
    if (status == CV_OK) status = cv_codec_check_encoding(&spec, err);
    cv_buffer_free(&geometry);
    return status;
}

static cv_status draw(blueprint *b, cv_error *err)
{
    const caterva_create_options *o = &b->options;
    CV_TRY(check_choices(o, err));
    CV_TRY(check_item_size(b, err));
    CV_TRY(check_fill(b, err));
    CV_TRY(cv_partition_choose(o->ndim, o->shape, b->item_size, o->chunk_shape,
                               o->block_shape, b->chunk_shape, b->block_shape, err));
    CV_TRY(cv_grid_init(&b->grid, o->ndim, o->shape, b->chunk_shape, b->block_shape,
                        b->item_size, err));
    cv_frame_header *h = &b->seed.header;
    h->version = CV_FRAME_VERSION;
    h->sparse = o->layout == CATERVA_LAYOUT_SPARSE;
    h->nbytes = b->grid.n_chunks * b->grid.chunk_bytes;
    h->type_size = b->grid.item_size;
    h->block_size = (int32_t)b->grid.block_bytes;
    h->chunk_size = (int32_t)b->grid.chunk_bytes;
    CV_TRY(set_codec(b, h, err));
    CV_TRY(set_fill(b, err));
    CV_TRY(set_attributes(b, err));
    CV_TRY(set_metalayers(b, err));
    return check_encoding(b, err);
}

/* ---- Creating ----------------------------------------------------------- */

/* Creates the array. Owns the store, even on failure. `path` is NULL for a store without a path. */
static cv_status create(cv_store *store, const char *path, const blueprint *b,
                        caterva_array **out, cv_error *err)
{
    cv_frame *frame;
    CV_TRY(cv_frame_create(store, &b->seed, b->options.durability, &frame, err));
    CV_TRY(cv_array_new(frame, true, b->options.threads, out, err));
    (*out)->ahead.off = b->options.no_read_ahead != 0;
    if (b->options.dirty_budget > 0) (*out)->pending->budget = b->options.dirty_budget;
    cv_status status = cv_array_set_cache(*out, b->options.cache_bytes, err);
    if (status == CV_OK) status = cv_array_set_watch(*out, &b->options.progress, err);
    (*out)->compact_percent = b->options.compact_percent;
    if (status == CV_OK && path) (*out)->path = cv_os_absolute(path);
    if (status == CV_OK && path && !(*out)->path)
        status = cv_fail_memory(err, strlen(path), "a path");
    if (status != CV_OK) {
        cv_array_free(*out);
        *out = NULL;
        return status;
    }
    cv_pending_fill((*out)->pending);
    return CV_OK;
}

static void free_blueprint(blueprint *b)
{
    cv_free(b->attributes);
    cv_placed_free(&b->placed);
    cv_buffer_free(&b->meta);
    cv_buffer_free(&b->own);
}

static cv_status create_at(const char *url, blueprint *b, caterva_array **out, cv_error *err)
{
    cv_store *store = NULL;
    const caterva_create_options *o = &b->options;
    const char *slip = strstr(url, ".b2d::");
    if (slip && slip[6] != '/')
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the key of an array in a tree must begin with a slash: %.*s/%.80s",
                       (int)(slip + 6 - url), url, slip + 6);
    CV_TRY(cv_store_create(url, o->layout, o->overwrite != 0, &store, err));
    return create(store, strcmp(url, "mem:") == 0 ? NULL : url, b, out, err);
}

static cv_status place_leaf(const char *url, const caterva_create_options *options,
                            char **place, cv_error *err)
{
    CV_TRY(cv_check_built(cv_wings.tree, "CATERVA_TREES", err));
    CV_TRY(cv_refuse_url(url, err));
    if (options->layout == CATERVA_LAYOUT_SPARSE)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "an array in a tree is one file: it cannot be sparse");
    return cv_wings.tree->leaf_place(url, options->overwrite != 0, place, err);
}

cv_status cv_array_create(const char *url, const caterva_create_options *options,
                          const cv_snapshot *like, caterva_array **out, cv_error *err)
{
    blueprint b = {.options = *options, .like = like};
    char *place = NULL; /* the path of a leaf in a tree; or NULL */
    cv_status status = draw(&b, err);
    if (status == CV_OK && cv_array_is_leaf_url(url))
        status = place_leaf(url, options, &place, err);
    if (status == CV_OK) status = create_at(place ? place : url, &b, out, err);
    cv_free(place);
    free_blueprint(&b);
    return status;
}

caterva_status caterva_create(const char *url, const caterva_create_options *options,
                              caterva_array **out, caterva_error *err)
{
    if (!url || !options || !out)
        return cv_fail(err, CATERVA_EINVAL, -1, "url, options or out is NULL");
    *out = NULL;
    caterva_create_options o;
    CV_TRY(cv_options_copy(&o, sizeof o, options, "create options", err));
    return cv_array_create(url, &o, NULL, out, err);
}

void caterva_delete_temporaries(void) { cv_temporaries_abandon(); }

caterva_status caterva_partition_choose(int ndim, const int64_t *shape, int64_t item_size,
                                        const int32_t *given_chunk_shape,
                                        const int32_t *given_block_shape,
                                        int32_t *chunk_shape, int32_t *block_shape,
                                        caterva_error *err)
{
    if (ndim > 0 && (!shape || !chunk_shape || !block_shape))
        return cv_fail(err, CATERVA_EINVAL, -1, "shape, chunk_shape or block_shape is NULL");
    return cv_partition_choose(ndim, shape, item_size, given_chunk_shape, given_block_shape,
                               chunk_shape, block_shape, err);
}

caterva_status caterva_store_create(const caterva_store *store,
                                    const caterva_create_options *options,
                                    caterva_array **out, caterva_error *err)
{
    if (!store || !options || !out)
        return cv_fail(err, CATERVA_EINVAL, -1, "store, options or out is NULL");
    *out = NULL;
    blueprint b = {.like = NULL};
    caterva_store given;
    cv_store *own = NULL;
    CV_TRY(cv_options_copy(&given, sizeof given, store, "store", err));
    CV_TRY(cv_options_copy(&b.options, sizeof b.options, options, "create options", err));
    if (b.options.layout == CATERVA_LAYOUT_SPARSE)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "a store of the program's own cannot be a directory");
    cv_status status = draw(&b, err);
    if (status == CV_OK)
        status = cv_store_custom_create(&given, b.options.overwrite != 0, &own, err);
    if (status == CV_OK) status = create(own, NULL, &b, out, err);
    if (status == CV_OK) cv_store_custom_own(own);
    free_blueprint(&b);
    return status;
}
