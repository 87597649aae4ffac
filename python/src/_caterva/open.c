/* Opening, creating and copying arrays. */
#include "array.h"
#include "functions.h"
#include "options.h"
#include "remote.h"
#include "view.h"
#include <caterva_store.h>
#include <caterva_upkeep.h>

/* ---- Opening ------------------------------------------------------------------- */

int array_type_check(module_state *state, PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, state->array_type))
        return 0;
    PyErr_SetString(PyExc_TypeError, "the first argument must be a subclass of Array");
    return -1;
}

PyObject *function_open(PyObject *module, PyObject *args)
{
    module_state *state = module_state_of(module);
    PyObject *type, *place, *url, *dict, *progress, *remote = Py_None;
    caterva_open_options options;
    array_birth birth = {0};
    call c;
    if (!PyArg_ParseTuple(args, "OUO!O|O", &type, &place, &PyDict_Type, &dict, &progress,
                          &remote) ||
        array_type_check(state, type) < 0 || open_options_parse(dict, &options) < 0 ||
        remote_parse(state, remote, &birth.remote) < 0 || remote_check_thread() < 0 ||
        !(url = place_encoded(place)))
        return NULL;
    options.remote = remote_options_of(birth.remote);
    const char *text = PyBytes_AsString(url);
    call_begin(&c, NULL, progress);
    c.place = place;
    caterva_status status = caterva_open(text, &options, &birth.handle, &c.err);
    int result = call_end(state, &c, status);
    Py_DECREF(url);
    if (result < 0) {
        if (status == CATERVA_OK) caterva_discard(birth.handle);
        return NULL;
    }
    birth.again = options;
    birth.place = place;
    birth.progress = progress;
    return array_wrap(state, (PyTypeObject *)type, &birth);
}

PyObject *function_open_frame(PyObject *module, PyObject *args)
{
    module_state *state = module_state_of(module);
    PyObject *type, *frame, *dict, *progress;
    int copy;
    caterva_open_options options;
    array_birth birth = {0};
    call c;
    if (!PyArg_ParseTuple(args, "OSpO!O", &type, &frame, &copy, &PyDict_Type, &dict,
                          &progress) ||
        array_type_check(state, type) < 0 || open_options_parse(dict, &options) < 0)
        return NULL;
    const char *bytes = PyBytes_AsString(frame);
    size_t size = (size_t)PyBytes_Size(frame);
    call_begin(&c, NULL, progress);
    caterva_status status =
        caterva_frame_open(bytes, size, copy, &options, &birth.handle, &c.err);
    if (call_end(state, &c, status) < 0) {
        if (status == CATERVA_OK) caterva_discard(birth.handle);
        return NULL;
    }
    birth.again = options;
    birth.frame = copy ? NULL : frame;
    birth.progress = progress;
    return array_wrap(state, (PyTypeObject *)type, &birth);
}

caterva_open_options open_options_like(const caterva_create_options *o)
{
    caterva_open_options again = CATERVA_OPEN_INIT;
    again.mode = CATERVA_MODE_WRITE;
    again.threads = o->threads;
    again.durability = o->durability;
    again.dirty_budget = o->dirty_budget;
    again.cache_bytes = o->cache_bytes;
    again.no_read_ahead = o->no_read_ahead;
    again.compact_percent = o->compact_percent;
    again.progress = o->progress;
    return again;
}

/* ---- Creating -------------------------------------------------------------------- */

PyObject *function_create(PyObject *module, PyObject *args)
{
    module_state *state = module_state_of(module);
    PyObject *type, *place, *url, *dict, *progress;
    create_parts parts = {.metalayers = NULL};
    caterva_create_options options;
    array_birth birth = {0};
    call c;
    if (!PyArg_ParseTuple(args, "OUO!O", &type, &place, &PyDict_Type, &dict, &progress) ||
        array_type_check(state, type) < 0 || !(url = place_encoded(place)))
        return NULL;
    if (create_options_parse(dict, &parts, &options) < 0) {
        PyMem_Free(parts.metalayers);
        Py_DECREF(url);
        return NULL;
    }
    const char *text = PyBytes_AsString(url);
    call_begin(&c, NULL, progress);
    c.place = place;
    caterva_status status = caterva_create(text, &options, &birth.handle, &c.err);
    int result = call_end(state, &c, status);
    PyMem_Free(parts.metalayers);
    Py_DECREF(url);
    if (result < 0) {
        if (status == CATERVA_OK) caterva_discard(birth.handle);
        return NULL;
    }
    birth.again = open_options_like(&options);
    birth.place = place;
    birth.progress = progress;
    birth.drops = true; /* until _complete: an interruption must not replace a file */
    return array_wrap(state, (PyTypeObject *)type, &birth);
}

/* ---- Copying --------------------------------------------------------------------- */

typedef struct copying {
    create_parts parts;
    caterva_create_options create;
    caterva_copy_options options;
    PyObject *place; /* path of the copy */
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
} copying;

static PyObject *item_of(PyObject *dict, const char *name)
{
    PyObject *item = PyDict_GetItemString(dict, name);
    return item == Py_None ? NULL : item;
}

/* Parses the options of a copy: start, stop, memory, convert_to, casting, for_remote and
 * zarr. */
static int parse_copy(PyObject *dict, copying *out)
{
    PyObject *start = item_of(dict, "start"), *stop = item_of(dict, "stop");
    PyObject *memory = item_of(dict, "memory");
    PyObject *dtype = item_of(dict, "convert_to"), *casting = item_of(dict, "casting");
    PyObject *far = item_of(dict, "for_remote"), *zarr = item_of(dict, "zarr");
    out->options = (caterva_copy_options)CATERVA_COPY_INIT;
    if (start && parse_int64s(start, "start", out->start) < 0) return -1;
    if (stop && parse_int64s(stop, "stop", out->stop) < 0) return -1;
    if (start) out->options.start = out->start;
    if (stop) out->options.stop = out->stop;
    if (memory) out->options.memory = PyLong_AsLongLong(memory);
    if (dtype) out->options.convert_to = PyUnicode_AsUTF8AndSize(dtype, NULL);
    if (far) out->options.for_remote = PyObject_IsTrue(far) ? 1 : CATERVA_NONE;
    if (zarr) out->options.zarr = PyObject_IsTrue(zarr);
    if (casting) out->options.casting = (caterva_casting)PyLong_AsLong(casting);
    return PyErr_Occurred() ? -1 : 0;
}

/* Makes the object for a copy. */
static PyObject *wrap_copy(module_state *state, PyObject *type, const copying *order,
                           caterva_array *handle)
{
    array_birth birth = {.handle = handle, .place = order->place};
    birth.again = open_options_like(&order->create);
    if (order->options.zarr) birth.again.mode = CATERVA_MODE_READ;
    return array_wrap(state, (PyTypeObject *)type, &birth);
}

static PyObject *copy_source(module_state *state, PyObject *source, const char *url,
                             copying *order, PyObject *progress, caterva_array **out)
{
    call c;
    if (PyObject_TypeCheck(source, state->view_type)) {
        if (view_copy((view_object *)source, url, order->place, &order->options, progress,
                      out) < 0)
            return NULL;
        Py_RETURN_NONE;
    }
    array_object *array = array_of(state, source);
    if (!array || array_enter(array) < 0) return NULL;
    order->options.progress = call_progress(&c);
    call_begin(&c, array, progress);
    c.reporter = &c;
    caterva_status status = caterva_copy(array->handle, url, &order->options, out, &c.err);
    if (status != CATERVA_ECORRUPT) c.place = order->place;
    int result = call_end(state, &c, status);
    array_leave(array);
    if (result < 0 && status == CATERVA_OK) caterva_discard(*out);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

PyObject *function_copy(PyObject *module, PyObject *args)
{
    module_state *state = module_state_of(module);
    PyObject *type, *source, *place, *url, *create, *how, *progress, *done = NULL;
    caterva_array *handle = NULL;
    copying order = {.parts = {.metalayers = NULL}};
    if (!PyArg_ParseTuple(args, "OOUO!O!O", &type, &source, &place, &PyDict_Type, &create,
                          &PyDict_Type, &how, &progress) ||
        array_type_check(state, type) < 0 || !(url = place_encoded(place)))
        return NULL;
    if (create_options_parse(create, &order.parts, &order.create) == 0 &&
        parse_copy(how, &order) == 0) {
        order.options.create = &order.create;
        order.place = place;
        done = copy_source(state, source, PyBytes_AsString(url), &order, progress, &handle);
    }
    PyMem_Free(order.parts.metalayers);
    Py_DECREF(url);
    if (!done) return NULL;
    Py_DECREF(done);
    return wrap_copy(state, type, &order, handle);
}
