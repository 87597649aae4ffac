/* Room: upkeep. Arrays that are also Zarr v3 arrays: what they require of partition and pipeline,
 * how their directory is made, and how it is verified. The chunks are written by the transaction
 * (cv_txn_set_dual), everything else follows from the finished frame. */
#include "upkeep/zarr.h"

#include "array/open.h"
#include "base/arith.h"
#include "engine/items/copy.h"
#include "engine/plan/partition.h"
#include "engine/write/shard.h"
#include "format/dtype.h"
#include "format/dual.h"
#include "format/zarr_meta.h"
#include "store/descriptors.h"

#include <stdio.h>
#include <string.h>

/* ---- What the new array must be --------------------------------------------------- */

static bool is_core_codec(int codec)
{
    return codec == CATERVA_CODEC_BLOSCLZ || codec == CATERVA_CODEC_LZ4 ||
           codec == CATERVA_CODEC_LZ4HC || codec == CATERVA_CODEC_ZLIB ||
           codec == CATERVA_CODEC_ZSTD;
}

static bool is_set(const int *filters)
{
    static const int unset[CATERVA_MAX_FILTERS];
    return memcmp(filters, unset, sizeof unset) != 0;
}

/* Whether Blosc 1 can decode blocks with these filters. */
static bool filters_fit(const uint8_t *filters, const uint8_t *meta, int64_t item_size,
                        int64_t block_bytes)
{
    cv_chunk_header header = {.codec = 1,
                              .type_size = (uint8_t)(item_size > UINT8_MAX ? 1 : item_size),
                              .block_size = (int32_t)block_bytes};
    memcpy(header.filters, filters, sizeof header.filters);
    memcpy(header.filters_meta, meta, sizeof header.filters_meta);
    return cv_dual_fits(&header);
}

static cv_status check_given_filters(const caterva_create_options *c, int64_t item_size,
                                     int64_t block_bytes, cv_error *err)
{
    uint8_t filters[CATERVA_MAX_FILTERS], meta[CATERVA_MAX_FILTERS];
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++) {
        filters[i] = (uint8_t)c->filters[i]; /* CATERVA_FILTER_NONE becomes 0 */
        meta[i] = (uint8_t)c->filters_meta[i];
    }
    if (filters_fit(filters, meta, item_size, block_bytes)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "a Zarr array can have one filter, shuffle or bitshuffle, and trunc_prec "
                   "before it; bitshuffle needs blocks of a multiple of 8 items");
}

/* The codec of a frame, as in options. */
static int codec_of(const cv_frame_header *h)
{
    return h->codec == 0 ? CATERVA_CODEC_BLOSCLZ : h->codec;
}

/* Codec and level of the source become explicit, so that other filters can be set. */
static void take_codec(caterva_create_options *c, const cv_frame_header *source)
{
    bool keeps = is_core_codec(codec_of(source));
    c->codec = keeps ? codec_of(source) : CATERVA_CODEC_ZSTD;
    if (c->level == 0 && keeps) c->level = source->level == 0 ? CATERVA_NONE : source->level;
}

static cv_status adapt_pipeline(caterva_create_options *c, const cv_snapshot *source,
                                int64_t item_size, int64_t block_bytes, cv_error *err)
{
    const cv_frame_header *h = &source->header;
    bool takes_codec = c->codec == CATERVA_CODEC_DEFAULT;
    if (c->codec != CATERVA_CODEC_DEFAULT && !is_core_codec(c->codec))
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "a Zarr array can have the codecs blosclz, lz4, lz4hc, zlib and zstd");
    if (c->use_dict)
        return cv_fail(err, CATERVA_EINVAL, -1, "a Zarr array can have no dictionaries");
    if (is_set(c->filters)) CV_TRY(check_given_filters(c, item_size, block_bytes, err));
    bool keeps_filters = filters_fit(h->filters, h->filters_meta, item_size, block_bytes);
    bool keeps = is_core_codec(codec_of(h)) && !h->use_dict && keeps_filters;
    if (takes_codec && !keeps) {
        take_codec(c, h);
        for (int i = 0; i < CATERVA_MAX_FILTERS && keeps_filters && !is_set(c->filters);
             i++) {
            c->filters[i] = h->filters[i];
            c->filters_meta[i] = h->filters_meta[i];
        }
        if (keeps_filters && !is_set(c->filters)) c->filters[0] = CATERVA_FILTER_NONE;
    }
    /* Chunks may choose bitshuffle themselves unless a level is given. */
    bool chooses = c->codec == CATERVA_CODEC_DEFAULT
                       ? h->filters_meta[0] == CV_META_AUTOMATIC
                       : c->codec == CATERVA_CODEC_ZSTD && !is_set(c->filters);
    if (chooses && c->level == 0 && block_bytes / item_size % 8 != 0)
        c->level = c->codec == CATERVA_CODEC_DEFAULT ? h->level : item_size == 1 ? 3 : 2;
    return CV_OK;
}

/* The largest divisor of `n` that is at most `most`. */
static int32_t divisor(int32_t n, int32_t most)
{
    for (int32_t d = most < n ? most : n; d > 1; d--)
        if (n % d == 0) return d;
    return 1;
}

static cv_status adapt_partition(caterva_create_options *c, int64_t item_size, bool is_given,
                                 int32_t *chunk_shape, int32_t *block_shape, cv_error *err)
{
    int32_t chunk[CV_MAX_DIMS], block[CV_MAX_DIMS];
    bool keeps_chunk = c->chunk_shape && is_given, keeps_block = c->block_shape && is_given;
    CV_TRY(cv_partition_choose(c->ndim, c->shape, item_size, c->chunk_shape, c->block_shape,
                               chunk, block, err));
    for (int d = 0; d < c->ndim; d++) {
        if (chunk[d] % block[d] == 0) continue;
        if (keeps_chunk && keeps_block)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "chunks of a Zarr array are whole blocks, but on axis %d %d is no "
                           "multiple of %d",
                           d, chunk[d], block[d]);
        int64_t larger = cv_ceil_div(chunk[d], block[d]) * block[d];
        if (keeps_chunk || larger > INT32_MAX)
            block[d] = divisor(chunk[d], block[d]);
        else
            chunk[d] = (int32_t)larger;
    }
    memcpy(chunk_shape, chunk, sizeof chunk[0] * (size_t)c->ndim);
    memcpy(block_shape, block, sizeof block[0] * (size_t)c->ndim);
    c->chunk_shape = chunk_shape;
    c->block_shape = block_shape;
    return CV_OK;
}

static cv_status check_dtype(const char *text, int64_t *item_size, cv_error *err)
{
    caterva_dtype *dtype;
    CV_TRY(cv_dtype_parse(text, strlen(text), &dtype, err));
    *item_size = dtype->item_size;
    cv_status status = cv_zarr_check_dtype(dtype, err);
    caterva_dtype_free(dtype);
    return status;
}

cv_status cv_zarr_adapt(caterva_create_options *create, const cv_snapshot *source,
                        const char *dtype, int32_t *chunk_shape, int32_t *block_shape,
                        cv_error *err)
{
    int64_t item_size, block_items = 1;
    bool is_given = create->chunk_shape != chunk_shape; /* else it is the source's */
    CV_TRY(check_dtype(dtype, &item_size, err));
    if (create->layout == CATERVA_LAYOUT_SPARSE)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "a Zarr array has one frame, and a directory of chunks was requested");
    CV_TRY(adapt_partition(create, item_size, is_given, chunk_shape, block_shape, err));
    for (int d = 0; d < create->ndim; d++) block_items *= block_shape[d];
    return adapt_pipeline(create, source, item_size, block_items * item_size, err);
}

/* Where Blosc 1 does not split blocks, Blosc2 must not. */
void cv_zarr_write_dual(caterva_array *array)
{
    enum { NEVER_SPLIT = 2 };
    cv_codec_spec *spec = &array->workers.spec;
    int64_t type_size = spec->item_size > UINT8_MAX ? 1 : spec->item_size;
    if (!cv_dual_splits(type_size, spec->block_bytes)) spec->split_mode = NEVER_SPLIT;
    cv_txn_set_dual(array->pending->txn);
}

/* ---- The directory -------------------------------------------------------------- */

static cv_status fail_make(const cv_zarr_place *z, int error, cv_error *err)
{
    return cv_fail_sys(err, error, "cannot create %s", z->place.shown.text);
}

cv_status cv_zarr_begin(const char *path, bool overwrite, int ndim, cv_zarr_place *z,
                        cv_error *err)
{
    *z = (cv_zarr_place){.shard = cv_zarr_name_of(ndim)};
    if (strcmp(path, "mem:") == 0 || cv_array_is_leaf_url(path))
        return cv_fail(err, CATERVA_EINVAL, -1, "a Zarr array is a directory of its own");
    CV_TRY(cv_place_open(path, overwrite, &z->place, err));
    z->place.is_directory = true;
    int error = cv_place_create_directory(&z->place, &z->dir);
    if (error) {
        cv_status status = fail_make(z, error, err);
        cv_place_close(&z->place);
        return status;
    }
    cv_place_list(&z->place);
    for (int d = 0; d < ndim && !error; d++)
        error = cv_dir_make(z->dir, cv_zarr_name_of(d).text, 0777);
    cv_status status = CV_OK;
    if (error)
        status = fail_make(z, error, err);
    else
        status = cv_place_path(&z->place, path, z->shard.text, &z->path, err);
    if (status != CV_OK) cv_zarr_drop(z);
    return status;
}

void cv_zarr_drop(cv_zarr_place *z)
{
    if (z->place.temp[0] && !z->place.is_left) cv_place_remove_temp(&z->place);
    cv_place_close(&z->place);
    cv_dir_close(&z->dir);
    cv_free(z->path);
    *z = (cv_zarr_place){.path = NULL};
}

/* ---- Index and metadata --------------------------------------------------------- */

/* What the metadata borrow. */
typedef struct described {
    caterva_dtype *dtype;
    const char **dims;
    cv_zarr_attribute *attributes;
    cv_buffer values; /* of the attributes */
    cv_buffer value;  /* of one */
} described;

static void free_described(described *d)
{
    caterva_dtype_free(d->dtype);
    caterva_free(d->dims);
    cv_free(d->attributes);
    cv_buffer_free(&d->values);
    cv_buffer_free(&d->value);
}

/* Names of dimensions are no attribute in Zarr v3. */
static bool is_dims(const char *name)
{
    return strcmp(name, "dims") == 0 || strcmp(name, "dimension_names") == 0 ||
           strcmp(name, "_ARRAY_DIMENSIONS") == 0;
}

static cv_status read_attributes(const cv_snapshot *snapshot, described *d, int *n,
                                 cv_error *err)
{
    const cv_attributes *all;
    CV_TRY(cv_snapshot_attributes(snapshot, &all, err));
    size_t size = ((size_t)all->n + 1) * sizeof d->attributes[0];
    d->attributes = cv_calloc(1, size);
    if (!d->attributes) return cv_fail_memory(err, size, "the attributes");
    for (int i = 0; i < all->n; i++) {
        if (d->dims && is_dims(all->list[i].name)) continue;
        cv_zarr_attribute *a = &d->attributes[(*n)++];
        a->name = all->list[i].name;
        CV_TRY(cv_attribute_value(&all->list[i], &d->value, NULL, err));
        CV_TRY(cv_buffer_append(&d->values, d->value.data, d->value.size, err));
        a->size = d->value.size;
        d->value.size = 0;
    }
    size_t at = 0; /* the buffer does not move any more */
    for (int i = 0; i < *n; at += d->attributes[i++].size)
        d->attributes[i].value = d->values.data + at;
    return CV_OK;
}

static int filter_of(const cv_frame_header *h)
{
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++)
        if (h->filters[i] == CATERVA_FILTER_SHUFFLE ||
            h->filters[i] == CATERVA_FILTER_BITSHUFFLE)
            return h->filters[i];
    return 0;
}

static cv_status describe(caterva_array *array, const cv_snapshot *snapshot, bool is_shard,
                          described *d, cv_buffer *out, cv_error *err)
{
    const char *text = array->type.dtype;
    bool is_core = is_core_codec(codec_of(&snapshot->header));
    cv_zarr_meta meta = {
        .grid = &snapshot->grid,
        .fill = array->fill,
        .codec = cv_codec_name(is_core ? snapshot->header.codec : CATERVA_CODEC_ZSTD),
        .level = snapshot->header.level,
        .filter = filter_of(&snapshot->header),
        .is_shard = is_shard};
    CV_TRY(cv_dtype_parse(text, strlen(text), &d->dtype, err));
    cv_error why;
    cv_status status = caterva_dims_get(array, &d->dims, &why);
    if (status != CV_OK && status != CATERVA_ENOTFOUND) {
        if (err) *err = why;
        return status;
    }
    CV_TRY(read_attributes(snapshot, d, &meta.n_attributes, err));
    meta.dtype = d->dtype;
    meta.dims = d->dims;
    meta.attributes = d->attributes;
    return cv_zarr_meta_write(&meta, out, err);
}

cv_status cv_zarr_describe(caterva_array *array, const cv_snapshot *snapshot, bool is_shard,
                           cv_buffer *out, cv_error *err)
{
    described d = {.dims = NULL};
    cv_status status = describe(array, snapshot, is_shard, &d, out, err);
    free_described(&d);
    return status;
}

static cv_shard shard_of(caterva_array *array, cv_snapshot *snapshot)
{
    return (cv_shard){.frame = array->frame, .snapshot = snapshot, .fill = array->fill};
}

/* ---- Installing ------------------------------------------------------------------- */

/* A file that is written from a position on. */
typedef struct tail {
    cv_file file;
    uint64_t pos;
    const cv_shown_path *shown;
} tail;

static cv_status write_piece(void *context, const uint8_t *bytes, size_t size, cv_error *err)
{
    tail *t = context;
    int error = cv_file_write(t->file, bytes, size, t->pos);
    t->pos += size;
    return error ? cv_fail_sys(err, error, "cannot write %s", t->shown->text) : CV_OK;
}

static cv_status open_tail(const cv_zarr_place *z, const char *name, uint64_t pos, tail *t,
                           cv_error *err)
{
    *t = (tail){.pos = pos, .shown = &z->place.shown};
    int error = cv_open_file(z->dir, name, CV_OPEN_BOTH | CV_OPEN_CREATE, 0666, &t->file);
    if (!error) error = cv_file_truncate(t->file, pos);
    return error ? fail_make(z, error, err) : CV_OK;
}

static cv_status close_tail(const cv_zarr_place *z, tail *t, bool durable, cv_status status,
                            cv_error *err)
{
    int error = durable && status == CV_OK ? cv_file_sync(t->file) : 0;
    cv_file_close(&t->file);
    return error ? fail_make(z, error, err) : status;
}

/* Pieces of a few bytes are collected. */
typedef struct collecting {
    tail *tail;
    cv_buffer bytes;
} collecting;

static cv_status collect(void *context, const uint8_t *bytes, size_t size, cv_error *err)
{
    enum { MOST = 4 << 20 };
    collecting *c = context;
    CV_TRY(cv_buffer_append(&c->bytes, bytes, size, err));
    if (c->bytes.size < MOST) return CV_OK;
    CV_TRY(write_piece(c->tail, c->bytes.data, c->bytes.size, err));
    c->bytes.size = 0;
    return CV_OK;
}

static cv_status add_shard(const cv_zarr_place *z, caterva_array *array, bool durable,
                           cv_watch *watch, cv_error *err)
{
    tail t;
    collecting c = {&t, {0}};
    cv_shard shard = shard_of(array, array->snapshot);
    shard.watch = watch;
    shard.is_new = true;
    shard.take = collect;
    shard.context = &c;
    cv_status status =
        open_tail(z, z->shard.text, array->snapshot->header.frame_size, &t, err);
    if (status == CV_OK) status = cv_shard_make(&shard, err);
    if (status == CV_OK) status = write_piece(&t, c.bytes.data, c.bytes.size, err);
    cv_buffer_free(&c.bytes);
    return close_tail(z, &t, durable, status, err);
}

static cv_status add_meta(const cv_zarr_place *z, caterva_array *array, bool durable,
                          cv_error *err)
{
    tail t;
    cv_buffer text = {0};
    cv_status status = open_tail(z, CV_ZARR_META, 0, &t, err);
    if (status == CV_OK) status = cv_zarr_describe(array, array->snapshot, true, &text, err);
    if (status == CV_OK) status = write_piece(&t, text.data, text.size, err);
    cv_buffer_free(&text);
    return close_tail(z, &t, durable, status, err);
}

static int sync_directories(const cv_zarr_place *z, int ndim)
{
    int error = cv_dir_sync(z->dir);
    for (int d = 0; d < ndim && !error; d++) {
        cv_dir dir;
        error = cv_open_dir(z->dir, cv_zarr_name_of(d).text, CV_OPEN_NO_LINK, &dir);
        if (!error) error = cv_dir_sync(dir);
        cv_dir_close(&dir);
    }
    return error;
}

static cv_status finish(const cv_zarr_place *z, bool durable, cv_watch *watch, cv_error *err)
{
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.cache_bytes = CATERVA_NONE;
    options.keep_bytes = CATERVA_NONE;
    CV_TRY(caterva_open(z->path, &options, &array, err));
    int ndim = array->snapshot->grid.ndim;
    cv_status status = add_shard(z, array, durable, watch, err);
    if (status == CV_OK) status = add_meta(z, array, durable, err);
    cv_array_free(array);
    CV_TRY(status);
    int error = durable ? sync_directories(z, ndim) : 0;
    return error ? fail_make(z, error, err) : CV_OK;
}

cv_status cv_zarr_install(cv_zarr_place *z, bool durable, cv_watch *watch, cv_error *err)
{
    cv_file frame;
    bool moved = false;
    cv_status status = finish(z, durable, watch, err);
    if (status == CV_OK) {
        int error = cv_open_file(z->dir, z->shard.text, CV_OPEN_BOTH, 0, &frame);
        if (error) status = fail_make(z, error, err);
    }
    if (status == CV_OK) {
        status =
            cv_place_publish(&z->place, cv_dir_as_file(z->dir), frame, durable, &moved, err);
        cv_file_close(&frame);
    }
    if (moved) z->place.temp[0] = '\0';
    cv_zarr_drop(z);
    return status;
}

/* ---- Deleting --------------------------------------------------------------------- */

/* The directory disappears at once, by a rename. */
static cv_status delete_at(cv_place *place, cv_error *err)
{
    CV_TRY(cv_place_hold(place, err));
    cv_os_temp_name(place->name, "old", place->temp);
    int error = cv_dir_rename_new(place->dir, place->name, place->temp);
    if (error) return cv_fail_sys(err, error, "cannot delete %s", place->shown.text);
    error = cv_dir_sync(place->dir);
    cv_place_remove_temp(place);
    return error
               ? cv_fail_sys(err, error, "cannot sync the directory of %s", place->shown.text)
               : CV_OK;
}

cv_status cv_zarr_delete(const char *url, bool *is_zarr, cv_error *err)
{
    cv_place place;
    cv_zarr_name shard;
    *is_zarr = false;
    if (!url || cv_is_url(url) || cv_array_is_leaf_url(url)) return CV_OK; /* opening fails */
    cv_dir dir;
    if (cv_open_dir(cv_dir_here, url, 0, &dir)) return CV_OK;
    cv_zarr_node node = cv_zarr_look(dir, ".", &shard);
    cv_dir_close(&dir);
    *is_zarr = node == CV_ZARR_ARRAY || node == CV_ZARR_GROUP;
    if (!*is_zarr) return CV_OK;
    CV_TRY(cv_place_open(url, true, &place, err));
    cv_status status = delete_at(&place, err);
    cv_place_close(&place);
    return status;
}

/* ---- Verifying --------------------------------------------------------------------- */

static cv_status check_meta(caterva_array *array, const cv_snapshot *snapshot,
                            cv_buffer *expected, cv_buffer *found, cv_error *err)
{
    CV_TRY(cv_zarr_describe(array, snapshot, true, expected, err));
    CV_TRY(cv_zarr_read_meta(cv_dir_here, array->path, found, err));
    size_t n = expected->size < found->size ? expected->size : found->size, at = 0;
    while (at < n && expected->data[at] == found->data[at]) at++;
    if (at == expected->size && at == found->size) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1,
                   "%s differs at byte %zu from what the array is: damaged, or changed by "
                   "another program",
                   CV_ZARR_META, at);
}

/* `quick`: only the index. */
static cv_status check_shard(caterva_array *array, cv_snapshot *snapshot, bool quick,
                             bool *ended, cv_error *err)
{
    bool found;
    uint64_t size;
    CV_TRY(cv_store_size(array->frame->store, CV_FRAME_OBJECT, &size, err));
    *ended = size == snapshot->header.frame_size;
    if (*ended) return CV_OK;
    CV_TRY(cv_shard_find(array->frame, snapshot, &found, err));
    if (quick && !found)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)snapshot->header.frame_size,
                       "the index of the Zarr array is damaged: checksum differs");
    if (quick) return CV_OK;
    cv_shard shard = shard_of(array, snapshot);
    return cv_shard_check(&shard, found ? NULL : ended, err);
}

cv_status cv_zarr_verify(caterva_array *array, cv_snapshot *snapshot, bool quick,
                         void (*report)(void *context, const cv_error *error), void *context,
                         cv_error *err)
{
    bool ended = false;
    cv_zarr_name shard;
    cv_error error = {0};
    cv_buffer expected = {0}, found = {0};
    bool is_far = array->is_far_zarr;
    bool is_near = !is_far && array->path &&
                   cv_zarr_look(cv_dir_here, array->path, &shard) == CV_ZARR_ARRAY;
    if (!is_far && !is_near) return CV_OK;
    cv_status status = check_shard(array, snapshot, quick, &ended, &error);
    if (status == CATERVA_ECORRUPT) report(context, &error);
    if (status == CATERVA_ECORRUPT) status = CV_OK;
    if (status == CV_OK && !is_far && !ended)
        status = check_meta(array, snapshot, &expected, &found, &error);
    if (status == CATERVA_ECORRUPT) report(context, &error);
    if (status == CATERVA_ECORRUPT) status = CV_OK;
    cv_buffer_free(&expected);
    cv_buffer_free(&found);
    if (status != CV_OK && err) *err = error;
    return status;
}
