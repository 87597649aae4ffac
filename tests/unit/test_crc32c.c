/* CRC32C: published vectors, the definition bit by bit, and every way to
 * compute it against every other, at all alignments and lengths.
 *
 * usage: test_crc32c [SEED] */
#include "base/crc32c.h"
#include "support/check.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

/* One bit at a time: the definition. */
static uint32_t by_definition(uint32_t crc, const uint8_t *bytes, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* Checks all that can be had against `expected`. */
static void check_all(uint32_t crc, const void *bytes, size_t size, uint32_t expected)
{
    cv_crc32c_function *hardware = cv_crc32c_hardware();
    assert_int_equal(cv_crc32c(crc, bytes, size), expected);
    assert_int_equal(cv_crc32c_portable(crc, bytes, size), expected);
    if (hardware) assert_int_equal(hardware(crc, bytes, size), expected);
    cv_crc32c_function *folding = cv_crc32c_folding();
    if (folding) assert_int_equal(folding(crc, bytes, size), expected);
}

/* RFC 3720, B.4, and the check value of the catalogues. */
static void published_vectors(void **state)
{
    (void)state;
    uint8_t bytes[32] = {0};
    check_all(0, bytes, 32, 0x8a9136aa);
    memset(bytes, 0xff, 32);
    check_all(0, bytes, 32, 0x62a8ab43);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
    check_all(0, bytes, 32, 0x46dd794e);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)(31 - i);
    check_all(0, bytes, 32, 0x113fdb5c);
    static const uint8_t scsi_read[48] = {0x01,        0xc0,        [16] = 0x14, [22] = 0x04,
                                          [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    check_all(0, scsi_read, sizeof scsi_read, 0xd9963a56);
    check_all(0, "123456789", 9, 0xe3069283);
    check_all(0, "", 0, 0);
    check_all(0xe3069283, "", 0, 0xe3069283);
}

/* Around the lengths of both kinds of lanes, at every alignment. */
static void as_defined_at_every_length(void **state)
{
    (void)state;
    enum { SIZE = 3 * 4096 * 2 + 3 * 256 + 64 };
    rng r = rng_from_seed(seed);
    uint8_t *bytes = check_alloc(SIZE + 16);
    rng_fill(&r, bytes, SIZE + 16);
    for (size_t size = 0; size < 1700; size++) {
        size_t at = size % 16;
        check_all((uint32_t)size, bytes + at, size,
                  by_definition((uint32_t)size, bytes + at, size));
    }
    for (size_t at = 0; at < 64; at++) /* long enough to be aligned first */
        for (size_t size = 4090; size < 4390; size += 13)
            check_all(9, bytes + at, size, by_definition(9, bytes + at, size));
    static const size_t around[] = {3 * 4096, 3 * 4096 + 3 * 256, SIZE - 20};
    for (int i = 0; i < 3; i++)
        for (size_t size = around[i] - 20; size <= around[i] + 20; size++)
            check_all(7, bytes + size % 16, size, by_definition(7, bytes + size % 16, size));
    free(bytes);
}

/* Any cut gives the same: the checksum carries on. */
static void parts_make_the_whole(void **state)
{
    (void)state;
    enum { SIZE = 100000 };
    rng r = rng_from_seed(seed);
    uint8_t *bytes = check_alloc(SIZE);
    rng_fill(&r, bytes, SIZE);
    uint32_t whole = by_definition(0, bytes, SIZE);
    for (int round = 0; round < 200; round++) {
        uint32_t crc = 0, portable = 0;
        for (size_t at = 0, part; at < SIZE; at += part) {
            part = (size_t)rng_between(&r, 0, round % 2 ? 60000 : 600);
            if (part > SIZE - at) part = SIZE - at;
            crc = cv_crc32c(crc, bytes + at, part);
            portable = cv_crc32c_portable(portable, bytes + at, part);
        }
        assert_int_equal(crc, whole);
        assert_int_equal(portable, whole);
    }
    free(bytes);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(as_defined_at_every_length),
        cmocka_unit_test(parts_make_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
