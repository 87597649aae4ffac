/* Room: cli/sources. Copies arrays with caterva_copy, which decides what the copy inherits. */
#include "sources/array_copy.h"

#include "sources/cast.h"
#include "sources/described.h"
#include "terminal/progress.h"

#include <caterva_upkeep.h>
#include <string.h>

bool array_copy_fits(const selection *sel)
{
    for (int d = 0; d < sel->ndim; d++)
        if (sel->axis[d].dropped) return false;
    return sel->n_result == sel->ndim && selection_is_box(sel);
}

/* Whether Zarr has the filters: one shuffle or bitshuffle, and trunc_prec before it. Bitshuffle needs
 * blocks of a multiple of 8 items. */
static bool filters_fit_zarr(const caterva_create_options *o)
{
    bool is_last = false;
    int64_t items = 1;
    for (int d = 0; d < o->ndim && o->block_shape; d++) items *= o->block_shape[d];
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++) {
        int filter = o->filters[i];
        if (filter == CATERVA_FILTER_DEFAULT || filter == CATERVA_FILTER_NONE) continue;
        bool is_shuffle = filter == CATERVA_FILTER_SHUFFLE ||
                          (filter == CATERVA_FILTER_BITSHUFFLE && items % 8 == 0);
        if (is_last || (!is_shuffle && filter != CATERVA_FILTER_TRUNC_PREC)) return false;
        is_last = is_shuffle;
    }
    return true;
}

/* Drops what the options of a Zarr array have from the input, and Zarr lacks. */
static void fit_zarr(caterva_create_options *o, const cli_args *args)
{
    bool is_core = (o->codec >= CATERVA_CODEC_LZ4 && o->codec <= CATERVA_CODEC_ZSTD) ||
                   o->codec == CATERVA_CODEC_BLOSCLZ;
    if (!args->codec) o->use_dict = 0;
    if (!args->codec && !is_core) {
        o->codec = CATERVA_CODEC_ZSTD;
        o->codec_meta = 0;
    }
    if (args->filters || filters_fit_zarr(o)) return;
    memset(o->filters, 0, sizeof o->filters);
    memset(o->filters_meta, 0, sizeof o->filters_meta);
}

cli_exit array_copy_init(creation *c, const cli_args *args, caterva_array *from,
                         const selection *sel)
{
    const caterva_info *info = info_of(from);
    const char *dtype = args->astype       ? args->astype
                        : args->view_dtype ? args->view_dtype
                                           : info->dtype;
    array_shape shape = {.item_size = info->item_size};
    shape.ndim = selection_shape(sel, shape.shape);
    CLI_TRY(creation_init(c, args, &shape, dtype, from));
    CLI_TRY(casting_find(args, &c->casting));
    c->convert_to = args->astype ? c->dtype_text : NULL;
    if (args->astype || !args->view_dtype) c->options.dtype = NULL;
    if (!args->codec && !args->filters && args->level < 0)
        creation_drop_codec(c);
    else if (args->zarr)
        fit_zarr(&c->options, args);
    return CLI_OK;
}

/* Reports an error of the copy. The report names the input if the error is damage or if its message
 * contains the input's path. Otherwise it names the new array. */
static cli_exit fail_copy(const cli_args *args, const caterva_error *err)
{
    const char *from = args->positional[0], *to = args->positional[1];
    bool names_from = strstr(err->message, cli_show_place(from).text);
    bool names_to = strstr(err->message, cli_show_place(to).text);
    bool is_input = err->code == CATERVA_ECORRUPT || names_from;
    return cli_fail_array(is_input && !names_to ? from : to, err);
}

static void warn_many(const char *path, const caterva_info *to)
{
    enum { MANY_BLOCKS = 100000 };
    int64_t n_blocks = to->n_chunks * to->n_blocks;
    if (n_blocks > MANY_BLOCKS)
        cli_warn("%s has %lld blocks: each Zarr reader reads an index of %lld bytes; larger "
                 "blocks make it smaller",
                 cli_show_place(path).text, (long long)n_blocks, (long long)n_blocks * 16);
}

/* Names what a Zarr array could not take from the input. */
static void warn_zarr(const cli_args *args, const caterva_info *from, const caterva_info *to)
{
    cli_shown path = cli_show_place(args->positional[1]);
    size_t axes = (size_t)to->ndim * sizeof to->chunk_shape[0];
    bool same = memcmp(from->chunk_shape, to->chunk_shape, axes) == 0 &&
                memcmp(from->block_shape, to->block_shape, axes) == 0;
    if (!same && !args->chunks && !args->blocks)
        cli_warn(
            "%s has other chunks or blocks than the input: Zarr needs chunks of whole blocks",
            path.text);
    if (!args->codec && !args->filters &&
        (from->codec != to->codec ||
         memcmp(from->filters, to->filters, sizeof to->filters) != 0))
        cli_warn("%s has another codec or other filters than the input: Zarr has no such",
                 path.text);
    warn_many(args->positional[1], to);
}

cli_exit array_copy_to_zarr(const cli_args *args, caterva_array *from, const char *path)
{
    caterva_error err;
    caterva_array *made;
    const caterva_info *info = info_of(from);
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_copy_options options = CATERVA_COPY_INIT;
    create.overwrite = args->force;
    create.threads = (int)args->threads;
    if (args->chunks) create.chunk_shape = info->chunk_shape; /* what was asked for stays */
    if (args->blocks) create.block_shape = info->block_shape;
    if (args->codec) create.codec = info->codec;
    if (args->codec) create.level = info->level > 0 ? info->level : CATERVA_NONE;
    if (args->filters) memcpy(create.filters, info->filters, sizeof create.filters);
    if (args->filters)
        memcpy(create.filters_meta, info->filters_meta, sizeof create.filters_meta);
    options.create = &create;
    options.memory = args->memory;
    options.zarr = 1;
    if (caterva_copy(from, path, &options, &made, &err) != CATERVA_OK)
        return cli_fail_array(path, &err);
    warn_many(path, info_of(made));
    caterva_discard(made);
    return CLI_OK;
}

cli_exit array_copy_run(const cli_args *args, caterva_array *from, const selection *sel,
                        creation *c)
{
    const char *path = args->positional[1];
    CLI_TRY(creation_check(c, path));
    box result = {0}, bounds;
    for (int d = 0; d < c->shape.ndim; d++) result.stop[d] = c->shape.shape[d];
    selection_bounds(sel, &result, &bounds);

    progress bar;
    caterva_copy_options options = CATERVA_COPY_INIT;
    options.start = bounds.start;
    options.stop = bounds.stop;
    options.create = &c->options;
    options.convert_to = c->convert_to;
    options.casting = c->casting;
    options.memory = args->memory;
    options.for_remote = args->for_remote;
    options.zarr = c->zarr;
    if (c->zarr && !args->chunks) c->options.chunk_shape = NULL; /* may be adapted */
    if (c->zarr && !args->blocks) c->options.block_shape = NULL;
    options.progress = progress_of(&bar);
    caterva_error err;
    cli_mind_temporaries();
    progress_start(&bar, args, 0);
    cli_patience patience = {0};
    caterva_status status;
    caterva_array *made = NULL;
    do status = caterva_copy(from, path, &options, c->zarr ? &made : NULL, &err);
    while (cli_try_again(args, status, &patience));
    progress_end(&bar);
    if (made) warn_zarr(args, info_of(from), info_of(made));
    caterva_discard(made);
    return status == CATERVA_OK ? CLI_OK : fail_copy(args, &err);
}
