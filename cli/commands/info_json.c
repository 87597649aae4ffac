/* Room: cli/commands. The members of `caterva info --json`, in order. */
#include "commands/info_json.h"

#include "formats/item.h"
#include "sources/described.h"
#include "sources/dims.h"

#include <caterva_remote.h>
#include <math.h>
#include <stdlib.h>

/* Puts the list of dimension names, with null for an unnamed axis; null if no axis has a name. */
static void put_dims(json *j, const report *r)
{
    const char **names = dims_of(r->array);
    if (!names) {
        json_put_null(j, "dims");
        return;
    }
    json_begin_array(j, "dims");
    for (int d = 0; d < r->info->ndim; d++) json_put_text(j, NULL, names[d]);
    json_end_array(j);
    caterva_free(names);
}

static void put_transfers(json *j, const report *r)
{
    caterva_transfers t = CATERVA_TRANSFERS_INIT;
    if (caterva_transfers_get(r->array, &t, NULL) != CATERVA_OK) return;
    json_begin_object(j, "transfers");
    json_put_int(j, "requests", t.requests);
    json_put_int(j, "bytes", t.bytes);
    json_put_int(j, "round_trips", t.round_trips);
    json_put_int(j, "joined", t.joined);
    json_put_int(j, "retried", t.retried);
    json_end_object(j);
}

static void json_int32s(json *j, const char *key, const int32_t *values, int n)
{
    json_begin_array(j, key);
    for (int i = 0; i < n; i++) json_put_int(j, NULL, values[i]);
    json_end_array(j);
}

static void put_partition(json *j, const caterva_info *info)
{
    json_put_ints(j, "shape", info->shape, info->ndim);
    json_int32s(j, "chunk_shape", info->chunk_shape, info->ndim);
    json_int32s(j, "block_shape", info->block_shape, info->ndim);
    json_put_ints(j, "chunk_counts", info->chunk_counts, info->ndim);
    json_put_ints(j, "block_counts", info->block_counts, info->ndim);
    json_put_text(j, "dtype", info->dtype);
    json_put_text(j, "dtype_stored", info->dtype_stored);
    json_put_bool(j, "dtype_disagrees", info->dtype_disagrees);
    json_put_int(j, "item_size", info->item_size);
}

static void put_codec(json *j, const caterva_info *info)
{
    char number[16];
    json_begin_object(j, "codec");
    json_put_text(j, "name",
                  report_name(caterva_codec_name(info->codec), info->codec, number));
    json_put_int(j, "level", report_level(info));
    json_put_int(j, "meta", report_codec_meta(info));
    json_put_bool(j, "dictionary", info->use_dict);
    json_end_object(j);
    json_begin_array(j, "filters");
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++) {
        int filter = info->filters[i];
        if (filter == CATERVA_FILTER_NONE) continue;
        json_begin_object(j, NULL);
        json_put_text(j, "name", report_name(caterva_filter_name(filter), filter, number));
        json_put_int(j, "meta", info->filters_meta[i]);
        json_end_object(j);
    }
    json_end_array(j);
}

/* Puts the fill: numbers and booleans as JSON values; NaN and other values as text in the form that
 * `get` prints. */
static cli_exit put_fill(json *j, const report *r)
{
    const caterva_dtype *dtype = r->dtype;
    char *text;
    size_t size;
    if (!dtype) return CLI_OK;
    char kind = dtype->kind;
    if (dtype->ndim > 0 || dtype->item_size > 8) kind = 'V';
    double real = kind == 'f' ? item_load_real(dtype, r->fill, dtype->item_size) : NAN;
    if (kind == 'b') {
        json_put_bool(j, "fill", r->fill[0] != 0);
    } else if (kind == 'i') {
        json_put_int(j, "fill", item_load_int(dtype, r->fill, dtype->item_size));
    } else if (kind == 'u') {
        json_put_uint(j, "fill", item_load_uint(dtype, r->fill, dtype->item_size));
    } else if (isfinite(real)) {
        json_put_real(j, "fill", real);
    } else {
        CLI_TRY(report_fill_text(r, &text, &size));
        json_put_text_n(j, "fill", text, size);
        free(text);
    }
    return CLI_OK;
}

static void put_counts(json *j, const report *r)
{
    const caterva_info *info = r->info;
    json_put_int(j, "n_items", info->n_items);
    json_put_int(j, "n_chunks", info->n_chunks);
    json_put_int(j, "n_blocks", info->n_blocks);
    json_put_int(j, "chunk_bytes", info->chunk_bytes);
    json_put_int(j, "block_bytes", info->block_bytes);
    json_put_int(j, "data_bytes", info->data_bytes);
    json_put_int(j, "frame_bytes", info->frame_bytes);
    json_put_int(j, "header_bytes", info->header_bytes);
    json_put_real(j, "ratio", report_ratio(info->data_bytes, info->frame_bytes));
    if (!r->measured) return;
    json_put_int(j, "stored_chunks", r->space.stored_chunks);
    json_put_int(j, "special_chunks", r->space.special_chunks);
    json_put_int(j, "live_bytes", r->space.live_bytes);
    json_put_int(j, "dead_bytes", r->space.dead_bytes);
    json_put_int(j, "unverified_chunks", r->space.unverified_chunks);
}

static cli_exit put_attributes(json *j, const report *r)
{
    const char *name;
    json_begin_object(j, "attributes");
    for (int i = 0; (name = attribute_of(r->array, i)); i++)
        CLI_TRY(report_attribute_json(r, name, j));
    json_end_object(j);
    json_begin_array(j, "metalayers");
    for (int i = 0; (name = metalayer_of(r->array, i)); i++) json_put_text(j, NULL, name);
    json_end_array(j);
    return CLI_OK;
}

cli_exit info_put_fields(json *j, const report *r)
{
    json_put_int(j, "schema", 1);
    json_put_place(j, "file", r->path);
    json_put_text(j, "format", report_kind(r->info->metalayer).json);
    json_put_text(j, "layout",
                  r->info->layout == CATERVA_LAYOUT_SPARSE ? "sparse" : "contiguous");
    json_put_bool(j, "sealed", r->info->sealed);
    put_partition(j, r->info);
    put_dims(j, r);
    put_codec(j, r->info);
    CLI_TRY(put_fill(j, r));
    put_counts(j, r);
    put_transfers(j, r);
    return put_attributes(j, r);
}
