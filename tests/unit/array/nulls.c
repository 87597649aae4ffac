/* Passes NULL for each pointer parameter of each function: it is refused with a message, or
 * accepted if the header says so. Fails if a function of the header is missing here; those of
 * trees, jobs and values are in nulls_many.c. */
#include "nulls.h"
#include <caterva_remote.h>
#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <caterva_value.h>

static void names_and_types(void **state)
{
    (void)state;
    caterva_dtype *type;
    SAYS(caterva_codec_number(NULL), -1);
    SAYS(caterva_filter_number(NULL), -1);
    REFUSED(caterva_dtype_parse(NULL, &type, &err));
    REFUSED(caterva_dtype_parse("<i4", NULL, &err));
    QUIET(caterva_dtype_free(NULL));
    int32_t block[1];
    int32_t chunk[1];
    REFUSED(caterva_partition_choose(1, NULL, 4, NULL, NULL, chunk, block, &err));
    REFUSED(caterva_partition_choose(1, shape, 4, NULL, NULL, NULL, block, &err));
    REFUSED(caterva_partition_choose(1, shape, 4, NULL, NULL, chunk, NULL, &err));
    TAKEN(caterva_partition_choose(1, shape, 4, NULL, NULL, chunk, block, &err));
    TAKEN(caterva_partition_choose(0, NULL, 4, NULL, NULL, NULL, NULL, &err));
}

static void opening(void **state)
{
    (void)state;
    caterva_array *out;
    void *frame;
    size_t size;
    caterva_create_options incomplete = create_options;
    REFUSED(caterva_create(NULL, &create_options, &out, &err));
    REFUSED(caterva_create("mem:", NULL, &out, &err));
    REFUSED(caterva_create("mem:", &create_options, NULL, &err));
    incomplete.shape = NULL;
    REFUSED(caterva_create("mem:", &incomplete, &out, &err));
    REFUSED(caterva_create_from_memory(NULL, &create_options, items, 40, &out, &err));
    REFUSED(caterva_create_from_memory("mem:", NULL, items, 40, &out, &err));
    REFUSED(caterva_create_from_memory("mem:", &create_options, NULL, 40, &out, &err));
    REFUSED(caterva_create_from_memory("mem:", &create_options, items, 40, NULL, &err));
    REFUSED(caterva_open(NULL, NULL, &out, &err));
    REFUSED(caterva_open("x", NULL, NULL, &err));
    REFUSED(caterva_frame_open(NULL, 10, 1, NULL, &out, &err));
    REFUSED(caterva_frame_open("x", 1, 1, NULL, NULL, &err));
    REFUSED(caterva_commit(NULL, &err));
    REFUSED(caterva_rollback(NULL, &err));
    TAKEN(caterva_close(NULL, &err));
    QUIET(caterva_discard(NULL));
    REFUSED(caterva_refresh(NULL, &err));
    REFUSED(caterva_compact(NULL, NULL, &err));
    REFUSED(caterva_seal(NULL, NULL, &err));
    REFUSED(caterva_publish(NULL, "s3://bucket/key", NULL, NULL, &err));
    REFUSED(caterva_publish("x", NULL, NULL, NULL, &err));
    REFUSED(caterva_frame_copy(NULL, &frame, &size, &err));
    REFUSED(caterva_frame_copy(array, NULL, &size, &err));
    REFUSED(caterva_frame_copy(array, &frame, NULL, &err));
    REFUSED(caterva_frame_pieces(NULL, NULL, NULL, &err));
    REFUSED(caterva_frame_pieces(array, NULL, NULL, &err));
    REFUSED(caterva_frame_append(NULL, "x", CATERVA_DURABILITY_NONE, NULL, &err));
    REFUSED(caterva_frame_append(array, NULL, CATERVA_DURABILITY_NONE, NULL, &err));
    REFUSED(caterva_delete(NULL, NULL, &err));
    REFUSED(caterva_set_allocator(NULL, &err));
    caterva_store store = CATERVA_STORE_INIT; /* without functions */
    REFUSED(caterva_store_open(NULL, NULL, &out, &err));
    REFUSED(caterva_store_open(&store, NULL, &out, &err));
    REFUSED(caterva_store_open(&store, NULL, NULL, &err));
    REFUSED(caterva_store_create(NULL, &create_options, &out, &err));
    REFUSED(caterva_store_create(&store, NULL, &out, &err));
    REFUSED(caterva_store_create(&store, &create_options, NULL, &err));
    QUIET(caterva_free(NULL));
}

static void describing(void **state)
{
    (void)state;
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    caterva_block_info block = CATERVA_BLOCK_INFO_INIT;
    caterva_chunk_iter chunk_iter = CATERVA_CHUNK_ITER_INIT;
    caterva_space space = CATERVA_SPACE_INIT;
    caterva_cache_info counts = CATERVA_CACHE_INFO_INIT;
    const caterva_info *info;
    REFUSED(caterva_info_get(NULL, &info, &err));
    REFUSED(caterva_info_get(array, NULL, &err));
    QUIET(caterva_info_release(NULL));
    REFUSED(caterva_chunk_describe(NULL, 0, &chunk, &err));
    REFUSED(caterva_chunk_describe(array, 0, NULL, &err));
    REFUSED(caterva_block_describe(NULL, 0, 0, &block, &err));
    REFUSED(caterva_block_describe(array, 0, 0, NULL, &err));
    REFUSED(caterva_chunk_next(NULL, &chunk_iter, &err));
    REFUSED(caterva_chunk_next(array, NULL, &err));
    caterva_transfers transfers = CATERVA_TRANSFERS_INIT;
    REFUSED(caterva_transfers_get(NULL, &transfers, &err));
    REFUSED(caterva_transfers_get(array, NULL, &err));
    REFUSED(caterva_measure(NULL, &space, &err));
    REFUSED(caterva_measure(array, NULL, &err));
    TAKEN(caterva_cache_set_limit(64 << 20, NULL));
    TAKEN(caterva_cache_describe(NULL, &counts, &err));
    REFUSED(caterva_cache_describe(array, NULL, &err));
    REFUSED(caterva_cache_describe(NULL, NULL, &err));
}

static void boxes(void **state)
{
    (void)state;
    size_t size = sizeof items;
    caterva_skip_options skip = CATERVA_SKIP_INIT;
    REFUSED(caterva_read(NULL, origin, shape, items, size, &err));
    REFUSED(caterva_read(array, NULL, shape, items, size, &err));
    REFUSED(caterva_read(array, origin, NULL, items, size, &err));
    REFUSED(caterva_read(array, origin, shape, NULL, size, &err));
    REFUSED(caterva_read_skipping(NULL, BOX(origin, shape), PLAIN(items, size), &skip, &err));
    REFUSED(caterva_read_skipping(array, BOX(origin, shape), PLAIN(items, size), NULL, &err));
    REFUSED(
        caterva_read_skipping(array, BOX(origin, shape), PLAIN(items, size), &skip, &err));
    caterva_async_options async = CATERVA_ASYNC_INIT;
    caterva_request *request;
    REFUSED(caterva_read_async(NULL, NULL, PLAIN(items, size), &async, &request, &err));
    REFUSED(caterva_read_async(array, NULL, NULL, &async, &request, &err));
    REFUSED(caterva_read_async(array, NULL, PLAIN(items, size), &async, NULL, &err));
    REFUSED(caterva_read_async(array, NULL, PLAIN(items, size), NULL, NULL, &err));
    TAKEN(caterva_read_async(array, NULL, PLAIN(items, size), NULL, &request, &err));
    TAKEN(caterva_request_wait(request, NULL));
    REFUSED(caterva_request_wait(NULL, &err));
    QUIET(caterva_request_release(request));
    QUIET(caterva_request_cancel(NULL));
    QUIET(caterva_request_release(NULL));
    REFUSED(caterva_prefetch(NULL, origin, shape, &err));
    REFUSED(caterva_prefetch(array, NULL, shape, &err));
    REFUSED(caterva_prefetch(array, origin, NULL, &err));
    REFUSED(caterva_write(NULL, origin, shape, items, size, &err));
    REFUSED(caterva_write(array, NULL, shape, items, size, &err));
    REFUSED(caterva_write(array, origin, NULL, items, size, &err));
    REFUSED(caterva_write(array, origin, shape, NULL, size, &err));
    REFUSED(caterva_chunk_read_stored(NULL, 0, items, size, &size, &err));
    REFUSED(caterva_chunk_read_stored(array, 0, items, size, NULL, &err));
    TAKEN(caterva_chunk_read_stored(array, 0, NULL, 0, &size, &err));
    REFUSED(caterva_chunk_write_stored(NULL, 0, items, 32, &err));
    REFUSED(caterva_chunk_write_stored(array, 0, NULL, 32, &err));
    REFUSED(caterva_chunk_write_undecoded(NULL, 0, items, 32, &err));
    REFUSED(caterva_chunk_write_undecoded(array, 0, NULL, 32, &err));
    void *bytes;
    char *text;
    REFUSED(caterva_zarr_chunk(NULL, origin, &bytes, &size, &err));
    REFUSED(caterva_zarr_chunk(array, origin, NULL, &size, &err));
    REFUSED(caterva_zarr_chunk(array, origin, &bytes, NULL, &err));
    REFUSED(caterva_zarr_metadata(NULL, &text, &size, &err));
    REFUSED(caterva_zarr_metadata(array, NULL, &size, &err));
    REFUSED(caterva_zarr_metadata(array, &text, NULL, &err));
    REFUSED(caterva_resize(NULL, shape, &err));
    REFUSED(caterva_resize(array, NULL, &err));
    REFUSED(caterva_append(NULL, 0, 1, PLAIN(items, 4), &err));
    REFUSED(caterva_append(array, 0, 1, NULL, &err));
    REFUSED(caterva_insert(NULL, 0, 0, 1, PLAIN(items, 4), &err));
    REFUSED(caterva_remove(NULL, 0, 0, 1, &err));
    TAKEN(caterva_insert(array, 0, 0, 1, NULL, &err));
    TAKEN(caterva_remove(array, 0, 0, 1, &err));
    TAKEN(caterva_rollback(array, &err));
}

static void selections(void **state)
{
    (void)state;
    int64_t lengths[CATERVA_MAX_DIMS];
    int ndim;
    caterva_selection axes = CATERVA_SELECTION_INIT, points = CATERVA_SELECTION_INIT;
    caterva_selection mask = CATERVA_SELECTION_INIT, list = CATERVA_SELECTION_INIT;
    const caterva_axis no_list = {.kind = CATERVA_AXIS_LIST, .n = 1};
    const caterva_axis no_mask = {.kind = CATERVA_AXIS_MASK, .n = N};
    caterva_buffer nowhere = buffer;
    axes.kind = CATERVA_SELECTION_AXES;
    axes.n_axes = 1;
    points.kind = CATERVA_SELECTION_POINTS;
    points.n_points = 1;
    mask.kind = CATERVA_SELECTION_MASK;
    mask.mask_size = N;
    list = axes;
    list.axes = &no_list;
    nowhere.data = NULL;
    REFUSED(caterva_selection_shape(NULL, NULL, &ndim, lengths, &err));
    REFUSED(caterva_selection_shape(array, NULL, &ndim, NULL, &err));
    REFUSED(caterva_selection_shape(array, NULL, NULL, lengths, &err));
    TAKEN(caterva_selection_shape(array, NULL, &ndim, lengths, &err));
    REFUSED(caterva_selection_shape(array, &axes, &ndim, lengths, &err));
    REFUSED(caterva_selection_shape(array, &points, &ndim, lengths, &err));
    REFUSED(caterva_selection_shape(array, &mask, &ndim, lengths, &err));
    REFUSED(caterva_selection_shape(array, &list, &ndim, lengths, &err));
    list.axes = &no_mask;
    REFUSED(caterva_selection_shape(array, &list, &ndim, lengths, &err));
    REFUSED(caterva_read_selection(NULL, NULL, &buffer, &err));
    REFUSED(caterva_read_selection(array, NULL, NULL, &err));
    REFUSED(caterva_read_selection(array, NULL, &nowhere, &err));
    REFUSED(caterva_read_selection(array, &axes, &buffer, &err));
    TAKEN(caterva_read_selection(array, NULL, &buffer, &err));
    REFUSED(caterva_write_selection(NULL, NULL, &buffer, &err));
    REFUSED(caterva_write_selection(array, NULL, NULL, &err));
    REFUSED(caterva_write_selection(array, NULL, &nowhere, &err));
    TAKEN(caterva_write_selection(array, NULL, &buffer, &err));
}

static void views(void **state)
{
    (void)state;
    caterva_view *out;
    const caterva_view *none[1] = {NULL};
    static const double range[2] = {0, 1};
    caterva_stats stats = CATERVA_STATS_INIT;
    int64_t counts[2], sum;
    REFUSED(caterva_view_statistics(NULL, NULL, &stats, &err));
    REFUSED(caterva_view_statistics(view, NULL, NULL, &err));
    REFUSED(caterva_view_histogram(NULL, range, 2, NULL, counts, &err));
    REFUSED(caterva_view_histogram(view, NULL, 2, NULL, counts, &err));
    REFUSED(caterva_view_histogram(view, range, 2, NULL, NULL, &err));
    REFUSED(caterva_view_reduce(NULL, CATERVA_REDUCTION_SUM, NULL, &sum, 8, &err));
    REFUSED(caterva_view_reduce(view, CATERVA_REDUCTION_SUM, NULL, NULL, 8, &err));
    REFUSED(caterva_view_of(NULL, &out, &err));
    REFUSED(caterva_view_of(array, NULL, &err));
    QUIET(caterva_view_free(NULL));
    REFUSED(caterva_view_select(NULL, NULL, 0, &out, &err));
    REFUSED(caterva_view_select(view, NULL, 1, &out, &err));
    REFUSED(caterva_view_select(view, NULL, 0, NULL, &err));
    REFUSED(caterva_view_transpose(NULL, NULL, &out, &err));
    REFUSED(caterva_view_transpose(view, NULL, NULL, &err));
    REFUSED(caterva_view_expand(NULL, 0, &out, &err));
    REFUSED(caterva_view_expand(view, 0, NULL, &err));
    REFUSED(caterva_view_squeeze(NULL, 0, &out, &err));
    REFUSED(caterva_view_squeeze(view, 0, NULL, &err));
    REFUSED(caterva_view_concat(NULL, 1, 0, &out, &err));
    REFUSED(caterva_view_concat(none, 1, 0, &out, &err));
    REFUSED(caterva_view_concat((const caterva_view *const *)&view, 1, 0, NULL, &err));
    REFUSED(caterva_view_stack(NULL, 1, 0, &out, &err));
    REFUSED(caterva_view_stack(none, 1, 0, &out, &err));
    REFUSED(caterva_view_stack((const caterva_view *const *)&view, 1, 0, NULL, &err));
    SAYS(caterva_view_ndim(NULL), 0);
    SAYS(caterva_view_shape(NULL), NULL);
    REFUSED(caterva_view_read(NULL, NULL, &buffer, &err));
    REFUSED(caterva_view_read(view, NULL, NULL, &err));
    TAKEN(caterva_view_read(view, NULL, &buffer, &err));
    caterva_async_options async = CATERVA_ASYNC_INIT;
    caterva_request *request;
    REFUSED(caterva_view_read_async(NULL, NULL, &buffer, &async, &request, &err));
    REFUSED(caterva_view_read_async(view, NULL, NULL, &async, &request, &err));
    REFUSED(caterva_view_read_async(view, NULL, &buffer, &async, NULL, &err));
    REFUSED(caterva_view_read_async(view, NULL, &buffer, NULL, NULL, &err));
    TAKEN(caterva_view_read_async(view, NULL, &buffer, NULL, &request, &err));
    TAKEN(caterva_request_wait(request, NULL));
    QUIET(caterva_request_release(request));
    REFUSED(caterva_view_write(NULL, NULL, &buffer, &err));
    REFUSED(caterva_view_write(view, NULL, NULL, &err));
    TAKEN(caterva_view_write(view, NULL, &buffer, &err));
    REFUSED(caterva_view_copy(NULL, "mem:", NULL, NULL, &err));
    REFUSED(caterva_view_copy(view, NULL, NULL, NULL, &err));
    TAKEN(caterva_view_copy(view, "mem:", NULL, NULL, &err));
}

static void numbers_and_copies(void **state)
{
    (void)state;
    caterva_stats stats = CATERVA_STATS_INIT;
    const double range[2] = {0, 1};
    int64_t counts[2];
    caterva_verify_result verified = CATERVA_VERIFY_RESULT_INIT;
    caterva_repair_result repaired = CATERVA_REPAIR_RESULT_INIT;
    REFUSED(caterva_statistics(NULL, NULL, &stats, &err));
    REFUSED(caterva_statistics(array, NULL, NULL, &err));
    REFUSED(caterva_histogram(NULL, range, 2, NULL, counts, &err));
    REFUSED(caterva_histogram(array, NULL, 2, NULL, counts, &err));
    REFUSED(caterva_histogram(array, range, 2, NULL, NULL, &err));
    REFUSED(caterva_reduce(NULL, CATERVA_REDUCTION_SUM, NULL, counts, 8, &err));
    REFUSED(caterva_reduce(array, CATERVA_REDUCTION_SUM, NULL, NULL, 8, &err));
    REFUSED(caterva_copy(NULL, "mem:", NULL, NULL, &err));
    REFUSED(caterva_copy(array, NULL, NULL, NULL, &err));
    TAKEN(caterva_copy(array, "mem:", NULL, NULL, &err));
    REFUSED(caterva_verify(NULL, NULL, &verified, &err));
    REFUSED(caterva_verify(array, NULL, NULL, &err));
    caterva_buffer numbers = CATERVA_BUFFER_INIT;
    numbers.data = counts, numbers.size = sizeof counts, numbers.dtype = "<i8";
    REFUSED(caterva_buffer_convert(NULL, 2, &numbers, NULL, &err));
    REFUSED(caterva_buffer_convert(&numbers, 2, NULL, NULL, &err));
    numbers.dtype = NULL;
    REFUSED(caterva_buffer_convert(&numbers, 2, &numbers, NULL, &err));
    REFUSED(caterva_repair(NULL, NULL, &repaired, &err));
    REFUSED(caterva_repair("x", NULL, NULL, &err));
}

static void attributes(void **state)
{
    (void)state;
    void *value;
    size_t size;
    REFUSED(caterva_attr_get(NULL, "name", &value, &size, &err));
    REFUSED(caterva_attr_get(array, NULL, &value, &size, &err));
    REFUSED(caterva_attr_get(array, "name", NULL, &size, &err));
    REFUSED(caterva_attr_get(array, "name", &value, NULL, &err));
    int64_t length;
    REFUSED(caterva_attr_read(NULL, "name", 0, &size, 1, &length, &err));
    REFUSED(caterva_attr_read(array, NULL, 0, &size, 1, &length, &err));
    REFUSED(caterva_attr_read(array, "name", 0, &size, 1, NULL, &err));
    TAKEN(caterva_attr_read(array, "name", 0, NULL, 0, &length, &err));
    REFUSED(caterva_attr_set(NULL, "name", "x", 1, &err));
    REFUSED(caterva_attr_set(array, NULL, "x", 1, &err));
    REFUSED(caterva_attr_set(array, "name", NULL, 1, &err));
    REFUSED(caterva_attr_delete(NULL, "name", &err));
    REFUSED(caterva_attr_delete(array, NULL, &err));
    SAYS(caterva_info_metalayer(NULL, "b2nd"), NULL);
    SAYS(caterva_has_pending(NULL), 0);
    SAYS(caterva_info_metalayer(info_of(array), NULL), NULL);
    REFUSED(caterva_metalayer_update(NULL, "x", "y", 1, &err));
    REFUSED(caterva_metalayer_update(array, NULL, "y", 1, &err));
    REFUSED(caterva_metalayer_update(array, "x", NULL, 1, &err));
}

static bool is_mine(const char *name) { return !is_of_many(name); }

static void no_function_is_left_out(void **state)
{
    (void)state;
    check_none_is_left_out(is_mine, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_types),
        cmocka_unit_test(opening),
        cmocka_unit_test(describing),
        cmocka_unit_test(boxes),
        cmocka_unit_test(selections),
        cmocka_unit_test(views),
        cmocka_unit_test(numbers_and_copies),
        cmocka_unit_test(attributes),
        cmocka_unit_test(no_function_is_left_out),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
