/* Opening frames built by hand: every contradiction between header, metalayer, file, trailer
 * and index is refused with the position; every form of the index that writers make is
 * read. */
#include "frame/index.h"
#include "frame/lookup.h"
#include "recipe.h"
#include "support/info.h"
#include <caterva_store.h>

/* Reads item i of an array opened from these bytes; *status: of the whole operation. */
static int32_t item_of(const cv_buffer *frame, int64_t i, cv_status *status, cv_error *err)
{
    caterva_array *array;
    uint8_t value[sizeof(int32_t)];
    int64_t stop = i + 1;
    *status = caterva_frame_open(frame->data, frame->size, 0, NULL, &array, err);
    if (*status != CV_OK) return -1;
    *status = caterva_read(array, &i, &stop, value, sizeof value, err);
    caterva_discard(array);
    return *status == CV_OK ? (int32_t)cv_load_le32(value) : -1;
}

static void check_items(const cv_buffer *frame)
{
    for (int64_t i = 0; i < N; i += 3) {
        cv_status status;
        cv_error err = {.code = CV_OK};
        assert_int_equal(item_of(frame, i, &status, &err), i);
        assert_int_equal(status, CV_OK);
    }
}

static void check_refused(const cv_buffer *frame, cv_status expected, const char *sentence)
{
    cv_status status;
    cv_error err = {.code = CV_OK};
    item_of(frame, 25, &status, &err);
    if (status != expected || !strstr(err.message, sentence))
        fail_msg("%s: %s, not \"%s\"", caterva_status_name(status), err.message, sentence);
    assert_int_equal(err.code, expected);
}

/* ---- What is read ------------------------------------------------------------------ */

static void a_frame_made_by_hand_opens(void **state)
{
    (void)state;
    recipe p = new_recipe();
    cv_buffer frame = assemble(&p);
    check_items(&frame);
    cv_buffer_free(&frame);

    p.gap = 100; /* a hole before the trailer is valid */
    frame = assemble(&p);
    check_items(&frame);
    assert_int_equal(cv_buffer_append(&frame, "garbage behind the frame", 24, NULL), CV_OK);
    check_items(&frame);
    cv_buffer_free(&frame);
    free_recipe(&p);
}

static void chunks_in_any_order_with_holes(void **state)
{
    (void)state;
    recipe p = new_recipe();
    static const int order[N_CHUNKS] = {2, 0, 3, 1};
    int64_t offsets[N_CHUNKS];
    p.chunks.size = 0;
    for (int i = 0; i < N_CHUNKS; i++) {
        assert_int_equal(cv_buffer_append(&p.chunks, "a hole", 6, NULL), CV_OK);
        offsets[order[i]] = (int64_t)p.chunks.size;
        append_chunk(&p.chunks, order[i] * CHUNK);
    }
    p.header.cbytes = (int64_t)p.chunks.size;
    set_index(&p, offsets);
    cv_buffer frame = assemble(&p);
    check_items(&frame);
    cv_buffer_free(&frame);
    free_recipe(&p);
}

static void every_form_of_the_index(void **state)
{
    (void)state;
    recipe p = new_recipe();
    int64_t offsets[N_CHUNKS];
    cv_status status;
    for (int i = 0; i < N_CHUNKS; i++) offsets[i] = i * CHUNK_SIZE;
    set_plain_index(&p, offsets);
    cv_buffer frame = assemble(&p);
    check_items(&frame);
    cv_buffer_free(&frame);

    set_special_index(&p, 3, cv_offset_of_kind(CV_REF_ZEROS)); /* all chunks zeros */
    frame = assemble(&p);
    assert_int_equal(item_of(&frame, 17, &status, NULL), 0);
    assert_int_equal(status, CV_OK);
    cv_buffer_free(&frame);

    set_special_index(&p, 3, 2 * CHUNK_SIZE); /* all chunks the same one */
    frame = assemble(&p);
    assert_int_equal(item_of(&frame, 17, &status, NULL), 27);
    cv_buffer_free(&frame);

    set_special_index(&p, 1, 0); /* offset 0 for all */
    frame = assemble(&p);
    assert_int_equal(item_of(&frame, 17, &status, NULL), 7);
    cv_buffer_free(&frame);

    set_special_index(&p, 2, 0); /* not-a-number is not a position */
    frame = assemble(&p);
    check_refused(&frame, CATERVA_ECORRUPT, "index");
    cv_buffer_free(&frame);
    free_recipe(&p);
}

static void special_chunks_of_the_index(void **state)
{
    (void)state;
    static const struct {
        uint64_t top;
        cv_ref_kind kind;
    } known[] = {{0x81, CV_REF_ZEROS}, {0x82, CV_REF_NAN},    {0x84, CV_REF_UNINIT},
                 {0x83, CV_REF_ZEROS}, {0x86, CV_REF_UNINIT}, {0x87, CV_REF_ZEROS}};
    recipe p = new_recipe();
    cv_buffer frame = assemble(&p);
    caterva_array *array;
    assert_int_equal(caterva_frame_open(frame.data, frame.size, 0, NULL, &array, NULL),
                     CV_OK);
    cv_chunk_ref ref;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        int64_t offset = (int64_t)(known[i].top << 56 | 12345);
        assert_true(cv_offset_is_special(offset));
        assert_int_equal(cv_chunk_ref_make(array->snapshot, 1, offset, &ref, NULL), CV_OK);
        assert_int_equal(ref.kind, known[i].kind);
    }
    for (uint64_t top = 0x80; top <= 0xf8; top += 8)
        assert_int_equal(
            cv_chunk_ref_make(array->snapshot, 1, (int64_t)(top << 56), &ref, NULL),
            CATERVA_ECORRUPT);
    for (cv_ref_kind kind = CV_REF_ZEROS; kind <= CV_REF_UNINIT; kind++) {
        assert_int_equal(
            cv_chunk_ref_make(array->snapshot, 1, cv_offset_of_kind(kind), &ref, NULL),
            CV_OK);
        assert_int_equal(ref.kind, kind);
    }
    caterva_discard(array);
    cv_buffer_free(&frame);
    free_recipe(&p);
}

/* User's metalayers that push the header beyond the first read of 4 KiB. */
static void a_header_of_any_length(void **state)
{
    (void)state;
    static uint8_t content[30000];
    memset(content, 0x77, sizeof content);
    for (uint32_t size = 0; size <= sizeof content; size += 997) {
        recipe p = new_recipe();
        p.header.n_metalayers = 3;
        p.header.metalayers[1] = (cv_metalayer){"large", content, size};
        p.header.metalayers[2] = (cv_metalayer){"last", content, 3};
        cv_buffer frame = assemble(&p);
        caterva_array *array;
        check_items(&frame);
        assert_int_equal(caterva_frame_open(frame.data, frame.size, 0, NULL, &array, NULL),
                         CV_OK);
        const caterva_metalayer *got = caterva_info_metalayer(info_of(array), "large");
        assert_non_null(got);
        assert_int_equal(got->size, size);
        assert_memory_equal(got->content, content, size);
        caterva_discard(array);
        frame.size = p.header.header_size - 1; /* ends inside the header */
        check_refused(&frame, CATERVA_ECORRUPT, "header");
        cv_buffer_free(&frame);
        free_recipe(&p);
    }
}

/* ---- What is refused --------------------------------------------------------------- */

static void cut_frames_are_refused(void **state)
{
    (void)state;
    recipe p = new_recipe();
    cv_buffer frame = assemble(&p);
    size_t whole = frame.size;
    for (size_t size = 0; size < whole; size++) {
        cv_status status;
        uint8_t *exact = check_alloc(size);
        memcpy(exact, frame.data, size);
        cv_buffer cut = {.data = exact, .size = size};
        item_of(&cut, 25, &status, NULL);
        assert_int_equal(status, CATERVA_ECORRUPT);
        free(exact);
    }
    frame.size = whole - 1;
    check_refused(&frame, CATERVA_ECORRUPT, "truncated");
    frame.size = 0;
    check_refused(&frame, CATERVA_ECORRUPT, "empty");
    frame.size = whole;
    cv_buffer_free(&frame);
    free_recipe(&p);
}

/* A change to the recipe, and how the frame is refused. */
typedef struct refusal {
    void (*change)(recipe *p);
    cv_status status;
    const char *sentence;
} refusal;

static void wrong_nbytes(recipe *p) { p->header.nbytes += CHUNK * 4; }
static void wrong_chunk_size(recipe *p) { p->header.chunk_size = CHUNK * 4 + 4; }
static void wrong_type_size(recipe *p) { p->header.type_size = 8; }
static void shape_of_more_chunks(recipe *p) { set_meta(p, N + 1, CHUNK, BLOCK); }
static void shape_of_fewer_chunks(recipe *p) { set_meta(p, N - CHUNK, CHUNK, BLOCK); }
static void block_above_chunk(recipe *p) { set_meta(p, N, CHUNK, CHUNK + 1); }
static void large_cbytes(recipe *p) { p->header.cbytes += 100000; }
static void huge_cbytes(recipe *p) { p->header.cbytes = INT64_MAX; }
static void cbytes_to_the_trailer(recipe *p)
{
    p->header.cbytes = (int64_t)(p->chunks.size + p->index.size) - 31;
}
static void cbytes_off_by_one(recipe *p) { p->header.cbytes++; }
static void cbytes_into_a_chunk(recipe *p) { p->header.cbytes -= CHUNK_SIZE; }
static void no_metalayer(recipe *p) { p->header.n_metalayers = 0; }
static void other_metalayer(recipe *p) { strcpy(p->header.metalayers[0].name, "b2nx"); }
static void items_that_do_not_fit(recipe *p)
{
    no_metalayer(p);
    p->header.type_size = 3;
}
static void a_tree(recipe *p) { strcpy(p->header.metalayers[0].name, "b2tree"); }
static void add_stand_in(recipe *p, uint32_t size)
{
    static const uint8_t content[] = "\x81\xa4kind\xa3udf";
    cv_metalayer *layer = &p->header.metalayers[p->header.n_metalayers++];
    *layer = (cv_metalayer){.name = "b2o", .data = content, .size = size};
}
static void a_stand_in(recipe *p) { add_stand_in(p, 10); }
static void a_stand_in_cut_short(recipe *p) { add_stand_in(p, 9); }
static void vl_without_metalayer(recipe *p)
{
    no_metalayer(p);
    p->header.version = 3;
    p->header.vl_blocks = true;
}
static void chunks_beyond_the_index(recipe *p) { set_meta(p, INT64_MAX / 4, CHUNK, BLOCK); }
static void variable_without_metalayer(recipe *p)
{
    no_metalayer(p);
    p->header.version = 3;
    p->header.variable_chunks = true;
}
static void variable_chunks(recipe *p)
{
    p->header.version = 3;
    p->header.variable_chunks = true;
}
static void a_sparse_frame(recipe *p) { p->header.sparse = true; }
static void an_index_too_short(recipe *p)
{
    int64_t offsets[3] = {0, CHUNK_SIZE, 2 * CHUNK_SIZE};
    p->index.size = 0;
    assert_int_equal(made_index(offsets, 3, &p->index), CV_OK);
}
static void an_index_without_header(recipe *p) { memset(p->index.data, 0, 32); }
static void no_index(recipe *p) { p->index.size = 0; }
static void a_trailer_without_end(recipe *p) { p->trailer.data[p->trailer.size - 23] = 0; }
static void a_trailer_too_long(recipe *p)
{
    cv_store_be32(p->trailer.data + p->trailer.size - 22, 1 << 20);
}
static void a_trailer_over_the_header(recipe *p)
{
    cv_store_be32(p->trailer.data + p->trailer.size - 22,
                  (uint32_t)(p->header.frame_size - 10));
}
static void a_trailer_too_short(recipe *p)
{
    cv_store_be32(p->trailer.data + p->trailer.size - 22, 34);
}
static void a_trailer_of_another_kind(recipe *p) { p->trailer.data[0] = 0x95; }

static void disagreements_are_refused(void **state)
{
    (void)state;
    static const refusal refusals[] = {
        {wrong_nbytes, CATERVA_ECORRUPT, "bytes of chunks, the shape needs"},
        {wrong_chunk_size, CATERVA_ECORRUPT, "chunks of 44 bytes"},
        {wrong_type_size, CATERVA_ECORRUPT, "the shape needs"},
        {shape_of_more_chunks, CATERVA_ECORRUPT, "the shape needs"},
        {shape_of_fewer_chunks, CATERVA_ECORRUPT, "the shape needs"},
        {block_above_chunk, CATERVA_ECORRUPT, "not a valid array"},
        {large_cbytes, CATERVA_ECORRUPT, ""},
        {huge_cbytes, CATERVA_ECORRUPT, ""},
        {cbytes_to_the_trailer, CATERVA_ECORRUPT, "no room for the index"},
        {cbytes_off_by_one, CATERVA_ECORRUPT, "index"},
        {cbytes_into_a_chunk, CATERVA_ECORRUPT, "index"},
        {items_that_do_not_fit, CATERVA_EUNSUPPORTED, "not multiples of the item size 3"},
        {a_tree, CATERVA_EUNSUPPORTED, "a tree of arrays (python-blosc2's \"b2tree\")"},
        {a_stand_in, CATERVA_EUNSUPPORTED, "(python-blosc2's \"b2o\": udf)"},
        {a_stand_in_cut_short, CATERVA_EUNSUPPORTED, "(python-blosc2's \"b2o\")"},
        {vl_without_metalayer, CATERVA_EUNSUPPORTED, "variable-length blocks"},
        {variable_chunks, CATERVA_EUNSUPPORTED, "variable-size chunks"},
        {variable_without_metalayer, CATERVA_EUNSUPPORTED, "variable-size chunks"},
        {chunks_beyond_the_index, CATERVA_ECORRUPT, "chunks, the format allows 268435451"},
        {a_sparse_frame, CATERVA_ECORRUPT, "directory"},
        {an_index_too_short, CATERVA_ECORRUPT, "index"},
        {an_index_without_header, CATERVA_ECORRUPT, "format version 0"},
        {no_index, CATERVA_ECORRUPT, "no room for the index"},
        {a_trailer_without_end, CATERVA_ECORRUPT, "trailer"},
        {a_trailer_too_long, CATERVA_ECORRUPT, "trailer"},
        {a_trailer_over_the_header, CATERVA_ECORRUPT, "trailer"},
        {a_trailer_too_short, CATERVA_ECORRUPT, "trailer"},
        {a_trailer_of_another_kind, CATERVA_ECORRUPT, "trailer"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        recipe p = new_recipe();
        cv_buffer frame = assemble(&p); /* sizes that a change may use */
        cv_buffer_free(&frame);
        refusals[i].change(&p);
        frame = assemble(&p);
        check_refused(&frame, refusals[i].status, refusals[i].sentence);
        cv_buffer_free(&frame);
        free_recipe(&p);
    }
}

/* Chunks are read whole: their division into blocks may differ. */
static void a_frame_without_metalayer_is_its_items(void **state)
{
    (void)state;
    static void (*const changes[])(recipe *) = {no_metalayer, other_metalayer};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        recipe p = new_recipe();
        changes[i](&p);
        cv_store_le32(p.chunks.data + CHUNK_SIZE + 8, CHUNK * 4); /* one block */
        cv_buffer frame = assemble(&p);
        for (int k = 0; k < N; k++) {
            cv_status status;
            cv_error err;
            int item = item_of(&frame, k, &status, &err);
            assert_int_equal(status, CATERVA_OK);
            assert_int_equal(item, k);
        }
        cv_buffer_free(&frame);
        free_recipe(&p);
    }
}

/* A header that claims a frame hardly larger than itself. */
static void a_frame_needs_room_for_a_trailer(void **state)
{
    (void)state;
    recipe p = new_recipe();
    p.header.nbytes = 0; /* without chunks: their size is not checked */
    p.chunks.size = 0;
    p.header.cbytes = 0;
    set_meta(&p, 0, CHUNK, BLOCK);
    p.index.size = 0;
    cv_buffer frame = assemble(&p);
    cv_store_be64(frame.data + 16, p.header.header_size + CV_TRAILER_MIN - 1);
    check_refused(&frame, CATERVA_ECORRUPT, "no room for a trailer");
    cv_buffer_free(&frame);
    free_recipe(&p);
}

/* Items of 2 bytes are never NaN, whatever the index says. */
static void only_floats_are_nan(void **state)
{
    (void)state;
    geometry g = made_line(N, CHUNK, BLOCK, 2);
    caterva_array *array = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    cv_chunk_ref ref;
    cv_error err = {0};
    assert_int_equal(
        cv_chunk_ref_make(array->snapshot, 1, cv_offset_of_kind(CV_REF_NAN), &ref, &err),
        CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "chunk 1 is all NaN, but items have 2 bytes"));
    caterva_discard(array);
}

static void an_index_has_an_end(void **state)
{
    (void)state;
    cv_index index = {.n = CV_MAX_CHUNK_BYTES / 8 + 1};
    cv_encoder *encoder = NULL;
    cv_buffer out = {0};
    cv_error err = {0};
    assert_int_equal(cv_index_encode(&index, &encoder, &out, &err), CATERVA_EINVAL);
    assert_non_null(strstr(err.message, "chunks, the format allows"));
    assert_null(encoder);
}

static void offsets_out_of_range_are_refused(void **state)
{
    (void)state;
    static const int64_t bad[] = {N_CHUNKS * CHUNK_SIZE - 31,
                                  N_CHUNKS * CHUNK_SIZE,
                                  1 << 20,
                                  INT64_MAX,
                                  INT64_MAX - 16,
                                  INT64_MIN,
                                  -1 - (INT64_C(7) << 56)};
    recipe p = new_recipe();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t offsets[N_CHUNKS] = {0, CHUNK_SIZE, bad[i], 3 * CHUNK_SIZE};
        cv_status status;
        set_plain_index(&p, offsets);
        cv_buffer frame = assemble(&p);
        check_refused(&frame, CATERVA_ECORRUPT, "chunk 2");
        assert_int_equal(item_of(&frame, 15, &status, NULL), 15); /* others are readable */
        assert_int_equal(status, CV_OK);
        cv_buffer_free(&frame);
    }
    /* The last possible position of a chunk does not contain a chunk header. */
    int64_t offsets[N_CHUNKS] = {0, CHUNK_SIZE, N_CHUNKS * CHUNK_SIZE - 32, 3 * CHUNK_SIZE};
    set_plain_index(&p, offsets);
    cv_buffer frame = assemble(&p);
    check_refused(&frame, CATERVA_EUNSUPPORTED, "chunk 2 at byte"); /* of version 32 */
    cv_buffer_free(&frame);
    free_recipe(&p);
}

static void a_chunk_may_not_reach_into_the_index(void **state)
{
    (void)state;
    recipe p = new_recipe();
    cv_store_le32(p.chunks.data + 3 * CHUNK_SIZE + 12, CHUNK_SIZE + 4);
    cv_buffer frame = assemble(&p);
    cv_status status;
    cv_error err;
    item_of(&frame, 35, &status, &err);
    assert_int_equal(status, CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "room for"));
    cv_buffer_free(&frame);
    free_recipe(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_made_by_hand_opens),
        cmocka_unit_test(chunks_in_any_order_with_holes),
        cmocka_unit_test(every_form_of_the_index),
        cmocka_unit_test(special_chunks_of_the_index),
        cmocka_unit_test(a_header_of_any_length),
        cmocka_unit_test(cut_frames_are_refused),
        cmocka_unit_test(disagreements_are_refused),
        cmocka_unit_test(a_frame_without_metalayer_is_its_items),
        cmocka_unit_test(a_frame_needs_room_for_a_trailer),
        cmocka_unit_test(only_floats_are_nan),
        cmocka_unit_test(an_index_has_an_end),
        cmocka_unit_test(offsets_out_of_range_are_refused),
        cmocka_unit_test(a_chunk_may_not_reach_into_the_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
