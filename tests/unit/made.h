/* Arrays made with little code, for tests of internals. */
#ifndef UNIT_MADE_H
#define UNIT_MADE_H

#include "array/array.h"
#include "frame/index.h"
#include "frame/txn.h"
#include "support/fault.h"

#include "check.h"
#include "oracle.h"
#include "pipelines.h"
#include "random.h"
#include "scratch.h"
#include "store/memory.h"
#include "store/open.h"

#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

#define MADE_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const pipeline made_lz4 = {
    .codec = CATERVA_CODEC_LZ4, .level = 5, .filters = {CATERVA_FILTER_SHUFFLE}};

static inline geometry made_line(int64_t shape, int32_t chunk, int32_t block,
                                 int32_t item_size)
{
    return (geometry){.ndim = 1,
                      .shape = {shape},
                      .chunk_shape = {chunk},
                      .block_shape = {block},
                      .item_size = item_size};
}

static inline caterva_array *made_array(const char *url, const geometry *g, const pipeline *p,
                                        caterva_layout layout)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_create_options options = options_for(g, p);
    options.layout = layout;
    options.threads = 2;
    CHECK_OK(caterva_create(url, &options, &array, &err), err);
    return array;
}

/* Writes first, first + step, ... to items [start, stop) of a 1-d array of int32. */
static inline caterva_status made_write(caterva_array *array, int64_t start, int64_t stop,
                                        int32_t first, int32_t step, caterva_error *err)
{
    size_t n = (size_t)(stop - start);
    int32_t *values = check_alloc(n * sizeof values[0]);
    for (size_t i = 0; i < n; i++)
        values[i] = first + (int32_t)((uint32_t)i * (uint32_t)step);
    caterva_status status =
        caterva_write(array, &start, &stop, values, n * sizeof values[0], err);
    free(values);
    return status;
}

static inline int32_t made_item(caterva_array *array, int64_t at)
{
    caterva_error err;
    int32_t value = -1;
    int64_t stop = at + 1;
    CHECK_OK(caterva_read(array, &at, &stop, &value, sizeof value, &err), err);
    return value;
}

/* Appends the chunk that an index of these entries is in a file. */
static inline cv_status made_index(const int64_t *entries, int64_t n, cv_buffer *out)
{
    cv_index index;
    cv_encoder *encoder = NULL;
    cv_status status = cv_index_create(n, &index, NULL);
    for (int64_t i = 0; i < n && status == CV_OK; i++)
        status = cv_index_set(&index, i, entries[i], 0, NULL);
    if (status == CV_OK) status = cv_index_encode(&index, &encoder, out, NULL);
    cv_index_free(&index);
    cv_encoder_free(encoder);
    return status;
}

/* Copies the array's frame object as stored now. Free with free. */
static inline uint8_t *made_bytes(caterva_array *array, size_t *size)
{
    caterva_error err;
    uint64_t stored;
    CHECK_OK(cv_store_size(array->frame->store, CV_FRAME_OBJECT, &stored, &err), err);
    uint8_t *bytes = check_alloc((size_t)stored);
    CHECK_OK(
        cv_store_read(array->frame->store, CV_FRAME_OBJECT, 0, bytes, (size_t)stored, &err),
        err);
    *size = (size_t)stored;
    return bytes;
}

/* A store in memory that contains a frame. */
static inline cv_store *made_memory(const uint8_t *bytes, size_t size)
{
    caterva_error err;
    cv_store *memory;
    CHECK_OK(cv_store_memory_create(&memory, &err), err);
    CHECK_OK(cv_store_write(memory, CV_FRAME_OBJECT, 0, bytes, size, &err), err);
    CHECK_OK(cv_store_publish(memory, false, &err), err);
    return memory;
}

/* A kind of store, for tests that run over all kinds. */
typedef struct made_kind {
    const char *name;
    caterva_layout layout;
    bool in_memory;
} made_kind;

static const made_kind made_kinds[] = {
    {"memory", CATERVA_LAYOUT_CONTIGUOUS, true},
    {"file", CATERVA_LAYOUT_CONTIGUOUS, false},
    {"directory", CATERVA_LAYOUT_SPARSE, false},
};

/* "mem:", or the same path each time for the kind. */
static inline const char *made_path(const made_kind *kind, char path[SCRATCH_PATH])
{
    if (!kind->in_memory) return scratch_path(path, kind->name);
    return memcpy(path, "mem:", sizeof "mem:");
}

/* A store of the kind that contains what the array has committed, open for writing. */
static inline cv_store *made_store(const made_kind *kind, caterva_array *array)
{
    caterva_error err;
    caterva_array *copy;
    cv_store *store;
    char path[SCRATCH_PATH];
    size_t size;
    if (kind->in_memory) {
        uint8_t *bytes = made_bytes(array, &size);
        store = made_memory(bytes, size);
        free(bytes);
        return store;
    }
    caterva_create_options create = CATERVA_CREATE_INIT;
    create.layout = kind->layout;
    create.overwrite = 1;
    create.durability = CATERVA_DURABILITY_NONE;
    caterva_copy_options options = CATERVA_COPY_INIT;
    options.create = &create;
    made_path(kind, path);
    CHECK_OK(caterva_copy(array, path, &options, &copy, &err), err);
    CHECK_OK(caterva_close(copy, &err), err);
    CHECK_OK(cv_store_open(path, 0, true, &store, &err), err);
    return store;
}

/* The array in `inner`, in a fault store around it, which owns it. */
static inline caterva_array *made_faulty(cv_store *inner, caterva_durability durability)
{
    caterva_error err;
    cv_store *store;
    cv_frame *frame;
    caterva_array *array;
    CHECK_OK(cv_store_fault_create(inner, &store, &err), err);
    CHECK_OK(cv_frame_open(store, durability, false, &frame, &err), err);
    CHECK_OK(cv_array_new(frame, true, 1, &array, &err), err);
    return array;
}

/* A frame of 1-d int32, n items 0, 1, 2, ..., in memory. Free with free. */
static inline uint8_t *made_frame(int64_t n, int32_t chunk, int32_t block, const pipeline *p,
                                  size_t *size)
{
    caterva_error err;
    geometry g = made_line(n, chunk, block, sizeof(int32_t));
    caterva_array *array = made_array("mem:", &g, p, CATERVA_LAYOUT_CONTIGUOUS);
    CHECK_OK(made_write(array, 0, n, 0, 1, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    uint8_t *bytes = made_bytes(array, size);
    caterva_discard(array);
    return bytes;
}

#endif
