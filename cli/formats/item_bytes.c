/* Room: cli/formats. The bytes of scalars: integers and floats, including half precision, in either
 * byte order. Independent of the machine's byte order. */
#include "formats/item.h"

#include <math.h>
#include <string.h>

uint64_t item_load_uint(const caterva_dtype *dtype, const uint8_t *bytes, int64_t size)
{
    bool big = dtype->byte_order == '>';
    uint64_t value = 0;
    for (int64_t i = 0; i < size; i++) value = value << 8 | bytes[big ? i : size - 1 - i];
    return value;
}

void item_store_uint(const caterva_dtype *dtype, uint64_t value, uint8_t *bytes, int64_t size)
{
    bool big = dtype->byte_order == '>';
    for (int64_t i = 0; i < size; i++, value >>= 8)
        bytes[big ? size - 1 - i : i] = (uint8_t)value;
}

int64_t item_load_int(const caterva_dtype *dtype, const uint8_t *bytes, int64_t size)
{
    uint64_t sign = (uint64_t)1 << (size * 8 - 1);
    return (int64_t)((item_load_uint(dtype, bytes, size) ^ sign) - sign);
}

static double half_to_real(uint16_t half)
{
    int exponent = half >> 10 & 31;
    int mantissa = half & 1023;
    double value;
    if (exponent == 31)
        value = mantissa ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, -24);
    else
        value = ldexp(mantissa + 1024, exponent - 25);
    return half & 0x8000 ? -value : value;
}

/* Rounds to nearest, ties to even, as nearbyint does in the default mode. */
static uint16_t real_to_half(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value)) return (uint16_t)(sign | 0x7e00);
    if (size >= 65520) return (uint16_t)(sign | 0x7c00);
    if (size < ldexp(1, -14)) return (uint16_t)(sign | (int)nearbyint(ldexp(size, 24)));
    int exponent;
    frexp(size, &exponent); /* size = [1, 2) * 2^(exponent - 1) */
    int mantissa = (int)nearbyint(ldexp(size, 11 - exponent)); /* 1024..2048 */
    return (uint16_t)(sign | (((exponent + 13) << 10) + mantissa));
}

double item_load_real(const caterva_dtype *dtype, const uint8_t *bytes, int64_t size)
{
    uint64_t bits = item_load_uint(dtype, bytes, size);
    if (size == 2) return half_to_real((uint16_t)bits);
    if (size == 4) {
        uint32_t bits32 = (uint32_t)bits;
        float single;
        memcpy(&single, &bits32, sizeof single);
        return (double)single;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void item_store_real(const caterva_dtype *dtype, double value, uint8_t *bytes, int64_t size)
{
    uint64_t bits;
    if (size == 2) {
        bits = real_to_half(value);
    } else if (size == 4) {
        float single = (float)value;
        uint32_t bits32;
        memcpy(&bits32, &single, sizeof bits32);
        bits = bits32;
    } else {
        memcpy(&bits, &value, sizeof bits);
    }
    item_store_uint(dtype, bits, bytes, size);
}

static bool has_real_size(int64_t size) { return size == 2 || size == 4 || size == 8; }

bool item_is_number(const caterva_dtype *dtype)
{
    if (dtype->ndim > 0 || dtype->n_fields > 0) return false;
    if (dtype->kind == 'f') return has_real_size(dtype->item_size);
    if (dtype->kind == 'c') return dtype->item_size <= 16;
    return strchr("biuMm", dtype->kind) != NULL;
}

double item_number(const caterva_dtype *dtype, const uint8_t *bytes)
{
    int64_t size = dtype->item_size;
    switch (dtype->kind) {
    case 'f': return item_load_real(dtype, bytes, size);
    case 'c':
        return hypot(item_load_real(dtype, bytes, size / 2),
                     item_load_real(dtype, bytes + size / 2, size / 2));
    case 'b':
    case 'u': return (double)item_load_uint(dtype, bytes, size);
    default: return (double)item_load_int(dtype, bytes, size);
    }
}

static const char *kind_name(char kind)
{
    switch (kind) {
    case 'i': return "int";
    case 'u': return "uint";
    case 'f': return "float";
    default: return "complex";
    }
}

void item_type_name(const caterva_dtype *dtype, const char *described,
                    char name[ITEM_NAME_SIZE])
{
    const char *big = dtype && dtype->byte_order == '>' ? ", big-endian" : "";
    bool scalar = dtype && dtype->ndim == 0 && dtype->n_fields == 0 && dtype->kind != '\0';
    if (scalar && dtype->kind == 'b') {
        snprintf(name, ITEM_NAME_SIZE, "bool");
    } else if (scalar && strchr("iufc", dtype->kind)) {
        snprintf(name, ITEM_NAME_SIZE, "%s%d%s", kind_name(dtype->kind),
                 (int)dtype->item_size * 8, big);
    } else if (scalar && strchr("mM", dtype->kind)) {
        snprintf(name, ITEM_NAME_SIZE, "%s%s%s%s%s",
                 dtype->kind == 'M' ? "datetime64" : "timedelta64", *dtype->unit ? "[" : "",
                 dtype->unit, *dtype->unit ? "]" : "", big);
    } else if (scalar && strchr("SUV", dtype->kind)) {
        int units = (int)dtype->item_size / (dtype->kind == 'U' ? 4 : 1);
        snprintf(name, ITEM_NAME_SIZE, "%c%d%s", dtype->kind, units, big);
    } else if (strlen(described) < ITEM_NAME_SIZE) {
        memcpy(name, described, strlen(described) + 1);
    } else {
        snprintf(name, ITEM_NAME_SIZE, "%.58s ...", described);
    }
}
