/* Room: cli/formats. Prints items as text. Every scalar kind of NumPy has a form. Floats are as
 * short as possible, but read back the same. Except in CSV, bytes from files are escaped. */
#include "formats/item.h"
#include "formats/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void print_hex(FILE *stream, const uint8_t *bytes, int64_t size)
{
    fputs("0x", stream);
    for (int64_t i = 0; i < size; i++) fprintf(stream, "%02x", bytes[i]);
}

static bool reads_back(const char *text, double value, int64_t size)
{
    double back = strtod(text, NULL);
    uint8_t rounded[8];
    caterva_dtype little = {.byte_order = '<'};
    item_store_real(&little, back, rounded, size);
    return item_load_real(&little, rounded, size) == value;
}

/* Prints a float. With `precision` -1, prints the shortest text that reads back as the same float
 * of `size` bytes (2, 4 or 8). */
static void print_real(FILE *stream, double value, int64_t size, int precision, bool sign)
{
    int first = size == 2 ? 3 : size == 4 ? 6 : 15;
    int last = size == 2 ? 5 : size == 4 ? 9 : 17;
    char text[64];
    if (isnan(value)) {
        fputs(sign ? "+nan" : "nan", stream);
        return;
    }
    const char *format = sign ? "%+.*g" : "%.*g";
    if (precision >= 0) first = last = precision;
    for (int digits = first; digits <= last; digits++) {
        snprintf(text, sizeof text, format, digits, value);
        if (reads_back(text, value, size)) break;
    }
    fputs(text, stream);
}

static void print_complex(FILE *stream, const caterva_dtype *dtype, const uint8_t *bytes,
                          int precision)
{
    int64_t half = dtype->item_size / 2;
    print_real(stream, item_load_real(dtype, bytes, half), half, precision, false);
    print_real(stream, item_load_real(dtype, bytes + half, half), half, precision, true);
    fputc('j', stream);
}

/* Prints text for CSV (RFC 4180): text with a comma, a quote or a line end is put in quotes, and
 * each quote in it is doubled. */
static void print_csv_text(FILE *stream, const char *text, size_t size)
{
    bool plain = true;
    for (size_t i = 0; i < size; i++) plain = plain && !strchr(",\"\r\n", text[i]);
    if (plain) {
        fwrite(text, 1, size, stream);
        return;
    }
    fputc('"', stream);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"') fputc('"', stream);
        fputc(text[i], stream);
    }
    fputc('"', stream);
}

static void print_text(FILE *stream, const char *text, size_t size, const item_style *style)
{
    if (style->csv) {
        print_csv_text(stream, text, size);
    } else {
        json_quote(stream, text, size);
    }
}

/* Prints bytes without the zeros that pad them. */
static void print_bytes_text(FILE *stream, const uint8_t *bytes, int64_t size,
                             const item_style *style)
{
    while (size > 0 && bytes[size - 1] == 0) size--;
    print_text(stream, (const char *)bytes, (size_t)size, style);
}

static size_t put_utf8(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    int extra = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(lead[extra] | c >> (6 * extra));
    for (int i = 1; i <= extra; i++) out[i] = (char)(0x80 | (c >> (6 * (extra - i)) & 63));
    return (size_t)extra + 1;
}

static void print_unicode(FILE *stream, const caterva_dtype *dtype, const uint8_t *bytes,
                          const item_style *style)
{
    int64_t units = dtype->item_size / 4;
    while (units > 0 && item_load_uint(dtype, bytes + 4 * (units - 1), 4) == 0) units--;
    char *text = cli_alloc((size_t)units * 4);
    if (!text) return;
    size_t size = 0;
    for (int64_t i = 0; i < units; i++) {
        uint64_t c = item_load_uint(dtype, bytes + 4 * i, 4);
        bool valid = c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
        size += put_utf8(valid ? (uint32_t)c : 0xFFFD, text + size);
    }
    print_text(stream, text, size, style);
    free(text);
}

static void print_scalar(FILE *stream, const caterva_dtype *dtype, const uint8_t *bytes,
                         const item_style *style)
{
    int64_t size = dtype->item_size;
    bool known = strchr("fc", dtype->kind) == NULL || item_is_number(dtype);
    switch (known ? dtype->kind : 'V') {
    case 'b': fputs(bytes[0] ? "True" : "False", stream); break;
    case 'i': fprintf(stream, "%" PRId64, item_load_int(dtype, bytes, size)); break;
    case 'u': fprintf(stream, "%" PRIu64, item_load_uint(dtype, bytes, size)); break;
    case 'f':
        print_real(stream, item_load_real(dtype, bytes, size), size, style->precision, false);
        break;
    case 'c': print_complex(stream, dtype, bytes, style->precision); break;
    case 'S': print_bytes_text(stream, bytes, size, style); break;
    case 'U': print_unicode(stream, dtype, bytes, style); break;
    case 'M':
    case 'm':
        item_print_time(stream, dtype->kind, dtype->unit, item_load_int(dtype, bytes, size));
        break;
    default: print_hex(stream, bytes, size); break;
    }
}

static void print_fields(FILE *stream, const caterva_dtype *dtype, const uint8_t *bytes,
                         const item_style *style)
{
    bool first = true;
    fputc('(', stream);
    for (int i = 0; i < dtype->n_fields; i++) {
        const caterva_field *f = &dtype->fields[i];
        if (!*f->name) continue; /* padding between fields */
        fputs(first ? "" : ", ", stream);
        first = false;
        item_print(stream, f->dtype, bytes + f->offset, style);
    }
    fputc(')', stream);
}

static void print_element(FILE *stream, const caterva_dtype *dtype, const uint8_t *bytes,
                          const item_style *style)
{
    if (dtype->n_fields > 0) {
        print_fields(stream, dtype, bytes, style);
    } else {
        print_scalar(stream, dtype, bytes, style);
    }
}

/* Returns how many of the innermost axes begin or, if `end`, end at element `i`. */
static int edges(const caterva_dtype *dtype, int64_t i, bool end)
{
    int n = 0;
    int64_t period = 1;
    for (int d = dtype->ndim - 1; d >= 0; d--, n++) {
        period *= dtype->shape[d];
        if ((i + end) % period != 0) break;
    }
    return n;
}

static void print_subarray(FILE *stream, const caterva_dtype *dtype, const uint8_t *bytes,
                           const item_style *style)
{
    int64_t n = 1;
    for (int d = 0; d < dtype->ndim; d++) n *= dtype->shape[d];
    if (n == 0) {
        fputs("[]", stream);
        return;
    }
    caterva_dtype element = *dtype;
    element.ndim = 0;
    element.item_size = dtype->item_size / n;
    for (int64_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", stream);
        for (int e = edges(dtype, i, false); e > 0; e--) fputc('[', stream);
        print_element(stream, &element, bytes + i * element.item_size, style);
        for (int e = edges(dtype, i, true); e > 0; e--) fputc(']', stream);
    }
}

void item_print(FILE *stream, const caterva_dtype *dtype, const uint8_t *bytes,
                const item_style *style)
{
    if (dtype->ndim > 0) {
        print_subarray(stream, dtype, bytes, style);
    } else {
        print_element(stream, dtype, bytes, style);
    }
}
