/* Room: format. The section of named byte strings that headers and trailers
 * share. Promises: every offset in the index is the one of its value; nothing
 * is copied but the names. Does not know what a metalayer means. */
#include "format/metalayers.h"

#include "base/arith.h"

#include <string.h>

static void read_name(cv_reader *reader, cv_metalayer *layer)
{
    size_t at = reader->at;
    uint8_t size = cv_read_fixstr(reader, "metalayer name");
    const uint8_t *name = cv_read_bytes(reader, size, "metalayer name");
    if (!name) return;
    if (memchr(name, 0, size))
        cv_reader_fail(reader, CATERVA_ECORRUPT, at, "a metalayer name holds a zero byte");
    memcpy(layer->name, name, size);
    layer->name[size] = 0;
}

/* The value's place in the index is needed only to check it, so it waits in
 * `size` until the value itself is read. */
static void read_index_entry(cv_reader *reader, cv_metalayer *layer)
{
    *layer = (cv_metalayer){{0}, NULL, 0};
    read_name(reader, layer);
    layer->size = (uint32_t)cv_read_i32(reader, "metalayer offset");
}

static void read_value(cv_reader *reader, cv_metalayer *layer)
{
    size_t at = reader->at;
    if (layer->size != at)
        cv_reader_fail(reader, CATERVA_ECORRUPT, at,
                       "the index puts metalayer \"%s\" at byte %lld, it is at byte %zu",
                       layer->name, (long long)(int32_t)layer->size, at);
    layer->size = cv_read_bin32(reader, "metalayer value");
    layer->data = cv_read_bytes(reader, layer->size, "metalayer value");
}

static int read_count(cv_reader *reader)
{
    cv_expect(reader, "\x93", 1, "metalayer section");
    (void)cv_read_u16(reader, "metalayer index size");
    return cv_read_map16(reader, "metalayer index");
}

int cv_metalayers_count(const cv_reader *reader)
{
    cv_reader copy = *reader;
    int n = read_count(&copy);
    return copy.status == CV_OK ? n : 0;
}

void cv_metalayers_read(cv_reader *reader, cv_metalayer *out, int max, int *n)
{
    *n = 0;
    size_t at = reader->at;
    int count = read_count(reader);
    if (count > max)
        cv_reader_fail(reader, CATERVA_ECORRUPT, at, "%d metalayers, at most %d can be read",
                       count, max);
    for (int i = 0; i < count && reader->status == CV_OK; i++)
        read_index_entry(reader, &out[i]);

    at = reader->at;
    int n_values = cv_read_array16(reader, "metalayer values");
    if (n_values != count)
        cv_reader_fail(reader, CATERVA_ECORRUPT, at, "%d metalayer names but %d values",
                       count, n_values);
    for (int i = 0; i < count && reader->status == CV_OK; i++) read_value(reader, &out[i]);
    if (reader->status == CV_OK) *n = count;
}

enum { OPENING = 1 + 3 + 3, ENTRY_OVERHEAD = 1 + 5, VALUES_OPENING = 3 };

/* Bytes from the section's opening marker to the end of its index, which must
 * fit 16 bits. */
static cv_status measure_index(const cv_metalayer *layers, int n, size_t *size, cv_error *err)
{
    if (n < 0 || n > UINT16_MAX)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d metalayers do not fit a frame", n);
    *size = OPENING;
    for (int i = 0; i < n; i++) {
        size_t length = strnlen(layers[i].name, sizeof layers[i].name);
        if (length > CV_MAX_NAME)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "a metalayer name is longer than %d bytes", CV_MAX_NAME);
        *size += ENTRY_OVERHEAD + length;
    }
    if (*size > UINT16_MAX)
        return cv_fail(err, CATERVA_EINVAL, -1, "the names of %d metalayers take %zu bytes",
                       n, *size);
    return CV_OK;
}

cv_status cv_metalayers_write(cv_buffer *buffer, size_t origin, bool in_trailer,
                              const cv_metalayer *layers, int n, cv_error *err)
{
    size_t index_size = 0;
    CV_TRY(measure_index(layers, n, &index_size, err));

    cv_writer writer = cv_writer_open(buffer, err);
    uint64_t offset = buffer->size - origin + index_size + VALUES_OPENING;
    cv_write_byte(&writer, 0x93);
    cv_write_u16(&writer, (uint16_t)(index_size - (in_trailer ? 1 : 0)));
    cv_write_map16(&writer, (uint16_t)n);
    for (int i = 0; i < n; i++) {
        cv_write_fixstr(&writer, layers[i].name, (uint8_t)strlen(layers[i].name));
        cv_write_i32(&writer, (int32_t)offset);
        offset += 1 + 4 + (uint64_t)layers[i].size;
        if (offset > INT32_MAX)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "metalayer \"%s\" of %u bytes would end behind 2 GiB",
                           layers[i].name, layers[i].size);
    }
    cv_write_array16(&writer, (uint16_t)n);
    for (int i = 0; i < n; i++) cv_write_bin32(&writer, layers[i].data, layers[i].size);
    return writer.status;
}

const cv_metalayer *cv_metalayers_find(const cv_metalayer *layers, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(layers[i].name, name) == 0) return &layers[i];
    return NULL;
}
