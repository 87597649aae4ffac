/* Room: cli/sources. Inputs of any format that contains items. The first bytes determine the
 * format; for raw items, --from or the name does, and the command determines the shape. */
#include "sources/input.h"

#include "formats/descr.h"
#include "sources/cast.h"

#include <string.h>
#include <sys/stat.h>

static const char *shown_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static const char *format_word(const char *path, data_format format)
{
    if (format == FORMAT_FOREIGN) return foreign_place_title(path);
    return format == FORMAT_ARRAY ? "a b2nd array" : "a NumPy file";
}

/* Whether the path is a pipe. If raw items are expected from a pipe, its first bytes must not be
 * read to find the format. */
static bool is_pipe(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && !S_ISREG(st.st_mode) &&
           !S_ISDIR(st.st_mode);
}

/* Determines the format of an input without known magic bytes. `named` is the format according to
 * --from or the name. */
static cli_exit find_unmarked(const cli_args *args, const input *in, data_format named,
                              data_format *out)
{
    const char *name = shown_name(in->path);
    *out = named;
    if (named == FORMAT_RAW) return CLI_OK;
    if (in->probe.other) {
        CLI_TRY(probe_explain(args, in->path)); /* the path may be a tree */
        return probe_refuse(name, in->probe.other);
    }
    if (in->probe.empty && named != FORMAT_NONE)
        return cli_fail(CLI_CORRUPT, "%s is empty", name);
    if (named == FORMAT_NPY)
        return cli_fail(CLI_CORRUPT,
                        "%s is not an npy file: it does not begin with NumPy's magic bytes",
                        name);
    if (named == FORMAT_CSV || named == FORMAT_TEXT) return CLI_OK;
    bool standard = strcmp(in->path, "-") == 0;
    if (named == FORMAT_ARRAY && !standard)
        return CLI_OK; /* the library reports a more specific error */
    if (named == FORMAT_ARRAY)
        return cli_fail(CLI_CORRUPT, "%s does not begin like a b2nd array", name);
    return cli_fail(
        CLI_USAGE,
        "cannot determine the format of %s: input must be b2nd, npy, csv, text or raw; raw "
        "input needs --from raw",
        name);
}

static cli_exit find_format(const cli_args *args, input *in)
{
    data_format named, found;
    CLI_TRY(format_find(in->path, args->from, "--from", &named));
    if (named == FORMAT_ZARR) named = FORMAT_ARRAY;
    bool pipe = is_pipe(in->path);
    bool raw = named == FORMAT_RAW && (args->from || pipe);
    if (named == FORMAT_ARRAY && pipe)
        return cli_fail(CLI_IO, "%s is not a regular file", in->path);
    if (!raw) CLI_TRY(probe_open(in->path, &in->probe));
    found = in->probe.format;
    if (raw || found == FORMAT_NONE) return find_unmarked(args, in, named, &in->format);
    in->format = found;
    if (!args->from || named == found || named == FORMAT_ZARR) return CLI_OK;
    return cli_fail(CLI_USAGE, "%s is %s, but --from is %s", shown_name(in->path),
                    format_word(in->path, found), args->from);
}

bool input_is_other(const char *path)
{
    return probe_is_npy(path) || foreign_place_is(path);
}

cli_exit input_find(const cli_args *args, const char *path, input *out)
{
    *out = (input){.path = path, .probe = PROBE_INIT};
    cli_exit code = find_format(args, out);
    if (code == CLI_OK && out->format == FORMAT_ARRAY && strcmp(path, "-") == 0)
        code = cli_fail(CLI_UNSUPPORTED,
                        "standard input is a b2nd array, which can only be read from a file");
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
    if (in->format == FORMAT_FOREIGN) {
        probe_close(&in->probe);
        CLI_TRY(foreign_place_open(in->path, &in->place));
        in->place.file->threads = (int)args->threads;
        CLI_TRY(foreign_place_take_array(in->path, &in->place));
        return source_of_foreign(in->place.file, in->place.node, &in->from);
    }
    raw_items items = {.ndim = raw->ndim, .dtype = dtype, .offset = args->offset};
    memcpy(items.shape, raw->shape, sizeof items.shape);
    return source_of_raw(in->path, &in->probe, &items, &in->from);
}

void input_close(input *in)
{
    source_close(in->from);
    caterva_discard(in->array);
    foreign_place_close(&in->place);
    probe_close(&in->probe);
    in->from = NULL;
    in->array = NULL;
}

/* Whether two dtypes are equal, even if written differently: compares the parsed dtypes. If `a` is
 * opaque (V without fields), every `b` of the same item size is equal. */
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
                    "--astype and --casting require npy or b2nd: raw input has the array's "
                    "dtype");
}

/* Casts to --astype or, with --casting alone, to the array's dtype. */
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
    return cli_fail(CLI_USAGE, "%s contains %s, but the input contains %s%s", path, dtype,
                    in->from->dtype, args->astype ? "" : "; --casting same_kind converts it");
}
