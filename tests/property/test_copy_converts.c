/* Copies of arrays, boxes and joins in another dtype: the items are those that a read in that
 * dtype gives, the fill is converted with them, and a forbidden cast makes no array.
 *
 * usage: test_copy_converts [COPIES [SEED]] */
#include "support/check.h"
#include "support/info.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"

#include <caterva_upkeep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const targets[] = {"<f8", ">i8", "<f4", "<i2", "<c16", "|b1"};
static const size_t target_sizes[] = {8, 8, 4, 2, 16, 1};
enum { N_TARGETS = 6, FILL = 77 };

static caterva_array *make_array(rng *r, geometry *g)
{
    const uint8_t fill[] = {FILL, 0, 0, 0}; /* little-endian */
    pipeline p = {
        .codec = CATERVA_CODEC_LZ4, .level = 5, .filters = {CATERVA_FILTER_SHUFFLE}};
    caterva_create_options options = options_for(g, &p);
    caterva_error err;
    caterva_array *array;
    options.item_size = 0;
    options.dtype = "<i4";
    options.fill = CATERVA_FILL_VALUE;
    options.fill_value = fill;
    CHECK_OK(caterva_create("mem:", &options, &array, &err), err);
    box part = random_box(r, g);
    size_t size = box_size(&part, g);
    uint8_t *bytes = check_alloc(size + 1);
    rng_fill(r, bytes, size);
    CHECK_OK(caterva_write(array, part.start, part.stop, bytes, size, &err), err);
    free(bytes);
    return array;
}

/* Reads the whole view in a dtype. */
static uint8_t *read_as(const caterva_view *view, const char *dtype, size_t item,
                        size_t *size)
{
    caterva_error err;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    *size = item;
    for (int d = 0; d < caterva_view_ndim(view); d++)
        *size *= (size_t)caterva_view_shape(view)[d];
    buffer.data = check_alloc(*size + 1);
    buffer.size = *size;
    buffer.dtype = dtype;
    buffer.casting = CATERVA_CASTING_UNSAFE;
    CHECK_OK(caterva_view_read(view, NULL, &buffer, &err), err);
    return buffer.data;
}

static void check_copy(const caterva_view *view, caterva_array *copy, int target)
{
    size_t size, got_size;
    caterva_error err;
    caterva_view *whole;
    uint8_t *expected = read_as(view, targets[target], target_sizes[target], &size);
    CHECK(strcmp(info_of(copy)->dtype, targets[target]) == 0, "%s, not %s",
          info_of(copy)->dtype, targets[target]);
    CHECK_OK(caterva_view_of(copy, &whole, &err), err);
    uint8_t *got = read_as(whole, NULL, target_sizes[target], &got_size);
    CHECK(got_size == size && memcmp(got, expected, size) == 0, "items in %s differ",
          targets[target]);
    caterva_view_free(whole);
    free(got);
    free(expected);
}

/* New cells hold the source's fill, converted. */
static void check_fill(caterva_array *copy, int target)
{
    caterva_error err;
    caterva_selection one = CATERVA_SELECTION_INIT;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    const caterva_info *info = info_of(copy);
    int64_t shape[CATERVA_MAX_DIMS], last[CATERVA_MAX_DIMS];
    double value = 0;
    if (info->ndim == 0) return;
    for (int d = 0; d < info->ndim; d++) {
        shape[d] = info->shape[d] + 3;
        last[d] = shape[d] - 1;
    }
    CHECK_OK(caterva_resize(copy, shape, &err), err);
    one.kind = CATERVA_SELECTION_POINTS;
    one.points = last;
    one.n_points = 1;
    buffer.data = &value;
    buffer.size = sizeof value;
    buffer.dtype = "float64";
    buffer.casting = CATERVA_CASTING_UNSAFE;
    CHECK_OK(caterva_read_selection(copy, &one, &buffer, &err), err);
    double expected = strcmp(targets[target], "|b1") == 0 ? 1 : FILL;
    CHECK(value == expected, "the fill is %g, not %g", value, expected);
}

static void check_refusals(caterva_array *array)
{
    caterva_error err;
    caterva_array *copy = NULL;
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_create_options create = CATERVA_CREATE_INIT;
    options.convert_to = "<i2";
    options.casting = CATERVA_CASTING_SAFE;
    CHECK(caterva_copy(array, "mem:", &options, &copy, &err) == CATERVA_ECAST && !copy,
          "<i4 to <i2 was a safe cast");
    options.convert_to = "|S4";
    CHECK(caterva_copy(array, "mem:", &options, &copy, &err) == CATERVA_EDTYPE && !copy,
          "numbers became text");
    options.convert_to = "<f8";
    options.create = &create;
    create.dtype = "<f8";
    CHECK(caterva_copy(array, "mem:", &options, &copy, &err) == CATERVA_EINVAL && !copy,
          "two dtypes at once");
}

static void copy_box(rng *r, const geometry *g, caterva_array *array)
{
    caterva_error err;
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_view *whole, *part;
    caterva_axis axes[CATERVA_MAX_DIMS];
    caterva_array *copy;
    box b = random_box(r, g);
    int target = rng_int(r, 0, N_TARGETS - 1);
    for (int d = 0; d < g->ndim; d++)
        axes[d] = (caterva_axis){
            .kind = CATERVA_AXIS_SLICE, .start = b.start[d], .stop = b.stop[d]};
    CHECK_OK(caterva_view_of(array, &whole, &err), err);
    CHECK_OK(caterva_view_select(whole, axes, g->ndim, &part, &err), err);
    options.start = b.start;
    options.stop = b.stop;
    options.convert_to = targets[target];
    options.casting = CATERVA_CASTING_UNSAFE;
    CHECK_OK(caterva_copy(array, "mem:", &options, &copy, &err), err);
    check_copy(part, copy, target);
    check_fill(copy, target);
    caterva_discard(copy);
    caterva_view_free(part);
    caterva_view_free(whole);
}

static void copy_join(rng *r, const geometry *g, caterva_array *array)
{
    caterva_error err;
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_view *whole, *joined;
    caterva_array *copy;
    int target = rng_int(r, 0, N_TARGETS - 1);
    if (g->ndim == 0) return;
    CHECK_OK(caterva_view_of(array, &whole, &err), err);
    const caterva_view *twice[] = {whole, whole};
    CHECK_OK(caterva_view_concat(twice, 2, rng_int(r, 0, g->ndim - 1), &joined, &err), err);
    options.convert_to = targets[target];
    options.casting = CATERVA_CASTING_UNSAFE;
    CHECK_OK(caterva_view_copy(joined, "mem:", &options, &copy, &err), err);
    check_copy(joined, copy, target);
    caterva_discard(copy);
    caterva_view_free(joined);
    caterva_view_free(whole);
}

int main(int argc, char **argv)
{
    int copies = (int)number_argument(argc, argv, 1, 150);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    for (int i = 0; i < copies; i++) {
        geometry g = random_geometry(&r, 4, 4000);
        g.item_size = 4;
        caterva_array *array = make_array(&r, &g);
        copy_box(&r, &g, array);
        copy_join(&r, &g, array);
        check_refusals(array);
        caterva_discard(array);
    }
    return 0;
}
