/* Room: base. SHA-256 with FIPS 180-4's names. Inputs are short, so no loop is unrolled. */
#include "base/sha256.h"

#include <string.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};

static uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void schedule(const uint8_t block[64], uint32_t w[64])
{
    for (int t = 0; t < 16; t++) w[t] = load_be32(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
}

static void add_block(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64], v[8];
    schedule(block, w);
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t S1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t S0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t t1 = v[7] + S1 + choice + K[t] + w[t];
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + S0 + majority;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

void cv_sha256_begin(cv_sha256 *hash)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, first, sizeof first);
    hash->size = 0;
}

void cv_sha256_add(cv_sha256 *hash, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    while (size > 0) {
        size_t used = (size_t)(hash->size % 64), n = 64 - used < size ? 64 - used : size;
        memcpy(hash->block + used, from, n);
        hash->size += n;
        from += n;
        size -= n;
        if (used + n == 64) add_block(hash->state, hash->block);
    }
}

void cv_sha256_end(cv_sha256 *hash, uint8_t out[CV_SHA256_SIZE])
{
    static const uint8_t padding[64] = {0x80};
    uint8_t length[8];
    uint64_t bits = hash->size * 8;
    store_be32(length, (uint32_t)(bits >> 32));
    store_be32(length + 4, (uint32_t)bits);
    size_t used = (size_t)(hash->size % 64);
    cv_sha256_add(hash, padding, used < 56 ? 56 - used : 120 - used);
    cv_sha256_add(hash, length, sizeof length);
    for (int i = 0; i < 8; i++) store_be32(out + 4 * i, hash->state[i]);
}

void cv_hmac_sha256(const void *key, size_t key_size, const void *bytes, size_t size,
                    uint8_t out[CV_SHA256_SIZE])
{
    cv_sha256 hash;
    uint8_t pad[64] = {0};
    cv_sha256_begin(&hash);
    if (key_size > sizeof pad) {
        cv_sha256_add(&hash, key, key_size);
        cv_sha256_end(&hash, pad);
    } else {
        memcpy(pad, key, key_size);
    }
    for (size_t i = 0; i < sizeof pad; i++) pad[i] ^= 0x36;
    cv_sha256_begin(&hash);
    cv_sha256_add(&hash, pad, sizeof pad);
    cv_sha256_add(&hash, bytes, size);
    cv_sha256_end(&hash, out);
    for (size_t i = 0; i < sizeof pad; i++) pad[i] ^= 0x36 ^ 0x5c;
    cv_sha256_begin(&hash);
    cv_sha256_add(&hash, pad, sizeof pad);
    cv_sha256_add(&hash, out, CV_SHA256_SIZE);
    cv_sha256_end(&hash, out);
}

void cv_sha256_hex(const uint8_t sum[CV_SHA256_SIZE], char out[CV_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < CV_SHA256_SIZE; i++) {
        out[2 * i] = digits[sum[i] >> 4];
        out[2 * i + 1] = digits[sum[i] & 15];
    }
    out[2 * CV_SHA256_SIZE] = '\0';
}
