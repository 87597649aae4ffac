/* Block tables and the seal: what is written is read back, and every changed byte is
 * detected. */
#include "format/seal.h"

#include "base/arith.h"
#include "base/crc.h"
#include "format/chunk_header.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* ---- Block tables ------------------------------------------------------- */

enum { N_BLOCKS = 5, CBYTES = 300 };

static const cv_block_range RANGES[N_BLOCKS] = {
    {120, 160}, {52, 120}, {160, 161}, {161, 250}, {250, CBYTES}};

static cv_chunk_header regular(void)
{
    return (cv_chunk_header){.nbytes = 500, .block_size = 100, .cbytes = CBYTES};
}

static void fill(uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(i * 31 + 7);
}

static void a_table_comes_back(void **state)
{
    (void)state;
    uint8_t chunk[CBYTES], bytes[64];
    uint32_t made[N_BLOCKS], read[N_BLOCKS];
    cv_chunk_header header = regular();
    fill(chunk, sizeof chunk);

    cv_block_table table = {.n = N_BLOCKS, .blocks = made};
    cv_block_table_make(chunk, &header, RANGES, &table);
    assert_int_equal(table.head, cv_crc32c(0, chunk, 52)); /* up to the lowest block */
    assert_int_equal(made[2], cv_crc32c(0, chunk + 160, 1));

    size_t size = cv_block_table_size(N_BLOCKS);
    assert_int_equal(size, 36);
    uint32_t name = cv_block_table_write(&table, bytes);
    assert_int_equal(name, cv_block_table_name(bytes, N_BLOCKS));
    cv_block_table back = {.n = N_BLOCKS, .blocks = read};
    assert_true(cv_block_table_read(bytes, &back));
    assert_int_equal(back.head, table.head);
    assert_memory_equal(read, made, sizeof made);
}

static void every_flipped_bit_of_a_table_is_noticed(void **state)
{
    (void)state;
    uint8_t chunk[CBYTES], bytes[64];
    uint32_t blocks[N_BLOCKS];
    cv_chunk_header header = regular();
    fill(chunk, sizeof chunk);
    cv_block_table table = {.n = N_BLOCKS, .blocks = blocks};
    cv_block_table_make(chunk, &header, RANGES, &table);
    cv_block_table_write(&table, bytes);
    for (size_t bit = 0; bit < 8 * cv_block_table_size(N_BLOCKS); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(cv_block_table_read(bytes, &table));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    table.n = N_BLOCKS - 1;
    assert_false(cv_block_table_read(bytes, &table));
}

static void a_plain_chunk_has_blocks_behind_its_header(void **state)
{
    (void)state;
    cv_chunk_header header = {
        .memcpyed = true, .nbytes = 250, .block_size = 100, .cbytes = 282};
    assert_int_equal(cv_block_table_blocks(&header, 3), 3);
    assert_int_equal(cv_block_table_head(&header, NULL, 3), 32);
    cv_block_range last = cv_block_table_range(&header, NULL, 2);
    assert_int_equal(last.start, 232);
    assert_int_equal(last.end, 282);
}

static void a_repeated_item_is_all_head(void **state)
{
    (void)state;
    cv_chunk_header header = {.special = CV_SPECIAL_VALUE, .nbytes = 800, .cbytes = 40};
    assert_int_equal(cv_block_table_blocks(&header, 3), 0);
    uint8_t chunk[40], bytes[16];
    fill(chunk, sizeof chunk);
    cv_block_table table = {.n = 0};
    cv_block_table_make(chunk, &header, NULL, &table);
    assert_int_equal(table.head, cv_crc32c(0, chunk, 40));
    cv_block_table_write(&table, bytes);
    assert_true(cv_block_table_read(bytes, &table));
}

/* ---- The root ----------------------------------------------------------- */

typedef struct sealed {
    cv_buffer header_bytes, tail; /* footer and trailer */
    cv_frame_header header;
    cv_trailer trailer;
} sealed;

static void parse(sealed *s)
{
    assert_int_equal(
        cv_frame_header_parse(s->header_bytes.data, s->header_bytes.size, &s->header, NULL),
        CV_OK);
    cv_trailer_free(&s->trailer);
    assert_int_equal(cv_trailer_parse(s->tail.data + CV_SEAL_FOOTER,
                                      s->tail.size - CV_SEAL_FOOTER, 968, &s->trailer, NULL),
                     CV_OK);
}

static void make_sealed(sealed *s)
{
    *s = (sealed){.header = {.frame_size = 1000,
                             .version = CV_FRAME_VERSION,
                             .codec = 1,
                             .split_mode = 1,
                             .type_size = 4}};
    assert_int_equal(cv_frame_header_write(&s->header, &s->header_bytes, NULL), CV_OK);
    cv_seal_footer footer = {.commit = 7, .size = 500, .head_size = 40, .head_crc = 0x1234};
    assert_int_equal(cv_buffer_resize(&s->tail, CV_SEAL_FOOTER, NULL), CV_OK);
    cv_seal_footer_write(&footer, s->tail.data);
    assert_int_equal(cv_trailer_write(NULL, 0, &s->tail, NULL), CV_OK);
    parse(s);
}

static void free_sealed(sealed *s)
{
    cv_buffer_free(&s->header_bytes);
    cv_buffer_free(&s->tail);
    cv_trailer_free(&s->trailer);
}

static cv_status check(const sealed *s, cv_seal_state *state)
{
    return cv_seal_root_check(s->tail.data, s->tail.size, &s->trailer, s->header_bytes.data,
                              &s->header, state, NULL);
}

static void a_root_vouches_for_header_and_trailer(void **state)
{
    (void)state;
    sealed s;
    cv_seal_state seal;
    make_sealed(&s);
    assert_int_equal(check(&s, &seal), CV_OK);
    assert_int_equal(seal, CV_SEAL_NONE);

    cv_seal_root_write(s.tail.data, s.tail.size, s.header_bytes.data, s.header_bytes.size);
    parse(&s);
    assert_int_equal(check(&s, &seal), CV_OK);
    assert_int_equal(seal, CV_SEAL_WHOLE);

    cv_seal_footer footer;
    assert_true(cv_seal_footer_read(s.tail.data, &footer));
    assert_int_equal(footer.commit, 7);
    assert_int_equal(footer.size, 500);
    assert_int_equal(footer.head_size, 40);
    assert_int_equal(footer.head_crc, 0x1234);
    for (size_t bit = 0; bit < 8 * CV_SEAL_FOOTER; bit++) {
        s.tail.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(check(&s, &seal), CATERVA_ECORRUPT);
        s.tail.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free_sealed(&s);
}

static void every_flipped_bit_of_the_header_is_noticed(void **state)
{
    (void)state;
    sealed s;
    cv_seal_state seal;
    make_sealed(&s);
    cv_seal_root_write(s.tail.data, s.tail.size, s.header_bytes.data, s.header_bytes.size);
    parse(&s);
    for (size_t bit = 0; bit < 8 * s.header_bytes.size; bit++) {
        size_t at = bit / 8;
        s.header_bytes.data[at] ^= (uint8_t)(1 << bit % 8);
        cv_frame_header header;
        bool parses = cv_frame_header_parse(s.header_bytes.data, s.header_bytes.size, &header,
                                            NULL) == CV_OK;
        bool threads = (at >= 63 && at <= 64) || (at >= 66 && at <= 67);
        cv_frame_header kept = s.header;
        if (threads && parses) s.header = header;
        assert_int_equal(check(&s, &seal), CATERVA_ECORRUPT);
        s.header = kept;
        s.header_bytes.data[at] ^= (uint8_t)(1 << bit % 8);
    }
    free_sealed(&s);
}

static void both_thread_counts_are_another_writers_mark(void **state)
{
    (void)state;
    sealed s;
    cv_seal_state seal;
    make_sealed(&s);
    cv_seal_root_write(s.tail.data, s.tail.size, s.header_bytes.data, s.header_bytes.size);
    s.header_bytes.data[64] = 1;
    s.header_bytes.data[67] = 1;
    parse(&s);
    assert_int_equal(check(&s, &seal), CV_OK);
    assert_int_equal(seal, CV_SEAL_NO_HEADER);
    free_sealed(&s);
}

/* Attributes of groups have them from the beginning; their checksum decides. */
static void thread_counts_that_are_sealed_are_nobodys_mark(void **state)
{
    (void)state;
    sealed s;
    cv_seal_state seal;
    make_sealed(&s);
    s.header_bytes.data[64] = 1;
    s.header_bytes.data[67] = 1;
    cv_seal_root_write(s.tail.data, s.tail.size, s.header_bytes.data, s.header_bytes.size);
    parse(&s);
    assert_int_equal(check(&s, &seal), CV_OK);
    assert_int_equal(seal, CV_SEAL_WHOLE);
    free_sealed(&s);
}

static void a_strange_fingerprint_is_damage(void **state)
{
    (void)state;
    sealed s;
    cv_seal_state seal;
    make_sealed(&s);
    s.tail.data[s.tail.size - 17] = 1; /* type */
    parse(&s);
    assert_int_equal(check(&s, &seal), CATERVA_ECORRUPT);
    s.tail.data[s.tail.size - 17] = 0;
    s.tail.data[s.tail.size - 1] = 1; /* no type, but a value */
    parse(&s);
    assert_int_equal(check(&s, &seal), CATERVA_ECORRUPT);
    free_sealed(&s);
}

/* ---- The head ----------------------------------------------------------- */

static void a_head_comes_back(void **state)
{
    (void)state;
    uint32_t numbers[5] = {1, 2, 3, 0, 0x80000001}; /* 2 index blocks, 3 pages */
    int64_t n_chunks = 2 * CV_SEAL_PAGE + 1;
    cv_seal_head head = {.n_chunks = n_chunks,
                         .n_strays = 4,
                         .n_index_blocks = 2,
                         .index_head = 11,
                         .strays_crc = 12,
                         .index_blocks = numbers,
                         .pages = numbers + 2};
    cv_buffer out = {0};
    assert_int_equal(cv_buffer_resize(&out, cv_seal_head_size(n_chunks, 2), NULL), CV_OK);
    cv_seal_head_write(&head, out.data);

    cv_seal_head back;
    assert_int_equal(cv_seal_head_parse(out.data, out.size, 0, n_chunks, &back, NULL), CV_OK);
    assert_int_equal(back.n_strays, 4);
    assert_int_equal(back.index_head, 11);
    assert_int_equal(back.strays_crc, 12);
    assert_memory_equal(back.index_blocks, numbers, sizeof numbers);
    assert_ptr_equal(back.pages, back.index_blocks + 2);
    uint64_t size;
    assert_true(cv_seal_size(&back, out.size, &size));
    assert_int_equal(size, out.size + 4 * (CV_SEAL_PAGE + 1) + 64 + CV_SEAL_FOOTER);
    assert_int_equal(cv_seal_page_pos(&back, 1), 4 * CV_SEAL_PAGE);
    assert_int_equal(cv_seal_page_pos(&back, 2), 4 * CV_SEAL_PAGE); /* none between */
    cv_seal_head_free(&back);
    cv_buffer_free(&out);
}

static void a_head_of_another_frame_is_refused(void **state)
{
    (void)state;
    uint32_t page = 5;
    cv_seal_head head = {.n_chunks = 3, .pages = &page}, back;
    cv_buffer out = {0};
    assert_int_equal(cv_buffer_resize(&out, cv_seal_head_size(3, 0), NULL), CV_OK);
    cv_seal_head_write(&head, out.data);
    assert_int_equal(cv_seal_head_parse(out.data, out.size, 0, 4, &back, NULL),
                     CATERVA_ECORRUPT);
    for (size_t size = 0; size < out.size; size++)
        assert_int_equal(cv_seal_head_parse(out.data, size, 0, 3, &back, NULL),
                         CATERVA_ECORRUPT);
    cv_store_le64(out.data + 8, UINT64_MAX); /* strays */
    assert_int_equal(cv_seal_head_parse(out.data, out.size, 0, 3, &back, NULL),
                     CATERVA_ECORRUPT);
    cv_buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_comes_back),
        cmocka_unit_test(every_flipped_bit_of_a_table_is_noticed),
        cmocka_unit_test(a_plain_chunk_has_blocks_behind_its_header),
        cmocka_unit_test(a_repeated_item_is_all_head),
        cmocka_unit_test(a_root_vouches_for_header_and_trailer),
        cmocka_unit_test(every_flipped_bit_of_the_header_is_noticed),
        cmocka_unit_test(both_thread_counts_are_another_writers_mark),
        cmocka_unit_test(thread_counts_that_are_sealed_are_nobodys_mark),
        cmocka_unit_test(a_strange_fingerprint_is_damage),
        cmocka_unit_test(a_head_comes_back),
        cmocka_unit_test(a_head_of_another_frame_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
