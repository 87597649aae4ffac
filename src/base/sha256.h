/* SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for signing requests. */
#ifndef CV_BASE_SHA256_H
#define CV_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { CV_SHA256_SIZE = 32, CV_SHA256_HEX = 65 };

typedef struct cv_sha256 {
    uint32_t state[8];
    uint64_t size; /* bytes added so far */
    uint8_t block[64];
} cv_sha256;

void cv_sha256_begin(cv_sha256 *hash);
void cv_sha256_add(cv_sha256 *hash, const void *bytes, size_t size);
void cv_sha256_end(cv_sha256 *hash, uint8_t out[CV_SHA256_SIZE]);

void cv_hmac_sha256(const void *key, size_t key_size, const void *bytes, size_t size,
                    uint8_t out[CV_SHA256_SIZE]);

/* Writes `sum` in lower-case hexadecimal digits, and a NUL. */
void cv_sha256_hex(const uint8_t sum[CV_SHA256_SIZE], char out[CV_SHA256_HEX]);

#endif
