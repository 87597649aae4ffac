/* Many writers: methods of an Array that begin and merge jobs; functions that open and finish
 * parts, and that list and delete the jobs at a path. */
#include "array.h"
#include "functions.h"
#include "options.h"
#include <caterva_jobs.h>
#include <caterva_upkeep.h>

/* ---- Bytes ------------------------------------------------------------------------- */

/* Converts bytes that the library has allocated to a Python object, and frees them. */
static PyObject *take_bytes(void *bytes, size_t size)
{
    PyObject *out = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
    caterva_free(bytes);
    return out;
}

/* ---- The coordinator ----------------------------------------------------------------- */

/* (the shape to grow to, or None) to the job's token */
static PyObject *job_begin(PyObject *object, PyObject *args)
{
    array_object *self = (array_object *)object;
    PyObject *shape;
    int64_t lengths[CATERVA_MAX_DIMS];
    caterva_job_options options = CATERVA_JOB_INIT;
    void *job = NULL;
    size_t size = 0;
    call c;
    if (!PyArg_ParseTuple(args, "O", &shape)) return NULL;
    if (shape != Py_None) {
        int n = parse_int64s(shape, "shape", lengths);
        if (n < 0) return NULL;
        if (n != self->ndim)
            return PyErr_Format(PyExc_ValueError, "shape has %d axes, the array %d", n,
                                self->ndim);
        options.shape = lengths;
    }
    if (array_enter(self) < 0) return NULL;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_job_begin(self->handle, &options, &job, &size, &c.err);
    int result = call_end(self->state, &c, status);
    result = array_look(self, result);
    array_leave(self);
    if (result == 0) return take_bytes(job, size);
    if (status == CATERVA_OK) caterva_free(job);
    return NULL;
}

typedef struct merging {
    const void **tokens; /* free with PyMem_Free, like `sizes` */
    size_t *sizes;
    size_t n;
} merging;

/* Fills *out with pointers to the tokens of the tuple, which must live as long as *out. */
static int list_tokens(PyObject *tuple, merging *out)
{
    out->n = (size_t)PyTuple_Size(tuple);
    out->tokens = PyMem_Calloc(out->n + 1, sizeof out->tokens[0]);
    out->sizes = PyMem_Calloc(out->n + 1, sizeof out->sizes[0]);
    if (!out->tokens || !out->sizes) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < out->n; i++) {
        char *bytes;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(tuple, (Py_ssize_t)i), &bytes, &size) < 0)
            return -1;
        out->tokens[i] = bytes;
        out->sizes[i] = (size_t)size;
    }
    return 0;
}

static PyObject *merge_tokens(array_object *self, const merging *m,
                              caterva_merge_options *options, PyObject *progress)
{
    caterva_merge_result r = CATERVA_MERGE_RESULT_INIT;
    call c;
    if (array_enter(self) < 0) return NULL;
    options->progress = call_progress(&c);
    call_begin(&c, self, progress);
    c.reporter = &c;
    caterva_status status =
        caterva_merge(self->handle, m->tokens, m->sizes, m->n, options, &r, &c.err);
    int result = call_end(self->state, &c, status);
    result = array_look(self, result);
    array_leave(self);
    if (result < 0) return NULL;
    return Py_BuildValue("LLLLLL", (long long)r.parts, (long long)r.chunks,
                         (long long)r.moved_chunks, (long long)r.spliced_chunks,
                         (long long)r.decoded_blocks, (long long)r.merged_before);
}

/* (tuple of tokens, overlap, unchecked, keep, progress) to the counts of the result */
static PyObject *merge(PyObject *object, PyObject *args)
{
    PyObject *tuple, *progress;
    int overlap;
    merging m = {NULL, NULL, 0};
    caterva_merge_options options = CATERVA_MERGE_INIT;
    if (!PyArg_ParseTuple(args, "O!ippO", &PyTuple_Type, &tuple, &overlap, &options.unchecked,
                          &options.keep, &progress))
        return NULL;
    options.overlap = (caterva_overlap)overlap;
    PyObject *result = NULL;
    if (list_tokens(tuple, &m) == 0)
        result = merge_tokens((array_object *)object, &m, &options, progress);
    PyMem_Free(m.tokens);
    PyMem_Free(m.sizes);
    return result;
}

/* ---- Workers --------------------------------------------------------------------------- */

/* (type, url, job, options, progress) */
PyObject *function_part_open(PyObject *module, PyObject *args)
{
    module_state *state = module_state_of(module);
    PyObject *type, *place, *dict, *url;
    const char *job;
    Py_ssize_t size;
    array_birth birth = {0};
    call c;
    if (!PyArg_ParseTuple(args, "OUy#O!O", &type, &place, &job, &size, &PyDict_Type, &dict,
                          &birth.progress) ||
        array_type_check(state, type) < 0 || open_options_parse(dict, &birth.again) < 0 ||
        !(url = place_encoded(place)))
        return NULL;
    const char *text = PyBytes_AsString(url);
    call_begin(&c, NULL, birth.progress);
    c.place = place;
    caterva_status status =
        caterva_part_open(text, job, (size_t)size, &birth.again, &birth.handle, &c.err);
    int result = call_end(state, &c, status);
    Py_DECREF(url);
    if (result < 0) {
        if (status == CATERVA_OK) caterva_discard(birth.handle);
        return NULL;
    }
    birth.place = place;
    birth.is_part = true;
    return array_wrap(state, (PyTypeObject *)type, &birth);
}

/* Finishes the part and releases its handle. Call while the gate is shut. */
static PyObject *finish(array_object *self)
{
    if (!self->handle) {
        PyErr_SetString(PyExc_ValueError, "the part is closed");
        return NULL;
    }
    if (handle_is_a_parents(self)) {
        PyErr_SetString(PyExc_ValueError,
                        "the part belongs to the process from which this one was forked");
        return NULL;
    }
    void *token = NULL;
    size_t size = 0;
    call c;
    call_begin(&c, self, self->progress);
    caterva_status status = caterva_part_finish(self->handle, &token, &size, &c.err);
    self->handle = NULL;
    int result = call_end(self->state, &c, status);
    if (result == 0) return take_bytes(token, size);
    if (status == CATERVA_OK) caterva_free(token);
    return NULL;
}

static PyObject *part_finish(PyObject *object, PyObject *unused)
{
    (void)unused;
    array_object *self = (array_object *)object;
    if (handle_shut_gate(self) < 0) return NULL;
    PyObject *token = finish(self);
    gate_open(&self->gate);
    return token;
}

PyMethodDef array_job_methods[] = {
    {"_job_begin", job_begin, METH_VARARGS, NULL},
    {"_merge", merge, METH_VARARGS, NULL},
    {"_part_finish", part_finish, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- The jobs at a path ---------------------------------------------------------------- */

/* Returns options that report progress to `c`. */
static caterva_upkeep_options heard_by(call *c)
{
    caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
    options.progress = call_progress(c);
    return options;
}

/* (url, job, progress=None) */
PyObject *function_job_delete(PyObject *module, PyObject *args)
{
    PyObject *place, *url, *progress = Py_None;
    const char *job;
    Py_ssize_t size;
    call c;
    if (!PyArg_ParseTuple(args, "Uy#|O", &place, &job, &size, &progress) ||
        !(url = place_encoded(place)))
        return NULL;
    const char *text = PyBytes_AsString(url);
    const caterva_upkeep_options options = heard_by(&c);
    call_begin(&c, NULL, progress);
    c.reporter = &c;
    c.place = place;
    caterva_status status = caterva_job_delete(text, job, (size_t)size, &options, &c.err);
    int result = call_end(module_state_of(module), &c, status);
    Py_DECREF(url);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *entry_tuple(const caterva_job_entry *e)
{
    return Py_BuildValue(
        "sNy#NLLLOLLO", e->id, PyUnicode_DecodeFSDefault(e->folder), (const char *)e->job,
        (Py_ssize_t)e->job_size, text_of(e->host), (long long)e->process,
        (long long)e->began_ns, (long long)e->commit_number, e->is_live ? Py_True : Py_False,
        (long long)e->n_parts, (long long)e->part_bytes, e->has_ended ? Py_True : Py_False);
}

/* (url, progress=None) to [(id, folder, job, host, process, began, commit, live, parts, bytes,
 * ended), ...] */
PyObject *function_jobs_list(PyObject *module, PyObject *args)
{
    PyObject *place, *url, *progress = Py_None;
    const caterva_job_list *list;
    call c;
    if (!PyArg_ParseTuple(args, "U|O", &place, &progress) || !(url = place_encoded(place)))
        return NULL;
    const char *text = PyBytes_AsString(url);
    const caterva_upkeep_options options = heard_by(&c);
    call_begin(&c, NULL, progress);
    c.reporter = &c;
    c.place = place;
    caterva_status status = caterva_jobs_list(text, &options, &list, &c.err);
    int result = call_end(module_state_of(module), &c, status);
    Py_DECREF(url);
    if (result < 0) {
        if (status == CATERVA_OK) caterva_job_list_release(list);
        return NULL;
    }
    PyObject *out = PyList_New(0);
    for (size_t i = 0; out && i < list->n; i++) {
        PyObject *entry = entry_tuple(list->entries[i]);
        if (!entry || PyList_Append(out, entry) < 0) Py_CLEAR(out);
        Py_XDECREF(entry);
    }
    caterva_job_list_release(list);
    return out;
}
