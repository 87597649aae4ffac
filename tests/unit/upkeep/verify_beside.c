/* A verify through a handle that reads an older state while a writer has committed: the state
 * is undamaged, including the copy of its header. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/scratch.h"

enum { SIDE = 32 };

static void put(caterva_array *writer, int32_t value)
{
    static const int64_t origin[2] = {0, 0}, end[2] = {SIDE, SIDE};
    static int32_t items[SIDE * SIDE];
    caterva_error err;
    for (int i = 0; i < SIDE * SIDE; i++) items[i] = value * i;
    CHECK_OK(caterva_write(writer, origin, end, items, sizeof items, &err), err);
    CHECK_OK(caterva_commit(writer, &err), err);
}

static caterva_array *create(const char *path, caterva_layout layout)
{
    static const int64_t shape[2] = {SIDE, SIDE};
    static const int32_t chunk[2] = {16, 16}, block[2] = {8, 8};
    caterva_error err;
    caterva_array *writer;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk;
    o.block_shape = block;
    o.dtype = "=i4";
    o.layout = layout;
    o.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_create(path, &o, &writer, &err), err);
    put(writer, 1);
    return writer;
}

static void verify_beside(caterva_layout layout)
{
    char path[SCRATCH_PATH];
    caterva_error err;
    caterva_array *reader, *writer = create(scratch_path(path, "beside"), layout);
    for (int32_t i = 2; i < 6; i++) {
        CHECK_OK(caterva_open(path, NULL, &reader, &err), err);
        put(writer, i);
        caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
        CHECK_OK(caterva_verify(reader, NULL, &result, &err), err);
        CHECK(result.damages == 0, "%lld damages", (long long)result.damages);
        caterva_discard(reader);
    }
    caterva_discard(writer);
    scratch_remove(path);
}

int main(void)
{
    verify_beside(CATERVA_LAYOUT_CONTIGUOUS);
    verify_beside(CATERVA_LAYOUT_SPARSE);
    return 0;
}
