/* Names of codecs and filters, choice of partitions, conversion of buffers, the shared cache. */
#include "call.h"
#include "functions.h"
#include "options.h"
#include <caterva_value.h>

typedef const char *name_function(int number);
typedef int number_function(const char *name);

static PyObject *name_of(PyObject *args, name_function *function)
{
    int number;
    if (!PyArg_ParseTuple(args, "i", &number)) return NULL;
    const char *name = function(number);
    if (!name) Py_RETURN_NONE;
    return PyUnicode_FromString(name);
}

static PyObject *number_of(PyObject *args, number_function *function)
{
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
    return PyLong_FromLong(function(name));
}

PyObject *function_codec_name(PyObject *module, PyObject *args)
{
    (void)module;
    return name_of(args, caterva_codec_name);
}

PyObject *function_codec_number(PyObject *module, PyObject *args)
{
    (void)module;
    return number_of(args, caterva_codec_number);
}

PyObject *function_filter_name(PyObject *module, PyObject *args)
{
    (void)module;
    return name_of(args, caterva_filter_name);
}

PyObject *function_filter_number(PyObject *module, PyObject *args)
{
    (void)module;
    return number_of(args, caterva_filter_number);
}

/* (shape, item size, chunks or None, blocks or None) to (chunks, blocks) */
PyObject *function_choose_partition(PyObject *module, PyObject *args)
{
    PyObject *shape, *chunks, *blocks;
    long long item_size;
    int64_t lengths[CATERVA_MAX_DIMS];
    int32_t chunk[CATERVA_MAX_DIMS], block[CATERVA_MAX_DIMS];
    int32_t given_chunk[CATERVA_MAX_DIMS], given_block[CATERVA_MAX_DIMS];
    caterva_error err;
    if (!PyArg_ParseTuple(args, "OLOO", &shape, &item_size, &chunks, &blocks)) return NULL;
    int n = parse_int64s(shape, "shape", lengths);
    if (n < 0) return NULL;
    bool has_chunks = chunks != Py_None, has_blocks = blocks != Py_None;
    int n_chunks = has_chunks ? parse_int32s(chunks, "chunks", given_chunk) : n;
    if (n_chunks < 0) return NULL;
    int n_blocks = has_blocks ? parse_int32s(blocks, "blocks", given_block) : n;
    if (n_blocks < 0) return NULL;
    if (n_chunks != n || n_blocks != n)
        return PyErr_Format(PyExc_ValueError, "the shape has %d axes, chunks %d, blocks %d",
                            n, n_chunks, n_blocks);
    caterva_status status =
        caterva_partition_choose(n, lengths, item_size, has_chunks ? given_chunk : NULL,
                                 has_blocks ? given_block : NULL, chunk, block, &err);
    if (status != CATERVA_OK) {
        raise_error(module_state_of(module), &err, NULL);
        return NULL;
    }
    return Py_BuildValue("NN", tuple_of_int32s(chunk, n), tuple_of_int32s(block, n));
}

/* (source array, its dtype, destination array, its dtype, casting); both are in C order */
PyObject *function_convert(PyObject *module, PyObject *args)
{
    PyArrayObject *from, *to;
    int casting;
    caterva_buffer src = CATERVA_BUFFER_INIT, dst = CATERVA_BUFFER_INIT;
    caterva_convert_options options = CATERVA_CONVERT_INIT;
    call c;
    if (!PyArg_ParseTuple(args, "O!sO!si", &PyArray_Type, &from, &src.dtype, &PyArray_Type,
                          &to, &dst.dtype, &casting))
        return NULL;
    if (!PyArray_IS_C_CONTIGUOUS(from) || !PyArray_IS_C_CONTIGUOUS(to) ||
        PyArray_SIZE(from) != PyArray_SIZE(to)) {
        PyErr_SetString(PyExc_TypeError, "both arrays must be contiguous and of the same size");
        return NULL;
    }
    src.data = PyArray_DATA(from);
    src.size = (size_t)PyArray_NBYTES(from);
    dst.data = PyArray_DATA(to);
    dst.size = (size_t)PyArray_NBYTES(to);
    dst.casting = (caterva_casting)casting;
    int64_t n = (int64_t)PyArray_SIZE(from);
    options.progress = call_progress(NULL); /* checks for signals */
    call_begin(&c, NULL, NULL);
    caterva_status status = caterva_buffer_convert(&src, n, &dst, &options, &c.err);
    if (call_end(module_state_of(module), &c, status) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- The shared cache -------------------------------------------------------------- */

PyObject *cache_counts_dict(const caterva_cache_info *n)
{
    return Py_BuildValue("{sLsLsLsLsLsLsLsL}", "limit", (long long)n->limit, "bytes",
                         (long long)n->bytes, "blocks", (long long)n->blocks, "hits",
                         (long long)n->hits, "misses", (long long)n->misses, "inserted",
                         (long long)n->inserted, "evicted", (long long)n->evicted,
                         "prefetched", (long long)n->prefetched);
}

PyObject *function_cache_limit(PyObject *module, PyObject *args)
{
    long long bytes;
    call c;
    if (!PyArg_ParseTuple(args, "L", &bytes)) return NULL;
    call_begin(&c, NULL, NULL);
    caterva_status status = caterva_cache_set_limit(bytes, &c.err);
    if (call_end(module_state_of(module), &c, status) < 0) return NULL;
    Py_RETURN_NONE;
}

PyObject *function_cache_counts(PyObject *module, PyObject *args)
{
    caterva_cache_info n = CATERVA_CACHE_INFO_INIT;
    caterva_error err;
    if (!PyArg_ParseTuple(args, "")) return NULL;
    if (caterva_cache_describe(NULL, &n, &err) != CATERVA_OK) {
        raise_error(module_state_of(module), &err, NULL);
        return NULL;
    }
    return cache_counts_dict(&n);
}
