/* Room: cli/commands. `caterva repack`: copies an array with other chunks, codec or storage, and
 * without dead space. Properties that no option names stay unchanged. */
#include "sources/array_copy.h"
#include "sources/described.h"
#include "terminal/output.h"

static cli_exit parse_box(const cli_args *args, const caterva_info *info, selection *sel)
{
    CLI_TRY(selection_parse(args->select, info->ndim, info->shape, sel));
    if (array_copy_fits(sel)) return CLI_OK;
    selection_free(sel);
    return cli_fail(CLI_USAGE,
                    "repack accepts slices with step 1 such as 0:10, not '%s'; "
                    "'caterva convert' accepts any selection",
                    args->select);
}

/* With --select or --astype the output must not be the input: other items or precision would be
 * lost. Without these options, repacking in place loses nothing. */
static cli_exit check_output(const cli_args *args)
{
    if (!args->select && !args->astype) return CLI_OK;
    return output_check_input(args->positional[1], args->positional[0]);
}

/* Takes storage and metalayer from the source unless options set them. creation_init does not do
 * that. */
static void keep_kind(const cli_args *args, const caterva_info *info,
                      caterva_create_options *options)
{
    if (!args->sparse && !args->contiguous && !args->zarr) options->layout = info->layout;
    if (!args->metalayer) options->metalayer = info->metalayer;
}

static cli_exit repack(const cli_args *args, caterva_array *from)
{
    const caterva_info *info = info_of(from);
    selection sel;
    creation c = {0};
    CLI_TRY(parse_box(args, info, &sel));
    cli_exit code = array_copy_init(&c, args, from, &sel);
    if (code == CLI_OK) {
        keep_kind(args, info, &c.options);
        code = array_copy_run(args, from, &sel, &c);
    }
    creation_free(&c);
    return code;
}

static cli_exit run_repack(const cli_args *args)
{
    caterva_array *from;
    if (args->sparse && args->contiguous)
        return cli_fail(CLI_USAGE, "--sparse and --contiguous exclude each other");
    if (args->casting && !args->astype)
        return cli_fail(CLI_USAGE, "--casting requires --astype");
    CLI_TRY(check_output(args));
    CLI_TRY(cli_open_array(args, args->positional[0], CATERVA_MODE_READ, &from));
    cli_exit code = repack(args, from);
    caterva_discard(from);
    return code;
}

const cli_command cli_command_repack = {
    .name = "repack",
    .synopsis = "IN OUT",
    .summary = "copy with another partition, codec or storage",
    .details =
        "Copies the array IN to OUT with other chunks, blocks, codec, filters or storage.\n"
        "Properties that no option names stay unchanged, as do fill, metalayers and\n"
        "attributes. --astype converts the items. OUT may be IN, with -f, if the whole "
        "array\n"
        "is copied. If only dead space is removed or the storage changes, chunks are copied\n"
        "compressed, without decoding; so are those of a --select that begins at chunk\n"
        "boundaries.",
    .options = CLI_OPT_WAIT | CLI_OPT_PARTITION | CLI_OPT_ASTYPE | CLI_OPT_CONTIGUOUS |
               CLI_OPT_FOR_REMOTE | CLI_OPT_ZARR | CLI_OPT_SELECT | CLI_OPT_MEMORY |
               CLI_OPT_FORCE | CLI_OPT_THREADS | CLI_OPT_NO_PROGRESS | CLI_OPT_REMOTE,
    .min_args = 2,
    .max_args = 2,
    .run = run_repack,
};
