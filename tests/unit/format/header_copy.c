/* The copy of a header: it is read back as written, no damaged or displaced one is accepted,
 * and the newest of several is found.
 *
 * usage: test_header_copy [SEED] */
#include "base/crc.h"
#include "format/frame_header.h"

#include "newest_copy.h"
#include "real_frames.h"
#include "support/check.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 4096 };

static uint64_t seed;

/* A copy as stored in a frame: the header says that the index follows it. */
typedef struct placed {
    uint8_t header[512];
    uint32_t header_size;
    uint64_t pos;
} placed;

static placed place(uint64_t pos)
{
    placed p = {.pos = pos};
    cv_frame_header header;
    cv_buffer bytes = {0};
    assert_int_equal(cv_frame_header_parse(plain_header, sizeof plain_header, &header, NULL),
                     CV_OK);
    header.cbytes = (int64_t)(pos + cv_header_copy_size(header.header_size)) -
                    (int64_t)header.header_size;
    header.frame_size = pos + 2 * ROOM;
    assert_int_equal(cv_frame_header_write(&header, &bytes, NULL), CV_OK);
    assert_true(bytes.size <= sizeof p.header);
    memcpy(p.header, bytes.data, bytes.size);
    p.header_size = (uint32_t)bytes.size;
    cv_buffer_free(&bytes);
    return p;
}

static void put(uint8_t *frame, const placed *p, uint64_t commit)
{
    cv_header_copy_write(commit, p->header, p->header_size, frame + p->pos);
}

static cv_status parse(const uint8_t *frame, uint64_t pos, cv_header_copy *out)
{
    return cv_header_copy_parse(frame + pos, ROOM - pos, pos, out, NULL);
}

/* In a directory: at the end of its frame, and nowhere else. */
static void a_directory_has_it_behind_its_frame(void **state)
{
    (void)state;
    static uint8_t frame[ROOM];
    const uint64_t end = 1000;
    placed p = place(end);
    cv_frame_header header;
    cv_header_copy copy;
    cv_buffer bytes = {0};
    assert_int_equal(cv_frame_header_parse(p.header, p.header_size, &header, NULL), CV_OK);
    header.sparse = true;
    header.frame_size = end;
    assert_int_equal(cv_frame_header_write(&header, &bytes, NULL), CV_OK);
    memcpy(p.header, bytes.data, bytes.size);
    cv_buffer_free(&bytes);
    put(frame, &p, 7);
    assert_int_equal(parse(frame, end, &copy), CV_OK);
    assert_int_equal(copy.commit, 7);
    assert_memory_equal(copy.header, p.header, p.header_size);
    memmove(frame + end + 1, frame + end, ROOM - end - 1);
    assert_int_equal(parse(frame, end + 1, &copy), CATERVA_ECORRUPT);
}

static void it_comes_back(void **state)
{
    (void)state;
    uint8_t frame[ROOM] = {0};
    placed p = place(700);
    put(frame, &p, 42);
    cv_header_copy copy;
    assert_int_equal(parse(frame, 700, &copy), CV_OK);
    assert_int_equal(copy.commit, 42);
    assert_int_equal(copy.pos, 700);
    assert_int_equal(copy.header_size, p.header_size);
    assert_int_equal(copy.size, cv_header_copy_size(p.header_size));
    assert_memory_equal(copy.header, p.header, p.header_size);
}

/* The layout is stable across versions: checked once against bytes written by hand. */
static void its_bytes_are_as_documented(void **state)
{
    (void)state;
    uint8_t frame[ROOM] = {0};
    placed p = place(600);
    put(frame, &p, 0x0102030405060708);
    const uint8_t *at = frame + 600;
    assert_memory_equal(at, "cv-head\x01", 8);
    assert_memory_equal(at + 8, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    assert_int_equal(at[16] | at[17] << 8 | at[18] << 16 | at[19] << 24, p.header_size);
    assert_memory_equal(at + 20, p.header, p.header_size);
    const uint8_t *sum = at + 20 + p.header_size;
    uint32_t crc = cv_crc32c(0, at, 20 + p.header_size);
    for (int i = 0; i < 4; i++) assert_int_equal(sum[i], crc >> 8 * i & 0xff);
    assert_int_equal(cv_header_copy_size(p.header_size), 24 + p.header_size);
}

static void every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    uint8_t frame[ROOM] = {0};
    placed p = place(500);
    put(frame, &p, 3);
    cv_header_copy copy;
    uint64_t n_bits = 8 * cv_header_copy_size(p.header_size);
    for (uint64_t bit = 0; bit < n_bits; bit++) {
        frame[500 + bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(parse(frame, 500, &copy), CATERVA_ECORRUPT);
        assert_false(newest_copy(frame, ROOM, 0, &copy));
        frame[500 + bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(parse(frame, 500, &copy), CV_OK);
}

/* Not the copy of a frame inside another one's data, nor a truncated one. */
static void only_in_its_place_and_whole(void **state)
{
    (void)state;
    uint8_t frame[ROOM] = {0};
    placed p = place(500);
    put(frame, &p, 3);
    uint64_t size = cv_header_copy_size(p.header_size);
    memmove(frame + 501, frame + 500, size);
    cv_header_copy copy;
    assert_int_equal(parse(frame, 501, &copy), CATERVA_ECORRUPT);
    assert_int_equal(cv_header_copy_parse(frame + 501, size, 500, &copy, NULL), CV_OK);
    for (size_t part = 0; part < size; part++)
        assert_int_equal(cv_header_copy_parse(frame + 501, part, 500, &copy, NULL),
                         CATERVA_ECORRUPT);
}

/* The newest is anywhere; older ones, damaged ones and noise are skipped. */
static void the_newest_is_found(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    for (int round = 0; round < 300; round++) {
        uint8_t frame[ROOM];
        rng_fill(&r, frame, sizeof frame);
        if (rng_one_in(&r, 2)) memset(frame, 'c', sizeof frame);
        uint64_t newest = 0, newest_pos = 0, pos = 200;
        while (pos < ROOM - 400) {
            placed p = place(pos);
            uint64_t commit = (uint64_t)rng_between(&r, 1, 1000000) * ROOM + pos;
            put(frame, &p, commit);
            if (rng_one_in(&r, 4)) {
                frame[pos + (uint64_t)rng_between(&r, 0, p.header_size)] ^= 1;
            } else if (commit > newest) {
                newest = commit;
                newest_pos = pos;
            }
            pos += cv_header_copy_size(p.header_size) + (uint64_t)rng_between(&r, 0, 300);
        }
        cv_header_copy copy;
        size_t from = (size_t)rng_between(&r, 0, 200);
        bool found = newest_copy(frame + from, ROOM - from, from, &copy);
        assert_int_equal(found, newest > 0);
        if (!found) continue;
        assert_int_equal(copy.commit, newest);
        assert_int_equal(copy.pos, newest_pos);
    }
}

static void long_headers_have_none(void **state)
{
    (void)state;
    assert_true(cv_header_copy_size(CV_HEADER_COPY_MAX) > CV_HEADER_COPY_MAX);
    assert_int_equal(cv_header_copy_size(CV_HEADER_COPY_MAX + 1), 0);
    assert_int_equal(cv_header_copy_size(UINT32_MAX), 0);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_comes_back),
        cmocka_unit_test(a_directory_has_it_behind_its_frame),
        cmocka_unit_test(its_bytes_are_as_documented),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(only_in_its_place_and_whole),
        cmocka_unit_test(the_newest_is_found),
        cmocka_unit_test(long_headers_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
