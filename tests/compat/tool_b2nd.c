/* Reads an array by C-Blosc2 alone, for test_zarr.py: all items, then those of a box, in C order.
 *
 *     tool_b2nd PATH OUT [START STOP]...       one pair for each axis */
#include "support/check.h"

#include <b2nd.h>

#include <stdio.h>
#include <stdlib.h>

static void read_box(const b2nd_array_t *array, const int64_t *start, const int64_t *stop,
                     FILE *out)
{
    int64_t shape[B2ND_MAX_DIM], size = array->sc->typesize;
    for (int d = 0; d < array->ndim; d++) {
        shape[d] = stop[d] - start[d];
        size *= shape[d];
    }
    void *items = check_alloc((size_t)size);
    int status = b2nd_get_slice_cbuffer(array, start, stop, items, shape, size);
    CHECK(status >= 0, "b2nd_get_slice_cbuffer: %d", status);
    CHECK(fwrite(items, 1, (size_t)size, out) == (size_t)size, "cannot write");
    free(items);
}

int main(int argc, char **argv)
{
    b2nd_array_t *array = NULL;
    int64_t start[B2ND_MAX_DIM] = {0}, stop[B2ND_MAX_DIM];
    CHECK(argc >= 3, "usage: tool_b2nd PATH OUT [START STOP]...");
    blosc2_init();
    CHECK(b2nd_open(argv[1], &array) >= 0, "b2nd_open");
    CHECK(argc == 3 + 2 * array->ndim, "%d axes", array->ndim);
    FILE *out = fopen(argv[2], "wb");
    CHECK(out, "cannot open %s", argv[2]);
    read_box(array, start, array->shape, out);
    for (int d = 0; d < array->ndim; d++) {
        start[d] = strtoll(argv[3 + 2 * d], NULL, 10);
        stop[d] = strtoll(argv[4 + 2 * d], NULL, 10);
    }
    read_box(array, start, stop, out);
    CHECK(fclose(out) == 0, "cannot write");
    b2nd_free(array);
    blosc2_destroy();
    return 0;
}
