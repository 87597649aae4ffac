/* Writes a zip archive field by field, with any values. */
#include "zip_made.h"

#include "check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    uint8_t *data;
    size_t size, room;
} bytes;

static void put(bytes *b, const void *from, size_t size)
{
    if (b->size + size > b->room) {
        b->room = 2 * (b->size + size);
        b->data = realloc(b->data, b->room);
        CHECK(b->data, "no memory for an archive");
    }
    if (size > 0) memcpy(b->data + b->size, from, size);
    b->size += size;
}

static void put_number(bytes *b, uint64_t value, int width)
{
    for (int i = 0; i < width; i++) {
        uint8_t byte = (uint8_t)(value >> 8 * i);
        put(b, &byte, 1);
    }
}

static void put_numbers(bytes *b, const uint64_t *values, const char *widths)
{
    for (int i = 0; widths[i]; i++) put_number(b, values[i], widths[i] - '0');
}

/* The checksum of zip: reflected, polynomial 0x04c11db7. */
static uint32_t crc32_of(const zip_made_member *m)
{
    uint32_t crc = UINT32_MAX;
    const uint8_t *data = m->data;
    for (uint32_t i = 0; i < m->size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void put_local(bytes *b, const zip_made_member *m)
{
    const char *name = m->local ? m->local : m->name;
    uint64_t fields[] = {0x04034b50,          20,      (uint64_t)m->flags,
                         (uint64_t)m->method, 0,       0x21,
                         crc32_of(m),         m->size, m->size,
                         strlen(name),        m->extra};
    put_numbers(b, fields, "42222244422");
    put(b, name, strlen(name));
    for (uint32_t i = 0; i < m->extra; i++) put_number(b, 0, 1);
    put(b, m->data, m->size);
}

static void put_record(bytes *b, const zip_made_member *m, uint64_t pos)
{
    bool lies = m->says_size || m->says_pos;
    uint64_t size = m->says_size ? m->says_size : m->size;
    uint64_t at = m->says_pos ? m->says_pos : pos;
    uint64_t fields[] = {0x02014b50,
                         0x314,
                         20,
                         (uint64_t)m->flags,
                         (uint64_t)m->method,
                         0,
                         0x21,
                         crc32_of(m),
                         lies ? UINT32_MAX : size,
                         lies ? UINT32_MAX : size,
                         strlen(m->name),
                         lies ? 28 : 0,
                         0,
                         0,
                         0,
                         0x81a40000,
                         lies ? UINT32_MAX : at};
    put_numbers(b, fields, "42222224442222244");
    put(b, m->name, strlen(m->name));
    uint64_t wide[] = {1, 24, size, size, at};
    if (lies) put_numbers(b, wide, "22888");
}

static void put_end(bytes *b, const zip_made *zip, uint64_t pos, uint64_t directory_size)
{
    uint64_t n = zip->says_n ? zip->says_n : (uint64_t)zip->n;
    uint64_t size = zip->says_directory_size ? zip->says_directory_size : directory_size;
    uint64_t at = zip->says_directory_pos ? zip->says_directory_pos : pos;
    uint64_t wide[] = {0x06064b50, 44, 45, 45, 0, 0, n, n, size, at};
    uint64_t locator[] = {0x07064b50, 0, pos + directory_size, 1};
    bool is_wide =
        zip->wide || zip->says_n || zip->says_directory_size || zip->says_directory_pos;
    if (is_wide) put_numbers(b, wide, "4822448888");
    if (is_wide) put_numbers(b, locator, "4484");
    uint64_t comment = zip->comment ? strlen(zip->comment) : 0;
    uint64_t end[] = {0x06054b50,
                      0,
                      0,
                      is_wide ? UINT16_MAX : n,
                      is_wide ? UINT16_MAX : n,
                      is_wide ? UINT32_MAX : size,
                      is_wide ? UINT32_MAX : at,
                      comment};
    put_numbers(b, end, "42222442");
    if (comment) put(b, zip->comment, comment);
}

uint8_t *zip_made_bytes(const zip_made *zip, size_t *size)
{
    bytes b = {0};
    uint64_t places[ZIP_MADE_MEMBERS];
    size_t shift = zip->before ? strlen(zip->before) : 0;
    if (shift) put(&b, zip->before, shift);
    for (int i = 0; i < zip->n; i++) {
        places[i] = b.size - shift;
        put_local(&b, &zip->members[i]);
    }
    uint64_t directory = b.size - shift;
    for (int i = 0; i < zip->n; i++) {
        uint32_t other = zip->members[i].at_of;
        put_record(&b, &zip->members[i], places[other ? other - 1 : (uint32_t)i]);
    }
    put_end(&b, zip, directory, b.size - shift - directory);
    *size = b.size;
    return b.data;
}
