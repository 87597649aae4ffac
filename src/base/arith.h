/* Checked arithmetic for all sizes from files and callers, and byte order. cv_add_* and cv_mul_*
 * return whether the result fits: `if (!cv_mul_i64(a, b, &size)) return cv_fail(...)`. */
#ifndef CV_BASE_ARITH_H
#define CV_BASE_ARITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CV_LITTLE_ENDIAN (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

/* Sizes are int64_t. A size that may exceed the memory becomes size_t by cv_size. Casts are for the
 * other ones: parts of buffers, of chunks, of blocks, and lists for each chunk of an array or each
 * block of a chunk, whose number cv_grid_init bounds if addresses have 32 bits.
 *
 * Returns `size`, which is not negative. If it exceeds the address space, returns a size for which
 * there is no memory; some bytes can be added to it without overflow. */
static inline size_t cv_size(int64_t size)
{
    const size_t most = SIZE_MAX - ((size_t)1 << 20);
    return (uint64_t)size < most ? (size_t)size : most;
}

static inline bool cv_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool cv_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool cv_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Returns a / b, rounded up. Requires a >= 0 and b > 0. Cannot overflow. */
static inline int64_t cv_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static inline int64_t cv_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t cv_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

static inline uint32_t cv_load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t cv_load_be64(const uint8_t *p)
{
    return (uint64_t)cv_load_be32(p) << 32 | cv_load_be32(p + 4);
}

static inline void cv_store_be32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static inline void cv_store_be64(uint8_t *p, uint64_t v)
{
    cv_store_be32(p, (uint32_t)(v >> 32));
    cv_store_be32(p + 4, (uint32_t)v);
}

static inline uint32_t cv_load_le32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint64_t cv_load_le64(const uint8_t *p)
{
    return (uint64_t)cv_load_le32(p + 4) << 32 | cv_load_le32(p);
}

static inline void cv_store_le32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}

static inline void cv_store_le64(uint8_t *p, uint64_t v)
{
    cv_store_le32(p, (uint32_t)v);
    cv_store_le32(p + 4, (uint32_t)(v >> 32));
}

/* Mixes the bits of a number (the finaliser of splitmix64). */
static inline uint64_t cv_mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

#endif
