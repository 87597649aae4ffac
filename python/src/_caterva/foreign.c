/* See foreign.h. The lock is taken by hooks of os.register_at_fork, which run before the
 * interpreter's own preparations: a later Python holds its lock while it forks. */
#include "foreign.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static PyInterpreterState *interpreter; /* the only one, see module.c */

foreign foreign_enter(void)
{
    foreign f = {NULL, PyGILState_UNLOCKED};
    if (interpreter && Py_IsInitialized() && !PyGILState_GetThisThreadState()) {
        pthread_mutex_lock(&lock);
        f.made = PyThreadState_New(interpreter);
        pthread_mutex_unlock(&lock);
    }
    if (f.made)
        PyEval_AcquireThread(f.made);
    else
        f.gil = PyGILState_Ensure();
    return f;
}

void foreign_leave(foreign f)
{
    if (!f.made) {
        PyGILState_Release(f.gil);
        return;
    }
    PyThreadState_Clear(f.made);
    PyEval_ReleaseThread(f.made);
    pthread_mutex_lock(&lock);
    PyThreadState_Delete(f.made);
    pthread_mutex_unlock(&lock);
}

/* ---- Forks ---------------------------------------------------------------------- */

static PyObject *before_fork(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    if (pthread_mutex_trylock(&lock) == 0) Py_RETURN_NONE;
    PyThreadState *thread = PyEval_SaveThread(); /* another thread forks, and wants the GIL */
    pthread_mutex_lock(&lock);
    PyEval_RestoreThread(thread);
    Py_RETURN_NONE;
}

static PyObject *after_in_parent(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}

static PyObject *after_in_child(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    pthread_mutex_init(&lock, NULL);
    Py_RETURN_NONE;
}

static PyMethodDef hooks[] = {
    {"before", before_fork, METH_NOARGS, NULL},
    {"after_in_parent", after_in_parent, METH_NOARGS, NULL},
    {"after_in_child", after_in_child, METH_NOARGS, NULL},
};

static int fill_hooks(PyObject *words)
{
    for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++) {
        PyObject *hook = PyCFunction_New(&hooks[i], NULL);
        int status = hook ? PyDict_SetItemString(words, hooks[i].ml_name, hook) : -1;
        Py_XDECREF(hook);
        if (status < 0) return -1;
    }
    return 0;
}

int foreign_init(void)
{
    if (interpreter) return 0;
    PyObject *os = PyImport_ImportModule("os");
    PyObject *register_at_fork = os ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
    PyObject *words = PyDict_New(), *none = PyTuple_New(0), *result = NULL;
    if (register_at_fork && words && none && fill_hooks(words) == 0)
        result = PyObject_Call(register_at_fork, none, words);
    if (result) interpreter = PyInterpreterState_Get();
    Py_XDECREF(result);
    Py_XDECREF(none);
    Py_XDECREF(words);
    Py_XDECREF(register_at_fork);
    Py_XDECREF(os);
    return interpreter ? 0 : -1;
}
