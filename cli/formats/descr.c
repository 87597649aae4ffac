/* Room: cli/formats. Texts that describe dtypes. All are printed from a parsed dtype, so that
 * quoting and offsets are implemented once. The functions recurse into nested structures, whose
 * depth the library's parser limits. */
#include "formats/descr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cli_exit descr_parse(cli_exit code, const char *where, const char *text, caterva_dtype **out)
{
    static const char prefix[] = "dtype, "; /* `where` names the dtype's origin */
    caterva_error err;
    if (caterva_dtype_parse(text, out, &err) == CATERVA_OK) return CLI_OK;
    bool prefixed = strncmp(err.message, prefix, sizeof prefix - 1) == 0;
    return cli_fail(code, "%s: '%.80s' is not a dtype: %s", where, text,
                    err.message + (prefixed ? sizeof prefix - 1 : 0));
}

static void print_type(FILE *stream, const caterva_dtype *type, bool as_list);

static void print_quoted(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') fputc('\\', stream);
        if ((unsigned char)*text < 0x20)
            fprintf(stream, "\\x%02x", *text);
        else
            fputc(*text, stream);
    }
    fputc('\'', stream);
}

static void print_dims(FILE *stream, const caterva_dtype *type)
{
    fputc('(', stream);
    for (int d = 0; d < type->ndim; d++)
        fprintf(stream, "%lld%s", (long long)type->shape[d],
                d + 1 < type->ndim ? ", "
                : type->ndim == 1  ? ",)"
                                   : ")");
}

/* Prints <f4, |S8, <M8[25s]. */
static void print_scalar(FILE *stream, const caterva_dtype *type, int64_t size)
{
    int64_t units = type->kind == 'U' ? size / 4 : size;
    fprintf(stream, "%c%c%lld", type->byte_order, type->kind, (long long)units);
    if (*type->unit) fprintf(stream, "[%s]", type->unit);
}

static int64_t element_size(const caterva_dtype *type)
{
    int64_t n = 1;
    for (int d = 0; d < type->ndim; d++) n *= type->shape[d];
    return n ? type->item_size / n : 0;
}

/* Prints the bytes from `from` to `to` as an unnamed field. */
static void print_gap(FILE *stream, int64_t from, int64_t to)
{
    if (to > from)
        fprintf(stream, "%s('', '|V%lld')", from ? ", " : "", (long long)(to - from));
}

/* Prints [('a', '<i4'), ('', '|V4'), ('b', '<f8', (3,))]. */
static void print_list(FILE *stream, const caterva_dtype *type)
{
    int64_t end = 0;
    fputc('[', stream);
    for (int i = 0; i < type->n_fields; i++) {
        const caterva_field *f = &type->fields[i];
        print_gap(stream, end, f->offset);
        fputs(f->offset ? ", (" : "(", stream);
        print_quoted(stream, f->name);
        fputs(", ", stream);
        print_type(stream, f->dtype, true);
        if (f->dtype->ndim > 0) {
            fputs(", ", stream);
            print_dims(stream, f->dtype);
        }
        fputc(')', stream);
        end = f->offset + f->dtype->item_size;
    }
    print_gap(stream, end, element_size(type));
    fputc(']', stream);
}

typedef void print_column(FILE *stream, const caterva_field *field);

static void print_name(FILE *stream, const caterva_field *field)
{
    print_quoted(stream, field->name);
}

static void print_format(FILE *stream, const caterva_field *field)
{
    bool tuple = field->dtype->ndim > 0;
    if (tuple) fputc('(', stream);
    print_type(stream, field->dtype, false);
    if (!tuple) return;
    fputs(", ", stream);
    print_dims(stream, field->dtype);
    fputc(')', stream);
}

static void print_offset(FILE *stream, const caterva_field *field)
{
    fprintf(stream, "%lld", (long long)field->offset);
}

static void print_columns(FILE *stream, const caterva_dtype *type, const char *key,
                          print_column *print)
{
    fprintf(stream, "'%s': [", key);
    bool first = true;
    for (int i = 0; i < type->n_fields; i++) {
        if (!*type->fields[i].name) continue; /* padding: implied by the offsets */
        fputs(first ? "" : ", ", stream);
        first = false;
        print(stream, &type->fields[i]);
    }
    fputs("], ", stream);
}

/* Prints {'names': [...], 'formats': [...], 'offsets': [...], 'itemsize': 16}. */
static void print_dictionary(FILE *stream, const caterva_dtype *type)
{
    fputc('{', stream);
    print_columns(stream, type, "names", print_name);
    print_columns(stream, type, "formats", print_format);
    print_columns(stream, type, "offsets", print_offset);
    fprintf(stream, "'itemsize': %lld}", (long long)element_size(type));
}

/* Prints the type of one element; the caller prints the dimensions of a sub-array. */
static void print_type(FILE *stream, const caterva_dtype *type, bool as_list)
{
    if (type->n_fields > 0 && as_list) {
        print_list(stream, type);
    } else if (type->n_fields > 0) {
        print_dictionary(stream, type);
    } else {
        fputc('\'', stream);
        print_scalar(stream, type, element_size(type));
        fputc('\'', stream);
    }
}

/* Sets *out to the output of `print`. Release *out with free. */
static cli_exit respell(const caterva_dtype *type,
                        void (*print)(FILE *, const caterva_dtype *), char **out)
{
    size_t size;
    FILE *stream = open_memstream(out, &size);
    if (!stream) return cli_fail_sys("no memory for a dtype");
    print(stream, type);
    if (fclose(stream) != 0) return cli_fail_sys("no memory for a dtype");
    return CLI_OK;
}

static void print_for_npy(FILE *stream, const caterva_dtype *type)
{
    print_type(stream, type, true);
}

static void print_for_array(FILE *stream, const caterva_dtype *type)
{
    if (type->n_fields > 0)
        print_dictionary(stream, type);
    else
        print_scalar(stream, type, type->item_size);
}

static bool fields_overlap(const caterva_dtype *type)
{
    int64_t end = 0;
    for (int i = 0; i < type->n_fields; i++) {
        const caterva_field *f = &type->fields[i];
        if (f->offset < end || fields_overlap(f->dtype)) return true;
        end = f->offset + f->dtype->item_size;
    }
    return false;
}

static bool has_padding(const caterva_dtype *type)
{
    for (int i = 0; i < type->n_fields; i++)
        if (!*type->fields[i].name || has_padding(type->fields[i].dtype)) return true;
    return false;
}

cli_exit descr_for_npy(const char *dtype, char **out)
{
    if (*dtype == '[') {
        *out = cli_copy_text(dtype);
        return *out ? CLI_OK : CLI_IO;
    }
    caterva_dtype *type;
    CLI_TRY(descr_parse(CLI_CORRUPT, "the array", dtype, &type));
    cli_exit code;
    if (type->ndim > 0 || fields_overlap(type))
        code = cli_fail(CLI_UNSUPPORTED, "npy files cannot represent the dtype %s", dtype);
    else
        code = respell(type, print_for_npy, out);
    caterva_dtype_free(type);
    return code;
}

cli_exit descr_for_array(cli_exit code, const char *where, const char *descr, char **out)
{
    caterva_dtype *type;
    CLI_TRY(descr_parse(code, where, descr, &type));
    code = CLI_OK;
    bool scalar = type->n_fields == 0 && type->ndim == 0 && type->kind != '?';
    if (scalar || has_padding(type))
        code = respell(type, print_for_array, out);
    else if (!(*out = cli_copy_text(descr)))
        code = CLI_IO;
    caterva_dtype_free(type);
    return code;
}

cli_exit descr_of(const caterva_dtype *type, char **out)
{
    return respell(type, print_for_array, out);
}
