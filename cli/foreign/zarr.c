/* Room: cli/foreign. Zarr arrays and groups of both versions in a local directory: their metadata, with
 * the codecs that most of them have. Formats: https://zarr-specs.readthedocs.io (v2, v3, sharding). */
#include "foreign/formats.h"
#include "foreign/zarr_chunks.h"
#include "formats/descr.h"
#include "formats/value.h"

#include <caterva_value.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_DEPTH 64                     /* of groups */
#define MAX_METADATA (INT64_C(64) << 20) /* bytes of a zarr.json */

/* ---- Metadata: JSON --------------------------------------------------------------------- */

/* What is read at the moment, and why an array cannot be read. */
typedef struct reading {
    foreign_file *file;
    const char *path; /* of the metadata */
    char problem[300];
} reading;

static cli_exit not_read(reading *r, const char *what, const char *name)
{
    snprintf(r->problem, sizeof r->problem, "%s %.100s is not read", what,
             name ? cli_show(name).text : "of this kind");
    return CLI_UNSUPPORTED;
}

/* Jansson has no integers beyond int64: others are parsed as the text of a mark and their digits. */
#define MARK "\x7fint\x7f"
enum { MARK_SIZE = sizeof MARK - 1 };

static json_t *parse_json(char *text, size_t size, json_error_t *error)
{
    char *copy = NULL;
    json_t *out = json_loadb(text, size, 0, error);
    while (!out && json_error_code(error) == json_error_numeric_overflow) {
        size_t end = (size_t)error->position, start;
        while (end > 0 && (text[end - 1] < '0' || text[end - 1] > '9')) end--;
        for (start = end; start > 0 && text[start - 1] >= '0' && text[start - 1] <= '9';) start--;
        if (start == end) break;
        if (start > 0 && text[start - 1] == '-') start--;
        char *quoted = malloc(size + MARK_SIZE + 2), *at = quoted;
        if (!quoted) break;
        memcpy(at, text, start);
        memcpy(at += start, "\"" MARK, MARK_SIZE + 1);
        memcpy(at += MARK_SIZE + 1, text + start, end - start);
        *(at += end - start) = '"';
        memcpy(at + 1, text + end, size - end);
        free(copy);
        text = copy = quoted;
        size += MARK_SIZE + 2;
        out = json_loadb(text, size, 0, error);
    }
    free(copy);
    return out;
}

/* Returns the digits of an integer that was marked, or NULL. */
static const char *marked(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strncmp(text, MARK, MARK_SIZE) == 0 ? text + MARK_SIZE : NULL;
}

static bool is_uint64(const char *digits, uint64_t *out)
{
    errno = 0;
    *out = strtoull(digits, NULL, 10);
    return *digits != '-' && errno == 0;
}

/* Makes numbers of the marked texts again, but not of those that exceed uint64: returns whether there are
 * such. */
static bool unmark(char *text)
{
    bool exceeds = false;
    char *to = text;
    for (const char *at = text; *at;) {
        const char *digits = at + MARK_SIZE + 1;
        size_t n = strncmp(at, "\"" MARK, MARK_SIZE + 1) == 0 ? strspn(digits, "-0123456789") : 0;
        if (n == 0 || digits[n] != '"') {
            *to++ = *at++;
            continue;
        }
        uint64_t value;
        bool fits = is_uint64(digits, &value);
        exceeds = exceeds || !fits;
        if (!fits) *to++ = '"';
        memmove(to, digits, n);
        to += n;
        if (!fits) *to++ = '"';
        at = digits + n + 1;
    }
    *to = '\0';
    return exceeds;
}

/* Parses a file of metadata; *out is NULL if it does not exist. */
static cli_exit load_json(const char *path, json_t **out)
{
    uint8_t *bytes;
    int64_t size;
    json_error_t error;
    struct stat st;
    *out = NULL;
    if (stat(path, &st) == 0 && st.st_size > MAX_METADATA)
        return cli_fail(CLI_CORRUPT, "%s is too large", path);
    CLI_TRY(zarr_read_file(path, 0, -1, &bytes, &size));
    if (!bytes) return CLI_OK;
    *out = parse_json((char *)bytes, (size_t)size, &error);
    free(bytes);
    if (*out && json_is_object(*out)) return CLI_OK;
    json_decref(*out);
    *out = NULL;
    return cli_fail(CLI_CORRUPT, "%s is not the JSON of an array or group: %s", path,
                    cli_show(error.text).text);
}

static const char *text_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* Reads a list of non-negative integers; returns their number, or -1. */
static int ints_at(const json_t *object, const char *key, int64_t *out)
{
    const json_t *list = json_object_get(object, key);
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > CATERVA_MAX_DIMS) return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(list, i);
        out[i] = json_integer_value(one);
        if (!json_is_integer(one) || out[i] < 0) return -1;
    }
    return (int)n;
}

static cli_exit set_dims(foreign_node *node, const json_t *names)
{
    if (json_array_size(names) != (size_t)node->ndim) return CLI_OK;
    for (int d = 0; d < node->ndim; d++) {
        const char *name = json_string_value(json_array_get(names, (size_t)d));
        if (name) CLI_TRY(foreign_set_dim(node, d, name));
    }
    return CLI_OK;
}

/* ---- Metadata: fill values -------------------------------------------------------------- */

static void store(const caterva_dtype *type, uint8_t *to, const void *native, int64_t size)
{
    const uint8_t *from = native;
    const uint16_t probe = 1;
    bool little = *(const uint8_t *)&probe == 1;
    bool swap = type->byte_order == (little ? '>' : '<');
    for (int64_t i = 0; i < size; i++) to[i] = from[swap ? size - 1 - i : i];
}

/* Stores a float; false if it is finite and too large. */
static bool put_float(const caterva_dtype *type, double x, int64_t size, uint8_t *to)
{
    const double too_large = size == 2 ? 65520 : size == 4 ? 0x1.ffffffp+127 : INFINITY;
    if (isfinite(x) && fabs(x) >= too_large) return false;
    caterva_buffer from = CATERVA_BUFFER_INIT, dst = CATERVA_BUFFER_INIT;
    char dtype[8];
    from.data = &x;
    from.size = sizeof x;
    from.dtype = "=f8";
    snprintf(dtype, sizeof dtype, "%cf%d", type->byte_order, (int)size);
    dst.data = to;
    dst.size = (size_t)size;
    dst.dtype = dtype;
    dst.casting = CATERVA_CASTING_UNSAFE;
    return caterva_buffer_convert(&from, 1, &dst, NULL, NULL) == CATERVA_OK;
}

/* Stores a float of 2, 4 or 8 bytes: a number, "NaN", "Infinity" or its bits, "0x7fc00000". */
static bool fill_float(const caterva_dtype *type, const json_t *value, int64_t size, uint8_t *to)
{
    const char *text = json_string_value(value);
    double x = json_number_value(value);
    if (text && strncmp(text, "0x", 2) == 0) {
        uint64_t bits = strtoull(text + 2, NULL, 16);
        uint32_t half = (uint32_t)bits;
        uint16_t quarter = (uint16_t)bits;
        const void *native = size == 8 ? (const void *)&bits : size == 4 ? (void *)&half
                                                                         : (void *)&quarter;
        store(type, to, native, size);
        return true;
    }
    if (marked(value))
        x = strtod(marked(value), NULL);
    else if (text && strcmp(text, "NaN") == 0)
        x = NAN;
    else if (text && strcmp(text, "Infinity") == 0)
        x = INFINITY;
    else if (text && strcmp(text, "-Infinity") == 0)
        x = -INFINITY;
    else if (text || !json_is_number(value))
        return false;
    return put_float(type, x, size, to);
}

static bool fill_int(const caterva_dtype *type, const json_t *value, uint8_t *to)
{
    int64_t x = json_integer_value(value);
    double real = json_real_value(value);
    bool is_unsigned = type->kind == 'u';
    uint64_t whole;
    if (json_is_integer(value)) {
        if (is_unsigned && x < 0) return false;
    } else if (json_is_real(value) && real == floor(real) &&
               real >= (is_unsigned ? 0 : -0x1p63) && real < (is_unsigned ? 0x1p64 : 0x1p63))
        x = real < 0x1p63 ? (int64_t)real : (int64_t)(uint64_t)real;
    else if (strchr("mM", type->kind) && json_is_string(value) &&
             strcmp(json_string_value(value), "NaT") == 0)
        x = INT64_MIN;
    else if (marked(value) && is_unsigned && type->item_size == 8 && is_uint64(marked(value), &whole))
        x = (int64_t)whole;
    else
        return false;
    int bits = 8 * (int)type->item_size;
    int64_t limit = bits < 64 ? INT64_C(1) << (bits - !is_unsigned) : 0;
    if (limit && (x >= limit || x < -limit)) return false;
    const int8_t one = (int8_t)x;
    const int16_t two = (int16_t)x;
    const int32_t four = (int32_t)x;
    const void *native = type->item_size == 1   ? (const void *)&one
                         : type->item_size == 2 ? (const void *)&two
                         : type->item_size == 4 ? (const void *)&four
                                                : (const void *)&x;
    store(type, to, native, type->item_size);
    return true;
}

/* Stores bytes that are base64 in JSON. */
static bool fill_bytes(const caterva_dtype *type, const json_t *value, uint8_t *to)
{
    void *packed;
    size_t size, at = 0;
    char text[1024];
    caterva_value bytes = CATERVA_VALUE_INIT;
    const char *word = json_string_value(value);
    if (!word || strlen(word) > sizeof text - 20 || strchr(word, '"') || strchr(word, '\\'))
        return false;
    snprintf(text, sizeof text, "{\"$binary\": \"%s\"}", word);
    const value_input in = {text, strlen(text), NULL, "a fill value", ""};
    if (value_parse(&in, &packed, &size) != CLI_OK) return false;
    bool fits = caterva_value_next(packed, size, &at, &bytes, NULL) == CATERVA_OK &&
                bytes.kind == CATERVA_VALUE_BYTES && bytes.size <= (size_t)type->item_size;
    if (fits) memcpy(to, bytes.bytes, bytes.size);
    caterva_free(packed);
    return fits;
}

/* Stores a text as UTF-32. */
static bool fill_text(const caterva_dtype *type, const json_t *value, uint8_t *to)
{
    const char *at = json_string_value(value);
    const uint8_t *end = to + type->item_size;
    for (; at && *at && to < end; to += 4) {
        unsigned char first = (unsigned char)*at++;
        int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
        uint32_t code = more ? first & (0x3fu >> more) : first;
        for (; more > 0; more--) code = code << 6 | ((unsigned char)*at++ & 0x3f);
        store(type, to, &code, 4);
    }
    return at && !*at;
}

/* Makes an item of its JSON. Returns false if that is impossible. */
static bool fill_item(const caterva_dtype *type, const json_t *value, uint8_t *to)
{
    int64_t half = type->item_size / 2;
    if (type->n_fields > 0 || type->ndim > 0) return false;
    switch (type->kind) {
    case 'b': to[0] = json_is_true(value); return json_is_boolean(value);
    case 'f': return fill_float(type, value, type->item_size, to);
    case 'c':
        return json_array_size(value) == 2 &&
               fill_float(type, json_array_get(value, 0), half, to) &&
               fill_float(type, json_array_get(value, 1), half, to + half);
    case 'i':
    case 'u':
    case 'm':
    case 'M': return fill_int(type, value, to);
    case 'U': return fill_text(type, value, to);
    default: return fill_bytes(type, value, to);
    }
}

/* Sets the item that missing chunks hold. Items that cannot be made from the JSON are an error only
 * where chunks are missing, but that is not known before. */
static cli_exit set_fill(reading *r, foreign_node *node, const json_t *value)
{
    caterva_dtype *type;
    CLI_TRY(descr_parse(CLI_UNSUPPORTED, r->path, node->dtype, &type));
    node->fill = cli_alloc((size_t)node->item_size);
    if (node->fill) memset(node->fill, 0, (size_t)node->item_size);
    bool done = !value || json_is_null(value) || (node->fill && fill_item(type, value, node->fill));
    caterva_dtype_free(type);
    if (!node->fill) return CLI_IO;
    return done ? CLI_OK : not_read(r, "the fill value", json_string_value(value));
}

/* ---- Metadata: missing items ------------------------------------------------------------ */

/* xarray's `_FillValue` of floats is the base64 of a little-endian float64. */
static bool missing_float(const caterva_dtype *type, const json_t *value, int64_t size, uint8_t *to)
{
    static const caterva_dtype eight = {.item_size = 8};
    uint8_t raw[8] = {0};
    double x;
    const char *text = json_string_value(value);
    size_t n = text ? strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
                    : 0;
    if (n != 11 || strcmp(text + n, "=") != 0) return fill_float(type, value, size, to);
    if (!fill_bytes(&eight, value, raw)) return false;
    const uint64_t bits = zarr_load64(raw);
    memcpy(&x, &bits, sizeof x);
    return put_float(type, x, size, to);
}

/* Sets the attribute `_FillValue` to an item, as docs/conventions.md has it. *done is false if the JSON
 * is not that of an item. */
static cli_exit set_missing(foreign_node *node, const json_t *value, bool *done)
{
    caterva_dtype *type;
    int64_t half = node->item_size / 2;
    *done = false;
    CLI_TRY(descr_parse(CLI_UNSUPPORTED, node->key, node->dtype, &type));
    uint8_t *item = cli_alloc((size_t)node->item_size);
    bool plain = item && type->n_fields == 0 && type->ndim == 0;
    if (plain && type->kind == 'f')
        *done = missing_float(type, value, node->item_size, item);
    else if (plain && type->kind == 'c')
        *done = json_array_size(value) == 2 &&
                missing_float(type, json_array_get(value, 0), half, item) &&
                missing_float(type, json_array_get(value, 1), half, item + half);
    else if (plain && strchr("iub", type->kind))
        *done = fill_item(type, value, item);
    caterva_dtype_free(type);
    cli_exit code = item ? CLI_OK : CLI_IO;
    if (*done) code = foreign_set_numbers(node, "_FillValue", node->dtype, 0, NULL, item);
    free(item);
    return code;
}

/* Whether a list of names is that of the axes, which the attribute _ARRAY_DIMENSIONS has then. */
static bool shows_dims(const foreign_node *node, const json_t *list)
{
    if (node->is_group || !json_is_array(list) || json_array_size(list) != (size_t)node->ndim)
        return false;
    for (int d = 0; d < node->ndim; d++) {
        const json_t *name = json_array_get(list, (size_t)d);
        const char *text = json_string_value(name), *dim = node->dims ? node->dims[d] : NULL;
        if (dim ? !text || strcmp(text, dim) != 0 : !json_is_null(name)) return false;
    }
    return true;
}

/* Sets each member of the object as an attribute, but `dims` of version 2. */
static cli_exit set_attributes(foreign_file *file, foreign_node *node, const json_t *attributes)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)attributes, name, value) {
        void *packed;
        size_t size;
        bool done = false;
        if (!*name || (strcmp(name, "_ARRAY_DIMENSIONS") == 0 && shows_dims(node, value))) continue;
        if (!node->is_group && strcmp(name, "_FillValue") == 0)
            CLI_TRY(set_missing(node, value, &done));
        if (done) continue;
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        if (!text) return cli_fail(CLI_IO, "out of memory");
        cli_exit code = !unmark(text) ? CLI_OK
                                      : foreign_lose(file, "%s: the type of integers of more than 64 bits "
                                                           "in the attribute %s", node->key, name);
        const value_input in = {text, strlen(text), NULL, name, ""};
        if (code == CLI_OK) code = value_parse(&in, &packed, &size);
        free(text);
        if (code != CLI_OK) return code == CLI_USAGE ? CLI_UNSUPPORTED : code;
        CLI_TRY(foreign_set_packed(node, name, packed, size));
    }
    return CLI_OK;
}

/* ---- Metadata: codecs ------------------------------------------------------------------- */

static bool find_codec(const char *name, codec *out)
{
    static const struct {
        const char *name;
        codec codec;
    } known[] = {{"blosc", CODEC_BLOSC}, {"zstd", CODEC_ZSTD},     {"gzip", CODEC_GZIP},
                 {"zlib", CODEC_ZLIB},   {"crc32c", CODEC_CRC32C}, {"numcodecs.zlib", CODEC_ZLIB},
                 {"numcodecs.zstd", CODEC_ZSTD}, {"numcodecs.gzip", CODEC_GZIP},
                 {"numcodecs.blosc", CODEC_BLOSC}};
    for (size_t i = 0; name && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) != 0) continue;
        *out = known[i].codec;
        return true;
    }
    return false;
}

static cli_exit add_codec(reading *r, pipeline *p, const char *name)
{
    if (p->n == MAX_CODECS || !find_codec(name, &p->codecs[p->n]))
        return not_read(r, "the codec", name);
    p->n++;
    return CLI_OK;
}

static cli_exit set_order(reading *r, pipeline *p, const json_t *settings, int ndim)
{
    int64_t order[CATERVA_MAX_DIMS];
    bool seen[CATERVA_MAX_DIMS] = {false};
    const char *word = text_at(settings, "order");
    if (word) /* of early version 3 */
        for (int d = 0; d < ndim; d++) order[d] = *word == 'F' ? ndim - 1 - d : d;
    else if (ints_at(settings, "order", order) != ndim)
        return cli_fail(CLI_CORRUPT, "%s: the codec transpose has no valid order", r->path);
    int before[CATERVA_MAX_DIMS];
    memcpy(before, p->order, sizeof before);
    for (int d = 0; d < ndim; d++) {
        if (order[d] >= ndim || seen[order[d]])
            return cli_fail(CLI_CORRUPT, "%s: the codec transpose has no valid order", r->path);
        seen[order[d]] = true;
        p->order[d] = before[order[d]];
        p->reordered = p->reordered || p->order[d] != d;
    }
    return CLI_OK;
}

static const char *name_of(const json_t *entry)
{
    return json_is_string(entry) ? json_string_value(entry) : text_at(entry, "name");
}

/* The codecs of version 3. `*big` is set by the codec bytes; `*shard` is the configuration of
 * sharding, which must be the only codec of its list. */
static cli_exit read_codecs(reading *r, const json_t *list, int ndim, pipeline *p,
                            bool *big, const json_t **shard)
{
    size_t i;
    const json_t *entry;
    *p = (pipeline){.n = 0};
    for (int d = 0; d < ndim; d++) p->order[d] = d;
    if (!json_is_array(list)) return cli_fail(CLI_CORRUPT, "%s has no list of codecs", r->path);
    json_array_foreach((json_t *)list, i, entry) {
        const char *name = name_of(entry);
        const json_t *settings = json_object_get(entry, "configuration");
        const char *endian = text_at(settings, "endian");
        if (name && strcmp(name, "bytes") == 0)
            *big = endian && strcmp(endian, "big") == 0;
        else if (name && strcmp(name, "transpose") == 0 && p->n == 0)
            CLI_TRY(set_order(r, p, settings, ndim));
        else if (name && strcmp(name, "sharding_indexed") == 0 && shard &&
                 json_array_size(list) == 1)
            *shard = settings;
        else
            CLI_TRY(add_codec(r, p, name));
    }
    return CLI_OK;
}

/* ---- Metadata: dtypes of version 3 ------------------------------------------------------ */

static cli_exit dtype_of(reading *r, const json_t *type, bool big, char out[64])
{
    static const struct {
        const char *name, *code;
    } plain[] = {{"bool", "|b1"},   {"int8", "|i1"},    {"int16", "i2"},      {"int32", "i4"},
                 {"int64", "i8"},   {"uint8", "|u1"},   {"uint16", "u2"},     {"uint32", "u4"},
                 {"uint64", "u8"},  {"float16", "f2"},  {"float32", "f4"},    {"float64", "f8"},
                 {"complex64", "c8"}, {"complex128", "c16"}};
    const char *name = name_of(type);
    const json_t *settings = json_object_get(type, "configuration");
    char order = big ? '>' : '<';
    int64_t bytes = json_integer_value(json_object_get(settings, "length_bytes"));
    int64_t factor = json_integer_value(json_object_get(settings, "scale_factor"));
    const char *unit = text_at(settings, "unit");
    for (size_t i = 0; name && i < sizeof plain / sizeof plain[0]; i++) {
        if (strcmp(plain[i].name, name) != 0) continue;
        const char *code = plain[i].code;
        if (*code == '|')
            snprintf(out, 64, "%s", code);
        else
            snprintf(out, 64, "%c%s", order, code);
        return CLI_OK;
    }
    bool time = name && strcmp(name, "numpy.datetime64") == 0;
    if ((time || (name && strcmp(name, "numpy.timedelta64") == 0)) && unit && factor > 0) {
        char times[24] = "";
        if (factor > 1) snprintf(times, sizeof times, "%lld", (long long)factor);
        bool generic = strcmp(unit, "generic") == 0;
        snprintf(out, 64, generic ? "%c%c8" : "%c%c8[%s%.8s]", order, time ? 'M' : 'm', times,
                 unit);
        return CLI_OK;
    }
    if (name && strcmp(name, "fixed_length_utf32") == 0 && bytes > 0 && bytes % 4 == 0) {
        snprintf(out, 64, "%cU%lld", order, (long long)(bytes / 4));
        return CLI_OK;
    }
    if (name && strcmp(name, "null_terminated_bytes") == 0 && bytes > 0) {
        snprintf(out, 64, "|S%lld", (long long)bytes);
        return CLI_OK;
    }
    if (name && strcmp(name, "raw_bytes") == 0 && bytes > 0) {
        snprintf(out, 64, "|V%lld", (long long)bytes);
        return CLI_OK;
    }
    if (name && name[0] == 'r' && name[1] >= '1' && name[1] <= '9' && atoi(name + 1) % 8 == 0) {
        snprintf(out, 64, "|V%d", atoi(name + 1) / 8);
        return CLI_OK;
    }
    return not_read(r, "the data type", name);
}

/* ---- Metadata: arrays ------------------------------------------------------------------- */

/* Checks the shape of chunks and computes their size. */
static cli_exit check_chunks(reading *r, const foreign_node *node, zarr_array *a)
{
    a->chunk_size = node->item_size;
    for (int d = 0; d < node->ndim; d++) {
        if (node->chunk_shape[d] < 1 ||
            (a->sharded && (a->shard_shape[d] < 1 || a->shard_shape[d] % node->chunk_shape[d])))
            return cli_fail(CLI_CORRUPT, "%s: the shape of the chunks is not valid", r->path);
        if (__builtin_mul_overflow(a->chunk_size, node->chunk_shape[d], &a->chunk_size) ||
            a->chunk_size >= MAX_CHUNK)
            return cli_fail(CLI_UNSUPPORTED, "%s: chunks of 2 GiB or more are not read", r->path);
    }
    int64_t n = 1;
    for (int d = 0; a->sharded && d < node->ndim; d++)
        if (__builtin_mul_overflow(n, a->shard_shape[d] / node->chunk_shape[d], &n) ||
            n > MAX_CHUNK / 16)
            return cli_fail(CLI_UNSUPPORTED, "%s: a shard has too many chunks", r->path);
    return CLI_OK;
}

static zarr_array *make_array(foreign_node *node, const char *folder)
{
    zarr_array *a = cli_alloc(sizeof *a);
    if (!a) return NULL;
    *a = (zarr_array){.prefix = "", .separator = '.', .last = {.at = {-1}},
                      .lock = PTHREAD_MUTEX_INITIALIZER, .shard_at = {-1}};
    a->folder = cli_copy_text(folder);
    node->own = a;
    return a->folder ? a : NULL;
}

/* Reads the configuration of sharding: the pipeline of the chunks inside, and of the index. */
static cli_exit read_sharding(reading *r, const json_t *settings, foreign_node *node,
                              zarr_array *a, bool *big)
{
    bool index_big = false;
    const char *place = text_at(settings, "index_location");
    memcpy(a->shard_shape, node->chunk_shape, sizeof a->shard_shape);
    a->sharded = true;
    a->index_first = place && strcmp(place, "start") == 0;
    if (ints_at(settings, "chunk_shape", node->chunk_shape) != node->ndim)
        return cli_fail(CLI_CORRUPT, "%s: the chunks of shards have no valid shape", r->path);
    CLI_TRY(read_codecs(r, json_object_get(settings, "index_codecs"), 0, &a->index,
                        &index_big, NULL));
    if (index_big || a->index.n > 1 || (a->index.n == 1 && a->index.codecs[0] != CODEC_CRC32C))
        return not_read(r, "an index of shards", NULL);
    return read_codecs(r, json_object_get(settings, "codecs"), node->ndim, &a->chunk, big,
                       NULL);
}

/* Reads the shape before the dtype is known, whose byte order a codec has. */
static cli_exit read_array_3(reading *r, foreign_node *node,
                             const json_t *meta, zarr_array *a)
{
    bool big = false;
    char dtype[64];
    const json_t *shard = NULL;
    int64_t shape[CATERVA_MAX_DIMS];
    const json_t *grid = json_object_get(meta, "chunk_grid");
    const json_t *keys = json_object_get(meta, "chunk_key_encoding");
    const json_t *encoding = json_object_get(keys, "configuration");
    node->ndim = ints_at(meta, "shape", shape);
    int n = ints_at(json_object_get(grid, "configuration"), "chunk_shape", node->chunk_shape);
    if (node->ndim < 0) return cli_fail(CLI_CORRUPT, "%s has no valid shape", r->path);
    if (!name_of(grid) || strcmp(name_of(grid), "regular") != 0 || n != node->ndim)
        return not_read(r, "the chunk grid", name_of(grid));
    bool plain = name_of(keys) && strcmp(name_of(keys), "v2") == 0;
    const char *separator = text_at(encoding, "separator");
    a->prefix = plain ? "" : "c";
    a->separator = separator ? *separator : plain ? '.' : '/';
    if (json_array_size(json_object_get(meta, "storage_transformers")) > 0)
        return not_read(r, "a storage transformer", NULL);
    CLI_TRY(read_codecs(r, json_object_get(meta, "codecs"), node->ndim, &a->chunk, &big,
                        &shard));
    if (shard) CLI_TRY(read_sharding(r, shard, node, a, &big));
    CLI_TRY(dtype_of(r, json_object_get(meta, "data_type"), big, dtype));
    CLI_TRY(foreign_set_shape(r->file, node, dtype, node->ndim, shape));
    CLI_TRY(set_fill(r, node, json_object_get(meta, "fill_value")));
    return set_dims(node, json_object_get(meta, "dimension_names"));
}

/* The dtype of version 2: a text, or a list of fields as in .npy headers. Release *out with free. */
static cli_exit dtype_2(reading *r, const json_t *type, char **out)
{
    const char *text = json_string_value(type);
    if (!text) return not_read(r, "a structured data type", NULL);
    if (strchr(text, 'O')) return not_read(r, "the data type", text);
    return descr_for_array(CLI_UNSUPPORTED, r->path, text, out);
}

static cli_exit read_array_2(reading *r, foreign_node *node,
                             const json_t *meta, zarr_array *a)
{
    int64_t shape[CATERVA_MAX_DIMS];
    const json_t *compressor = json_object_get(meta, "compressor");
    const char *order = text_at(meta, "order");
    const char *separator = text_at(meta, "dimension_separator");
    char *dtype;
    int ndim = ints_at(meta, "shape", shape);
    if (ndim < 0 || ints_at(meta, "chunks", node->chunk_shape) != ndim)
        return cli_fail(CLI_CORRUPT, "%s has no valid shape", r->path);
    if (separator) a->separator = *separator;
    if (json_array_size(json_object_get(meta, "filters")) > 0)
        return not_read(r, "the filter",
                        text_at(json_array_get(json_object_get(meta, "filters"), 0), "id"));
    for (int d = 0; d < ndim; d++) {
        bool reversed = order && *order == 'F';
        a->chunk.order[d] = reversed ? ndim - 1 - d : d;
        a->chunk.reordered = a->chunk.reordered || a->chunk.order[d] != d;
    }
    if (json_is_object(compressor))
        CLI_TRY(add_codec(r, &a->chunk, text_at(compressor, "id")));
    CLI_TRY(dtype_2(r, json_object_get(meta, "dtype"), &dtype));
    cli_exit code = foreign_set_shape(r->file, node, dtype, ndim, shape);
    free(dtype);
    return code == CLI_OK ? set_fill(r, node, json_object_get(meta, "fill_value")) : code;
}

/* ---- The tree --------------------------------------------------------------------------- */

static char *join(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = cli_alloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

/* The metadata of a folder: of version 3, or of version 2 with its attributes apart. */
typedef struct metadata {
    char *path; /* of the file that has it */
    json_t *json, *attributes;
    int version;
    bool is_array;
} metadata;

static void free_metadata(metadata *m)
{
    json_decref(m->json);
    json_decref(m->attributes);
    free(m->path);
    *m = (metadata){.path = NULL};
}

static cli_exit load_part(const char *folder, const char *name, char **path, json_t **out)
{
    free(*path);
    *path = join(folder, name);
    return *path ? load_json(*path, out) : CLI_IO;
}

static cli_exit load_metadata(const char *folder, metadata *m)
{
    char *path = NULL;
    *m = (metadata){.version = 3};
    CLI_TRY(load_part(folder, "zarr.json", &m->path, &m->json));
    if (m->json) {
        const char *kind = text_at(m->json, "node_type");
        m->is_array = kind && strcmp(kind, "array") == 0;
        m->attributes = json_incref(json_object_get(m->json, "attributes"));
        return CLI_OK;
    }
    m->version = 2;
    CLI_TRY(load_part(folder, ".zarray", &m->path, &m->json));
    m->is_array = m->json != NULL;
    if (!m->json) CLI_TRY(load_part(folder, ".zgroup", &m->path, &m->json));
    if (!m->json) return CLI_OK;
    cli_exit code = load_part(folder, ".zattrs", &path, &m->attributes);
    free(path);
    return code;
}

/* In version 2 the fill value of an array with xarray's dimensions is a missing item. */
static cli_exit set_dims_2(foreign_node *node, const metadata *m)
{
    bool done;
    const json_t *dims = json_object_get(m->attributes, "_ARRAY_DIMENSIONS");
    const json_t *fill = json_object_get(m->json, "fill_value");
    CLI_TRY(set_dims(node, dims));
    if (!dims || !fill || json_is_null(fill) || json_object_get(m->attributes, "_FillValue"))
        return CLI_OK;
    return set_missing(node, fill, &done);
}

/* Finds out whether a shard is an array of this library, in a hierarchy with arrays of others. */
static cli_exit find_own(const char *folder, zarr_array *a)
{
    caterva_array *array;
    caterva_error err;
    a->is_own = caterva_open(folder, NULL, &array, &err) == CATERVA_OK;
    if (a->is_own) caterva_discard(array);
    return a->is_own || err.code != CATERVA_ECORRUPT ? CLI_OK : cli_fail_array(folder, &err);
}

static bool is_empty(const char *folder)
{
    const struct dirent *entry = NULL;
    DIR *dir = opendir(folder);
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "zarr.json") != 0) break;
    if (dir) closedir(dir);
    return dir && !entry;
}

static cli_exit add_array(reading *r, foreign_node *node, const char *folder,
                          const metadata *m)
{
    zarr_array *a = make_array(node, folder);
    if (!a) return CLI_IO;
    r->path = m->path;
    const size_t ndim = json_array_size(json_object_get(m->json, "shape"));
    if (ndim > CATERVA_MAX_WRITE_DIMS) {
        char axes[32];
        snprintf(axes, sizeof axes, "%zu axes", ndim);
        return not_read(r, "an array of", axes);
    }
    a->is_empty = is_empty(folder);
    CLI_TRY(m->version == 3 ? read_array_3(r, node, m->json, a)
                            : read_array_2(r, node, m->json, a));
    CLI_TRY(check_chunks(r, node, a));
    if (a->sharded) CLI_TRY(find_own(folder, a));
    if (m->version == 2) CLI_TRY(set_dims_2(node, m));
    return a->is_own ? CLI_OK : zarr_find_blocks(r->file, node, a);
}

static cli_exit add_folder(foreign_file *file, const char *folder, const char *key, int depth);

static int order_of_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lists the names of the folders inside a folder, sorted. */
static cli_exit list_folders(const char *folder, char ***names, size_t *n)
{
    size_t room = 0;
    struct dirent *entry;
    DIR *dir = opendir(folder);
    if (!dir) return cli_fail_sys("cannot list %s", folder);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.' ||
            (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK))
            continue;
        if (*n == room) {
            char **grown = realloc(*names, (room = 2 * room + 8) * sizeof *grown);
            if (!grown) break;
            *names = grown;
        }
        (*names)[*n] = cli_copy_text(entry->d_name);
        if (!(*names)[*n]) break;
        ++*n;
    }
    closedir(dir);
    if (*n > 1) qsort(*names, *n, sizeof **names, order_of_names);
    return entry ? CLI_IO : CLI_OK;
}

static cli_exit add_members(foreign_file *file, const char *folder, const char *key, int depth)
{
    char **names = NULL;
    size_t n = 0;
    if (depth == MAX_DEPTH)
        return foreign_lose(file, "%s: groups are nested more than %d deep", key, MAX_DEPTH);
    cli_exit code = list_folders(folder, &names, &n);
    for (size_t i = 0; i < n; i++) {
        char *below = join(folder, names[i]);
        char *inner = join(key[1] ? key : "", names[i]);
        if (!below || !inner) code = CLI_IO;
        if (code == CLI_OK) code = add_folder(file, below, inner, depth + 1);
        free(below);
        free(inner);
        free(names[i]);
    }
    free(names);
    return code;
}

static void free_array(void *own)
{
    zarr_array *a = own;
    if (!a) return;
    free(a->folder);
    free(a->last.items);
    free(a->entries);
    caterva_discard(a->frame);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* An array that cannot be read is left out of the file, unless it is the whole file. */
static cli_exit leave_out(const reading *r, foreign_node *node, int depth)
{
    if (!r->problem[0]) return CLI_UNSUPPORTED; /* it was reported */
    if (depth == 0) return cli_fail(CLI_UNSUPPORTED, "%s: %s", r->path, r->problem);
    cli_exit code = foreign_lose(r->file, "%s: %s", node->key, r->problem);
    free_array(node->own);
    foreign_drop(r->file);
    return code;
}

static cli_exit add_node(foreign_file *file, const char *folder, const char *key, int depth,
                         const metadata *m)
{
    reading r = {.file = file};
    foreign_node *node = foreign_add(file, key, !m->is_array);
    if (!node) return CLI_IO;
    cli_exit code = m->is_array ? add_array(&r, node, folder, m) : CLI_OK;
    if (code == CLI_UNSUPPORTED && m->is_array) return leave_out(&r, node, depth);
    if (code == CLI_OK) code = set_attributes(file, node, m->attributes);
    return code == CLI_OK && !m->is_array ? add_members(file, folder, key, depth) : code;
}

static cli_exit add_folder(foreign_file *file, const char *folder, const char *key, int depth)
{
    metadata m;
    cli_exit code = load_metadata(folder, &m);
    if (code == CLI_OK && m.json) code = add_node(file, folder, key, depth, &m);
    free_metadata(&m);
    return code;
}

static void close_zarr(foreign_file *self)
{
    for (size_t i = 0; i < self->n; i++) free_array(self->nodes[i].own);
}

/* An array that is the whole store has the key "/data", in a group without attributes. */
static cli_exit open_zarr(foreign_file *file)
{
    metadata m;
    file->read = zarr_read_items;
    file->is_fill = zarr_is_fill;
    file->close = close_zarr;
    zarr_begin();
    cli_exit code = load_metadata(file->path, &m);
    bool is_array = m.is_array;
    bool found = m.json != NULL;
    free_metadata(&m);
    if (code != CLI_OK) return code;
    if (!found) return cli_fail(CLI_UNSUPPORTED, "%s is not a Zarr store", file->path);
    file->is_array = is_array;
    if (is_array && !foreign_add(file, "/", true)) return CLI_IO;
    return add_folder(file, file->path, is_array ? "/data" : "/", 0);
}

const foreign_format foreign_zarr = {
    .interface = FOREIGN_INTERFACE, .name = "zarr", .open = open_zarr};
