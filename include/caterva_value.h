/* Caterva: values without an array.
 *
 * Reads and packs the MessagePack values of attributes, and converts items between dtypes.
 * Conventions and thread classes are those of caterva.h. */
#ifndef CATERVA_VALUE_H
#define CATERVA_VALUE_H

#include <caterva.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Conversion of items ------------------------------------------------- */

/* Options of caterva_buffer_convert. */
typedef struct caterva_convert_options {
    size_t struct_size;
    /* Called with the number of items that are converted; anything but 0 stops the call, and
     * the destination is undefined then. NULL: not called. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_convert_options;
#define CATERVA_CONVERT_INIT CATERVA_INIT_(caterva_convert_options)

/* Converts `n` items, one behind the other, from src->data to dst->data, without an array:
 * from src->dtype to dst->dtype as dst->casting allows. The sizes must hold n items; shape,
 * strides and field are NULL; the memory must not overlap. Items of equal dtypes are
 * copied, whatever they are; others must be numbers. `options` NULL: nobody hears of it.
 *
 * Returns CATERVA_ECAST for a cast that is not allowed, CATERVA_EDTYPE for items that are
 * no numbers, CATERVA_ESHORT for too little memory, CATERVA_EINVAL for a dtype that is
 * none.
 * Thread: any. */
CATERVA_API caterva_status caterva_buffer_convert(const caterva_buffer *src, int64_t n,
                                                  const caterva_buffer *dst,
                                                  const caterva_convert_options *options,
                                                  caterva_error *err);

/* ---- Values of attributes ------------------------------------------------ */

/* An attribute holds one MessagePack value, as python-blosc2 writes it. These functions
 * read and write such values; they need no array. They never execute anything in a value: a
 * pickle is bytes like any others.
 */
typedef enum caterva_value_kind {
    CATERVA_VALUE_NIL = 0,
    CATERVA_VALUE_BOOL,      /* integer: 0 or 1                                        */
    CATERVA_VALUE_INT,       /* integer                                                */
    CATERVA_VALUE_UINT,      /* integer: the bits of a uint64 above INT64_MAX          */
    CATERVA_VALUE_REAL,      /* real                                                   */
    CATERVA_VALUE_COMPLEX,   /* real and imaginary                                     */
    CATERVA_VALUE_TEXT,      /* bytes and size: UTF-8, if who wrote it was right       */
    CATERVA_VALUE_BYTES,     /* bytes and size                                         */
    CATERVA_VALUE_LIST,      /* count: so many values come next                        */
    CATERVA_VALUE_TUPLE,     /* the same                                               */
    CATERVA_VALUE_SET,       /* the same                                               */
    CATERVA_VALUE_MAP,       /* count: so many pairs of key and value come next        */
    CATERVA_VALUE_ARRAY,     /* dtype, ndim and shape; bytes and size: items, C order  */
    CATERVA_VALUE_FRAME,     /* bytes and size: a Blosc2 frame                         */
    CATERVA_VALUE_REFERENCE, /* bytes and size: MessagePack that says where something is */
    CATERVA_VALUE_EXTENSION  /* extension, bytes and size: any other type              */
} caterva_value_kind;

typedef struct caterva_value {
    size_t struct_size;
    caterva_value_kind kind;
    int64_t integer;
    double real, imaginary;
    int64_t count;
    const void *bytes; /* borrowed from the value that is read */
    size_t size;
    int extension;     /* MessagePack's number of the type     */
    char dtype[32];    /* a scalar's, such as "<i2"            */
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
} caterva_value;
#define CATERVA_VALUE_INIT CATERVA_INIT_(caterva_value)

/* Reads what stands at byte *at of a packed value, and moves *at behind it; begin with 0.
 * Of a list, tuple, set or map it reads the head: the next calls read what stands inside,
 * and after the last of it *at is `size`. Takes no memory. Returns CATERVA_ECORRUPT when
 * the bytes are no MessagePack.
 * Thread: any. */
CATERVA_API caterva_status caterva_value_next(const void *packed, size_t size, size_t *at,
                                              caterva_value *out, caterva_error *err);

/* Packs the value that the `n` entries of `values` describe, in the order in which
 * caterva_value_next reads them: a scalar or array is one entry; a list, tuple, set or map is
 * one with its `count`, followed by its parts. An array has the scalar type `dtype` ("<i2",
 * "int16", "<M8[ns]") and `size` bytes of items in C order; with ndim 0 it is a single item that
 * keeps its type, such as the _FillValue of int16 items.
 * Returns CATERVA_EINVAL if the entries are not exactly one value or nest deeper than 64 levels,
 * CATERVA_EDTYPE if a dtype is not that of a scalar, CATERVA_ESHORT if an array has fewer bytes
 * than its shape has items. Release *packed with caterva_free.
 * Thread: any. */
CATERVA_API caterva_status caterva_value_pack(const caterva_value *values, size_t n,
                                              void **packed, size_t *packed_size,
                                              caterva_error *err);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_VALUE_H */
