/* Room: format. The `_caterva` attribute, bytes <-> struct. Widths are exact,
 * as everywhere in a frame; who else would write it? */
#include "format/own_attribute.h"

#include "format/msgpack.h"

#include <string.h>

enum { OWN_VERSION = 1 };

static bool is_key(const uint8_t *key, uint8_t size, const char *name)
{
    return key && size == strlen(name) && memcmp(key, name, size) == 0;
}

/* One value of a kind that this attribute may hold now or later: a small
 * number, a uint64, or bytes. */
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
