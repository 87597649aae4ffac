/* Room: cli. `caterva convert`: raw, npy and b2nd, either way, in constant memory.
 * Chooses a source and a sink by format; knows the bytes of none. What cannot work
 * is refused before the output is touched. */
#include "array_copy.h"
#include "descr.h"
#include "sink.h"

#include <stdlib.h>
#include <string.h>

static cli_exit open_input(const cli_args *args, data_format format, caterva_array **array,
                           source **from)
{
    const char *path = args->positional[0];
    if (format != FORMAT_RAW && (args->shape || args->offset))
        return cli_fail(CLI_USAGE, "--shape and --offset are for raw input");
    if (format == FORMAT_NPY || format == FORMAT_RAW)
        return source_of_file(args, path, format, from);
    if (format != FORMAT_ARRAY)
        return cli_fail(CLI_USAGE, "%s: input must be raw, npy or b2nd; use --from", path);
    if (strcmp(path, "-") == 0)
        return cli_fail(CLI_UNSUPPORTED, "a b2nd array cannot be read from standard input");
    CLI_TRY(cli_open_array(args, path, CATERVA_READ, array));
    return source_of_array(*array, path, from);
}

/* --dtype gives items that have a dtype already another one of the same size. */
static cli_exit rename_dtype(source *from, const char *text)
{
    caterva_dtype *dtype;
    if (!text) return CLI_OK;
    CLI_TRY(descr_parse("--dtype", text, &dtype));
    int64_t size = dtype->item_size;
    caterva_dtype_free(dtype);
    if (size != from->shape.item_size)
        return cli_fail(CLI_USAGE, "--dtype '%s' has %lld bytes, the input's items have %lld",
                        text, (long long)size, (long long)from->shape.item_size);
    free(from->dtype);
    from->dtype = NULL;
    return descr_for_array(text, &from->dtype);
}

static cli_exit select_input(source **from, const char *text)
{
    selection sel;
    if (!text) return CLI_OK;
    CLI_TRY(selection_parse(text, (*from)->shape.ndim, (*from)->shape.shape, &sel));
    source *inner = *from;
    *from = NULL; /* source_select owns it, also when it fails */
    return source_select(inner, &sel, from);
}

static cli_exit output_format(const cli_args *args, data_format *format)
{
    const char *path = args->positional[1];
    CLI_TRY(format_find(path, args->to, "--to", format));
    if (args->sparse && *format == FORMAT_NONE) *format = FORMAT_ARRAY;
    if (*format == FORMAT_NONE && strcmp(path, "-") == 0)
        return cli_fail(CLI_USAGE, "standard output needs --to raw or --to npy");
    if (*format == FORMAT_ARRAY && strcmp(path, "-") == 0)
        return cli_fail(CLI_UNSUPPORTED, "a b2nd array cannot go to standard output");
    if (*format == FORMAT_TEXT || *format == FORMAT_CSV)
        return cli_fail(CLI_USAGE, "convert makes no text; 'caterva get' does");
    return CLI_OK;
}

static cli_exit prepare(const cli_args *args, caterva_array **array, source **from)
{
    data_format format;
    CLI_TRY(format_find(args->positional[0], args->from, "--from", &format));
    CLI_TRY(open_input(args, format, array, from));
    CLI_TRY(rename_dtype(*from, args->dtype));
    return select_input(from, args->select);
}

/* Array to array, where the selection is a box of it: the library copies. */
static cli_exit copy_array(const cli_args *args, caterva_array *array, const source *from,
                           const selection *sel)
{
    creation c = {0};
    cli_exit code = array_copy_init(&c, args, array, sel, args->dtype ? from->dtype : NULL);
    if (code == CLI_OK && !c.options.chunk_shape && !c.options.block_shape)
        code = creation_choose_partition(&c); /* not that of the whole array */
    if (code == CLI_OK) code = array_copy_run(args, array, sel, &c);
    creation_free(&c);
    return code;
}

static cli_exit copy_items(const cli_args *args, data_format format, caterva_array *array,
                           source *from)
{
    sink *to;
    if (array && format == FORMAT_ARRAY) {
        const caterva_info *info = caterva_describe(array);
        selection sel;
        CLI_TRY(selection_parse(args->select, info->ndim, info->shape, &sel));
        if (array_copy_fits(&sel)) return copy_array(args, array, from, &sel);
        selection_free(&sel); /* `from` has its own */
    }
    CLI_TRY(sink_open(args, args->positional[1], format, from, array, &to));
    return transfer(args, from, to);
}

static cli_exit run_convert(const cli_args *args)
{
    caterva_array *array = NULL;
    source *from = NULL;
    data_format format;
    CLI_TRY(output_format(args, &format));
    cli_exit code = prepare(args, &array, &from);
    if (code == CLI_OK) code = copy_items(args, format, array, from);
    source_close(from);
    caterva_discard(array);
    return code;
}

const cli_command cli_command_convert = {
    .name = "convert",
    .synopsis = "IN OUT",
    .summary = "raw, npy, b2nd, either way",
    .details =
        "Copies IN to OUT in another format; the names tell the formats (.raw .bin .dat,\n"
        ".npy, .b2nd), or --from and --to. '-' is standard input or output, for raw\n"
        "and npy. A b2nd copy of a b2nd array keeps its chunks, blocks and codec unless\n"
        "options say otherwise. Raw input needs --shape and --dtype; for other inputs\n"
        "--dtype gives the items another dtype of the same size.",
    .options = CLI_OPT_FROM | CLI_OPT_TO | CLI_OPT_SELECT | CLI_OPT_SHAPE | CLI_OPT_DTYPE |
               CLI_OPT_OFFSET | CLI_OPT_PARTITION | CLI_OPT_MEMORY | CLI_OPT_FORCE |
               CLI_OPT_THREADS | CLI_OPT_NO_PROGRESS,
    .min_args = 2,
    .max_args = 2,
    .run = run_convert,
};
