/* Room: format. Parses and writes the frame header; one field list drives reader and writer. Checks
 * the range of each field that is read. The frame room checks that the fields are consistent. */
#include "format/frame_header.h"

#include "base/arith.h"
#include "base/crc.h"

#include <assert.h>
#include <string.h>

/* ---- Metalayers ----
 *
 * Named byte strings in headers and trailers. An index has the names and the offsets of the values.
 * Parsing copies the names, but not the values. */

#define CV_MAX_ATTRIBUTES 8192 /* trailers with more cannot be read */

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

/* Keeps the value's offset in `size` until read_value checks it. */
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

/* Returns the number of entries that the bytes at the reader's position claim. Returns 0 if the
 * bytes are malformed, which metalayers_read reports. Does not move the position. */
static int metalayers_count(const cv_reader *reader)
{
    cv_reader copy = *reader;
    int n = read_count(&copy);
    return copy.status == CV_OK ? n : 0;
}

/* Reads at most `max` entries into `out`. The offsets in the index must be those of the values.
 * Ignores the stored size of the index, as all other readers do. Errors stay in the reader. */
static void metalayers_read(cv_reader *reader, cv_metalayer *out, int max, int *n)
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

/* Computes the bytes from the opening marker to the index's end. Their number must fit 16 bits. */
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

/* Appends the section. `origin` is the start of header or trailer in `buffer`. If `in_trailer`,
 * stores the size of the index minus 1 (README_CFRAME_FORMAT.rst). */
static cv_status metalayers_write(cv_buffer *buffer, size_t origin, bool in_trailer,
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

/* ---- Frame header ---- */

/* Every frame begins with an array of 14 and a string of 8, "b2frame\0", in msgpack. */
#define MAGIC                                                                                \
    "\x9e\xa8"                                                                               \
    "b2frame\0"

/* The fixed part in file order. MARK: constant bytes; FIELD: a msgpack value; BYTES: raw bytes. */
#define FRAME_HEADER_LAYOUT(MARK, FIELD, BYTES)                                              \
    MARK(MAGIC, "magic")                                                                     \
    FIELD(i32, header_size)                                                                  \
    FIELD(u64, frame_size)                                                                   \
    MARK("\xa4", "flags")                                                                    \
    FIELD(byte, general_flags)                                                               \
    FIELD(byte, frame_type)                                                                  \
    FIELD(byte, codec_flags)                                                                 \
    FIELD(byte, split_flags)                                                                 \
    FIELD(i64, nbytes)                                                                       \
    FIELD(i64, cbytes)                                                                       \
    FIELD(i32, type_size)                                                                    \
    FIELD(i32, block_size)                                                                   \
    FIELD(i32, chunk_size)                                                                   \
    FIELD(i16, encode_threads)                                                               \
    FIELD(i16, decode_threads)                                                               \
    FIELD(bool, has_attributes)                                                              \
    MARK("\xd8", "filters")                                                                  \
    FIELD(byte, n_filters)                                                                   \
    BYTES(filters)                                                                           \
    FIELD(byte, codec_id)                                                                    \
    FIELD(byte, codec_meta)                                                                  \
    BYTES(filters_meta)                                                                      \
    FIELD(byte, more_flags)                                                                  \
    FIELD(byte, reserved)

typedef struct wire_header {
    int32_t header_size;
    uint64_t frame_size;
    uint8_t general_flags, frame_type, codec_flags, split_flags;
    int64_t nbytes, cbytes;
    int32_t type_size, block_size, chunk_size;
    int16_t encode_threads, decode_threads;
    bool has_attributes;
    uint8_t n_filters, filters[CV_MAX_FILTERS], filters_meta[CV_MAX_FILTERS];
    uint8_t codec_id, codec_meta, more_flags, reserved;
} wire_header;

enum {
    VERSION_MASK = 0x0f,
    OFFSETS_MASK = 0x30,
    OFFSETS_64_BIT = 0x10,
    VARIABLE_CHUNKS = 0x40,
    VL_BLOCKS = 0x80,
    USE_DICT = 0x01,
    PLUGIN_CODEC = 6 /* this codec nibble refers to codec_id */
};

static void read_wire(cv_reader *reader, wire_header *wire)
{
#define READ_MARK(bytes, name) cv_expect(reader, bytes, sizeof(bytes) - 1, name);
#define READ_FIELD(kind, field) wire->field = cv_read_##kind(reader, #field);
#define READ_BYTES(field)                                                                    \
    {                                                                                        \
        const uint8_t *bytes = cv_read_bytes(reader, sizeof wire->field, #field);            \
        if (bytes) memcpy(wire->field, bytes, sizeof wire->field);                           \
    }
    FRAME_HEADER_LAYOUT(READ_MARK, READ_FIELD, READ_BYTES)
#undef READ_MARK
#undef READ_FIELD
#undef READ_BYTES
}

static void write_wire(cv_writer *writer, const wire_header *wire)
{
#define WRITE_MARK(bytes, name) cv_write_bytes(writer, bytes, sizeof(bytes) - 1);
#define WRITE_FIELD(kind, field) cv_write_##kind(writer, wire->field);
#define WRITE_BYTES(field) cv_write_bytes(writer, wire->field, sizeof wire->field);
    FRAME_HEADER_LAYOUT(WRITE_MARK, WRITE_FIELD, WRITE_BYTES)
#undef WRITE_MARK
#undef WRITE_FIELD
#undef WRITE_BYTES
}

/* ---- Reading ------------------------------------------------------------ */

cv_status cv_frame_header_peek(const uint8_t *bytes, size_t size, uint32_t *header_size,
                               cv_error *err)
{
    cv_reader reader = cv_reader_open(bytes, size, 0, "not a Blosc2 frame");
    cv_expect(&reader, MAGIC, sizeof MAGIC - 1, "magic");
    int32_t found = cv_read_i32(&reader, "header_size");
    if (reader.status == CV_OK && found < CV_FRAME_HEADER_MIN)
        cv_reader_fail(&reader, CATERVA_ECORRUPT, 10,
                       "its header claims %d bytes, fewer than %d", found,
                       CV_FRAME_HEADER_MIN);
    CV_TRY(cv_reader_check(&reader, err));
    *header_size = (uint32_t)found;
    return CV_OK;
}

bool cv_frame_header_peek_sizes(const uint8_t *bytes, size_t size, uint64_t *frame_size,
                                int64_t *cbytes)
{
    cv_reader reader = cv_reader_open(bytes, size, 0, "frame header");
    wire_header wire = {0};
    read_wire(&reader, &wire); /* stops at damage, and leaves the sizes behind it 0 */
    *frame_size = wire.frame_size;
    *cbytes = wire.cbytes;
    return wire.header_size > 0 && wire.frame_size > 0 && wire.frame_size <= INT64_MAX &&
           wire.cbytes > 0 && (uint64_t)wire.cbytes < wire.frame_size;
}

static cv_status check_kind(const wire_header *wire, cv_error *err)
{
    int version = wire->general_flags & VERSION_MASK;
    if (version > CV_FRAME_VERSION_MAX)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "frame header: format version %d is newer than %d", version,
                       CV_FRAME_VERSION_MAX);
    if (version == 0)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "frame header: format version 0");
    if ((wire->general_flags & OFFSETS_MASK) != OFFSETS_64_BIT)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "frame header: chunk offsets are not 64 bits wide (flags 0x%02x)",
                       wire->general_flags);
    if (wire->frame_type > 1)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "frame header: unknown frame type %d",
                       wire->frame_type);
    if ((wire->more_flags & ~USE_DICT) != 0 || wire->reserved != 0)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "frame header: unknown flags 0x%02x 0x%02x", wire->more_flags,
                       wire->reserved);
    return CV_OK;
}

static cv_status check_sizes(const wire_header *wire, size_t size, cv_error *err)
{
    if (wire->header_size < 0 || (size_t)wire->header_size != size)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "frame header: claims %d bytes, %zu were given", wire->header_size,
                       size);
    if (wire->frame_size > INT64_MAX || wire->frame_size < (uint64_t)wire->header_size)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "frame header: claims a frame of %llu bytes with a header of %d",
                       (unsigned long long)wire->frame_size, wire->header_size);
    if (wire->nbytes < 0 || wire->cbytes < 0)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "frame header: claims %lld bytes of data stored in %lld bytes",
                       (long long)wire->nbytes, (long long)wire->cbytes);
    int least = wire->nbytes == 0 ? -1 : 0; /* without chunks, python-blosc2 writes -1 */
    if (wire->type_size < 1 || wire->block_size < 0 || wire->chunk_size < least)
        return cv_fail(
            err, CATERVA_ECORRUPT, -1,
            "frame header: claims items of %d, blocks of %d and chunks of %d bytes",
            wire->type_size, wire->block_size, wire->chunk_size);
    /* C-Blosc2 does not reset cbytes when an array shrinks to nothing. */
    uint64_t room = wire->frame_size - (uint64_t)wire->header_size;
    if (wire->frame_type == 0 && wire->nbytes > 0 && (uint64_t)wire->cbytes > room)
        return cv_fail(
            err, CATERVA_ECORRUPT, -1,
            "frame header: claims %lld bytes of chunks, the frame has room for %llu",
            (long long)wire->cbytes, (unsigned long long)room);
    return CV_OK;
}

static cv_status check_pipeline(const wire_header *wire, cv_error *err)
{
    int nibble = wire->codec_flags & 0x0f;
    if (nibble > PLUGIN_CODEC)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "frame header: unknown codec %d",
                       nibble);
    if (nibble == PLUGIN_CODEC && wire->codec_id < PLUGIN_CODEC)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "frame header: codec %d is marked as a plugin", wire->codec_id);
    if (wire->n_filters > CV_MAX_FILTERS)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "frame header: %d filters, at most %d fit",
                       wire->n_filters, CV_MAX_FILTERS);
    return CV_OK;
}

static cv_frame_header from_wire(const wire_header *wire)
{
    int nibble = wire->codec_flags & 0x0f;
    cv_frame_header header = {
        .header_size = (uint32_t)wire->header_size,
        .frame_size = wire->frame_size,
        .version = wire->general_flags & VERSION_MASK,
        .sparse = wire->frame_type == 1,
        .variable_chunks = (wire->general_flags & VARIABLE_CHUNKS) != 0,
        .vl_blocks = (wire->general_flags & VL_BLOCKS) != 0,
        .codec = nibble == PLUGIN_CODEC ? wire->codec_id : (uint8_t)nibble,
        .codec_meta = wire->codec_meta,
        .level = wire->codec_flags >> 4,
        /* only two bits are used: C programs that left the mode at 0 store 0xff */
        .split_mode = (uint8_t)((wire->split_flags & 3) + 1),
        .use_dict = (wire->more_flags & USE_DICT) != 0,
        .nbytes = wire->nbytes,
        .cbytes = wire->cbytes,
        .type_size = wire->type_size,
        .block_size = wire->block_size,
        .chunk_size = wire->chunk_size < 0 ? 0 : wire->chunk_size,
        .encode_threads = wire->encode_threads,
        .decode_threads = wire->decode_threads,
        .has_attributes = wire->has_attributes,
    };
    memcpy(header.filters, wire->filters, wire->n_filters);
    memcpy(header.filters_meta, wire->filters_meta, wire->n_filters);
    return header;
}

cv_status cv_frame_header_parse(const uint8_t *bytes, size_t size, cv_frame_header *out,
                                cv_error *err)
{
    cv_reader reader = cv_reader_open(bytes, size, 0, "frame header");
    wire_header wire = {0};
    read_wire(&reader, &wire);
    CV_TRY(cv_reader_check(&reader, err));
    CV_TRY(check_kind(&wire, err));
    CV_TRY(check_sizes(&wire, size, err));
    CV_TRY(check_pipeline(&wire, err));

    *out = from_wire(&wire);
    metalayers_read(&reader, out->metalayers, CV_MAX_METALAYERS, &out->n_metalayers);
    return cv_reader_finish(&reader, err);
}

/* ---- Writing ------------------------------------------------------------ */

static wire_header to_wire(const cv_frame_header *header)
{
    bool plugin = header->codec >= PLUGIN_CODEC;
    wire_header wire = {
        .header_size = (int32_t)header->header_size,
        .frame_size = header->frame_size,
        .general_flags = (uint8_t)(header->version | OFFSETS_64_BIT |
                                   (header->variable_chunks ? VARIABLE_CHUNKS : 0) |
                                   (header->vl_blocks ? VL_BLOCKS : 0)),
        .frame_type = header->sparse ? 1 : 0,
        .codec_flags =
            (uint8_t)((plugin ? PLUGIN_CODEC : header->codec) | header->level << 4),
        .split_flags = (uint8_t)(header->split_mode - 1),
        .nbytes = header->nbytes,
        .cbytes = header->cbytes,
        .type_size = header->type_size,
        .block_size = header->block_size,
        .chunk_size = header->chunk_size,
        .encode_threads = header->encode_threads,
        .decode_threads = header->decode_threads,
        .has_attributes = header->has_attributes,
        .n_filters = CV_MAX_FILTERS,
        .codec_id = header->codec,
        .codec_meta = header->codec_meta,
        .more_flags = header->use_dict ? USE_DICT : 0,
    };
    memcpy(wire.filters, header->filters, sizeof wire.filters);
    memcpy(wire.filters_meta, header->filters_meta, sizeof wire.filters_meta);
    return wire;
}

/* Writes the fixed part twice, because the header's size is known only after the metalayers. */
static cv_status write_parts(cv_frame_header *header, size_t origin, cv_buffer *out,
                             cv_error *err)
{
    cv_writer writer = cv_writer_open(out, err);
    wire_header wire = to_wire(header);
    write_wire(&writer, &wire);
    CV_TRY(writer.status);
    CV_TRY(
        metalayers_write(out, origin, false, header->metalayers, header->n_metalayers, err));

    size_t end = out->size; /* below 2 GiB: metalayers_write refuses more */
    header->header_size = (uint32_t)(end - origin);
    wire.header_size = (int32_t)header->header_size;
    out->size = origin;
    write_wire(&writer, &wire);
    assert(writer.status == CV_OK); /* overwrites existing bytes */
    out->size = end;
    return CV_OK;
}

cv_status cv_frame_header_write(cv_frame_header *header, cv_buffer *out, cv_error *err)
{
    assert(header->version >= 1 && header->version <= CV_FRAME_VERSION_MAX);
    assert(header->level <= 15 && header->split_mode >= 1 && header->split_mode <= 4);
    if (header->n_metalayers > CV_MAX_METALAYERS)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d metalayers, a frame holds %d",
                       header->n_metalayers, CV_MAX_METALAYERS);
    size_t origin = out->size;
    cv_status status = write_parts(header, origin, out, err);
    if (status != CV_OK) out->size = origin;
    return status;
}

/* ---- The trailer ----
 *
 * Allocates only as many attributes as fit into the trailer's bytes. The values of attributes are
 * Blosc2 chunks, which the codec room decodes. */

enum {
    TRAILER_VERSION = 1,
    FINGERPRINT_SIZE = 16,
    MIN_ATTRIBUTE_SIZE = 1 + 5 + 5 /* empty name, offset, empty value */
};

/* Reads the tail, one field per line in file order. The last field ends the frame. */
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
    int n = metalayers_count(reader);
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

    metalayers_read(&reader, trailer.attributes, CV_MAX_ATTRIBUTES, &trailer.n_attributes);
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

static cv_status write_trailer(const cv_metalayer *attributes, int n, size_t origin,
                               cv_buffer *out, cv_error *err)
{
    cv_writer writer = cv_writer_open(out, err);
    cv_write_byte(&writer, 0x94);
    cv_write_byte(&writer, TRAILER_VERSION);
    CV_TRY(writer.status);
    CV_TRY(metalayers_write(out, origin, true, attributes, n, err));

    /* attributes end below 2 GiB, or an error was returned */
    cv_trailer trailer = {.size = (uint32_t)(out->size - origin + CV_TRAILER_TAIL)};
    write_tail(&writer, &trailer);
    return writer.status;
}

cv_status cv_trailer_write(const cv_metalayer *attributes, int n, cv_buffer *out,
                           cv_error *err)
{
    size_t origin = out->size;
    cv_status status = write_trailer(attributes, n, origin, out, err);
    if (status != CV_OK) out->size = origin;
    return status;
}

/* ---- The copy of the header ---- */

static const uint8_t magic[8] = {'c', 'v', '-', 'h', 'e', 'a', 'd', 1};

enum {
    COMMIT_AT = sizeof magic,
    SIZE_AT = COMMIT_AT + 8,
    HEADER_AT = SIZE_AT + 4,
    CHECKSUM_SIZE = 4
};

uint64_t cv_header_copy_size(uint32_t header_size)
{
    if (header_size > CV_HEADER_COPY_MAX) return 0;
    return (uint64_t)HEADER_AT + header_size + CHECKSUM_SIZE;
}

void cv_header_copy_write(uint64_t commit, const uint8_t *header, uint32_t header_size,
                          uint8_t *out)
{
    size_t covered = (size_t)HEADER_AT + header_size;
    memcpy(out, magic, sizeof magic);
    cv_store_le64(out + COMMIT_AT, commit);
    cv_store_le32(out + SIZE_AT, header_size);
    memcpy(out + HEADER_AT, header, header_size);
    cv_store_le32(out + covered, cv_crc32c(0, out, covered));
}

static cv_status check_place(const cv_header_copy *copy, cv_error *err)
{
    cv_frame_header header;
    if (cv_frame_header_parse(copy->header, copy->header_size, &header, NULL) != CV_OK)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)copy->pos,
                       "header copy: its contents are not a frame header");
    uint64_t place = header.frame_size; /* if sparse, behind the frame */
    if (!header.sparse) place = (uint64_t)header.cbytes + header.header_size - copy->size;
    if (header.header_size == copy->header_size && place == copy->pos) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)copy->pos,
                   "header copy: its header places it at byte %lld", (long long)place);
}

cv_status cv_header_copy_parse(const uint8_t *bytes, size_t size, uint64_t pos,
                               cv_header_copy *out, cv_error *err)
{
    if (size < HEADER_AT || memcmp(bytes, magic, sizeof magic) != 0)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos, "not a header copy");
    cv_header_copy copy = {
        .commit = cv_load_le64(bytes + COMMIT_AT),
        .header = bytes + HEADER_AT,
        .header_size = cv_load_le32(bytes + SIZE_AT),
        .pos = pos,
    };
    copy.size = cv_header_copy_size(copy.header_size);
    if (copy.size == 0 || copy.size > size)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                       "header copy: claims a header of %u bytes, %zu are left",
                       copy.header_size, size - HEADER_AT);
    CV_TRY(check_place(&copy, err));
    size_t covered = (size_t)HEADER_AT + copy.header_size;
    if (cv_load_le32(bytes + covered) != cv_crc32c(0, bytes, covered))
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos, "header copy: checksum differs");
    *out = copy;
    return CV_OK;
}

bool cv_header_copy_before(const uint8_t *bytes, size_t size, uint64_t pos, size_t *at,
                           cv_header_copy *out)
{
    while (*at > 0) {
        --*at;
        if (bytes[*at] == magic[0] &&
            cv_header_copy_parse(bytes + *at, size - *at, pos + *at, out, NULL) == CV_OK)
            return true;
    }
    return false;
}
