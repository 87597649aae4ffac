/* Room: format. Numbers of different lengths, bytes <-> value. */
#include "format/varint.h"

void cv_write_varint(cv_writer *writer, uint64_t value)
{
    for (; value > 0x7f; value >>= 7) cv_write_byte(writer, (uint8_t)(value | 0x80));
    cv_write_byte(writer, (uint8_t)value);
}

uint64_t cv_read_varint(cv_reader *reader, uint64_t most, const char *field)
{
    size_t at = reader->at;
    uint64_t value = 0;
    uint8_t byte = 0x80;
    for (int shift = 0; shift < 64 && byte > 0x7f; shift += 7) {
        byte = cv_read_byte(reader, field);
        value |= (uint64_t)(byte & 0x7f) << shift;
    }
    if (byte <= 0x7f && value <= most) return value;
    cv_reader_fail(reader, CATERVA_ECORRUPT, at, "%s is more than %llu", field,
                   (unsigned long long)most);
    return 0;
}
