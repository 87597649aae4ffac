/* Room: format. The frame's trailer, bytes <-> struct. Promises: the array of
 * attributes is no larger than the bytes justify. Does not look into the
 * attributes: each is a Blosc2 chunk and the codec room's matter. */
#include "format/trailer.h"

#include "base/heap.h"

#include <string.h>

enum {
    TRAILER_VERSION = 1,
    FINGERPRINT_SIZE = 16,
    MIN_ATTRIBUTE_SIZE = 1 + 5 + 5 /* empty name, offset, empty value */
};

/* The tail, one line per field in file order; the last field ends the frame. */
static void read_tail(cv_reader *reader, cv_trailer *out)
{
    out->size = cv_read_u32(reader, "trailer size");
    cv_expect(reader, "\xd8", 1, "fingerprint");
    out->fingerprint_type = cv_read_byte(reader, "fingerprint type");
    const uint8_t *bytes = cv_read_bytes(reader, FINGERPRINT_SIZE, "fingerprint");
    if (bytes) memcpy(out->fingerprint, bytes, FINGERPRINT_SIZE);
}

static void write_tail(cv_writer *writer, const cv_trailer *trailer)
{
    cv_write_u32(writer, trailer->size);
    cv_write_byte(writer, 0xd8);
    cv_write_byte(writer, trailer->fingerprint_type);
    cv_write_bytes(writer, trailer->fingerprint, FINGERPRINT_SIZE);
}

cv_status cv_trailer_peek(const uint8_t tail[CV_TRAILER_TAIL], int64_t pos,
                          uint32_t *trailer_size, cv_error *err)
{
    cv_reader reader = cv_reader_open(tail, CV_TRAILER_TAIL, pos, "frame trailer");
    cv_trailer trailer = {0};
    read_tail(&reader, &trailer);
    if (trailer.size < CV_TRAILER_MIN || trailer.size > pos + CV_TRAILER_TAIL)
        cv_reader_fail(&reader, CATERVA_ECORRUPT, 1,
                       "claims %u bytes in a frame of %lld, at least %d", trailer.size,
                       (long long)pos + CV_TRAILER_TAIL, CV_TRAILER_MIN);
    CV_TRY(cv_reader_finish(&reader, err));
    *trailer_size = trailer.size;
    return CV_OK;
}

static cv_status allocate_attributes(const cv_reader *reader, cv_trailer *out, cv_error *err)
{
    int n = cv_metalayers_count(reader);
    size_t justified = (reader->size - reader->at) / MIN_ATTRIBUTE_SIZE;
    if (n > CV_MAX_ATTRIBUTES || (size_t)n > justified)
        return cv_fail(err, CATERVA_ECORRUPT, reader->pos + (int64_t)reader->at,
                       "frame trailer: claims %d attributes in %zu bytes", n,
                       reader->size - reader->at);
    if (n == 0) return CV_OK;
    out->attributes = cv_calloc((size_t)n, sizeof *out->attributes);
    if (!out->attributes)
        return cv_fail_memory(err, (size_t)n * sizeof *out->attributes, "attributes");
    return CV_OK;
}

cv_status cv_trailer_parse(const uint8_t *bytes, size_t size, int64_t pos, cv_trailer *out,
                           cv_error *err)
{
    cv_reader reader = cv_reader_open(bytes, size, pos, "frame trailer");
    cv_trailer trailer = {0};
    cv_expect(&reader, "\x94", 1, "opening marker");
    uint8_t version = cv_read_byte(&reader, "version");
    if (version != TRAILER_VERSION)
        cv_reader_fail(&reader, CATERVA_EUNSUPPORTED, 1, "version %d is not %d", version,
                       TRAILER_VERSION);
    CV_TRY(cv_reader_check(&reader, err));
    CV_TRY(allocate_attributes(&reader, &trailer, err));

    cv_metalayers_read(&reader, trailer.attributes, CV_MAX_ATTRIBUTES, &trailer.n_attributes);
    read_tail(&reader, &trailer);
    if (trailer.size != size)
        cv_reader_fail(&reader, CATERVA_ECORRUPT, reader.at, "claims %u bytes, it has %zu",
                       trailer.size, size);
    cv_status status = cv_reader_finish(&reader, err);
    if (status != CV_OK) {
        cv_trailer_free(&trailer);
        return status;
    }
    *out = trailer;
    return CV_OK;
}

void cv_trailer_free(cv_trailer *trailer)
{
    if (!trailer) return;
    cv_free(trailer->attributes);
    *trailer = (cv_trailer){0};
}

static cv_status write_parts(const cv_metalayer *attributes, int n, size_t origin,
                             cv_buffer *out, cv_error *err)
{
    cv_writer writer = cv_writer_open(out, err);
    cv_write_byte(&writer, 0x94);
    cv_write_byte(&writer, TRAILER_VERSION);
    CV_TRY(writer.status);
    CV_TRY(cv_metalayers_write(out, origin, true, attributes, n, err));

    /* Attributes end below 2 GiB, or there was an error. */
    cv_trailer trailer = {.size = (uint32_t)(out->size - origin + CV_TRAILER_TAIL)};
    write_tail(&writer, &trailer);
    return writer.status;
}

cv_status cv_trailer_write(const cv_metalayer *attributes, int n, cv_buffer *out,
                           cv_error *err)
{
    size_t origin = out->size;
    cv_status status = write_parts(attributes, n, origin, out, err);
    if (status != CV_OK) out->size = origin;
    return status;
}
