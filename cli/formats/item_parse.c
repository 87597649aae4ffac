/* Room: cli/formats. Parses text as one item, for --fill and for cells of text. Rejects values out
 * of the dtype's range; rounds floats as C does. Accepts the forms that item_print.c writes, but a
 * duration must be a count of its unit. */
#include "formats/item.h"
#include "formats/moment.h"
#include "formats/numbers.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static cli_exit does_not_fit(const char *where, const caterva_dtype *dtype, const char *text)
{
    char name[ITEM_NAME_SIZE];
    item_type_name(dtype, "this dtype", name);
    return cli_fail(CLI_USAGE, "%s: '%s' is not a value of %s", where, text, name);
}

static bool parse_int(const caterva_dtype *dtype, const char *text, uint8_t *bytes)
{
    int64_t value;
    const char *end = text;
    int bits = (int)dtype->item_size * 8;
    if (!number_scan(&end, &value) || *end) return false;
    int64_t high = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
    if (value > high || value < -high - 1) return false;
    item_store_uint(dtype, (uint64_t)value, bytes, dtype->item_size);
    return true;
}

static bool parse_uint(const caterva_dtype *dtype, const char *text, uint8_t *bytes)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno) return false;
    if (dtype->item_size < 8 && value >> (dtype->item_size * 8)) return false;
    item_store_uint(dtype, value, bytes, dtype->item_size);
    return true;
}

static bool parse_bool(const char *text, uint8_t *bytes)
{
    bool yes = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!yes && strcasecmp(text, "false") != 0 && strcmp(text, "0") != 0) return false;
    bytes[0] = yes;
    return true;
}

/* Parses a real number, or for complex types "3", "2j" or "3-2j". */
static bool parse_real(const caterva_dtype *dtype, const char *text, uint8_t *bytes)
{
    bool complex = dtype->kind == 'c';
    int64_t size = complex ? dtype->item_size / 2 : dtype->item_size;
    char *end;
    double real = strtod(text, &end), imaginary = 0;
    if (end == text) return false;
    if (complex && strcmp(end, "j") == 0) {
        imaginary = real;
        real = 0;
        end++;
    } else if (complex && (*end == '+' || *end == '-')) {
        imaginary = strtod(end, &end);
        if (*end++ != 'j') return false;
    }
    if (*end) return false;
    item_store_real(dtype, real, bytes, size);
    if (complex) item_store_real(dtype, imaginary, bytes + size, size);
    return true;
}

static bool parse_bytes(const caterva_dtype *dtype, const char *text, uint8_t *bytes)
{
    if ((int64_t)strlen(text) > dtype->item_size) return false;
    /* the caller has filled `bytes` with the NULs that pad an item */
    memcpy(bytes, text, strlen(text));
    return true;
}

/* Returns the next character of UTF-8 text; 0 at the end of the text or if it is invalid. */
static uint32_t next_character(const uint8_t **text)
{
    uint8_t lead = *(*text)++;
    if (lead < 0x80) return lead;
    int extra = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC2 ? 1 : 0;
    uint32_t c = extra ? lead & (0x3Fu >> extra) : 0;
    for (; extra > 0; extra--) {
        if ((**text & 0xC0) != 0x80) return 0;
        c = c << 6 | (*(*text)++ & 0x3Fu);
    }
    return c;
}

static bool parse_unicode(const caterva_dtype *dtype, const char *text, uint8_t *bytes)
{
    const uint8_t *at = (const uint8_t *)text;
    for (int64_t used = 0; *at; used += 4) {
        uint32_t c = next_character(&at);
        if (!c || used == dtype->item_size) return false;
        item_store_uint(dtype, c, bytes + used, 4);
    }
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses "0x" and two digits for each byte of the item, in the form that `get` prints. */
static bool parse_hex(const caterva_dtype *dtype, const char *text, uint8_t *bytes)
{
    if (strncmp(text, "0x", 2) != 0 || (int64_t)strlen(text) != 2 + 2 * dtype->item_size)
        return false;
    for (int64_t i = 0; i < dtype->item_size; i++) {
        int high = hex_digit(text[2 + 2 * i]), low = hex_digit(text[3 + 2 * i]);
        if (high < 0 || low < 0) return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* Parses "NaT", a count of the unit or, for datetimes, ISO 8601: "2020", "2020-02-29T12:30". */
static bool parse_time(const caterva_dtype *dtype, const char *text, uint8_t *bytes)
{
    int64_t value = INT64_MIN;
    bool is_count = text[strspn(text, "+-0123456789")] == '\0' && !strchr(text + 1, '-');
    if (strcasecmp(text, "NaT") != 0) {
        if (is_count) return parse_int(dtype, text, bytes);
        if (dtype->kind == 'm' || !moment_count(text, dtype->unit, &value)) return false;
    }
    item_store_uint(dtype, (uint64_t)value, bytes, dtype->item_size);
    return true;
}

static bool parse_scalar(const caterva_dtype *dtype, const char *text, uint8_t *bytes)
{
    switch (dtype->kind) {
    case 'b': return parse_bool(text, bytes);
    case 'u': return parse_uint(dtype, text, bytes);
    case 'i': return parse_int(dtype, text, bytes);
    case 'M':
    case 'm': return parse_time(dtype, text, bytes);
    case 'f':
    case 'c':
        return item_is_number(dtype) ? parse_real(dtype, text, bytes)
                                     : parse_hex(dtype, text, bytes);
    case 'S': return parse_bytes(dtype, text, bytes);
    case 'U': return parse_unicode(dtype, text, bytes);
    default: return parse_hex(dtype, text, bytes);
    }
}

bool item_read(const caterva_dtype *dtype, const char *text, uint8_t *bytes)
{
    memset(bytes, 0, (size_t)dtype->item_size);
    bool scalar = dtype->ndim == 0 && dtype->n_fields == 0;
    if (strcmp(text, "0") == 0 && (!scalar || dtype->kind == 'V')) return true;
    return scalar ? parse_scalar(dtype, text, bytes) : parse_hex(dtype, text, bytes);
}

cli_exit item_parse(const char *where, const caterva_dtype *dtype, const char *text,
                    uint8_t *bytes)
{
    return item_read(dtype, text, bytes) ? CLI_OK : does_not_fit(where, dtype, text);
}
