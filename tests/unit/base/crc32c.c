/* CRC32C: published vectors, the definition bit by bit, and every way to
 * compute it against every other, at all alignments and lengths.
 *
 * usage: test_crc32c [SEED] */
#include "base/crc.h"

#include "base/cpu.h"
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

/* Compares every kind that this processor supports with `expected`. */
static void check_all(uint32_t crc, const void *bytes, size_t size, uint32_t expected)
{
    int n;
    const cv_crc32c_kind *kinds = cv_crc32c_kinds(&n);
    assert_int_equal(cv_crc32c(crc, bytes, size), expected);
    for (int i = 0; i < n; i++)
        if (cv_cpu_can(kinds[i].needs))
            assert_int_equal(kinds[i].run(crc, bytes, size), expected);
}

/* RFC 3720, B.4, and the check value of CRC catalogues. */
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

/* All short lengths, and those around the longest lane and the bytes beside lanes. */
static void as_defined_at_every_length(void **state)
{
    (void)state;
    enum { LANE = 8192, SIZE = 16 * LANE };
    rng r = rng_from_seed(seed);
    uint8_t *bytes = check_alloc(SIZE + 64);
    rng_fill(&r, bytes, SIZE + 64);
    for (size_t size = 0; size <= 5000; size++) {
        size_t at = size % 67;
        check_all((uint32_t)size, bytes + at, size,
                  by_definition((uint32_t)size, bytes + at, size));
    }
    for (size_t at = 0; at < 64; at++)
        for (size_t size = 0; size < 5000; size += 1 + size / 9)
            check_all(9, bytes + at, size, by_definition(9, bytes + at, size));
    for (size_t most = 3 * LANE; most < SIZE; most += LANE / 2)
        for (size_t size = most - 260; size <= most + 300; size += 37)
            check_all(7, bytes + size % 16, size, by_definition(7, bytes + size % 16, size));
    free(bytes);
}

/* Random long lengths; the portable kind is the reference. */
static void as_portable_at_random_lengths(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20, ROUNDS = 300 };
    rng r = rng_from_seed(seed);
    uint8_t *bytes = check_alloc(SIZE);
    int n;
    const cv_crc32c_kind *portable = cv_crc32c_kinds(&n) + n - 1;
    rng_fill(&r, bytes, SIZE);
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = (size_t)rng_between(&r, 0, round % 10 ? 100000 : SIZE);
        size_t at = (size_t)rng_between(&r, 0, (int64_t)(SIZE - size));
        uint32_t crc = (uint32_t)rng_next(&r);
        check_all(crc, bytes + at, size, portable->run(crc, bytes + at, size));
    }
    free(bytes);
}

/* Any division gives the same, also if different kinds continue each other. */
static void parts_make_the_whole(void **state)
{
    (void)state;
    enum { SIZE = 100000 };
    rng r = rng_from_seed(seed);
    uint8_t *bytes = check_alloc(SIZE);
    rng_fill(&r, bytes, SIZE);
    uint32_t whole = by_definition(0, bytes, SIZE);
    int n;
    const cv_crc32c_kind *kinds = cv_crc32c_kinds(&n);
    for (int round = 0; round < 400; round++) {
        uint32_t crc = 0;
        for (size_t at = 0, part; at < SIZE; at += part) {
            const cv_crc32c_kind *kind = &kinds[rng_between(&r, 0, n - 1)];
            part = (size_t)rng_between(&r, 0, round % 2 ? 60000 : 600);
            if (part > SIZE - at) part = SIZE - at;
            if (!cv_cpu_can(kind->needs)) kind = &kinds[n - 1];
            crc = kind->run(crc, bytes + at, part);
        }
        assert_int_equal(crc, whole);
    }
    free(bytes);
}

/* A kind is used only if its features are allowed. */
static void each_kind_can_be_forced(void **state)
{
    (void)state;
    int n;
    const cv_crc32c_kind *kinds = cv_crc32c_kinds(&n);
    assert_int_equal(kinds[n - 1].needs, 0);
    for (int i = 0; i < n; i++) {
        cv_cpu_allow(kinds[i].needs | kinds[i].suits);
        assert_int_equal(cv_crc32c(0, "123456789", 9), 0xe3069283);
        for (int k = 0; k < i; k++) assert_false(cv_cpu_can(kinds[k].needs | kinds[k].suits));
        cv_cpu_allow(~0U);
        print_message("%s: %s\n", kinds[i].name,
                      cv_cpu_can(kinds[i].needs) ? "tested" : "not on this machine");
    }
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(as_defined_at_every_length),
        cmocka_unit_test(as_portable_at_random_lengths),
        cmocka_unit_test(parts_make_the_whole),
        cmocka_unit_test(each_kind_can_be_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
