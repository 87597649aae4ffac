/* Misuse of selections, buffers and views: each broken rule must give EINVAL with a message
 * that names the axis and the number, and leave the array unchanged. */
#include "caterva.h"
#include "caterva_store.h"

#include "support/check.h"
#include "support/refuse.h"

#include <stdio.h>
#include <string.h>

static int32_t bytes[64];

static caterva_buffer plain(void)
{
    caterva_buffer b = CATERVA_BUFFER_INIT;
    b.data = bytes;
    b.size = sizeof(bytes);
    return b;
}

static void never(void *context, caterva_status status, const caterva_error *error)
{
    (void)context;
    (void)error;
    CHECK(0, "on_done was called for a refused read: %d", status);
}

/* Refused at once, without a report. */
static void refuse_async(caterva_array *array, unsigned allowed, const caterva_selection *s,
                         const caterva_buffer *b)
{
    caterva_async_options o = CATERVA_ASYNC_INIT;
    caterva_request *request;
    o.on_done = never;
    REFUSE(allowed, caterva_read_async(array, s, b, &o, NULL, err));
    REFUSE(allowed, caterva_read_async(array, s, b, &o, &request, err));
    CHECK(request == NULL, "a request of a refused read");
    caterva_view *view;
    CHECK(caterva_view_of(array, &view, NULL) == CATERVA_OK, "no view");
    REFUSE(allowed, caterva_view_read_async(view, s, b, &o, NULL, err));
    REFUSE(allowed, caterva_view_read_async(view, s, b, &o, &request, err));
    CHECK(request == NULL, "a request of a refused read of a view");
    o.struct_size = 3;
    REFUSE(EINVAL_BIT, caterva_read_async(array, s, b, &o, NULL, err));
    REFUSE(EINVAL_BIT, caterva_view_read_async(view, s, b, &o, NULL, err));
    caterva_view_free(view);
}

/* Refused for reads, writes and queries of the shape. */
static void refuse_selection(caterva_array *array, unsigned allowed,
                             const caterva_selection *s)
{
    caterva_buffer b = plain();
    int64_t shape[CATERVA_MAX_DIMS];
    int ndim;
    REFUSE(allowed, caterva_selection_shape(array, s, &ndim, shape, err));
    REFUSE(allowed, caterva_read_selection(array, s, &b, err));
    REFUSE(allowed, caterva_write_selection(array, s, &b, err));
    refuse_async(array, allowed, s, &b);
}

static void expect_words(caterva_array *array, unsigned allowed, const caterva_selection *s,
                         const char *words)
{
    caterva_error said;
    caterva_buffer b = plain();
    REFUSE(allowed, caterva_read_selection(array, s, &b, err));
    (void)caterva_read_selection(array, s, &b, &said);
    CHECK(strstr(said.message, words) != NULL, "'%s' lacks '%s'", said.message, words);
}

static void abuse_kinds(caterva_array *array)
{
    caterva_selection s = CATERVA_SELECTION_INIT;
    int64_t start[2] = {0, 0}, stop[2] = {6, 8};
    s.start = start;
    refuse_selection(array, EINVAL_BIT, &s); /* no stop */
    s.stop = stop;
    refuse_selection(array, ERANGE_BIT, &s);
    expect_words(array, ERANGE_BIT, &s, "[0, 8) on axis 1");
    s = (caterva_selection)CATERVA_SELECTION_INIT;
    s.stop = stop;
    refuse_selection(array, EINVAL_BIT, &s);
    s.kind = (caterva_selection_kind)17;
    refuse_selection(array, EINVAL_BIT, &s);
    s.kind = CATERVA_SELECTION_BOX;
    s.struct_size = 0;
    refuse_selection(array, EINVAL_BIT, &s);
    s.struct_size = SIZE_MAX;
    refuse_selection(array, EINVAL_BIT, &s);
}

static void abuse_axis(caterva_array *array, unsigned allowed, int axis, caterva_axis bad,
                       const char *words)
{
    caterva_selection s = CATERVA_SELECTION_INIT;
    caterva_axis axes[2] = {{.kind = CATERVA_AXIS_ALL}, {.kind = CATERVA_AXIS_ALL}};
    axes[axis] = bad;
    s.kind = CATERVA_SELECTION_AXES;
    s.axes = axes;
    s.n_axes = 2;
    refuse_selection(array, allowed, &s);
    expect_words(array, allowed, &s, words);
}

static void abuse_axes(caterva_array *array)
{
    static const int64_t high[] = {0, 3, 7}, low[] = {-8, 0}, extreme[] = {INT64_MIN};
    static const uint8_t mask[8] = {1};
    abuse_axis(array, ERANGE_BIT, 0, (caterva_axis){.kind = CATERVA_AXIS_INDEX, .start = 6},
               "index 6 is out of range for axis 0 with 6 items");
    abuse_axis(array, ERANGE_BIT, 1, (caterva_axis){.kind = CATERVA_AXIS_INDEX, .start = -8},
               "index -8 is out of range for axis 1");
    abuse_axis(array, EINVAL_BIT, 1, (caterva_axis){.kind = CATERVA_AXIS_ALL, .reserved = {1}},
               "reserved members of axis 1 are not 0");
    abuse_axis(array, ERANGE_BIT, 1,
               (caterva_axis){.kind = CATERVA_AXIS_LIST, .indices = high, .n = 3},
               "index 7 is out of range for axis 1");
    abuse_axis(array, ERANGE_BIT, 1,
               (caterva_axis){.kind = CATERVA_AXIS_LIST, .indices = low, .n = 2}, "index -8");
    abuse_axis(array, ERANGE_BIT, 0,
               (caterva_axis){.kind = CATERVA_AXIS_LIST, .indices = extreme, .n = 1},
               "out of range for axis 0");
    abuse_axis(array, EINVAL_BIT, 0, (caterva_axis){.kind = CATERVA_AXIS_LIST, .n = 1},
               "NULL");
    abuse_axis(array, EINVAL_BIT, 0,
               (caterva_axis){.kind = CATERVA_AXIS_LIST, .indices = low, .n = -1},
               "-1 indices");
    abuse_axis(array, ESHAPE_BIT, 1,
               (caterva_axis){.kind = CATERVA_AXIS_MASK, .mask = mask, .n = 8},
               "axis 1 has 7 items, its mask 8");
    abuse_axis(array, EINVAL_BIT, 1, (caterva_axis){.kind = CATERVA_AXIS_MASK, .n = 7},
               "NULL");
    abuse_axis(array, EINVAL_BIT, 1, (caterva_axis){.kind = (caterva_axis_kind)9},
               "unknown kind 9");

    caterva_axis axes[3] = {{.kind = CATERVA_AXIS_ALL}};
    caterva_selection s = CATERVA_SELECTION_INIT;
    s.kind = CATERVA_SELECTION_AXES;
    s.n_axes = 3;
    s.axes = axes;
    refuse_selection(array, ERANGE_BIT, &s);
    s.n_axes = -1;
    refuse_selection(array, EINVAL_BIT, &s);
    s.n_axes = 1;
    s.axes = NULL;
    refuse_selection(array, EINVAL_BIT, &s);
}

static void abuse_points_and_masks(caterva_array *array)
{
    static const int64_t points[] = {0, 0, 5, 6, 2, 7};
    static const uint8_t mask[43] = {1};
    caterva_selection s = CATERVA_SELECTION_INIT;
    s.kind = CATERVA_SELECTION_POINTS;
    s.points = points;
    s.n_points = 3;
    refuse_selection(array, ERANGE_BIT, &s);
    expect_words(array, ERANGE_BIT, &s, "point 2: index 7 is out of range for axis 1");
    s.n_points = -1;
    refuse_selection(array, EINVAL_BIT, &s);
    s.n_points = 1;
    s.points = NULL;
    refuse_selection(array, EINVAL_BIT, &s);

    s = (caterva_selection)CATERVA_SELECTION_INIT;
    s.kind = CATERVA_SELECTION_MASK;
    s.mask_size = 42;
    refuse_selection(array, EINVAL_BIT, &s);
    s.mask = mask;
    s.mask_size = 41;
    refuse_selection(array, ESHAPE_BIT, &s);
    s.mask_size = 43;
    refuse_selection(array, ESHAPE_BIT, &s);
    expect_words(array, ESHAPE_BIT, &s, "42 items, the mask 43");
}

/* Repeats of a list may request more items than can be counted. */
static void abuse_sizes_of_results(caterva_array *array)
{
    enum { LONG = 3000 };
    static int64_t many[LONG];
    for (int i = 0; i < LONG; i++) many[i] = i % 3 == 1;
    caterva_axis axes[2] = {{.kind = CATERVA_AXIS_LIST, .indices = many, .n = LONG},
                            {.kind = CATERVA_AXIS_LIST, .indices = many, .n = LONG}};
    caterva_selection s = CATERVA_SELECTION_INIT;
    s.kind = CATERVA_SELECTION_AXES;
    s.axes = axes;
    s.n_axes = 2;
    expect_words(array, ESHORT_BIT, &s, "the items span 36000000 bytes, the buffer has 256");
}

/* ---- Buffers ------------------------------------------------------------------ */

static void refuse_buffer(caterva_array *array, unsigned allowed, const caterva_buffer *b)
{
    REFUSE(allowed, caterva_read_selection(array, NULL, b, err));
    REFUSE(allowed, caterva_write_selection(array, NULL, b, err));
    refuse_async(array, allowed, NULL, b);
}

static void abuse_buffers(caterva_array *array)
{
    static const int64_t strides[][2] = {
        {28, INT64_MAX}, {INT64_MIN, 4}, {INT64_MAX / 5, INT64_MAX / 6}, {56, 4}, {-56, 4}};
    static const int64_t shapes[][2] = {{6, 8}, {7, 6}, {0, 7}, {-6, 7}, {INT64_MAX, 7}};
    caterva_buffer b = plain();
    refuse_buffer(array, EINVAL_BIT, NULL);
    b.data = NULL;
    refuse_buffer(array, EINVAL_BIT, &b);
    for (int i = 0; i < COUNT(strides); i++) {
        b = plain();
        b.ndim = 2;
        b.strides = strides[i];
        refuse_buffer(array, i < 3 ? EINVAL_BIT : ESHORT_BIT, &b);
    }
    for (int i = 0; i < COUNT(shapes); i++) {
        b = plain();
        b.ndim = 2;
        b.shape = shapes[i];
        refuse_buffer(array, i < 3 ? ESHAPE_BIT : EINVAL_BIT, &b);
    }
    for (int ndim = -1; ndim <= 17; ndim += 2) { /* never 2 */
        b = plain();
        b.ndim = ndim;
        b.strides = (int64_t[17]){4, 4, 4};
        refuse_buffer(array, ndim < 0 || ndim > 16 ? EINVAL_BIT : ESHAPE_BIT, &b);
    }
    b = plain();
    b.size = sizeof(small_values) - 1;
    refuse_buffer(array, ESHORT_BIT, &b);
    b.struct_size = 3;
    refuse_buffer(array, EINVAL_BIT, &b);
}

/* Allowed for a source, but not for a destination. */
static void abuse_destinations(caterva_array *array)
{
    caterva_buffer b = plain();
    b.ndim = 2;
    b.strides = (int64_t[2]){0, 4};
    REFUSE(EINVAL_BIT, caterva_read_selection(array, NULL, &b, err));
    b.strides = NULL;
    b.shape = (int64_t[2]){6, 1};
    REFUSE(ESHAPE_BIT, caterva_read_selection(array, NULL, &b, err));
    b.ndim = 1;
    b.shape = (int64_t[1]){7};
    REFUSE(ESHAPE_BIT, caterva_read_selection(array, NULL, &b, err));
}

static caterva_array *open_for_reading(caterva_array *array)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *reader;
    void *frame;
    size_t size;
    CHECK_OK(caterva_frame_copy(array, &frame, &size, &err), err);
    CHECK_OK(caterva_frame_open(frame, size, 1, &options, &reader, &err), err);
    caterva_free(frame);
    return reader;
}

static void abuse_dtypes(caterva_array *array)
{
    static const char *const bad[] = {"", "<i3", "floaty", "<i4,", "[('a', '<i4')"};
    caterva_buffer b = plain();
    for (int i = 0; i < COUNT(bad); i++) {
        b.dtype = bad[i];
        refuse_buffer(array, EINVAL_BIT, &b);
    }
    b = plain();
    b.dtype = "<i8"; /* twice the size */
    refuse_buffer(array, ESHORT_BIT, &b);
    b.dtype = "|i1";
    b.casting = CATERVA_CASTING_SAFE;
    REFUSE(ECAST_BIT, caterva_read_selection(array, NULL, &b, err));
    b.casting = (caterva_casting)99;
    refuse_buffer(array, EINVAL_BIT, &b);
    b.casting = (caterva_casting)-1;
    refuse_buffer(array, EINVAL_BIT, &b);
    b = plain();
    b.dtype = "|S4";
    REFUSE(EDTYPE_BIT, caterva_read_selection(array, NULL, &b, err));
    REFUSE(EDTYPE_BIT, caterva_write_selection(array, NULL, &b, err));
}

static void abuse_handles(caterva_array *array)
{
    caterva_buffer b = plain();
    int64_t shape[CATERVA_MAX_DIMS];
    int ndim;
    REFUSE(EINVAL_BIT, caterva_read_selection(NULL, NULL, &b, err));
    REFUSE(EINVAL_BIT, caterva_write_selection(NULL, NULL, &b, err));
    REFUSE(EINVAL_BIT, caterva_selection_shape(NULL, NULL, &ndim, shape, err));
    REFUSE(EINVAL_BIT, caterva_selection_shape(array, NULL, &ndim, NULL, err));
    REFUSE(EINVAL_BIT, caterva_selection_shape(array, NULL, NULL, shape, err));

    caterva_array *reader = open_for_reading(array);
    REFUSE(EREADONLY_BIT, caterva_write_selection(reader, NULL, &b, err));
    caterva_discard(reader);
}

/* ---- Views -------------------------------------------------------------------- */

static void abuse_making(caterva_view *view)
{
    static const int64_t uneven[] = {0, 1, 3};
    caterva_view *out = NULL;
    const caterva_view *none[2] = {view, NULL};
    caterva_axis axis = {.kind = CATERVA_AXIS_INDEX, .start = 6};
    REFUSE(EINVAL_BIT, caterva_view_of(NULL, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_select(NULL, &axis, 1, &out, err));
    REFUSE(ERANGE_BIT, caterva_view_select(view, &axis, 1, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_select(view, NULL, 0, NULL, err));
    axis = (caterva_axis){.kind = CATERVA_AXIS_LIST, .indices = uneven, .n = 3};
    REFUSE(EINVAL_BIT, caterva_view_select(view, &axis, 1, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_transpose(view, (int[2]){0, 0}, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_transpose(view, (int[2]){0, 2}, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_transpose(NULL, NULL, &out, err));
    REFUSE(ERANGE_BIT, caterva_view_expand(view, 3, &out, err));
    REFUSE(ERANGE_BIT, caterva_view_expand(view, -1, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_expand(NULL, 0, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_squeeze(view, 0, &out, err));
    REFUSE(ERANGE_BIT, caterva_view_squeeze(view, 2, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_concat(none, 2, 0, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_concat(none, 0, 0, &out, err));
    REFUSE(ERANGE_BIT, caterva_view_concat(none, 1, 2, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_concat(NULL, 1, 0, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_stack(none, 2, 0, &out, err));
    REFUSE(ERANGE_BIT, caterva_view_stack(none, 1, 3, &out, err));
    CHECK(out == NULL, "a refused view was handed out");
}

/* Parts of different shapes, and views after the array's shape has changed. */
static void abuse_shapes(caterva_array *array, caterva_view *view)
{
    caterva_error err_;
    caterva_view *turned, *out = NULL;
    caterva_buffer b = plain();
    CHECK_OK(caterva_view_transpose(view, NULL, &turned, &err_), err_);
    const caterva_view *parts[2] = {view, turned};
    REFUSE(ESHAPE_BIT, caterva_view_concat(parts, 2, 0, &out, err));
    REFUSE(ESHAPE_BIT, caterva_view_stack(parts, 2, 0, &out, err));
    REFUSE(EINVAL_BIT, caterva_view_read(NULL, NULL, &b, err));
    REFUSE(EINVAL_BIT, caterva_view_write(NULL, NULL, &b, err));
    REFUSE(EINVAL_BIT, caterva_view_read(view, NULL, NULL, err));

    CHECK_OK(caterva_view_concat(parts, 1, 0, &out, &err_), err_);
    REFUSE(EREADONLY_BIT, caterva_view_write(out, NULL, &b, err));
    CHECK_OK(caterva_resize(array, (int64_t[2]){5, 7}, &err_), err_);
    REFUSE(ESTALE_BIT, caterva_view_read(view, NULL, &b, err));
    REFUSE(ESTALE_BIT, caterva_view_read(out, NULL, &b, err));
    REFUSE(ESTALE_BIT, caterva_view_write(turned, NULL, &b, err));
    CHECK_OK(caterva_rollback(array, &err_), err_);
    CHECK_OK(caterva_view_read(out, NULL, &b, &err_), err_);
    CHECK(memcmp(bytes, small_values, sizeof(small_values)) == 0, "the view differs");
    caterva_view_free(out);
    caterva_view_free(turned);
}

/* At most sixteen axes. */
static void expand_too_far(caterva_view *view)
{
    caterva_error err_;
    caterva_view *last = NULL, *out = NULL;
    CHECK_OK(caterva_view_select(view, NULL, 0, &last, &err_), err_);
    for (int d = 2; d < CATERVA_MAX_DIMS; d++) {
        caterva_view *next;
        CHECK_OK(caterva_view_expand(last, d % 3, &next, &err_), err_);
        caterva_view_free(last);
        last = next;
    }
    REFUSE(EINVAL_BIT, caterva_view_expand(last, 0, &out, err));
    caterva_view_free(last);
}

static void abuse_views(caterva_array *array)
{
    caterva_error err;
    caterva_view *view;
    CHECK_OK(caterva_view_of(array, &view, &err), err);
    abuse_making(view);
    abuse_shapes(array, view);
    expand_too_far(view);
    caterva_view_free(view);
    caterva_view_free(NULL);
}

int main(void)
{
    caterva_array *array = make_small_array("mem:");
    abuse_kinds(array);
    abuse_axes(array);
    abuse_points_and_masks(array);
    abuse_sizes_of_results(array);
    abuse_buffers(array);
    abuse_destinations(array);
    abuse_dtypes(array);
    abuse_handles(array);
    abuse_views(array);
    check_small_array(array);
    caterva_discard(array);
    printf("%d refusals\n", refusals());
    return 0;
}
