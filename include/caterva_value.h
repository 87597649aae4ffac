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
    caterva_progress progress; /* after a stop the destination is undefined */
} caterva_convert_options;
#define CATERVA_CONVERT_INIT CATERVA_INIT_(caterva_convert_options)

/* Converts `n` consecutive items from src->data to dst->data, without an array: from
 * src->dtype to dst->dtype as dst->casting allows. The sizes must hold n items; shape,
 * strides and field are NULL; the memory must not overlap. Items of equal dtypes, of any
 * kind, are copied; others must be numbers. `options` may be NULL.
 *
 * Returns CATERVA_ECAST for a cast that is not allowed, CATERVA_EDTYPE for items that are not
 * numbers, CATERVA_ESHORT for too little memory, CATERVA_EINVAL for an invalid dtype.
 * Thread: any. */
CATERVA_API caterva_status caterva_buffer_convert(const caterva_buffer *src, int64_t n,
                                                  const caterva_buffer *dst,
                                                  const caterva_convert_options *options,
                                                  caterva_error *err);

/* ---- Values of attributes ------------------------------------------------ */

/* An attribute holds one MessagePack value, as python-blosc2 writes it. These functions read
 * and write such values without an array. They never execute anything in a value: a pickle is
 * only bytes. */
typedef enum caterva_value_kind {
    CATERVA_VALUE_NIL = 0,
    CATERVA_VALUE_BOOL,      /* integer: 0 or 1                                       */
    CATERVA_VALUE_INT,       /* integer                                               */
    CATERVA_VALUE_UINT,      /* integer: the bits of a uint64 above INT64_MAX         */
    CATERVA_VALUE_REAL,      /* real                                                  */
    CATERVA_VALUE_COMPLEX,   /* real and imaginary                                    */
    CATERVA_VALUE_TEXT,      /* bytes and size: UTF-8, not validated                  */
    CATERVA_VALUE_BYTES,     /* bytes and size                                        */
    CATERVA_VALUE_LIST,      /* count: number of values that follow                   */
    CATERVA_VALUE_TUPLE,     /* count: number of values that follow                   */
    CATERVA_VALUE_SET,       /* count: number of values that follow                   */
    CATERVA_VALUE_MAP,       /* count: number of pairs of key and value that follow   */
    CATERVA_VALUE_ARRAY,     /* dtype, ndim and shape; bytes and size: items, C order */
    CATERVA_VALUE_FRAME,     /* bytes and size: a Blosc2 frame                        */
    CATERVA_VALUE_REFERENCE, /* bytes and size: MessagePack with a location           */
    CATERVA_VALUE_EXTENSION  /* extension, bytes and size: any other type             */
} caterva_value_kind;

typedef struct caterva_value {
    size_t struct_size;
    caterva_value_kind kind;
    int64_t integer;
    double real, imaginary;
    int64_t count;
    const void *bytes; /* borrowed from the packed value */
    size_t size;
    int extension;     /* MessagePack's type number      */
    char dtype[32];    /* of one item, such as "<i2"     */
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
} caterva_value;
#define CATERVA_VALUE_INIT CATERVA_INIT_(caterva_value)

/* Reads the value at byte *at of a packed value, and moves *at after it; begin with 0. For a
 * list, tuple, set or map it reads the head: the next calls read the elements. After the last
 * element of the packed value, *at is `size`. Allocates nothing. Returns CATERVA_ECORRUPT if
 * the bytes are not MessagePack.
 * Thread: any. */
CATERVA_API caterva_status caterva_value_next(const void *packed, size_t size, size_t *at,
                                              caterva_value *out, caterva_error *err);

/* Packs the value that the `n` entries of `values` describe, in the order of
 * caterva_value_next: a scalar or array is one entry; a list, tuple, set or map is one entry
 * with its `count`, followed by its elements. An array has the scalar type `dtype` ("<i2",
 * "int16", "<M8[ns]") and `size` bytes of items in C order; with ndim 0 it is a single item
 * that keeps its type, such as the _FillValue of int16 items. Returns CATERVA_EINVAL if the
 * entries are not exactly one value or nest deeper than 64 levels, CATERVA_EDTYPE if a dtype
 * is not that of a scalar, CATERVA_ESHORT if an array has fewer bytes than its shape needs.
 * Release *packed with caterva_free.
 * Thread: any. */
CATERVA_API caterva_status caterva_value_pack(const caterva_value *values, size_t n,
                                              void **packed, size_t *packed_size,
                                              caterva_error *err);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_VALUE_H */
