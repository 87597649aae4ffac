/* Room: cli/formats. Headers of .npy files: six magic bytes, a version, a length, and a Python
 * dictionary with three keys. Reads all versions, and writes the oldest that can hold the
 * header. */
#include "formats/npy.h"
#include "formats/descr.h"
#include "formats/numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HEADER (1 << 24)
#define ALIGNMENT 64

static const char magic[] = "\x93NUMPY";

/* State of parsing the dictionary. */
typedef struct scanner {
    const char *path;
    const char *at;
} scanner;

static cli_exit malformed(const scanner *s, const char *what)
{
    return cli_fail(CLI_CORRUPT, "%s: the npy header %s at '%.30s'", s->path, what, s->at);
}

static void skip_spaces(scanner *s) { s->at += strspn(s->at, " \t\r\n"); }

static bool accept(scanner *s, char c)
{
    skip_spaces(s);
    if (*s->at != c) return false;
    s->at++;
    return true;
}

/* Skips one Python literal, with its brackets and quotes. */
static cli_exit skip_literal(scanner *s)
{
    int depth = 0;
    char quote = '\0';
    for (; *s->at; s->at++) {
        char c = *s->at;
        if (quote) {
            if (c == '\\' && s->at[1]) s->at++;
            if (c == quote) quote = '\0';
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c && strchr("([{", c)) {
            depth++;
        } else if (depth > 0 && strchr(")]}", c)) {
            depth--;
        } else if (depth == 0 && strchr(",:}", c)) {
            return CLI_OK;
        }
    }
    return malformed(s, "ends too early");
}

static char *copy_span(const char *begin, const char *end)
{
    size_t size = (size_t)(end - begin);
    char *text = cli_alloc(size + 1);
    if (!text) return NULL;
    memcpy(text, begin, size);
    text[size] = '\0';
    return text;
}

/* Sets out->dtype to the value of 'descr': a string without its quotes, or a list unchanged. */
static cli_exit take_dtype(const char *begin, const char *end, npy_header *out)
{
    while (end > begin && end[-1] == ' ') end--;
    bool quoted = end - begin >= 2 && (*begin == '\'' || *begin == '"');
    free(out->dtype);
    out->dtype = quoted ? copy_span(begin + 1, end - 1) : copy_span(begin, end);
    if (!out->dtype) return CLI_IO;
    if (quoted)
        out->has_objects = strchr(out->dtype, 'O');
    else /* a field: ('name', '|O') */
        out->has_objects = strstr(out->dtype, ", '|O'") || strstr(out->dtype, ", 'O'");
    return CLI_OK;
}

static cli_exit take_shape(const scanner *s, const char *begin, const char *end,
                           npy_header *out)
{
    scanner t = {s->path, begin};
    if (!accept(&t, '(')) return malformed(&t, "has no shape");
    while (!accept(&t, ')')) {
        int64_t extent;
        if (!number_scan(&t.at, &extent) || extent < 0) return malformed(&t, "has no extent");
        if (out->ndim < CATERVA_MAX_DIMS) out->shape[out->ndim] = extent;
        out->ndim++;
        t.at += *t.at == 'L'; /* long integers of Python 2 */
        if (!accept(&t, ',') && *t.at != ')') return malformed(&t, "has no ','");
    }
    return t.at > end ? malformed(&t, "has an unterminated shape") : CLI_OK;
}

static cli_exit take_entry(scanner *s, npy_header *out, int *found)
{
    skip_spaces(s);
    const char *key = s->at;
    CLI_TRY(skip_literal(s));
    if (!accept(s, ':')) return malformed(s, "has no ':'");
    skip_spaces(s);
    const char *value = s->at;
    CLI_TRY(skip_literal(s));
    ++*found;
    if (strncmp(key + 1, "descr", 5) == 0) return take_dtype(value, s->at, out);
    if (strncmp(key + 1, "shape", 5) == 0) return take_shape(s, value, s->at, out);
    if (strncmp(key + 1, "fortran_order", 13) != 0) return malformed(s, "has an unknown key");
    out->fortran_order = strncmp(value, "True", 4) == 0;
    return CLI_OK;
}

static cli_exit parse_dictionary(const char *path, const char *text, npy_header *out)
{
    scanner s = {path, text};
    int found = 0;
    if (!accept(&s, '{')) return malformed(&s, "is not a dictionary");
    while (!accept(&s, '}')) {
        CLI_TRY(take_entry(&s, out, &found));
        if (!accept(&s, ',') && *s.at != '}') return malformed(&s, "has no ','");
    }
    if (found != 3 || !out->dtype) return malformed(&s, "lacks a key");
    return CLI_OK;
}

/* Headers before version 3 are Latin-1. `text` has room for twice as many bytes. */
static void latin_to_utf8(char *text, size_t size)
{
    size_t more = 0;
    for (size_t i = 0; i < size; i++) more += (uint8_t)text[i] > 0x7F;
    for (size_t i = size + 1; more > 0 && i-- > 0;) { /* with the zero behind it */
        uint8_t byte = (uint8_t)text[i];
        text[i + more] = (char)(byte > 0x7F ? (byte & 0x3F) | 0x80 : byte);
        if (byte > 0x7F) text[i + --more] = (char)(0xC0 | byte >> 6);
    }
}

cli_exit npy_read_header(const char *path, npy_read_bytes *next, void *context,
                         npy_header *out)
{
    uint8_t start[12] = {0};
    *out = (npy_header){0};
    CLI_TRY(next(context, start, 10));
    if (memcmp(start, magic, 6) != 0)
        return cli_fail(CLI_CORRUPT,
                        "%s is not an npy file: it does not begin with NumPy's magic bytes",
                        path);
    if (start[6] < 1 || start[6] > 3)
        return cli_fail(CLI_UNSUPPORTED,
                        "%s has npy version %d.%d, but only 1.0 to 3.0 are known", path,
                        start[6], start[7]);
    bool wide = start[6] > 1; /* the length has four bytes instead of two */
    if (wide) CLI_TRY(next(context, start + 10, 2));
    size_t size =
        start[8] | (size_t)start[9] << 8 | (size_t)start[10] << 16 | (size_t)start[11] << 24;
    if (size > MAX_HEADER)
        return cli_fail(CLI_CORRUPT,
                        "%s: the npy header claims %zu bytes; the limit is 16 MiB", path,
                        size);
    char *text = cli_alloc(2 * size + 1);
    if (!text) return CLI_IO;
    text[size] = '\0';
    cli_exit code = next(context, text, size);
    if (start[6] < 3) latin_to_utf8(text, size);
    if (code == CLI_OK) code = parse_dictionary(path, text, out);
    free(text);
    out->data_position = (wide ? 12 : 10) + (int64_t)size;
    if (code != CLI_OK) {
        free(out->dtype);
        out->dtype = NULL;
    }
    return code;
}

/* ---- Writing ------------------------------------------------------------ */

static int version_for(const char *text, size_t size)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c > 0x7F) return 3; /* UTF-8 */
    return size > 65000 ? 2 : 1;
}

static void print_shape(FILE *stream, int ndim, const int64_t *shape)
{
    fputc('(', stream);
    for (int d = 0; d < ndim; d++)
        fprintf(stream, "%s%lld", d ? ", " : "", (long long)shape[d]);
    fputs(ndim == 1 ? ",)" : ")", stream);
}

/* Makes the header: magic bytes, version and length, then the text, then spaces up to a multiple of
 * ALIGNMENT, so that the items are aligned. */
static cli_exit frame_header(const char *text, size_t text_size, char **out, size_t *size)
{
    int version = version_for(text, text_size);
    size_t before = version == 1 ? 10 : 12;
    *size = (before + text_size + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t length = *size - before;
    *out = cli_alloc(*size);
    if (!*out) return CLI_IO;
    memset(*out, ' ', *size);
    memcpy(*out, magic, 6);
    (*out)[6] = (char)version;
    (*out)[7] = 0;
    for (size_t i = 8; i < before; i++, length >>= 8) (*out)[i] = (char)(length & 255);
    memcpy(*out + before, text, text_size);
    (*out)[*size - 1] = '\n';
    return CLI_OK;
}

cli_exit npy_make_header(const char *dtype, int ndim, const int64_t *shape, char **out,
                         size_t *size)
{
    char *text = NULL, *descr = NULL;
    size_t text_size = 0;
    CLI_TRY(descr_for_npy(dtype, &descr));
    FILE *stream = open_memstream(&text, &text_size);
    cli_exit code = CLI_IO;
    if (stream) {
        fprintf(stream, "{'descr': %s, 'fortran_order': False, 'shape': ", descr);
        print_shape(stream, ndim, shape);
        fputs(", }", stream);
        if (fclose(stream) == 0) code = frame_header(text, text_size, out, size);
    }
    free(text);
    free(descr);
    return code;
}
