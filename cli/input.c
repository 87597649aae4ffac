/* Room: cli. Inputs of put and append, in any format that has items. Opens a source
 * and compares dtypes; which shape is right the command knows. */
#include "input.h"

#include "descr.h"

#include <string.h>

cli_exit input_find(const cli_args *args, const char *path, input *out)
{
    *out = (input){.path = path};
    CLI_TRY(format_find(path, args->from, "--from", &out->format));
    if (out->format == FORMAT_ARRAY || out->format == FORMAT_NPY || out->format == FORMAT_RAW)
        return CLI_OK;
    return cli_fail(CLI_USAGE, "%s: input must be npy, raw or b2nd; use --from", path);
}

cli_exit input_open(const cli_args *args, const array_shape *raw, const char *dtype,
                    input *in)
{
    if (in->format == FORMAT_NPY)
        return source_of_file(args, in->path, in->format, &in->from);
    if (in->format == FORMAT_ARRAY) {
        CLI_TRY(cli_open_array(args, in->path, CATERVA_READ, &in->array));
        return source_of_array(in->array, in->path, &in->from);
    }
    cli_args described = *args;
    char shape[SHAPE_TEXT_SIZE];
    described.shape = shape_text(raw->ndim, raw->shape, shape);
    described.dtype = dtype;
    return source_of_file(&described, in->path, in->format, &in->from);
}

void input_close(input *in)
{
    source_close(in->from);
    caterva_discard(in->array);
    in->from = NULL;
    in->array = NULL;
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

cli_exit input_check_dtype(const input *in, const char *path, const char *dtype)
{
    bool same;
    CLI_TRY(same_dtype(dtype, in->from->dtype, &same));
    if (same) return CLI_OK;
    return cli_fail(CLI_USAGE, "%s holds %s, the input %s", path, dtype, in->from->dtype);
}
