/* Room: cli/commands. `caterva convert`: raw, npy and b2nd, either way, in constant memory.
 * Chooses a source and a sink by format; knows the bytes of none. What cannot work
 * is refused before the output is touched. */
#include "formats/numbers.h"
#include "sources/array_copy.h"
#include "sources/cast.h"
#include "sources/described.h"
#include "sources/input.h"
#include "sources/sink.h"
#include "terminal/output.h"

#include <string.h>

/* Raw items say nothing of themselves; all others say it, and are not contradicted. */
static cli_exit open_raw(const cli_args *args, input *in)
{
    array_shape shape = {0};
    if (!args->shape || !args->dtype)
        return cli_fail(CLI_USAGE, "%s is raw: --shape and --dtype must say what it holds",
                        in->path);
    CLI_TRY(number_shape(args->shape, "--shape", &shape.ndim, shape.shape));
    return input_open(args, &shape, args->dtype, in);
}

static cli_exit open_input(const cli_args *args, input *in)
{
    CLI_TRY(input_find(args, args->positional[0], in));
    if (in->format == FORMAT_RAW) return open_raw(args, in);
    if (args->shape || args->offset)
        return cli_fail(CLI_USAGE, "--shape and --offset are for raw input");
    if (in->format == FORMAT_CSV || in->format == FORMAT_TEXT)
        return input_open(args, NULL, args->dtype, in);
    if (args->dtype)
        return cli_fail(CLI_USAGE,
                        "--dtype says what raw input holds; of %s, --astype %s converts the "
                        "items and --view-dtype %s takes their bytes for others",
                        in->path, args->dtype, args->dtype);
    return input_open(args, NULL, NULL, in);
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
    if (args->to && (*format == FORMAT_TEXT || *format == FORMAT_CSV))
        return cli_fail(CLI_USAGE, "--to is raw, npy or b2nd; 'caterva get' prints %s",
                        args->to);
    if (args->sparse && *format == FORMAT_NONE) *format = FORMAT_ARRAY;
    if (*format == FORMAT_NONE && strcmp(path, "-") == 0)
        return cli_fail(CLI_USAGE, "standard output needs --to raw or --to npy");
    if (*format == FORMAT_ARRAY && strcmp(path, "-") == 0)
        return cli_fail(CLI_UNSUPPORTED, "a b2nd array cannot go to standard output");
    if (*format == FORMAT_TEXT || *format == FORMAT_CSV)
        return cli_fail(CLI_USAGE, "convert makes no text; 'caterva get' does");
    return CLI_OK;
}

/* Bytes are taken for others before any are selected, and items converted last. */
static cli_exit prepare(const cli_args *args, input *in)
{
    CLI_TRY(open_input(args, in));
    if (args->view_dtype) CLI_TRY(source_view_as(in->from, args->view_dtype));
    cli_args rest = *args;
    rest.view_dtype = NULL;
    CLI_TRY(select_input(&in->from, args->select));
    return source_apply_dtypes(&rest, &in->from);
}

/* Array to array, where the selection is a box of it: the library copies. */
static cli_exit copy_array(const cli_args *args, caterva_array *array, const selection *sel)
{
    creation c = {0};
    cli_exit code = array_copy_init(&c, args, array, sel);
    if (code == CLI_OK && !c.options.chunk_shape && !c.options.block_shape)
        code = creation_choose_partition(&c); /* not that of the whole array */
    if (code == CLI_OK) code = array_copy_run(args, array, sel, &c);
    creation_free(&c);
    return code;
}

static cli_exit copy_items(const cli_args *args, data_format format, const input *in)
{
    sink *to;
    caterva_array *array = in->array;
    source *from = in->from;
    bool twice = args->view_dtype && args->astype; /* which the library does not do at once */
    if (array && format == FORMAT_ARRAY && !twice) {
        const caterva_info *info = info_of(array);
        selection sel;
        CLI_TRY(selection_parse(args->select, info->ndim, info->shape, &sel));
        if (array_copy_fits(&sel)) return copy_array(args, array, &sel);
        selection_free(&sel); /* `from` has its own */
    }
    CLI_TRY(sink_open(args, args->positional[1], format, from, array, &to));
    return transfer(args, from, to);
}

static cli_exit run_convert(const cli_args *args)
{
    input in = {0};
    data_format format;
    CLI_TRY(output_format(args, &format));
    CLI_TRY(output_check_input(args->positional[1], args->positional[0]));
    cli_exit code = prepare(args, &in);
    if (code == CLI_OK) code = copy_items(args, format, &in);
    input_close(&in);
    return code;
}

const cli_command cli_command_convert = {
    .name = "convert",
    .synopsis = "IN OUT",
    .summary = "raw, npy, b2nd, either way; text in",
    .details =
        "Copies IN to OUT in another format. What IN is its first bytes tell; where they do\n"
        "not, as in raw items, --from or its name does. OUT's name tells its format (.raw\n"
        ".bin .dat, .npy, .b2nd), or --to. '-' is standard input or output, for raw and\n"
        "npy. A b2nd copy of a b2nd array keeps its chunks, blocks and codec unless options\n"
        "say otherwise. Raw input needs --shape and --dtype; --astype converts the items of\n"
        "any input. CSV (.csv) and text (.txt) are integers or floats, or of --dtype; a first\n"
        "row of other words is a header, and empty cells are NaN.",
    .options = CLI_OPT_WAIT | CLI_OPT_FROM | CLI_OPT_TO_BINARY | CLI_OPT_SELECT |
               CLI_OPT_SHAPE | CLI_OPT_DTYPE | CLI_OPT_ASTYPE | CLI_OPT_VIEW_DTYPE |
               CLI_OPT_OFFSET | CLI_OPT_PARTITION | CLI_OPT_MEMORY | CLI_OPT_FORCE |
               CLI_OPT_THREADS | CLI_OPT_NO_PROGRESS | CLI_OPT_REMOTE,
    .min_args = 2,
    .max_args = 2,
    .run = run_convert,
};
