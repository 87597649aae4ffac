/* Room: cli/commands. `caterva put`: writes a selection in one commit: as a whole or not at all.
 * The input must have the shape and dtype of the selection: nothing is broadcast, and items are
 * converted only with --casting or --astype. */
#include "formats/descr.h"
#include "sources/described.h"
#include "sources/input.h"
#include "sources/jobs.h"
#include "sources/sink.h"

#include <stdlib.h>
#include <string.h>

/* The selected part of the array. */
typedef struct target {
    const char *path;
    selection sel;
    array_shape shape;
    const char *dtype;
} target;

static cli_exit describe_target(const cli_args *args, caterva_array *array, target *out)
{
    const caterva_info *info = info_of(array);
    out->path = args->positional[0];
    CLI_TRY(selection_parse(args->positional[1], info->ndim, info->shape, &out->sel));
    out->shape.ndim = selection_shape(&out->sel, out->shape.shape);
    out->shape.item_size = info->item_size;
    out->dtype = info->dtype;
    return CLI_OK;
}

static cli_exit open_value(const target *to, const char *text, source **from)
{
    caterva_dtype *dtype;
    CLI_TRY(descr_parse(CLI_CORRUPT, to->path, to->dtype, &dtype));
    uint8_t *item = cli_alloc((size_t)dtype->item_size);
    cli_exit code = item ? item_parse("--fill", dtype, text, item) : CLI_IO;
    if (code == CLI_OK) code = source_of_value(&to->shape, to->dtype, item, from);
    free(item);
    caterva_dtype_free(dtype);
    return code;
}

static bool same_shape(const array_shape *a, const array_shape *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0;
}

static cli_exit check_input(const cli_args *args, const target *to, input *in)
{
    char want[SHAPE_TEXT_SIZE], have[SHAPE_TEXT_SIZE];
    const array_shape *shape = &in->from->shape;
    if (!same_shape(&to->shape, shape))
        return cli_fail(CLI_USAGE, "the selection has the shape %s, but the input has %s",
                        shape_text(to->shape.ndim, to->shape.shape, want),
                        shape_text(shape->ndim, shape->shape, have));
    return input_fit_dtype(args, in, to->path, to->dtype);
}

static cli_exit open_source(const cli_args *args, const target *to, input *in)
{
    if (args->fill && args->n_positional > 2)
        return cli_fail(CLI_USAGE, "an input and --fill exclude each other");
    if (args->fill) return open_value(to, args->fill, &in->from);
    if (args->n_positional < 3)
        return cli_fail(CLI_USAGE,
                        "put requires an input or --fill; usage: caterva put FILE SEL IN");
    CLI_TRY(input_find(args, args->positional[2], in));
    return input_open(args, &to->shape, to->dtype, in);
}

/* Opens the array or, with --part, a new part of a job of the array. */
static cli_exit open_target(const cli_args *args, caterva_array **out)
{
    const char *path = args->positional[0];
    if (args->part) return jobs_open_part(args, path, out);
    if (args->output) return cli_fail(CLI_USAGE, "--output requires --part");
    return cli_open_array(args, path, CATERVA_MODE_WRITE, out);
}

static cli_exit run_put(const cli_args *args)
{
    caterva_array *array;
    input in = {0};
    sink *to;
    target place = {.sel = {.ndim = 0}};
    CLI_TRY(open_target(args, &array));
    cli_exit code = describe_target(args, array, &place);
    if (code == CLI_OK) code = open_source(args, &place, &in);
    if (code == CLI_OK) code = check_input(args, &place, &in);
    if (code == CLI_OK) {
        code = args->part ? sink_of_part(array, args->output, &place.sel, &to)
                          : sink_of_array(array, place.path, &place.sel, &to);
        array = NULL; /* the sink owns the array and the selection */
        if (code == CLI_OK) code = transfer(args, in.from, to);
    } else {
        selection_free(&place.sel);
    }
    input_close(&in);
    caterva_discard(array);
    return code;
}

const cli_command cli_command_put = {
    .name = "put",
    .synopsis = "FILE SEL [IN]",
    .summary = "write a selection of an array",
    .details =
        "Writes IN (npy, raw, b2nd, CSV or text; '-' for standard input), or the value of\n"
        "--fill, to the selected items of FILE. The input must have the shape and dtype of\n"
        "the selection: without --casting or --astype nothing is converted. Raw, CSV\n"
        "and text input is read with FILE's dtype. The change is committed at the end.\n"
        "Until then, and after a failure, FILE is unchanged.\n\n"
        "With --part nothing is committed and FILE is not locked: the items become a part\n"
        "of a job, and others can be written at the same time. 'caterva jobs merge' takes\n"
        "the token of the part. JOB is the id that 'caterva jobs begin' printed, or its "
        "first\n"
        "digits.",
    .options = CLI_OPT_WAIT | CLI_OPT_FROM | CLI_OPT_CAST_INPUT | CLI_OPT_FILL |
               CLI_OPT_OFFSET | CLI_OPT_THREADS | CLI_OPT_MEMORY | CLI_OPT_COMPACT_AT |
               CLI_OPT_NO_PROGRESS | CLI_OPT_PART | CLI_OPT_REMOTE,
    .min_args = 2,
    .max_args = 3,
    .run = run_put,
};
