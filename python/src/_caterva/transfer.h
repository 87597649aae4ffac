/* Selections and buffers of the library, made from NumPy objects, and the calls that move items of
 * an array or view with them. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "array.h"

/* Kinds of selections, as in _plans.py. */
enum { BY_AXES = 0, BY_POINTS = 1, BY_MASK = 2 };

/* A selection and a buffer, with the memory that they point to. */
typedef struct transfer {
    caterva_selection selection;
    caterva_axis axes[CATERVA_MAX_DIMS];
    caterva_buffer buffer;
    int64_t shape[CATERVA_MAX_DIMS], strides[CATERVA_MAX_DIMS];
} transfer;

/* Parses (kind, what, array, dtype=None, field=None, casting=unsafe). `what` is a tuple of axes,
 * points (rows of int64) or a mask of bytes. Without dtype and field, `array` must have items of
 * `item_size` bytes. -1 with an exception. */
int transfer_parse(PyObject *args, int64_t item_size, transfer *out);

/* Makes the buffer for a NumPy array with any strides. */
void buffer_of(PyArrayObject *array, transfer *out);

/* Parses one axis: an int, a slice, or an array of int64 or bool. */
int axis_parse(PyObject *object, caterva_axis *out);

/* Parse the selection of a tuple of axes, and of a mask of the whole array. */
int axes_parse(PyObject *tuple, transfer *out);
int mask_parse(PyObject *object, transfer *out);

#endif
