/* Room: format. Parses and writes the `b2nd` and `caterva` metalayers. Rejects negative sizes, and
 * zero edges except on axes of length zero. base/grid checks the limits of the grid. */
#include "format/array_meta.h"

#include "format/msgpack.h"

#include <limits.h>
#include <string.h>

enum {
    FIXARRAY = 0x90, /* plus the number of entries; C-Blosc2 uses 0xa0 for 16 */
    LEGACY_ENTRIES = 5,
    ENTRIES = 7,
    META_VERSION = 0
};

/* ---- Reading ------------------------------------------------------------ */

static void expect_array(cv_reader *reader, int n, const char *field)
{
    char marker = (char)(FIXARRAY + n);
    cv_expect(reader, &marker, 1, field);
}

static int read_ndim(cv_reader *reader)
{
    size_t at = reader->at;
    int ndim = cv_read_byte(reader, "number of dimensions");
    if (ndim > CV_MAX_DIMS)
        cv_reader_fail(reader, ndim > INT8_MAX ? CATERVA_ECORRUPT : CATERVA_EUNSUPPORTED, at,
                       "%d dimensions, at most %d can be read", ndim, CV_MAX_DIMS);
    return reader->status == CV_OK ? ndim : 0;
}

static void read_shape(cv_reader *reader, cv_array_meta *out)
{
    expect_array(reader, out->ndim, "shape");
    for (int i = 0; i < out->ndim; i++) {
        size_t at = reader->at;
        out->shape[i] = cv_read_i64(reader, "shape");
        if (out->shape[i] < 0)
            cv_reader_fail(reader, CATERVA_ECORRUPT, at, "shape[%d] is %lld, less than 0", i,
                           (long long)out->shape[i]);
    }
}

static void read_edges(cv_reader *reader, const cv_array_meta *meta, int32_t *edges,
                       const char *field)
{
    expect_array(reader, meta->ndim, field);
    for (int i = 0; i < meta->ndim; i++) {
        size_t at = reader->at;
        edges[i] = cv_read_i32(reader, field);
        if (edges[i] < 0 || (edges[i] == 0 && meta->shape[i] > 0))
            cv_reader_fail(reader, CATERVA_ECORRUPT, at, "%s[%d] is %d where shape is %lld",
                           field, i, edges[i], (long long)meta->shape[i]);
    }
}

static void read_dtype(cv_reader *reader, cv_array_meta *out)
{
    size_t at = reader->at;
    out->dtype_format = cv_read_byte(reader, "dtype format");
    if (out->dtype_format > INT8_MAX)
        cv_reader_fail(reader, CATERVA_ECORRUPT, at, "dtype format is 0x%02x",
                       out->dtype_format);
    at = reader->at;
    out->dtype_size = cv_read_str32(reader, "dtype");
    if (out->dtype_size > INT32_MAX)
        cv_reader_fail(reader, CATERVA_ECORRUPT, at, "dtype claims %u bytes",
                       out->dtype_size);
    out->dtype = (const char *)cv_read_bytes(reader, out->dtype_size, "dtype");
}

/* Accepts bytes behind the last entry: a metalayer that was rewritten with a shorter dtype keeps
 * its old tail. */
cv_status cv_array_meta_parse(const uint8_t *bytes, size_t size, bool legacy, int64_t pos,
                              cv_array_meta *out, cv_error *err)
{
    cv_reader reader =
        cv_reader_open(bytes, size, pos, legacy ? "caterva metalayer" : "b2nd metalayer");
    cv_array_meta meta = {.legacy = legacy};
    expect_array(&reader, legacy ? LEGACY_ENTRIES : ENTRIES, "entries");
    int version = cv_read_byte(&reader, "version");
    if (version != META_VERSION)
        cv_reader_fail(&reader, CATERVA_EUNSUPPORTED, 1, "version %d is newer than %d",
                       version, META_VERSION);
    meta.ndim = read_ndim(&reader);
    read_shape(&reader, &meta);
    read_edges(&reader, &meta, meta.chunk_shape, "chunk shape");
    read_edges(&reader, &meta, meta.block_shape, "block shape");
    if (!legacy) read_dtype(&reader, &meta);
    CV_TRY(cv_reader_check(&reader, err));
    *out = meta;
    return CV_OK;
}

/* ---- Writing ------------------------------------------------------------ */

static void write_array(cv_writer *writer, int n)
{
    cv_write_byte(writer, (uint8_t)(FIXARRAY + n));
}

static void write_edges(cv_writer *writer, const int32_t *edges, int ndim)
{
    write_array(writer, ndim);
    for (int i = 0; i < ndim; i++) cv_write_i32(writer, edges[i]);
}

cv_status cv_array_meta_write(const cv_array_meta *meta, cv_buffer *out, cv_error *err)
{
    if (meta->ndim < 0 || meta->ndim > CV_MAX_DIMS)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d dimensions, at most %d are possible",
                       meta->ndim, CV_MAX_DIMS);
    if (meta->dtype_size > INT32_MAX)
        return cv_fail(err, CATERVA_EINVAL, -1, "the dtype takes %u bytes", meta->dtype_size);

    size_t origin = out->size;
    cv_writer writer = cv_writer_open(out, err);
    write_array(&writer, meta->legacy ? LEGACY_ENTRIES : ENTRIES);
    cv_write_byte(&writer, META_VERSION);
    cv_write_byte(&writer, (uint8_t)meta->ndim);
    write_array(&writer, meta->ndim);
    for (int i = 0; i < meta->ndim; i++) cv_write_i64(&writer, meta->shape[i]);
    write_edges(&writer, meta->chunk_shape, meta->ndim);
    write_edges(&writer, meta->block_shape, meta->ndim);
    if (!meta->legacy) {
        cv_write_byte(&writer, meta->dtype_format);
        cv_write_str32(&writer, meta->dtype, meta->dtype_size);
    }
    if (writer.status != CV_OK) out->size = origin;
    return writer.status;
}

/* ---- The library's own attribute ----
 *
 * Only this library writes the attribute. So integers have fixed widths, as everywhere in a
 * frame. */

enum { OWN_VERSION = 1 };

static bool is_key(const uint8_t *key, uint8_t size, const char *name)
{
    return key && size == strlen(name) && memcmp(key, name, size) == 0;
}

/* Reads a value of a kind that this attribute may contain now or later: a small number, a uint64,
 * or bytes. */
static void read_value(cv_reader *reader, const uint8_t **bytes, uint32_t *size,
                       uint64_t *number)
{
    *bytes = NULL;
    *size = 0;
    *number = 0;
    uint8_t marker = reader->at < reader->size ? reader->bytes[reader->at] : 0;
    if (marker == 0xc6) {
        *size = cv_read_bin32(reader, "a value");
        *bytes = cv_read_bytes(reader, *size, "a value");
    } else if (marker == 0xcf) {
        *number = cv_read_u64(reader, "a value");
    } else {
        *number = cv_read_byte(reader, "a value");
        if (*number > 0x7f)
            cv_reader_fail(reader, CATERVA_EUNSUPPORTED, reader->at - 1,
                           "a value of the unknown kind 0x%02x", marker);
    }
}

static void keep_value(cv_own *out, const uint8_t *key, uint8_t key_size,
                       const uint8_t *value, uint32_t size)
{
    if (is_key(key, key_size, "fill")) out->fill = value, out->fill_size = size;
    if (is_key(key, key_size, "job")) out->job = value, out->job_size = size;
    if (is_key(key, key_size, "origin")) out->origin = value, out->origin_size = size;
    if (is_key(key, key_size, "marks")) out->marks = value, out->marks_size = size;
}

cv_status cv_own_parse(const uint8_t *bytes, size_t size, cv_own *out, cv_error *err)
{
    *out = (cv_own){.fill = NULL};
    cv_reader reader = cv_reader_open(bytes, size, -1, "attribute " CV_OWN_ATTRIBUTE);
    int n = cv_read_map16(&reader, "the map");
    for (int i = 0; i < n && reader.status == CV_OK; i++) {
        uint8_t key_size = cv_read_fixstr(&reader, "a key");
        const uint8_t *key = cv_read_bytes(&reader, key_size, "a key");
        const uint8_t *value;
        uint32_t value_size;
        uint64_t number;
        size_t at = reader.at;
        read_value(&reader, &value, &value_size, &number);
        if (is_key(key, key_size, "version") && number != OWN_VERSION)
            cv_reader_fail(&reader, CATERVA_EUNSUPPORTED, at, "version %llu is newer than %d",
                           (unsigned long long)number, OWN_VERSION);
        keep_value(out, key, key_size, value, value_size);
    }
    return cv_reader_finish(&reader, err);
}

static void write_value(cv_writer *writer, const char *key, const uint8_t *value,
                        uint32_t size)
{
    if (!value) return;
    cv_write_fixstr(writer, key, (uint8_t)strlen(key));
    cv_write_bin32(writer, value, size);
}

cv_status cv_own_write(const cv_own *own, cv_buffer *out, cv_error *err)
{
    int n = 1 + (own->fill != NULL) + (own->job != NULL) + (own->origin != NULL) +
            (own->marks != NULL);
    cv_writer writer = cv_writer_open(out, err);
    cv_write_map16(&writer, (uint16_t)n);
    cv_write_fixstr(&writer, "version", 7);
    cv_write_byte(&writer, OWN_VERSION);
    write_value(&writer, "fill", own->fill, own->fill_size);
    write_value(&writer, "job", own->job, own->job_size);
    write_value(&writer, "origin", own->origin, own->origin_size);
    write_value(&writer, "marks", own->marks, own->marks_size);
    return writer.status;
}
