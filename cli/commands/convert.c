/* Room: cli/commands. `caterva convert`: converts between raw, npy and b2nd, and from text, in
 * constant memory. Chooses source and sink by format. Checks the arguments before it touches the
 * output. */
#include "commands/convert_tree.h"
#include "formats/numbers.h"
#include "sources/array_copy.h"
#include "sources/cast.h"
#include "sources/described.h"
#include "sources/foreign_sink.h"
#include "sources/input.h"
#include "sources/resume.h"
#include "sources/sink.h"
#include "terminal/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens raw input, which requires --shape and --dtype. Other formats contain both. */
static cli_exit open_raw(const cli_args *args, input *in)
{
    array_shape shape = {0};
    if (!args->shape || !args->dtype)
        return cli_fail(CLI_USAGE, "%s is raw: --shape and --dtype are required", in->path);
    CLI_TRY(number_shape(args->shape, "--shape", &shape.ndim, shape.shape));
    return input_open(args, &shape, args->dtype, in);
}

static cli_exit open_input(const cli_args *args, input *in)
{
    CLI_TRY(input_find(args, args->positional[0], in));
    if (in->format == FORMAT_RAW) return open_raw(args, in);
    if (args->shape || args->offset)
        return cli_fail(CLI_USAGE, "--shape and --offset require raw input");
    if (in->format == FORMAT_CSV || in->format == FORMAT_TEXT)
        return input_open(args, NULL, args->dtype, in);
    if (args->dtype)
        return cli_fail(CLI_USAGE,
                        "--dtype describes raw input; for %s, --astype %s converts the "
                        "items and --view-dtype %s reinterprets their bytes",
                        in->path, args->dtype, args->dtype);
    return input_open(args, NULL, NULL, in);
}

static cli_exit select_input(source **from, const char *text)
{
    selection sel;
    if (!text) return CLI_OK;
    CLI_TRY(selection_parse(text, (*from)->shape.ndim, (*from)->shape.shape, &sel));
    source *inner = *from;
    *from = NULL; /* source_select takes ownership, also on failure */
    return source_select(inner, &sel, from);
}

static cli_exit output_format(const cli_args *args, data_format *format)
{
    const char *path = args->positional[1];
    CLI_TRY(format_find(path, args->to, "--to", format));
    if (args->to && (*format == FORMAT_TEXT || *format == FORMAT_CSV))
        return cli_fail(CLI_USAGE,
                        "--to must be raw, npy, b2nd or zarr; 'caterva get' prints %s",
                        args->to);
    if (args->sparse && *format == FORMAT_NONE) *format = FORMAT_ARRAY;
    if (*format == FORMAT_NONE && strcmp(path, "-") == 0)
        return cli_fail(CLI_USAGE, "standard output needs --to raw or --to npy");
    if ((*format == FORMAT_ARRAY || *format == FORMAT_ZARR) && strcmp(path, "-") == 0)
        return cli_fail(CLI_UNSUPPORTED, "a b2nd array cannot go to standard output");
    if (*format == FORMAT_TEXT || *format == FORMAT_CSV)
        return cli_fail(CLI_USAGE, "convert does not write text; use 'caterva get'");
    return CLI_OK;
}

/* Opens the input, then applies --view-dtype, the selection and --astype, in this order. */
static cli_exit prepare(const cli_args *args, input *in)
{
    CLI_TRY(open_input(args, in));
    if (args->view_dtype) CLI_TRY(source_view_as(in->from, args->view_dtype));
    cli_args rest = *args;
    rest.view_dtype = NULL;
    CLI_TRY(select_input(&in->from, args->select));
    return source_apply_dtypes(&rest, &in->from);
}

/* Copies a box of an array to a new array, with the library's copy. */
static cli_exit copy_array(const cli_args *args, caterva_array *array, bool zarr,
                           const selection *sel)
{
    creation c = {0};
    cli_exit code = array_copy_init(&c, args, array, sel);
    c.zarr = zarr;
    if (code == CLI_OK && !c.options.chunk_shape && !c.options.block_shape)
        code = creation_choose_partition(&c); /* not the partition of `array` */
    if (code == CLI_OK) code = array_copy_run(args, array, sel, &c);
    creation_free(&c);
    return code;
}

/* Converts to an array with the name OUT.partial, which gets the name OUT when it is complete. */
static cli_exit copy_resumed(const cli_args *args, const input *in)
{
    sink *to;
    resume_id id;
    const char *out = args->positional[1];
    const origin like = {.array = in->array, .node = in->place.node};
    CLI_TRY(creation_check_name(out));
    CLI_TRY(output_check_array(out, args->force));
    CLI_TRY(resume_identify(args, in->path, &id));
    char *partial = resume_path(out, ".b2nd");
    if (!partial) return CLI_IO;
    cli_exit code = sink_of_resumed_array(args, partial, in->from, &like, &id, &to);
    if (code == CLI_OK && to) code = transfer(args, in->from, to);
    if (code == CLI_OK && rename(partial, out) != 0)
        code = cli_fail_sys("cannot rename %s to %s", partial, out);
    if (code == CLI_OK) output_delete_temporaries(partial);
    free(partial);
    return code;
}

static cli_exit copy_items(const cli_args *args, data_format format, const input *in)
{
    if (args->go_on && format != FORMAT_ARRAY)
        return cli_fail(CLI_USAGE, "--resume requires an array or a tree as output");
    if (args->go_on) return copy_resumed(args, in);
    sink *to;
    caterva_array *array = in->array;
    source *from = in->from;
    bool twice = args->view_dtype && args->astype; /* one library copy cannot do both */
    bool zarr = format == FORMAT_ZARR;
    if (array && (format == FORMAT_ARRAY || zarr) && !twice) {
        const caterva_info *info = info_of(array);
        selection sel;
        CLI_TRY(selection_parse(args->select, info->ndim, info->shape, &sel));
        if (array_copy_fits(&sel)) return copy_array(args, array, zarr, &sel);
        selection_free(&sel); /* `from` has its own selection */
    }
    if (in->place.node && format == FORMAT_ARRAY &&
        foreign_can_move(args, in->place.file, in->place.node))
        return foreign_move_in(args, in->place.file, &(origin){.node = in->place.node},
                               args->positional[1]);
    if (format == FORMAT_FOREIGN && array && args->keep_chunks && !args->select && !args->astype &&
        !args->view_dtype) {
        bool moved;
        CLI_TRY(foreign_move_file(args, args->positional[1], from, array, &moved));
        if (moved) return CLI_OK;
    }
    const origin like = {.array = array, .node = in->place.node};
    CLI_TRY(sink_open(args, args->positional[1], format, from, &like, &to));
    return transfer(args, from, to);
}

/* Reports what a file of another format has besides its array. */
static cli_exit check_losses(const cli_args *args, const input *in)
{
    const foreign_file *file = in->place.file;
    if (!file) return CLI_OK;
    foreign_report_losses(in->path, file->losses, file->n_losses);
    if (file->n_losses == 0 || !args->strict) return CLI_OK;
    return cli_fail(CLI_UNSUPPORTED, "%s: --strict: %zu things cannot be converted", in->path,
                    file->n_losses);
}

static cli_exit print_plan(const cli_args *args, input *in)
{
    char shape[SHAPE_TEXT_SIZE];
    const array_shape *s = &in->from->shape;
    printf("%s  %s %s\n", cli_show_place(args->positional[1]).text,
           shape_text(s->ndim, s->shape, shape), cli_show(in->from->dtype).text);
    input_close(in);
    return CLI_OK;
}

/* Reads input and output again, and compares them. */
static cli_exit verify_output(const cli_args *args, input *in)
{
    input again = {0}, out = {0};
    const char *path = args->positional[1];
    cli_args rest = *args;
    rest.from = args->to;
    rest.offset = 0;
    if (strcmp(path, "-") == 0 || strcmp(in->path, "-") == 0 || in->format == FORMAT_TEXT)
        return cli_fail(CLI_USAGE, "--verify requires files as input and output");
    cli_exit code = prepare(args, &again);
    if (code == CLI_OK) code = input_find(&rest, path, &out);
    if (code == CLI_OK)
        code = input_open(&rest, &again.from->shape, again.from->dtype, &out);
    if (code == CLI_OK) code = transfer_compare(args, path, again.from, out.from);
    input_close(&again);
    input_close(&out);
    return code;
}

static cli_exit convert_array(const cli_args *args)
{
    input in = {0};
    data_format format;
    CLI_TRY(output_format(args, &format));
    cli_exit code = prepare(args, &in);
    if (code == CLI_OK) code = check_losses(args, &in);
    if (code == CLI_OK && args->dry_run) return print_plan(args, &in);
    if (code == CLI_OK) code = copy_items(args, format, &in);
    if (code == CLI_OK && args->verify) code = verify_output(args, &in);
    input_close(&in);
    return code;
}

static cli_exit run_convert(const cli_args *args)
{
    bool is_tree;
    CLI_TRY(output_check_input(args->positional[1], args->positional[0]));
    CLI_TRY(convert_is_tree(args, &is_tree));
    if (is_tree) return convert_tree(args);
    if (convert_is_array_in_tree(args)) return convert_array_to_tree(args, convert_array);
    return convert_array(args);
}

const cli_command cli_command_convert = {
    .name = "convert",
    .synopsis = "IN OUT",
    .summary = "convert between b2nd, npy, Zarr, HDF5, NetCDF, NIfTI, TIFF and others",
    .details =
        "Copies IN to OUT in another format. The first bytes of IN determine its format,\n"
        "or, if they do not (raw items), --from or its name. --to or OUT's name (.raw .bin\n"
        ".dat, .npy, .b2nd, .zarr) determines the output format; .zarr is a directory that "
        "is\n"
        "a b2nd array and a Zarr v3 array, or a hierarchy of these. '-' is standard input or\n"
        "output, for raw and npy. A b2nd copy of a b2nd array keeps its chunks, blocks and\n"
        "codec unless options change them. Raw input requires --shape and --dtype; --astype\n"
        "converts the items of any input. CSV (.csv) and text (.txt) are read as integers "
        "or\n"
        "floats, or as --dtype; a first row without a number is a header, and empty\n"
        "cells are NaN.",
    .options = CLI_OPT_WAIT | CLI_OPT_FROM | CLI_OPT_TO_BINARY | CLI_OPT_SELECT |
               CLI_OPT_SHAPE | CLI_OPT_DTYPE | CLI_OPT_ASTYPE | CLI_OPT_VIEW_DTYPE |
               CLI_OPT_OFFSET | CLI_OPT_PARTITION | CLI_OPT_MEMORY | CLI_OPT_FORCE |
               CLI_OPT_THREADS | CLI_OPT_NO_PROGRESS | CLI_OPT_REMOTE |
               CLI_OPT_CONVERT,
    .min_args = 2,
    .max_args = 2,
    .run = run_convert,
};
