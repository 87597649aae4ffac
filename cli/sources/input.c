/* Room: cli/sources. Inputs, in any format that has items. The bytes decide what an input is;
 * --from and the name help where bytes say nothing, as those of raw items do. Which shape
 * is right the command knows. */
#include "sources/input.h"

#include "formats/descr.h"
#include "sources/cast.h"

#include <string.h>
#include <sys/stat.h>

static const char *shown_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static const char *format_word(data_format format)
{
    return format == FORMAT_ARRAY ? "a b2nd array" : "a NumPy file";
}

/* Nothing may be taken out of a pipe that holds raw items. */
static bool is_pipe(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && !S_ISREG(st.st_mode) &&
           !S_ISDIR(st.st_mode);
}

/* What bytes without a known mark are, by `named`: --from's word, or the name's. */
static cli_exit find_unmarked(const cli_args *args, const input *in, data_format named,
                              data_format *out)
{
    const char *name = shown_name(in->path);
    *out = named;
    if (named == FORMAT_RAW) return CLI_OK;
    if (in->probe.other) {
        CLI_TRY(probe_explain(args, in->path)); /* an archive of a tree */
        return probe_refuse(name, in->probe.other);
    }
    if (in->probe.empty && named != FORMAT_NONE)
        return cli_fail(CLI_CORRUPT, "%s is empty", name);
    if (named == FORMAT_NPY)
        return cli_fail(CLI_CORRUPT, "%s is no npy file: it does not begin with NumPy's mark",
                        name);
    if (named == FORMAT_CSV || named == FORMAT_TEXT) return CLI_OK;
    bool standard = strcmp(in->path, "-") == 0;
    if (named == FORMAT_ARRAY && !standard) return CLI_OK; /* the library says more */
    if (named == FORMAT_ARRAY)
        return cli_fail(CLI_CORRUPT, "%s does not begin as a b2nd array does", name);
    return cli_fail(
        CLI_USAGE,
        "%s: neither its bytes nor its name say what it is; input is b2nd, npy, csv, text "
        "or raw, and raw needs --from raw",
        name);
}

static cli_exit find_format(const cli_args *args, input *in)
{
    data_format named, found;
    CLI_TRY(format_find(in->path, args->from, "--from", &named));
    bool pipe = is_pipe(in->path);
    bool raw = named == FORMAT_RAW && (args->from || pipe);
    if (named == FORMAT_ARRAY && pipe)
        return cli_fail(CLI_IO, "%s is not a regular file", in->path);
    if (!raw) CLI_TRY(probe_open(in->path, &in->probe));
    found = in->probe.format;
    if (raw || found == FORMAT_NONE) return find_unmarked(args, in, named, &in->format);
    in->format = found;
    if (!args->from || named == found) return CLI_OK;
    return cli_fail(CLI_USAGE, "%s is %s, not what --from %s says", shown_name(in->path),
                    format_word(found), args->from);
}

cli_exit input_find(const cli_args *args, const char *path, input *out)
{
    *out = (input){.path = path, .probe = PROBE_INIT};
    cli_exit code = find_format(args, out);
    if (code == CLI_OK && out->format == FORMAT_ARRAY && strcmp(path, "-") == 0)
        code = cli_fail(CLI_UNSUPPORTED,
                        "standard input is a b2nd array, which is read from a file only");
    if (code != CLI_OK) probe_close(&out->probe);
    return code;
}

cli_exit input_open(const cli_args *args, const array_shape *raw, const char *dtype,
                    input *in)
{
    if (in->format == FORMAT_NPY) return source_of_npy(in->path, &in->probe, &in->from);
    if (in->format == FORMAT_CSV || in->format == FORMAT_TEXT)
        return source_of_text(in->path, &in->probe, in->format == FORMAT_CSV, raw, dtype,
                              &in->from);
    if (in->format == FORMAT_ARRAY) {
        probe_close(&in->probe);
        CLI_TRY(cli_open_array(args, in->path, CATERVA_MODE_READ, &in->array));
        return source_of_array(in->array, in->path, &in->from);
    }
    raw_items items = {.ndim = raw->ndim, .dtype = dtype, .offset = args->offset};
    memcpy(items.shape, raw->shape, sizeof items.shape);
    return source_of_raw(in->path, &in->probe, &items, &in->from);
}

void input_close(input *in)
{
    source_close(in->from);
    caterva_discard(in->array);
    probe_close(&in->probe);
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
    CLI_TRY(descr_parse(CLI_CORRUPT, "the array", a, &x));
    cli_exit code = descr_parse(CLI_CORRUPT, "the input", b, &y);
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

cli_exit input_check_cast(const cli_args *args, const input *in)
{
    if (in->format != FORMAT_RAW || (!args->astype && !args->casting)) return CLI_OK;
    return cli_fail(CLI_USAGE,
                    "--astype and --casting are for npy and b2nd: raw input has the array's "
                    "dtype");
}

/* --astype is the user's word for what comes out; --casting alone: the array's dtype. */
static cli_exit cast_input(const cli_args *args, input *in, const char *dtype)
{
    caterva_casting casting;
    CLI_TRY(casting_find(args, &casting));
    if (!args->casting && !args->astype) return CLI_OK;
    return source_cast(&in->from, args->astype ? args->astype : dtype, casting);
}

cli_exit input_fit_dtype(const cli_args *args, input *in, const char *path, const char *dtype)
{
    bool same;
    CLI_TRY(input_check_cast(args, in));
    CLI_TRY(same_dtype(dtype, in->from->dtype, &same));
    if (same && !args->astype) return CLI_OK;
    CLI_TRY(cast_input(args, in, dtype));
    CLI_TRY(same_dtype(dtype, in->from->dtype, &same));
    if (same) return CLI_OK;
    return cli_fail(CLI_USAGE, "%s holds %s, the input %s%s", path, dtype, in->from->dtype,
                    args->astype ? "" : "; --casting same_kind casts it");
}
