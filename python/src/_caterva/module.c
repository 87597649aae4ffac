/* The module _caterva: its state and its initialization. */
#define IMPORTS_NUMPY
#include "extension.h"

#include "array.h"
#include "foreign.h"
#include "functions.h"
#include "options.h"

void gather_methods(PyMethodDef *const *lists, size_t n, PyMethodDef *out, int room)
{
    int next = 0;
    for (size_t i = 0; i < n; i++)
        for (PyMethodDef *m = lists[i]; m->ml_name && next < room; m++) out[next++] = *m;
}

/* ---- State ------------------------------------------------------------------- */

module_state *module_state_of(PyObject *module) { return PyModule_GetState(module); }

int interpreter_check(const char *what)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return 0;
    PyErr_Format(PyExc_RuntimeError, "a subinterpreter cannot %s", what);
    return -1;
}

static int import_name(const char *module, const char *name, PyObject **out)
{
    PyObject *imported = PyImport_ImportModule(module);
    if (!imported) return -1;
    *out = PyObject_GetAttrString(imported, name);
    Py_DECREF(imported);
    return *out ? 0 : -1;
}

static int import_helpers(module_state *state)
{
    state->empty_tuple = PyTuple_New(0);
    state->failures = PyDict_New();
    if (!state->empty_tuple || !state->failures) return -1;
    if (import_name("caterva._errors", "make", &state->raise) < 0) return -1;
    if (import_name("caterva._dtypes", "of_text", &state->dtype_of_text) < 0) return -1;
    if (import_name("caterva._indexing", "as_source", &state->as_source) < 0) return -1;
    if (import_name("caterva._indexing", "read_fancy", &state->read_fancy) < 0) return -1;
    return import_name("caterva._indexing", "write_fancy", &state->write_fancy);
}

static int add_constants(PyObject *module)
{
    if (PyModule_AddStringConstant(module, "version", caterva_version()) < 0 ||
        PyModule_AddStringConstant(module, "codec_version", caterva_codec_version()) < 0 ||
        PyModule_AddIntConstant(module, "MAX_DIMS", CATERVA_MAX_DIMS) < 0)
        return -1;
    return PyModule_AddIntConstant(module, "MAX_WRITE_DIMS", CATERVA_MAX_WRITE_DIMS);
}

static int execute(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    import_array1(-1);
    state->module = module;
    gate_watch_forks();
    if (foreign_init() < 0) return -1;
    if (import_helpers(state) < 0 || add_constants(module) < 0) return -1;
    if (array_add_type(module, state) < 0 || view_add_type(module, state) < 0) return -1;
    if (request_add_type(module, state) < 0 || remote_add_type(module, state) < 0) return -1;
    return tree_add_type(module, state);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = PyModule_GetState(module);
    if (!state) return 0;
    Py_VISIT((PyObject *)state->array_type);
    Py_VISIT((PyObject *)state->view_type);
    Py_VISIT((PyObject *)state->request_type);
    Py_VISIT((PyObject *)state->tree_type);
    Py_VISIT((PyObject *)state->remote_type);
    Py_VISIT(state->failures);
    Py_VISIT(state->raise);
    Py_VISIT(state->read_fancy);
    Py_VISIT(state->write_fancy);
    Py_VISIT(state->as_source);
    Py_VISIT(state->dtype_of_text);
    return 0;
}

static int clear(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    if (!state) return 0;
    Py_CLEAR(state->array_type);
    Py_CLEAR(state->view_type);
    Py_CLEAR(state->request_type);
    Py_CLEAR(state->tree_type);
    Py_CLEAR(state->remote_type);
    Py_CLEAR(state->failures);
    Py_CLEAR(state->raise);
    Py_CLEAR(state->read_fancy);
    Py_CLEAR(state->write_fancy);
    Py_CLEAR(state->as_source);
    Py_CLEAR(state->dtype_of_text);
    Py_CLEAR(state->empty_tuple);
    return 0;
}

static void release(void *module) { (void)clear(module); }

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "caterva._caterva",
    .m_doc = "The library's functions for the Python side of the package.",
    .m_size = sizeof(module_state),
    .m_methods = module_functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__caterva(void) { return PyModuleDef_Init(&definition); }
