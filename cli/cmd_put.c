/* Room: cli. `caterva put`: a slice into an array, committed whole or not at all.
 * Shape and dtype of the input must be those of the selection: nothing is broadcast
 * and nothing is cast. */
#include "descr.h"
#include "sink.h"

#include <stdlib.h>
#include <string.h>

/* The selected part of the array as a source would describe it. */
typedef struct target {
    const char *path;
    selection sel;
    array_shape shape;
    const char *dtype;
} target;

static cli_exit describe_target(const cli_args *args, caterva_array *array, target *out)
{
    const caterva_info *info = caterva_describe(array);
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
    CLI_TRY(descr_parse(to->path, to->dtype, &dtype));
    uint8_t *item = cli_alloc((size_t)dtype->item_size);
    cli_exit code = item ? item_parse(dtype, text, item) : CLI_IO;
    if (code == CLI_OK) code = source_of_value(&to->shape, to->dtype, item, from);
    free(item);
    caterva_dtype_free(dtype);
    return code;
}

static cli_exit open_array_input(const cli_args *args, const char *path,
                                 caterva_array **input, source **from)
{
    CLI_TRY(cli_open_array(args, path, CATERVA_READ, input));
    return source_of_array(*input, path, from);
}

/* Raw input has the shape and dtype of the place it goes to. */
static cli_exit open_input(const cli_args *args, const target *to, caterva_array **input,
                           source **from)
{
    const char *path = args->positional[2];
    data_format format;
    CLI_TRY(format_find(path, args->from, "--from", &format));
    if (format == FORMAT_ARRAY) return open_array_input(args, path, input, from);
    if (format == FORMAT_NPY) return source_of_file(args, path, format, from);
    if (format != FORMAT_RAW)
        return cli_fail(CLI_USAGE, "%s: input must be npy, raw or b2nd; use --from", path);
    cli_args raw = *args;
    char shape[SHAPE_TEXT_SIZE];
    raw.shape = shape_text(to->shape.ndim, to->shape.shape, shape);
    raw.dtype = to->dtype;
    return source_of_file(&raw, path, format, from);
}

static bool same_shape(const array_shape *a, const array_shape *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0;
}

/* Equal dtypes may be spelled differently: the parsed kinds decide, and opaque
 * items take anything of their size. */
static cli_exit same_dtype(const char *a, const char *b, bool *same)
{
    caterva_dtype *x, *y;
    *same = strcmp(a, b) == 0;
    if (*same) return CLI_OK;
    CLI_TRY(descr_parse("the array", a, &x));
    cli_exit code = descr_parse("the input", b, &y);
    if (code == CLI_OK) {
        bool opaque = x->kind == 'V' && x->n_fields == 0;
        *same = x->item_size == y->item_size &&
                (opaque || (x->kind == y->kind && x->byte_order == y->byte_order &&
                            x->n_fields == y->n_fields && strcmp(x->unit, y->unit) == 0));
        caterva_dtype_free(y);
    }
    caterva_dtype_free(x);
    return code;
}

static cli_exit check_input(const target *to, const source *from)
{
    char want[SHAPE_TEXT_SIZE], have[SHAPE_TEXT_SIZE];
    if (!same_shape(&to->shape, &from->shape))
        return cli_fail(CLI_USAGE, "the selection has the shape %s, the input %s",
                        shape_text(to->shape.ndim, to->shape.shape, want),
                        shape_text(from->shape.ndim, from->shape.shape, have));
    bool same;
    CLI_TRY(same_dtype(to->dtype, from->dtype, &same));
    if (same) return CLI_OK;
    return cli_fail(CLI_USAGE, "%s holds %s, the input %s", to->path, to->dtype, from->dtype);
}

static cli_exit open_source(const cli_args *args, const target *to, caterva_array **input,
                            source **from)
{
    if (args->fill && args->n_positional > 2)
        return cli_fail(CLI_USAGE, "give either an input or --fill");
    if (args->fill) return open_value(to, args->fill, from);
    if (args->n_positional < 3)
        return cli_fail(CLI_USAGE,
                        "put needs an input or --fill; usage: caterva put FILE SEL IN");
    return open_input(args, to, input, from);
}

static cli_exit run_put(const cli_args *args)
{
    caterva_array *array, *input = NULL;
    source *from = NULL;
    sink *to;
    target place;
    CLI_TRY(cli_open_array(args, args->positional[0], CATERVA_WRITE, &array));
    cli_exit code = describe_target(args, array, &place);
    if (code == CLI_OK) code = open_source(args, &place, &input, &from);
    if (code == CLI_OK) code = check_input(&place, from);
    if (code == CLI_OK) {
        code = sink_of_array(array, place.path, &place.sel, &to);
        array = NULL; /* the sink's from here on */
        if (code == CLI_OK) code = transfer(args, from, to);
    }
    source_close(from);
    caterva_discard(input);
    caterva_discard(array);
    return code;
}

const cli_command cli_command_put = {
    .name = "put",
    .synopsis = "FILE SEL [IN]",
    .summary = "a slice in, committed",
    .details = "Writes IN (npy, raw or b2nd; '-' for standard input), or the one value of\n"
               "--fill, into the selected items of FILE. The input must have the shape and\n"
               "the dtype of the selection; raw input is taken as it is. Committed at the\n"
               "end: until then, and after a failure, FILE is as it was.",
    .options = CLI_OPT_FROM | CLI_OPT_FILL | CLI_OPT_OFFSET | CLI_OPT_THREADS |
               CLI_OPT_MEMORY | CLI_OPT_NO_PROGRESS,
    .min_args = 2,
    .max_args = 3,
    .run = run_put,
};
