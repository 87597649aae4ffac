/* Plug-in hdf5. Filters that libhdf5 lacks: 32026, whose chunks are Blosc2 frames, and 32000, h5py's
 * LZF (reading only). The frames are those of hdf5plugin and PyTables:
 *
 *   cd_values = {1, block bytes, item size, chunk bytes, level, shuffle, codec, ndim, shape...}
 *
 * A chunk of two or more axes is a b2nd frame with one inner chunk of the HDF5 chunk's shape. */
#include "hdf5.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <string.h>

enum { CD_BYTES = 3, CD_ITEM_SIZE = 2, CD_NDIM = 7, CD_SHAPE = 8 };

/* ---- Frames ------------------------------------------------------------------------------ */

caterva_status h5_frame_open(const void *frame, size_t size, caterva_array **out,
                             caterva_error *err)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.cache_bytes = CATERVA_NONE;
    options.no_read_ahead = 1;
    return caterva_frame_open(frame, size, 0, &options, out, err);
}

static caterva_status frame_create(int ndim, const int32_t *chunk_shape,
                                   const int32_t *block_shape, int32_t item_size,
                                   caterva_array **out, caterva_error *err)
{
    int64_t shape[CATERVA_MAX_DIMS];
    caterva_create_options options = CATERVA_CREATE_INIT;
    for (int d = 0; d < ndim; d++) shape[d] = chunk_shape[d];
    options.ndim = ndim;
    options.shape = shape;
    options.chunk_shape = chunk_shape;
    options.block_shape = block_shape;
    options.item_size = item_size;
    options.cache_bytes = CATERVA_NONE;
    return caterva_create("mem:", &options, out, err);
}

caterva_status h5_frame_make(const foreign_node *array, const void *chunk, size_t size,
                             void **frame, size_t *frame_size, caterva_error *err)
{
    int32_t chunk_shape[CATERVA_MAX_DIMS];
    caterva_array *made;
    for (int d = 0; d < array->ndim; d++) chunk_shape[d] = (int32_t)array->chunk_shape[d];
    caterva_status status = frame_create(array->ndim, chunk_shape, array->block_shape,
                                         (int32_t)array->item_size, &made, err);
    if (status != CATERVA_OK) return status;
    status = caterva_chunk_write_stored(made, 0, chunk, size, err);
    if (status == CATERVA_OK) status = caterva_frame_copy(made, frame, frame_size, err);
    caterva_discard(made);
    return status;
}

/* ---- 32026 ------------------------------------------------------------------------------- */

/* Replaces the chunk in *buf, which libhdf5 owns, by `size` bytes of H5allocate_memory. */
static size_t replace(void **buf, size_t *buf_size, void *bytes, size_t size)
{
    H5free_memory(*buf);
    *buf = bytes;
    *buf_size = size;
    return size;
}

static size_t decode_frame(size_t n_values, const unsigned *values, size_t nbytes,
                           size_t *buf_size, void **buf)
{
    caterva_array *array;
    const caterva_info *info = NULL;
    void *items = NULL;
    if (h5_frame_open(*buf, nbytes, &array, NULL) != CATERVA_OK) return 0;
    bool ok = caterva_info_get(array, &info, NULL) == CATERVA_OK && info->data_bytes > 0 &&
              n_values > CD_BYTES && info->data_bytes == (int64_t)values[CD_BYTES];
    const int64_t start[CATERVA_MAX_DIMS] = {0};
    size_t size = ok ? (size_t)info->data_bytes : 0;
    if (ok) items = H5allocate_memory(size, false);
    ok = items && caterva_read(array, start, info->shape, items, size, NULL) == CATERVA_OK;
    caterva_info_release(info);
    caterva_discard(array);
    if (ok) return replace(buf, buf_size, items, size);
    H5free_memory(items);
    return 0;
}

static size_t encode_frame(size_t n_values, const unsigned *values, size_t nbytes,
                           size_t *buf_size, void **buf)
{
    if (n_values <= CD_SHAPE || values[CD_NDIM] < 1 || values[CD_NDIM] >= CATERVA_MAX_DIMS ||
        n_values < CD_SHAPE + values[CD_NDIM])
        return 0;
    int32_t shape[CATERVA_MAX_DIMS];
    int64_t start[CATERVA_MAX_DIMS] = {0}, stop[CATERVA_MAX_DIMS];
    for (unsigned d = 0; d < values[CD_NDIM]; d++)
        stop[d] = shape[d] = (int32_t)values[CD_SHAPE + d];
    caterva_array *array;
    void *frame = NULL, *copy = NULL;
    size_t size = 0;
    if (frame_create((int)values[CD_NDIM], shape, NULL, (int32_t)values[CD_ITEM_SIZE], &array,
                     NULL) != CATERVA_OK)
        return 0;
    if (caterva_write(array, start, stop, *buf, nbytes, NULL) == CATERVA_OK &&
        caterva_frame_copy(array, &frame, &size, NULL) == CATERVA_OK)
        copy = H5allocate_memory(size, false);
    if (copy) memcpy(copy, frame, size);
    caterva_free(frame);
    caterva_discard(array);
    return copy ? replace(buf, buf_size, copy, size) : 0;
}

static size_t blosc2_filter(unsigned flags, size_t n_values, const unsigned *values,
                            size_t nbytes, size_t *buf_size, void **buf)
{
    if (flags & H5Z_FLAG_REVERSE) return decode_frame(n_values, values, nbytes, buf_size, buf);
    return encode_frame(n_values, values, nbytes, buf_size, buf);
}

/* ---- LZF --------------------------------------------------------------------------------- */

/* Decompresses LZF: a control byte below 32 begins that many literals and one more; any other has
 * the length (3 bits, 7: one more byte) and 13 bits of the distance of a match. Returns the number
 * of bytes, or 0 if the input is damaged or `dst` too small. If `dst` is NULL, only counts them. */
static size_t lzf_decode(const uint8_t *src, size_t n, uint8_t *dst, size_t room)
{
    size_t at = 0, used = 0;
    while (at < n) {
        size_t control = src[at++];
        if (control < 32) {
            if (++control > n - at || control > room - used) return 0;
            if (dst) memcpy(dst + used, src + at, control);
            at += control;
            used += control;
            continue;
        }
        size_t length = control >> 5;
        if (length == 7) {
            if (at == n) return 0;
            length += src[at++];
        }
        if (at == n) return 0;
        size_t distance = ((control & 31) << 8 | src[at++]) + 1;
        length += 2;
        if (distance > used || length > room - used) return 0;
        for (size_t i = used; dst && i < used + length; i++) dst[i] = dst[i - distance];
        used += length;
    }
    return used;
}

static size_t lzf_filter(unsigned flags, size_t n_values, const unsigned *values, size_t nbytes,
                         size_t *buf_size, void **buf)
{
    if (!(flags & H5Z_FLAG_REVERSE)) return 0;
    /* The chunk's size, values[2], is missing for texts of any length. */
    size_t room = lzf_decode(*buf, nbytes, NULL, SIZE_MAX);
    if (n_values > 2 && room < values[2]) room = values[2];
    void *items = room > 0 ? H5allocate_memory(room, false) : NULL;
    size_t size = items ? lzf_decode(*buf, nbytes, items, room) : 0;
    if (size > 0) return replace(buf, buf_size, items, size);
    H5free_memory(items);
    return 0;
}

/* ---- Table ------------------------------------------------------------------------------- */

void h5_register_filters(void)
{
    static const H5Z_class2_t filters[] = {
        {H5Z_CLASS_T_VERS, H5_FILTER_BLOSC2, 1, 1, "Blosc2", NULL, NULL, blosc2_filter},
        {H5Z_CLASS_T_VERS, H5_FILTER_LZF, 0, 1, "LZF", NULL, NULL, lzf_filter},
    };
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) H5Zregister(&filters[i]);
}

const char *h5_filter_name(H5Z_filter_t filter)
{
    switch (filter) {
    case H5Z_FILTER_SZIP: return "szip";
    case 305: return "LZO";
    case 307: return "bzip2";
    case 32001: return "Blosc";
    case 32004: return "LZ4";
    case 32008: return "bitshuffle";
    case 32013: return "ZFP";
    case 32015: return "Zstandard";
    case 32017: return "SZ";
    case 32018: return "FCIDECOMP";
    case 32019: return "JPEG";
    case 32024: return "SZ3";
    case 32028: return "Sperr";
    default: return "an unknown codec";
    }
}
