/* Room: cli/commands. `caterva get`: prints a selection of an array as text, or writes it to a file
 * of any format. Connects a source, a selection and a sink. Items are moved box by box, so an array
 * larger than memory can be printed. */
#include "formats/descr.h"
#include "formats/item.h"
#include "sources/cast.h"
#include "sources/coordinates.h"
#include "sources/described.h"
#include "sources/dims.h"
#include "sources/input.h"
#include "sources/sink.h"
#include "terminal/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *picture_hint(const char *name)
{
    const char *dot = name ? strrchr(name, '.') : NULL;
    return dot && strcasecmp(dot, ".png") == 0 ? "; 'caterva view --png' writes pictures"
                                               : "";
}

/* Determines the output's format: text, unless --to, --csv or the output's name chooses another. */
static cli_exit output_format(const cli_args *args, data_format *format)
{
    bool standard = !args->output || strcmp(args->output, "-") == 0;
    *format = args->csv ? FORMAT_CSV : FORMAT_TEXT;
    if (args->csv && args->to && strcmp(args->to, "csv") != 0)
        return cli_fail(CLI_USAGE, "--csv and --to %s contradict each other", args->to);
    if (args->csv || (standard && !args->to)) return CLI_OK;
    CLI_TRY(format_find(args->output ? args->output : "-", args->to, "--to", format));
    if (*format == FORMAT_NONE)
        return cli_fail(CLI_USAGE, "the name %s has no known extension; use --to%s",
                        args->output, picture_hint(args->output));
    if (standard && (*format == FORMAT_ARRAY || *format == FORMAT_ZARR))
        return cli_fail(CLI_UNSUPPORTED, "a b2nd array cannot go to standard output; use -o");
    return CLI_OK;
}

static cli_exit open_damaged(const cli_args *args, caterva_array *array, source **from)
{
    const char *path = args->positional[0];
    const caterva_info *info = info_of(array);
    if (!args->fill) return source_of_damaged(array, path, NULL, from);
    caterva_dtype *dtype;
    CLI_TRY(descr_parse(CLI_CORRUPT, path, info->dtype, &dtype));
    uint8_t *item = cli_alloc((size_t)info->item_size);
    cli_exit code = item ? item_parse("--fill", dtype, args->fill, item) : CLI_IO;
    if (code == CLI_OK) code = source_of_damaged(array, path, item, from);
    free(item);
    caterva_dtype_free(dtype);
    return code;
}

static cli_exit parse_coordinates(const cli_args *args, caterva_array *array, selection *sel)
{
    const char *path = args->positional[0];
    const caterva_info *info = info_of(array);
    coordinate_files *files;
    coordinate_finder finder = {.context = NULL};
    const char **names = dims_of(array);
    if (!names)
        return cli_fail(CLI_USAGE, "%s has no dimension names, which --sel requires", path);
    cli_exit code = coordinate_files_open(args, path, &files, &finder);
    finder.nearest = args->nearest;
    if (code == CLI_OK) {
        code = coordinates_parse(args->sel, info->ndim, info->shape, names, &finder, sel);
        coordinate_files_close(files);
    }
    caterva_free(names);
    return code;
}

static cli_exit parse_selection(const cli_args *args, caterva_array *array, selection *sel)
{
    const caterva_info *info = info_of(array);
    const char *text = args->n_positional > 1 ? args->positional[1] : NULL;
    if (args->sel && text) return cli_fail(CLI_USAGE, "SEL and --sel exclude each other");
    if (args->nearest && !args->sel) return cli_fail(CLI_USAGE, "--nearest requires --sel");
    if (args->sel) return parse_coordinates(args, array, sel);
    return selection_parse(text, info->ndim, info->shape, sel);
}

/* Opens the source *from of the selected items. It owns *all, the source of the whole array. */
static cli_exit open_selection(const cli_args *args, caterva_array *array, source **all,
                               source **from)
{
    const char *path = args->positional[0];
    selection sel;
    if (args->fill && !args->skip_damaged)
        return cli_fail(CLI_USAGE, "--fill requires --skip-damaged");
    if (args->field && args->skip_damaged)
        return cli_fail(CLI_USAGE, "--skip-damaged and --field exclude each other");
    CLI_TRY(parse_selection(args, array, &sel));
    cli_exit code = args->skip_damaged ? open_damaged(args, array, all)
                                       : source_of_array(array, path, all);
    if (code == CLI_OK && args->field) {
        code = source_take_field(*all, args->field);
        if (code != CLI_OK) source_close(*all);
    }
    if (code == CLI_OK) return source_select(*all, &sel, from);
    selection_free(&sel);
    return code;
}

/* Reports the attributes that cannot be read; a copy will lack them. Returns whether any exist. */
static bool report_lost_attributes(const cli_args *args, caterva_array *array)
{
    bool lost = false;
    const char *name;
    for (int i = 0; (name = attribute_of(array, i)); i++) {
        void *value = NULL;
        size_t size;
        caterva_error err;
        if (caterva_attr_get(array, name, &value, &size, &err) != CATERVA_OK) {
            fprintf(stderr, "caterva: skipped: %s: %s\n",
                    cli_show_place(args->positional[0]).text, err.message);
            lost = true;
        }
        caterva_free(value);
    }
    return lost;
}

static cli_exit get(const cli_args *args, caterva_array *array)
{
    data_format format;
    source *all, *from;
    sink *to;
    CLI_TRY(output_format(args, &format));
    CLI_TRY(output_check_input(args->output, args->positional[0]));
    CLI_TRY(open_selection(args, array, &all, &from));
    cli_exit code = source_apply_dtypes(args, &from);
    const origin like = {.array = array};
    if (code == CLI_OK) code = sink_open(args, args->output, format, from, &like, &to);
    if (code == CLI_OK) code = transfer(args, from, to);
    bool lost = args->skip_damaged && source_skipped(all) > 0;
    if (args->skip_damaged && (format == FORMAT_ARRAY || format == FORMAT_ZARR))
        lost = report_lost_attributes(args, array) || lost;
    if (code == CLI_OK && lost) code = CLI_NO;
    source_close(from);
    return code;
}

static cli_exit get_other(const cli_args *args, input *in)
{
    data_format format;
    selection sel;
    sink *to;
    const char *text = args->n_positional > 1 ? args->positional[1] : NULL;
    if (args->sel || args->skip_damaged || args->field || args->fill)
        return cli_fail(
            CLI_USAGE,
            "%s is %s, but --sel, --field, --skip-damaged and --fill require b2nd", in->path,
            in->place.info ? in->place.info->title : "a NumPy file");
    CLI_TRY(output_format(args, &format));
    CLI_TRY(output_check_input(args->output, in->path));
    CLI_TRY(selection_parse(text, in->from->shape.ndim, in->from->shape.shape, &sel));
    source *from = in->from;
    in->from = NULL; /* source_select takes ownership, also on failure */
    CLI_TRY(source_select(from, &sel, &in->from));
    CLI_TRY(source_apply_dtypes(args, &in->from));
    const origin like = {.node = in->place.node};
    CLI_TRY(sink_open(args, args->output, format, in->from, &like, &to));
    return transfer(args, in->from, to);
}

static cli_exit run_get_other(const cli_args *args)
{
    input in = {0};
    cli_exit code = input_find(args, args->positional[0], &in);
    if (code == CLI_OK) code = input_open(args, NULL, NULL, &in);
    if (code == CLI_OK) code = get_other(args, &in);
    input_close(&in);
    return code;
}

static cli_exit run_get(const cli_args *args)
{
    caterva_array *array;
    if (input_is_other(args->positional[0])) return run_get_other(args);
    CLI_TRY(cli_open_array(args, args->positional[0], CATERVA_MODE_READ, &array));
    cli_exit code = get(args, array);
    caterva_discard(array);
    return code;
}

const cli_command cli_command_get = {
    .name = "get",
    .synopsis = "FILE [SEL]",
    .summary = "print items, or write them to a file",
    .details =
        "Prints the selected items, or all. A row of the result is a line; with more than "
        "two\n"
        "axes, each page begins with a blank line and a comment such as '# [0,3,:,:]'.\n"
        "With -o, the output's name determines the format: .npy, .raw, .csv, .txt, .b2nd,\n"
        ".zarr. A b2nd output keeps the attributes, metalayers and codec of FILE. --astype\n"
        "converts the items. --sel selects by dimension name and coordinate value, where "
        "the\n"
        "coordinates are arrays with these names next to FILE, or in an enclosing group of\n"
        "its tree: 'lat=40:50' selects from 40 to 50, 'time=2020-01:2020-02' two whole\n"
        "months, 'lat=45' the item with this value. Without such an array, values are\n"
        "indices. --field selects one field of structured items. FILE may be one that\n"
        "convert reads.\n"
        "With --skip-damaged, the exit status is 1 if a chunk was skipped. A chunk that\n"
        "cannot be read at all, because the disk or the server fails, is an error.",
    .options = CLI_OPT_OUTPUT | CLI_OPT_TO | CLI_OPT_CSV | CLI_OPT_PRECISION | CLI_OPT_SKIP |
               CLI_OPT_ASTYPE | CLI_OPT_FIELD | CLI_OPT_FILL | CLI_OPT_FORCE |
               CLI_OPT_THREADS | CLI_OPT_MEMORY | CLI_OPT_NO_PROGRESS | CLI_OPT_SEL |
               CLI_OPT_REMOTE,
    .min_args = 1,
    .max_args = 2,
    .run = run_get,
};
