/* The layout area: a copy for remote reading writes what the chunks contain, no changed byte
 * of a footer is accepted, and changes of the array drop the area. */
#include "format/seal.h"

#include "base/heap.h"
#include "frame/layout.h"
#include "frame/lookup.h"
#include "made.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ITEMS = 40000, CHUNK = 8000, BLOCK = 1000 };

/* Five chunks: one of zeros, one of one item, one of noise that is stored uncompressed. */
static caterva_array *make_source(const pipeline *p)
{
    caterva_error err;
    const geometry g = made_line(ITEMS, CHUNK, BLOCK, sizeof(int32_t));
    caterva_array *array = made_array("mem:", &g, p, CATERVA_LAYOUT_CONTIGUOUS);
    CHECK_OK(made_write(array, CHUNK, 3 * CHUNK, 5, 3, &err), err);
    CHECK_OK(made_write(array, 3 * CHUNK, 4 * CHUNK, 7, 0, &err), err);
    CHECK_OK(made_write(array, 4 * CHUNK, 5 * CHUNK, 1, (int32_t)2654435761u, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    return array;
}

static caterva_array *copy_for_remote(caterva_array *source, const char *url)
{
    caterva_error err;
    caterva_array *copy;
    caterva_copy_options options = CATERVA_COPY_INIT;
    options.for_remote = 1;
    CHECK_OK(caterva_copy(source, url, &options, &copy, &err), err);
    return copy;
}

static cv_layout_area area_of(caterva_array *array)
{
    caterva_error err;
    cv_layout_area area;
    CHECK_OK(cv_layout_area_find(array->snapshot, array->frame->store, &area, &err), err);
    return area;
}

/* ---- What is in it --------------------------------------------------------- */

static void check_record(caterva_array *array, const cv_layout_area *area, int64_t record,
                         int64_t chunk)
{
    caterva_error err;
    cv_chunk_ref ref;
    cv_layout *layout;
    cv_record_parts parts;
    cv_store *store = array->frame->store;
    cv_snapshot *s = array->snapshot;
    uint8_t *bytes = check_alloc(area->record_size), *stored = check_alloc(area->record_size);
    uint64_t at = area->first + (uint64_t)record * area->record_size;
    CHECK_OK(cv_store_read(store, CV_FRAME_OBJECT, at, bytes, area->record_size, &err), err);
    CHECK_OK(cv_snapshot_find(s, store, chunk, &ref, &err), err);
    CHECK_OK(cv_layout_get(array->frame->layouts, s, &ref, &layout, &err), err);
    assert_true(cv_record_find_parts(bytes, area->record_size, s->grid.n_blocks, &parts));
    CHECK_OK(cv_store_read(store, ref.object, ref.pos, stored, parts.head_size, &err), err);
    CHECK_OK(cv_store_read(store, ref.object, ref.pos + (uint64_t)layout->header.cbytes,
                           stored + parts.head_size, parts.table_size, &err),
             err);
    assert_memory_equal(bytes, stored, parts.head_size + parts.table_size);
    for (size_t i = parts.head_size + parts.table_size; i < area->record_size; i++)
        assert_int_equal(bytes[i], 0);
    cv_layout_release(layout);
    free(bytes);
    free(stored);
}

static void each_stored_chunk_has_its_record(void **state)
{
    (void)state;
    caterva_array *source = make_source(&made_lz4), *copy = copy_for_remote(source, "mem:");
    cv_layout_area area = area_of(copy);
    assert_int_equal(area.n, 4);
    assert_int_equal(area.record_size, 48 + 8 * CHUNK / BLOCK);
    assert_int_equal(area.size, 8 + 4 * area.record_size + 28);
    assert_int_equal(area.pos + area.size, cv_layout_area_end(copy->snapshot));
    for (int64_t i = 0; i < 4; i++) check_record(copy, &area, i, i + 1);
    caterva_discard(copy);
    caterva_discard(source);
}

/* A dictionary comes before the blocks: such a head has no space. */
static void a_longer_head_is_left_out(void **state)
{
    (void)state;
    caterva_error err;
    uint8_t zeros[256] = {0}, *bytes;
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_array *source = make_source(&made_lz4), *copy;
    create.use_dict = options.for_remote = 1;
    create.codec = CATERVA_CODEC_ZSTD;
    create.level = 5;
    options.create = &create;
    CHECK_OK(caterva_copy(source, "mem:", &options, &copy, &err), err);
    cv_layout_area area = area_of(copy);
    assert_int_equal(area.n, 4);
    bytes = check_alloc(area.record_size);
    CHECK_OK(cv_store_read(copy->frame->store, CV_FRAME_OBJECT, area.first, bytes,
                           area.record_size, &err),
             err);
    assert_memory_equal(bytes, zeros, area.record_size);
    free(bytes);
    check_record(copy, &area, 2, 3);
    caterva_discard(copy);
    caterva_discard(source);
}

static void there_is_none_without_leave_or_room(void **state)
{
    (void)state;
    caterva_error err;
    caterva_array *source = make_source(&made_lz4), *copy;
    CHECK_OK(caterva_copy(source, "mem:", NULL, &copy, &err), err);
    assert_int_equal(area_of(copy).size, 0);
    caterva_discard(copy);
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_create_options create = CATERVA_CREATE_INIT;
    char path[SCRATCH_PATH];
    options.for_remote = 1;
    options.create = &create;
    create.layout = CATERVA_LAYOUT_SPARSE;
    assert_int_equal(caterva_copy(source, scratch_path(path, "d"), &options, NULL, &err),
                     CATERVA_EINVAL);
    caterva_discard(source);
}

static void small_and_empty_arrays_have_none(void **state)
{
    (void)state;
    caterva_error err;
    for (int64_t n = 0; n <= 100; n += 100) {
        const geometry g = made_line(n, 50, 10, sizeof(int32_t));
        caterva_array *array = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
        CHECK_OK(made_write(array, 0, n, 1, 1, &err), err);
        CHECK_OK(caterva_commit(array, &err), err);
        caterva_array *copy = copy_for_remote(array, "mem:");
        assert_int_equal(area_of(copy).size, 0);
        caterva_discard(copy);
        caterva_discard(array);
    }
}

/* ---- What is believed ------------------------------------------------------ */

static void no_changed_footer_is_taken(void **state)
{
    (void)state;
    uint8_t bytes[CV_LAYOUTS_FOOTER];
    const cv_layouts_footer footer = {.n = 77, .record_size = 112, .names = 0x12345678};
    cv_layouts_footer back;
    cv_layouts_footer_write(&footer, bytes);
    assert_true(cv_layouts_footer_read(bytes, &back));
    assert_int_equal(back.n, 77);
    assert_int_equal(back.record_size, 112);
    assert_int_equal(back.names, 0x12345678);
    assert_int_equal(cv_layouts_size(&back), 8 + 77 * 112 + 28);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(cv_layouts_footer_read(bytes, &back));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void a_footer_says_what_can_be(void **state)
{
    (void)state;
    uint8_t bytes[CV_LAYOUTS_FOOTER];
    const cv_layouts_footer bad[] = {
        {0, 112, 1}, {-1, 112, 1}, {INT64_C(1) << 40, 112, 1}, {1, 0, 1}, {1, UINT32_MAX, 1}};
    for (int i = 0; i < MADE_COUNT(bad); i++) {
        cv_layouts_footer back;
        cv_layouts_footer_write(&bad[i], bytes);
        assert_false(cv_layouts_footer_read(bytes, &back));
    }
    assert_int_equal(cv_layouts_record_size(8), 112);
    assert_int_equal(cv_layouts_record_size(1 << 20), 0);
}

/* No record with a changed bit is accepted. */
static void no_changed_record_is_taken(void **state)
{
    (void)state;
    caterva_error err;
    caterva_array *source = make_source(&made_lz4), *copy = copy_for_remote(source, "mem:");
    cv_store *store = copy->frame->store;
    cv_layout_area area = area_of(copy);
    uint8_t *bytes = check_alloc(area.record_size);
    for (int64_t i = 0; i < area.n; i++) {
        cv_chunk_ref ref;
        cv_record_parts parts;
        CHECK_OK(cv_snapshot_find(copy->snapshot, store, i + 1, &ref, &err), err);
        uint64_t at = area.first + (uint64_t)i * area.record_size;
        CHECK_OK(cv_store_read(store, CV_FRAME_OBJECT, at, bytes, area.record_size, &err),
                 err);
        cv_layout *layout =
            cv_layout_of_record(store, copy->snapshot, area.record_size, &ref, bytes);
        assert_non_null(layout);
        cv_layout_release(layout);
        assert_true(cv_record_find_parts(bytes, area.record_size, CHUNK / BLOCK, &parts));
        for (size_t bit = 0; bit < 8 * (parts.head_size + parts.table_size); bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_null(
                cv_layout_of_record(store, copy->snapshot, area.record_size, &ref, bytes));
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    free(bytes);
    caterva_discard(copy);
    caterva_discard(source);
}

/* ---- What becomes of it ---------------------------------------------------- */

static caterva_array *reopen(const char *path, caterva_mode mode)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = mode;
    CHECK_OK(caterva_open(path, &options, &array, &err), err);
    return array;
}

static void closing_keeps_it(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *source = make_source(&made_lz4);
    caterva_array *copy = copy_for_remote(source, scratch_path(path, "kept"));
    CHECK_OK(caterva_close(copy, &err), err);
    copy = reopen(path, CATERVA_MODE_WRITE);
    assert_int_equal(made_item(copy, CHUNK), 5);
    CHECK_OK(caterva_close(copy, &err), err);
    copy = reopen(path, CATERVA_MODE_READ);
    assert_int_equal(area_of(copy).n, 4);
    caterva_discard(copy);
    caterva_discard(source);
}

static void a_change_of_chunks_leaves_it_behind(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *source = make_source(&made_lz4);
    caterva_array *copy = copy_for_remote(source, scratch_path(path, "changed"));
    CHECK_OK(caterva_close(copy, &err), err);
    for (int32_t round = 0; round < 4; round++) {
        copy = reopen(path, CATERVA_MODE_WRITE);
        CHECK_OK(made_write(copy, 2 * CHUNK, 2 * CHUNK + 9, round, 1, &err), err);
        CHECK_OK(caterva_commit(copy, &err), err);
        assert_int_equal(area_of(copy).size, 0);
        CHECK_OK(caterva_close(copy, &err), err);
        copy = reopen(path, CATERVA_MODE_READ);
        assert_int_equal(area_of(copy).size, 0);
        assert_int_equal(made_item(copy, 2 * CHUNK + 1), round + 1);
        assert_int_equal(made_item(copy, 4 * CHUNK), 1);
        caterva_discard(copy);
    }
    caterva_discard(source);
}

/* As many records as before, each of the chunk as it is now. */
static void check_all(caterva_array *array)
{
    const cv_layout_area area = area_of(array);
    assert_int_equal(area.n, 4);
    for (int64_t i = 0; i < area.n; i++) check_record(array, &area, i, i + 1);
}

static void compacting_keeps_it(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *source = make_source(&made_lz4);
    caterva_array *copy = copy_for_remote(source, scratch_path(path, "compact"));
    CHECK_OK(caterva_close(copy, &err), err);
    CHECK_OK(caterva_compact(path, NULL, &err), err);
    copy = reopen(path, CATERVA_MODE_READ);
    check_all(copy);
    caterva_discard(copy);
    copy = reopen(path, CATERVA_MODE_WRITE); /* after a change the area is not kept */
    CHECK_OK(made_write(copy, 2 * CHUNK, 2 * CHUNK + 9, 1, 1, &err), err);
    CHECK_OK(caterva_close(copy, &err), err);
    CHECK_OK(caterva_compact(path, NULL, &err), err);
    copy = reopen(path, CATERVA_MODE_READ);
    assert_int_equal(area_of(copy).size, 0);
    assert_int_equal(made_item(copy, 4 * CHUNK), 1);
    caterva_discard(copy);
    caterva_discard(source);
}

static caterva_array *open_frame_of(caterva_array *array)
{
    caterva_error err;
    caterva_array *out;
    void *frame;
    size_t size;
    CHECK_OK(caterva_frame_copy(array, &frame, &size, &err), err);
    CHECK_OK(caterva_frame_open(frame, size, 1, NULL, &out, &err), err);
    caterva_free(frame);
    return out;
}

/* Also with uncommitted changes: the frame contains them. */
static void frames_in_memory_have_it(void **state)
{
    (void)state;
    caterva_error err;
    caterva_array *source = make_source(&made_lz4), *frame = open_frame_of(source);
    assert_int_equal(area_of(frame).size, 0);
    caterva_discard(frame);
    caterva_array *copy = copy_for_remote(source, "mem:");
    frame = open_frame_of(copy);
    check_all(frame);
    caterva_discard(frame);
    CHECK_OK(made_write(copy, 2 * CHUNK, 2 * CHUNK + 9, 77, 1, &err), err);
    frame = open_frame_of(copy);
    check_all(frame);
    assert_int_equal(made_item(frame, 2 * CHUNK + 1), 78);
    caterva_discard(frame);
    caterva_discard(copy);
    caterva_discard(source);
}

static cv_layout_area area_of_copy(caterva_array *source, const caterva_copy_options *options)
{
    caterva_error err;
    caterva_array *copy;
    CHECK_OK(caterva_copy(source, "mem:", options, &copy, &err), err);
    const cv_layout_area area = area_of(copy);
    if (area.size > 0 && area.n == 4) check_all(copy);
    caterva_discard(copy);
    return area;
}

/* Copies have the area if their source has it, unless options say otherwise. */
static void copies_have_it(void **state)
{
    (void)state;
    const int64_t stop[1] = {3 * CHUNK};
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_array *source = make_source(&made_lz4), *copy = copy_for_remote(source, "mem:");
    assert_int_equal(area_of_copy(source, NULL).size, 0);
    assert_int_equal(area_of_copy(copy, NULL).n, 4);
    options.stop = stop;
    assert_int_equal(area_of_copy(copy, &options).n, 2);
    options.stop = NULL;
    options.for_remote = -1;
    assert_int_equal(area_of_copy(copy, &options).size, 0);
    caterva_discard(copy);
    caterva_discard(source);
}

static void copies_of_views_have_it(void **state)
{
    (void)state;
    caterva_error err;
    caterva_view *view;
    caterva_array *source = make_source(&made_lz4), *copy = copy_for_remote(source, "mem:");
    caterva_array *out;
    CHECK_OK(caterva_view_of(copy, &view, &err), err);
    CHECK_OK(caterva_view_copy(view, "mem:", NULL, &out, &err), err);
    check_all(out);
    caterva_discard(out);
    caterva_view_free(view);
    caterva_discard(copy);
    caterva_discard(source);
}

/* A directory has no area; copying into one is no error. */
static void directories_have_none(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_array *source = make_source(&made_lz4), *copy = copy_for_remote(source, "mem:");
    caterva_array *sparse;
    create.layout = CATERVA_LAYOUT_SPARSE;
    options.create = &create;
    CHECK_OK(caterva_copy(copy, scratch_path(path, "sparse"), &options, &sparse, &err), err);
    assert_int_equal(made_item(sparse, 4 * CHUNK), 1);
    assert_int_equal(area_of(sparse).size, 0);
    caterva_discard(sparse);
    caterva_discard(copy);
    caterva_discard(source);
}

static void it_is_not_dead_space(void **state)
{
    (void)state;
    caterva_error err;
    caterva_space space = CATERVA_SPACE_INIT;
    caterva_array *source = make_source(&made_lz4), *copy = copy_for_remote(source, "mem:");
    CHECK_OK(caterva_measure(copy, &space, &err), err);
    assert_int_equal(space.dead_bytes, 0);
    caterva_discard(copy);
    caterva_discard(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stored_chunk_has_its_record),
        cmocka_unit_test(a_longer_head_is_left_out),
        cmocka_unit_test(there_is_none_without_leave_or_room),
        cmocka_unit_test(small_and_empty_arrays_have_none),
        cmocka_unit_test(no_changed_footer_is_taken),
        cmocka_unit_test(a_footer_says_what_can_be),
        cmocka_unit_test(no_changed_record_is_taken),
        cmocka_unit_test(closing_keeps_it),
        cmocka_unit_test(a_change_of_chunks_leaves_it_behind),
        cmocka_unit_test(compacting_keeps_it),
        cmocka_unit_test(frames_in_memory_have_it),
        cmocka_unit_test(copies_have_it),
        cmocka_unit_test(copies_of_views_have_it),
        cmocka_unit_test(directories_have_none),
        cmocka_unit_test(it_is_not_dead_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
