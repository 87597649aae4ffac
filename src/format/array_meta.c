/* Room: format. The `b2nd` and `caterva` metalayers, bytes <-> struct.
 * Promises: sizes are not negative and a zero chunk or block edge appears only
 * on an axis of length zero. The grid's limits are base/grid's to check. */
#include "format/array_meta.h"

#include "format/msgpack.h"

#include <limits.h>

enum {
    FIXARRAY = 0x90, /* + entries; 16 gives 0xa0, which is what C-Blosc2 writes and reads */
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
            cv_reader_fail(reader, CATERVA_ECORRUPT, at, "shape[%d] is %lld", i,
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

/* Bytes behind the last entry are let through: a metalayer rewritten with a
 * shorter dtype keeps its length and the tail of its old content. */
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
