/* Empty selections can be read and written with any buffer that claims to be empty: all
 * shapes of up to three axes with lengths of 0, 1 and 3, at least one of them 0, with NumPy's
 * strides and with unusual ones, for arrays and views. */
#include "support/check.h"

#include <stdio.h>
#include <string.h>

enum { MAX_AXES = 3, N_STRIDES = 6 };

static void fill_strides(int kind, int ndim, const int64_t *shape, int64_t *strides)
{
    static const int64_t odd[] = {0, -8, 1, INT64_MIN, INT64_MAX};
    int64_t step = 8;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = kind == 0 ? step : odd[kind - 1];
        step *= shape[d] > 0 ? shape[d] : 1;
    }
}

static void check_buffer(caterva_array *array, const caterva_view *view,
                         const caterva_buffer *buffer, int kind)
{
    caterva_error err;
    caterva_selection all = CATERVA_SELECTION_INIT;
    int at = kind * 10 + buffer->ndim;
    CHECK(caterva_read_selection(array, &all, buffer, &err) == CATERVA_OK, "read %d: %s", at,
          err.message);
    CHECK(caterva_view_read(view, &all, buffer, &err) == CATERVA_OK, "view read %d: %s", at,
          err.message);
    CHECK(caterva_write_selection(array, &all, buffer, &err) == CATERVA_OK, "write %d: %s",
          at, err.message);
    CHECK(caterva_view_write(view, &all, buffer, &err) == CATERVA_OK, "view write %d: %s", at,
          err.message);
}

static void check_array(caterva_array *array, int ndim, const int64_t *shape)
{
    caterva_error err;
    caterva_view *view;
    char nothing;
    int64_t strides[MAX_AXES];
    CHECK_OK(caterva_view_of(array, &view, &err), err);
    for (int kind = 0; kind < N_STRIDES; kind++) {
        caterva_buffer buffer = CATERVA_BUFFER_INIT;
        fill_strides(kind, ndim, shape, strides);
        buffer.ndim = ndim;
        buffer.shape = shape;
        buffer.strides = strides;
        check_buffer(array, view, &buffer, kind);
        buffer.data = &nothing;
        buffer.dtype = "<f4";
        buffer.casting = CATERVA_CASTING_UNSAFE;
        check_buffer(array, view, &buffer, kind);
        buffer.shape = NULL;
        check_buffer(array, view, &buffer, kind);
    }
    caterva_view_free(view);
}

/* A shape whose other axes multiply to more than 64 bits. */
static void check_long_axes(void)
{
    caterva_error err;
    caterva_array *array;
    const int64_t shape[3] = {3, 0, 3}, strides[3] = {INT64_MAX, 0, INT64_MAX};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 3;
    options.shape = shape;
    options.dtype = "<f8";
    CHECK_OK(caterva_create("mem:", &options, &array, &err), err);
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    buffer.ndim = 3;
    buffer.shape = shape;
    buffer.strides = strides;
    CHECK_OK(caterva_read_selection(array, NULL, &buffer, &err), err);
    caterva_discard(array);
}

int main(void)
{
    static const int64_t lengths[] = {0, 1, 3};
    int n = 0;
    for (int ndim = 1; ndim <= MAX_AXES; ndim++) {
        for (int code = 0; code < 27; code++) {
            int64_t shape[MAX_AXES] = {lengths[code % 3], lengths[code / 3 % 3],
                                       lengths[code / 9]};
            int empty = 0;
            for (int d = 0; d < ndim; d++) empty = empty || shape[d] == 0;
            if (!empty) continue;
            caterva_error err;
            caterva_array *array;
            caterva_create_options options = CATERVA_CREATE_INIT;
            options.ndim = ndim;
            options.shape = shape;
            options.dtype = "<f8";
            CHECK_OK(caterva_create("mem:", &options, &array, &err), err);
            check_array(array, ndim, shape);
            caterva_discard(array);
            n++;
        }
    }
    check_long_axes();
    printf("%d empty arrays, %d kinds of strides\n", n, N_STRIDES);
    return 0;
}
