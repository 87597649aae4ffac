/* Room: cli/sources. Converts arguments to caterva_create_options. Just the syntax of arguments is
 * checked here; the library checks whether the numbers fit each other. An option that was not given
 * is left to the library or taken from another array. */
#include "sources/creation.h"

#include "formats/descr.h"
#include "formats/item.h"
#include "formats/numbers.h"
#include "sources/cast.h"
#include "sources/described.h"
#include "sources/source.h"
#include "terminal/output.h"
#include "terminal/progress.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library's names of codecs, or of filters. */
typedef struct naming {
    const char *option;
    int (*number_of)(const char *name);
    const char *(*name_of)(int number);
} naming;

static const naming codec_names = {"--codec", caterva_codec_number, caterva_codec_name};
static const naming filter_names = {"--filters", caterva_filter_number, caterva_filter_name};

static cli_exit fail_name(const naming *names, const char *name)
{
    enum { LAST = 255 };
    char list[256] = "";
    size_t size = 0;
    for (int i = 0; i <= LAST && size < sizeof list; i++) {
        const char *one = names->name_of(i == 0 ? LAST + 1 : i);
        if (one && strcmp(one, "bytedelta-old") != 0) /* the library can only decode it */
            size += (size_t)snprintf(list + size, sizeof list - size, "%s%s",
                                     size > 0 ? ", " : "", one);
    }
    words_hint hint = words_suggest(name, words_of_option(names->option + 2));
    return cli_fail(CLI_USAGE, "%s: unknown '%s'; choose from %s%s", names->option, name,
                    list, hint.text);
}

/* Parses "name" or "name:meta" at *text, and moves *text past it and a comma. */
static cli_exit scan_named_meta(const char **text, const naming *names, int *number,
                                int *meta)
{
    const char *what = names->option;
    char name[32];
    size_t size = strcspn(*text, ":,");
    if (size >= sizeof name) return fail_name(names, *text);
    memcpy(name, *text, size);
    name[size] = '\0';
    *text += size;
    *number = names->number_of(name);
    if (*number < 0) return fail_name(names, name);
    *meta = 0;
    if (**text == ':') {
        int64_t value;
        ++*text;
        if (!number_scan(text, &value) || value < -128 || value > 255)
            return cli_fail(CLI_USAGE, "%s: expected a number from -128 to 255 after '%s:'",
                            what, name);
        *meta = (int)value;
    }
    if (**text && **text != ',')
        return cli_fail(CLI_USAGE, "%s: expected ',' at '%s'", what, *text);
    *text += **text == ',';
    return CLI_OK;
}

static cli_exit set_filters(caterva_create_options *o, const char *text)
{
    memset(o->filters, 0, sizeof o->filters);
    memset(o->filters_meta, 0, sizeof o->filters_meta);
    for (int n = 0; *text; n++) {
        if (n == CATERVA_MAX_FILTERS)
            return cli_fail(CLI_USAGE, "--filters takes at most %d filters",
                            CATERVA_MAX_FILTERS);
        CLI_TRY(scan_named_meta(&text, &filter_names, &o->filters[n], &o->filters_meta[n]));
        if (o->filters[n] == CATERVA_FILTER_DELTA)
            cli_warn("with the filter delta, C-Blosc2 reads parts of chunks wrongly");
    }
    if (o->filters[0] == CATERVA_FILTER_DEFAULT) o->filters[0] = CATERVA_FILTER_NONE;
    return CLI_OK;
}

/* Rejects zfp-accuracy and zfp-precision without a parameter. The library would take 0, which is a
 * tolerance of 1 or a precision of no bits. For other codecs that need a parameter, the library
 * reports a missing one. */
static cli_exit check_meta(const char *text, int codec)
{
    if (strchr(text, ':')) return CLI_OK;
    if (codec == CATERVA_CODEC_ZFP_ACCURACY)
        return cli_fail(CLI_USAGE,
                        "--codec: zfp-accuracy needs a number, the power of ten that is the "
                        "tolerance: zfp-accuracy:-3 for 0.001");
    if (codec == CATERVA_CODEC_ZFP_PRECISION)
        return cli_fail(CLI_USAGE,
                        "--codec: zfp-precision needs a number, the bits to keep of each "
                        "value: zfp-precision:16");
    return CLI_OK;
}

/* Sets codec, level and filters. Options that were not given keep the values of the other array, or
 * the library's defaults. */
static cli_exit set_codec(caterva_create_options *o, const cli_args *args)
{
    if (args->level >= 0) {
        o->level = args->level == 0 ? CATERVA_NONE : (int)args->level;
        /* --level is for all chunks: removes the 99 that allows others (see caterva_info). */
        if (o->filters[0] == CATERVA_FILTER_NONE) o->filters_meta[0] = 0;
    }
    if (args->filters) CLI_TRY(set_filters(o, args->filters));
    if (!args->codec) return CLI_OK;
    const char *text = args->codec;
    int codec_before = o->codec;
    o->use_dict = 0;
    CLI_TRY(scan_named_meta(&text, &codec_names, &o->codec, &o->codec_meta));
    CLI_TRY(check_meta(args->codec, o->codec));
    if (o->codec != codec_before && args->level < 0) o->level = 0;
    if (o->codec_meta < 0) o->codec_meta += 256; /* as in the stored byte */
    /* n-d codecs need the values in order; filters would rearrange their bytes. */
    bool is_nd = o->codec >= CATERVA_CODEC_NDLZ && o->codec != CATERVA_CODEC_BLOSCLZ;
    if (is_nd && !args->filters) CLI_TRY(set_filters(o, ""));
    return *text ? cli_fail(CLI_USAGE, "--codec takes one codec") : CLI_OK;
}

static cli_exit set_partition(const char *text, const char *what, int ndim, int32_t *out,
                              const int32_t **option)
{
    int64_t extents[CATERVA_MAX_DIMS];
    int n;
    if (!text) return CLI_OK;
    CLI_TRY(number_shape(text, what, &n, extents));
    if (n != ndim)
        return cli_fail(CLI_USAGE, "%s '%s' has %d axes, but the array has %d", what, text, n,
                        ndim);
    for (int d = 0; d < n; d++) {
        if (extents[d] > INT32_MAX)
            return cli_fail(CLI_USAGE, "%s '%s': %lld is too large", what, text,
                            (long long)extents[d]);
        out[d] = (int32_t)extents[d];
    }
    *option = out;
    return CLI_OK;
}

static cli_exit set_metalayer(caterva_create_options *o, const char *kind)
{
    o->metalayer = CATERVA_METALAYER_B2ND;
    if (!kind || strcmp(kind, "b2nd") == 0) return CLI_OK;
    if (strcmp(kind, "caterva") != 0)
        return cli_fail(CLI_USAGE, "--metalayer must be b2nd or caterva, not '%s'", kind);
    o->metalayer = CATERVA_METALAYER_CATERVA;
    return CLI_OK;
}

static cli_exit set_fill(creation *c, const char *text)
{
    if (!text) return CLI_OK;
    caterva_create_options *o = &c->options;
    /* CATERVA_FILL_NAN is the machine's NaN: only for floats in the machine's byte order. */
    bool plain_float = c->dtype->kind == 'f' && c->dtype->ndim == 0 &&
                       c->dtype->byte_order == '<' &&
                       (c->dtype->item_size == 4 || c->dtype->item_size == 8);
    if (strcmp(text, "uninit") == 0) {
        o->fill = CATERVA_FILL_UNINIT;
        return CLI_OK;
    }
    if (strcmp(text, "nan") == 0 && plain_float) {
        o->fill = CATERVA_FILL_NAN;
        return CLI_OK;
    }
    free(c->fill_value); /* a fill copied from the other array */
    c->fill_value = cli_alloc((size_t)c->dtype->item_size);
    if (!c->fill_value) return CLI_IO;
    o->fill = CATERVA_FILL_VALUE;
    o->fill_value = c->fill_value;
    return item_parse("--fill", c->dtype, text, c->fill_value);
}

/* ---- Properties of another array -------------------------------------------------------- */

static void copy_codec(caterva_create_options *o, const caterva_info *info)
{
    o->codec = info->codec;
    o->codec_meta = info->codec_meta;
    o->level = info->level;
    o->use_dict = info->use_dict && info->codec == CATERVA_CODEC_ZSTD; /* only zstd has it */
    memcpy(o->filters, info->filters, sizeof o->filters);
    memcpy(o->filters_meta, info->filters_meta, sizeof o->filters_meta);
}

/* Copies chunk and block shapes from an array of the same shape. If the shapes differ, as for a
 * selection, the library chooses both. */
static void copy_partition(creation *c, const caterva_info *info)
{
    if (info->ndim != c->shape.ndim) return;
    for (int d = 0; d < info->ndim; d++) {
        if (info->shape[d] != c->shape.shape[d] || info->block_shape[d] < 1) return;
        c->chunk_shape[d] = info->chunk_shape[d];
        c->block_shape[d] = info->block_shape[d];
    }
    c->options.chunk_shape = c->chunk_shape;
    c->options.block_shape = c->block_shape;
}

static cli_exit copy_metalayers(creation *c, caterva_array *like)
{
    int n = 0;
    const caterva_info *info = info_of(like);
    for (int i = 0; n < CATERVA_MAX_DIMS - 1 && i < info->n_metalayers; i++) {
        const char *name = info->metalayers[i].name;
        if (strcmp(name, "b2nd") == 0 || strcmp(name, "caterva") == 0) continue;
        c->metalayers[n++] = info->metalayers[i];
    }
    c->options.metalayers = c->metalayers;
    c->options.n_metalayers = n;
    return CLI_OK;
}

/* Copies the fill value, converted like the items by --view-dtype and --astype. */
static cli_exit copy_fill(creation *c, const cli_args *args, const caterva_info *info)
{
    caterva_create_options *o = &c->options;
    if (!args->astype && info->item_size != o->item_size) return CLI_OK;
    o->fill = CATERVA_FILL_VALUE;
    o->fill_value = info->fill_value;
    if (!args->astype) return CLI_OK;
    o->fill_value = c->fill_value = cli_alloc((size_t)o->item_size);
    if (!c->fill_value) return CLI_IO;
    return cast_item(args, args->view_dtype ? args->view_dtype : info->dtype,
                     info->fill_value, c->dtype_text, c->fill_value, (size_t)o->item_size);
}

static cli_exit copy_like(creation *c, const cli_args *args, caterva_array *like)
{
    const caterva_info *info = info_of(like);
    copy_codec(&c->options, info);
    if (!args->chunks && !args->blocks) copy_partition(c, info);
    if (info->fill_value) CLI_TRY(copy_fill(c, args, info));
    return copy_metalayers(c, like);
}

/* Rejects too many axes: with CLI_USAGE if --shape gave them, otherwise with CLI_UNSUPPORTED. */
static cli_exit check_ndim(const cli_args *args, int ndim)
{
    if (ndim <= CATERVA_MAX_WRITE_DIMS) return CLI_OK;
    return cli_fail(args->shape ? CLI_USAGE : CLI_UNSUPPORTED,
                    "%d axes: a new b2nd array may have at most %d", ndim,
                    CATERVA_MAX_WRITE_DIMS);
}

/* ---- All options ------------------------------------------------------------------------ */

cli_exit creation_init(creation *c, const cli_args *args, const array_shape *shape,
                       const char *dtype, caterva_array *like)
{
    *c = (creation){.args = args, .options = CATERVA_CREATE_INIT, .shape = *shape};
    const char *where = args->dtype ? "--dtype" : args->astype ? "--astype" : "the input";
    cli_exit misfit = args->dtype || args->astype ? CLI_USAGE : CLI_CORRUPT;
    caterva_create_options *o = &c->options;
    o->ndim = shape->ndim;
    o->shape = c->shape.shape;
    o->overwrite = args->force;
    c->zarr = args->zarr;
    o->progress.report = progress_tell;
    o->threads = (int)args->threads;
    o->layout = args->sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    CLI_TRY(check_ndim(args, shape->ndim));
    CLI_TRY(descr_parse(misfit, where, dtype, &c->dtype));
    CLI_TRY(descr_for_array(misfit, where, dtype, &c->dtype_text));
    o->dtype = c->dtype_text;
    o->item_size = (int32_t)c->dtype->item_size;
    c->shape.item_size = c->dtype->item_size;
    if (like) CLI_TRY(copy_like(c, args, like));
    CLI_TRY(set_codec(o, args));
    CLI_TRY(set_partition(args->chunks, "--chunks", shape->ndim, c->chunk_shape,
                          &o->chunk_shape));
    CLI_TRY(set_partition(args->blocks, "--blocks", shape->ndim, c->block_shape,
                          &o->block_shape));
    CLI_TRY(set_metalayer(o, args->metalayer));
    return set_fill(c, args->fill);
}

cli_exit creation_choose_partition(creation *c)
{
    caterva_error err;
    if (caterva_partition_choose(c->shape.ndim, c->shape.shape, c->shape.item_size, NULL,
                                 NULL, c->chunk_shape, c->block_shape, &err) != CATERVA_OK)
        return cli_fail_array("the shape", &err);
    c->options.chunk_shape = c->chunk_shape;
    c->options.block_shape = c->block_shape;
    for (int d = 0; c->zarr && d < c->shape.ndim; d++) { /* chunks of whole blocks */
        int64_t n_blocks = (c->chunk_shape[d] - 1) / (int64_t)c->block_shape[d] + 1;
        if (n_blocks * c->block_shape[d] <= INT32_MAX)
            c->chunk_shape[d] = (int32_t)(n_blocks * c->block_shape[d]);
    }
    return CLI_OK;
}

/* Takes the partition of chunks that can move as they are stored. */
static cli_exit move_partition(creation *c, const foreign_node *node)
{
    for (int d = 0; d < node->ndim; d++) {
        c->chunk_shape[d] = (int32_t)node->chunk_shape[d];
        c->block_shape[d] = node->block_shape[d];
    }
    c->options.chunk_shape = c->chunk_shape;
    c->options.block_shape = c->block_shape;
    return CLI_OK;
}

/* Sets chunks of whole stored chunks, if the library's own choice allows it: each axis that is
 * longer than a stored chunk gets the nearest multiple of it. A stored chunk is then decoded once. */
static cli_exit fit_chunks(creation *c, const foreign_node *node)
{
    caterva_error err;
    int32_t blocks[CATERVA_MAX_DIMS], chunks[CATERVA_MAX_DIMS];
    int ndim = c->shape.ndim;
    if (caterva_partition_choose(ndim, c->shape.shape, c->shape.item_size, NULL, NULL, chunks,
                                 blocks, &err) != CATERVA_OK)
        return CLI_OK; /* the library reports it when it makes the array */
    if (ndim > 0 && node->block_shape[0] > 0) return move_partition(c, node);
    for (int d = 0; d < ndim; d++) {
        int64_t stored = node->chunk_shape[d];
        if (stored < 1 || stored >= c->shape.shape[d]) return CLI_OK;
        if (chunks[d] >= stored) chunks[d] -= (int32_t)(chunks[d] % stored);
    }
    memcpy(c->chunk_shape, chunks, sizeof chunks);
    c->options.chunk_shape = c->chunk_shape;
    return CLI_OK;
}

cli_exit creation_take_node(creation *c, const foreign_node *node, const source *from)
{
    bool whole = node->ndim == from->shape.ndim;
    for (int d = 0; d < from->shape.ndim; d++)
        whole = whole && from->shape.shape[d] == node->shape[d] && from->axes[d] == d + 1;
    if (whole && !c->args->chunks && !c->args->blocks) CLI_TRY(fit_chunks(c, node));
    if (!node->fill || c->args->fill || strcmp(node->dtype, c->dtype_text) != 0) return CLI_OK;
    c->options.fill = CATERVA_FILL_VALUE;
    c->options.fill_value = c->fill_value = cli_alloc((size_t)node->item_size);
    if (!c->fill_value) return CLI_IO;
    memcpy(c->fill_value, node->fill, (size_t)node->item_size);
    return CLI_OK;
}

void creation_drop_codec(creation *c)
{
    caterva_create_options *o = &c->options;
    o->codec = o->codec_meta = o->level = o->use_dict = 0;
    memset(o->filters, 0, sizeof o->filters);
    memset(o->filters_meta, 0, sizeof o->filters_meta);
}

void creation_free(creation *c)
{
    caterva_dtype_free(c->dtype);
    free(c->dtype_text);
    free(c->fill_value);
    c->dtype = NULL;
    c->dtype_text = NULL;
    c->fill_value = NULL;
}

cli_exit creation_check_name(const char *path)
{
    static const char *const kinds[] = {
        [FORMAT_NPY] = "a NumPy file",
        [FORMAT_RAW] = "raw items",
        [FORMAT_TEXT] = "text",
        [FORMAT_CSV] = "text",
        [FORMAT_ZARR] = "a Zarr array",
        [FORMAT_FOREIGN] = "another format",
    };
    data_format format;
    if (strcmp(path, "-") == 0)
        return cli_fail(CLI_UNSUPPORTED, "a b2nd array cannot be written to standard output");
    CLI_TRY(format_find(path, NULL, "", &format));
    if (format == FORMAT_NONE || format == FORMAT_ARRAY) return CLI_OK;
    int stem = (int)(strrchr(path, '.') - path);
    return cli_fail(CLI_USAGE,
                    "%s would be a b2nd array with the name of %s; name it %.*s.b2nd", path,
                    kinds[format], stem, path);
}

cli_exit creation_check(const creation *c, const char *path)
{
    bool is_chosen = c->args->to || c->zarr; /* the name does not choose the format */
    if (!is_chosen || strcmp(path, "-") == 0) CLI_TRY(creation_check_name(path));
    CLI_TRY(output_check_array(path, c->options.overwrite));
    if (strncmp(path, "mem:", 4) == 0)
        return cli_fail(CLI_USAGE, "%s is an array in memory, which would be lost", path);
    return CLI_OK;
}

cli_exit creation_make(creation *c, const char *path, caterva_array **out)
{
    CLI_TRY(creation_check(c, path));
    cli_mind_temporaries();
    caterva_error err;
    cli_patience patience = {0};
    caterva_status status;
    do status = caterva_create(path, &c->options, out, &err);
    while (cli_try_again(c->args, status, &patience));
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(path, &err);
}
