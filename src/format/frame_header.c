/* Room: format. The frame header, bytes <-> struct. Its layout stands here
 * once, as a field list that drives reader and writer. Promises: a parsed
 * header has every field in its own range; what the fields mean together
 * (grid, file size) is the frame room's to check. */
#include "format/frame_header.h"

#include <assert.h>
#include <string.h>

/* Every frame begins so: an array of 14, the string of 8 "b2frame\0". */
#define MAGIC                                                                                \
    "\x9e\xa8"                                                                               \
    "b2frame\0"

/* The fixed part, field by field in file order. MARK: bytes that never
 * change; FIELD: a value of that msgpack kind; BYTES: raw bytes. */
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

/* The same fields as plain values, before they are given a meaning. */
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
    PLUGIN_CODEC = 6 /* the codec nibble that sends to codec_id */
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
    read_wire(&reader, &wire); /* stops at what is damaged: a size of 0 was not read */
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
                       "frame header: claims %lld bytes of data stored in %lld",
                       (long long)wire->nbytes, (long long)wire->cbytes);
    int least = wire->nbytes == 0 ? -1 : 0; /* which python-blosc2 writes for no chunks */
    if (wire->type_size < 1 || wire->block_size < 0 || wire->chunk_size < least)
        return cv_fail(
            err, CATERVA_ECORRUPT, -1,
            "frame header: claims items of %d, blocks of %d and chunks of %d bytes",
            wire->type_size, wire->block_size, wire->chunk_size);
    /* C-Blosc2 leaves cbytes standing when an array shrinks to nothing. */
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
        return cv_fail(err, CATERVA_ECORRUPT, -1, "frame header: codec %d is called a plugin",
                       wire->codec_id);
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
        /* Only two bits count: C programs that left the mode at 0 store 0xff. */
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
    cv_metalayers_read(&reader, out->metalayers, CV_MAX_METALAYERS, &out->n_metalayers);
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

/* The header's size is known only behind its metalayers, so the fixed part is
 * written twice: once to make room, once with the size. */
static cv_status write_parts(cv_frame_header *header, size_t origin, cv_buffer *out,
                             cv_error *err)
{
    cv_writer writer = cv_writer_open(out, err);
    wire_header wire = to_wire(header);
    write_wire(&writer, &wire);
    CV_TRY(writer.status);
    CV_TRY(cv_metalayers_write(out, origin, false, header->metalayers, header->n_metalayers,
                               err));

    size_t end = out->size; /* below 2 GiB, or there was an error */
    header->header_size = (uint32_t)(end - origin);
    wire.header_size = (int32_t)header->header_size;
    out->size = origin;
    write_wire(&writer, &wire);
    assert(writer.status == CV_OK); /* the room is there */
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
