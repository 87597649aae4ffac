/* Selections and buffers of the library from NumPy's objects, and the calls that move
 * items with them, through an array or a view. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "array.h"

/* The words of _plans.py for a selection. */
enum { BY_AXES = 0, BY_POINTS = 1, BY_MASK = 2 };

/* What a selection and a buffer point to. */
typedef struct transfer {
    caterva_selection selection;
    caterva_axis axes[CATERVA_MAX_DIMS];
    caterva_buffer buffer;
    int64_t shape[CATERVA_MAX_DIMS], strides[CATERVA_MAX_DIMS];
} transfer;

/* Parses (kind, what, array, dtype=None, field=None, casting=unsafe): `what` is a tuple
 * of axes, points of int64 or a mask of bytes. `item_size` is that of the items where
 * neither dtype nor field is given. -1 with an exception. */
int transfer_parse(PyObject *args, int64_t item_size, transfer *out);

/* Points the buffer at an array of NumPy's, of any strides. */
void buffer_of(PyArrayObject *array, transfer *out);

/* One axis: an int, a slice, or an array of int64 or bool. */
int axis_parse(PyObject *object, caterva_axis *out);

/* The selection of a tuple of these, and of a mask of the whole array. */
int axes_parse(PyObject *tuple, transfer *out);
int mask_parse(PyObject *object, transfer *out);

#endif
