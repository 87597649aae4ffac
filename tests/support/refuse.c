/* Test support: checks of refused calls, for all tests of misuse. */
#include "refuse.h"

#include <string.h>

static int n_refused;

void check_refusal(unsigned allowed, caterva_status status, const caterva_error *err,
                   int line, const char *call)
{
    unsigned bit = status < 0 && status > -32 ? 1u << -(int)status : 0;
    CHECK((bit & allowed) != 0, "line %d: %s gave %s", line, call,
          caterva_status_name(status));
    n_refused++;
    if (err == NULL) return;
    CHECK(err->code == status, "line %d: err->code is %d", line, err->code);
    size_t length = strnlen(err->message, sizeof(err->message));
    CHECK(length > 0 && length < sizeof(err->message), "line %d: no sentence", line);
}

int refusals(void) { return n_refused; }

const int64_t small_shape[16] = {6, 7};
static const int32_t small_chunks[16] = {4, 3};
static const int32_t small_blocks[16] = {2, 3};

caterva_create_options small_options(void)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = small_shape;
    o.chunk_shape = small_chunks;
    o.block_shape = small_blocks;
    o.dtype = "<i4";
    o.codec = CATERVA_CODEC_LZ4;
    o.level = 5;
    o.filters[0] = CATERVA_FILTER_SHUFFLE;
    return o;
}

int32_t small_values[42];

caterva_array *make_small_array(const char *url)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_create_options o = small_options();
    int64_t start[2] = {0, 0};
    for (int i = 0; i < 42; i++) small_values[i] = i * i;
    o.overwrite = 1;
    CHECK_OK(caterva_create(url, &o, &array, &err), err);
    CHECK_OK(
        caterva_write(array, start, small_shape, small_values, sizeof(small_values), &err),
        err);
    CHECK_OK(caterva_commit(array, &err), err);
    return array;
}

void check_small_array(caterva_array *array)
{
    caterva_error err;
    int32_t got[42] = {0};
    int64_t start[2] = {0, 0};
    CHECK_OK(caterva_read(array, start, small_shape, got, sizeof(got), &err), err);
    CHECK(memcmp(got, small_values, sizeof(got)) == 0, "the array changed");
}
