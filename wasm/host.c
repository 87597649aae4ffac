/* Caterva in WebAssembly: the functions that caterva.mjs calls. Arrays are in memory, or in stores
 * whose reads are functions of JavaScript. Errors are kept as the sentence of the last one. */
#include <caterva_store.h>
#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(#name)))
#define IMPORT(name) __attribute__((import_module("caterva"), import_name(#name)))

/* Reads of the store that JavaScript knows by this number. store_read copies up to `size` bytes to
 * `dst` and returns their number, or -1 after an exception. */
IMPORT(store_size) int64_t store_size(int32_t store);
IMPORT(store_read) int32_t store_read(int32_t store, uint64_t pos, void *dst, size_t size);
IMPORT(store_close) void store_close(int32_t store);

static caterva_error error;

EXPORT(error_message) const char *error_message(void) { return error.message; }

EXPORT(error_status) const char *error_status(void)
{
    return caterva_status_name(error.code);
}

EXPORT(allocate) void *allocate(size_t size) { return malloc(size > 0 ? size : 1); }

EXPORT(release) void release(void *memory) { free(memory); }

/* ---- Opening ---- */

/* The frame must stay where it is until the array is closed. NULL after an error. */
EXPORT(open_frame) caterva_array *open_frame(const void *frame, size_t size)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *array = NULL;
    caterva_frame_open(frame, size, 0, &options, &array, &error);
    return array;
}

static int32_t number_of(void *context) { return (int32_t)(intptr_t)context; }

static caterva_status size_of(void *context, uint64_t *size, caterva_error *err)
{
    int64_t found = store_size(number_of(context));
    (void)err;
    if (found < 0) return CATERVA_EIO;
    *size = (uint64_t)found;
    return CATERVA_OK;
}

static caterva_status read_from(void *context, uint64_t pos, void *dst, size_t size,
                                size_t *done, caterva_error *err)
{
    int32_t n = store_read(number_of(context), pos, dst, size);
    (void)err;
    if (n < 0 || (size_t)n > size) return CATERVA_EIO;
    *done = (size_t)n;
    return CATERVA_OK;
}

static void close_store(void *context) { store_close(number_of(context)); }

EXPORT(open_store) caterva_array *open_store(int32_t number)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_store store = CATERVA_STORE_INIT;
    caterva_array *array = NULL;
    store.context = (void *)(intptr_t)number;
    store.size = size_of;
    store.read = read_from;
    store.close = close_store;
    caterva_store_open(&store, &options, &array, &error);
    return array;
}

EXPORT(close) void close_array(caterva_array *array) { caterva_discard(array); }

/* ---- Description ---- */

/* Sets what the pointers lead to; `shape` has room for 16 numbers. The text is valid until the
 * array is closed. NULL after an error. */
EXPORT(describe)
const caterva_info *describe(caterva_array *array, int32_t *ndim, int64_t *shape,
                             int32_t *item_size, const char **dtype)
{
    const caterva_info *info = NULL;
    if (caterva_info_get(array, &info, &error) != CATERVA_OK) return NULL;
    *ndim = info->ndim;
    *item_size = info->item_size;
    *dtype = info->dtype;
    for (int d = 0; d < info->ndim; d++) shape[d] = info->shape[d];
    return info;
}

EXPORT(end_description) void end_description(const caterva_info *info)
{
    caterva_info_release(info);
}

/* ---- Reading ---- */

/* Returns 1, or 0 after an error. */
EXPORT(read)
int32_t read_box(caterva_array *array, const int64_t *start, const int64_t *stop, void *dst,
                 size_t size)
{
    return caterva_read(array, start, stop, dst, size, &error) == CATERVA_OK;
}

/* Sets *bytes, to be released by `free_bytes`, to an attribute as msgpack. Returns 1, or 0
 * after an error. */
EXPORT(attribute)
int32_t attribute(caterva_array *array, const char *name, void **bytes, size_t *size)
{
    return caterva_attr_get(array, name, bytes, size, &error) == CATERVA_OK;
}

EXPORT(free_bytes) void free_bytes(void *bytes) { caterva_free(bytes); }
