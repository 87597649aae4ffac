/* See foreign.h. Hooks of os.register_at_fork take the lock. They run before the interpreter
 * prepares a fork, when newer Pythons take a lock of their own. */
#include "foreign.h"

#include <caterva_store.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#ifndef _WIN32
#include <dlfcn.h>
#endif

enum { PATIENCE = 10 }; /* seconds to wait at exit for calls of Python that do not return */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static PyInterpreterState *interpreter; /* the main one, see module.c         */
static int n_inside;                    /* threads with a state of make_state */
static bool is_over;                    /* no further thread may enter        */
static bool was_refused;                /* a thread, since is_over was set    */
static _Thread_local bool is_inside, is_last;

/* Makes and counts a thread state for this thread. Returns NULL if it may not enter Python. */
static PyThreadState *make_state(void)
{
    pthread_mutex_lock(&lock);
    PyThreadState *made = is_over || !interpreter ? NULL : PyThreadState_New(interpreter);
    is_inside = made != NULL;
    n_inside += is_inside;
    was_refused |= is_over;
    pthread_mutex_unlock(&lock);
    return made;
}

bool foreign_was_refused(void)
{
    pthread_mutex_lock(&lock);
    bool refused = was_refused && !is_last;
    pthread_mutex_unlock(&lock);
    return refused;
}

foreign foreign_enter(void)
{
    foreign f = {NULL, PyGILState_UNLOCKED, true};
    if (PyGILState_GetThisThreadState()) {
        f.gil = PyGILState_Ensure();
        return f;
    }
    f.made = make_state();
    f.is_in = f.made != NULL;
    if (f.made) PyEval_AcquireThread(f.made);
    return f;
}

void foreign_leave(foreign f)
{
    if (!f.is_in) return;
    if (!f.made) {
        PyGILState_Release(f.gil);
        return;
    }
    PyThreadState_Clear(f.made);
    PyEval_ReleaseThread(f.made);
    pthread_mutex_lock(&lock);
    PyThreadState_Delete(f.made);
    is_inside = false;
    n_inside--;
    pthread_cond_broadcast(&left);
    pthread_mutex_unlock(&lock);
}

/* ---- Exit ------------------------------------------------------------------------ */

/* Runs before the interpreter is finalized. From then on arrays work on the calling threads only.
 * Waits, for at most PATIENCE seconds, until library threads have left Python. */
static PyObject *at_exit(PyObject *self, PyObject *unused)
{
    struct timespec until;
    (void)self, (void)unused;
    PyThreadState *thread = PyEval_SaveThread();
    caterva_background_hold();
    pthread_mutex_lock(&lock);
    is_over = is_last = true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    while (n_inside > is_inside && !pthread_cond_timedwait(&left, &lock, &until)) continue;
    pthread_mutex_unlock(&lock);
    PyEval_RestoreThread(thread);
    Py_RETURN_NONE;
}

/* Returns a function of a module: a new reference. */
static PyObject *function_of(const char *module, const char *name)
{
    PyObject *object = PyImport_ImportModule(module);
    PyObject *function = object ? PyObject_GetAttrString(object, name) : NULL;
    Py_XDECREF(object);
    return function;
}

/* ---- Forks ---------------------------------------------------------------------- */

#ifdef _WIN32 /* has none */
static int watch_forks(void) { return 0; }
#else
static _Thread_local bool is_forking, has_held;

/* Waits until background reads, which may call Python, have ended. */
static void hold(void)
{
    has_held = true;
    caterva_background_hold();
}

static void resume(void)
{
    if (has_held) caterva_background_resume();
    has_held = false;
}

static PyObject *before_fork(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    PyThreadState *thread = PyEval_SaveThread();
    hold();
    pthread_mutex_lock(&lock); /* without the GIL: a holder of the lock may need it */
    PyEval_RestoreThread(thread);
    is_forking = true;
    Py_RETURN_NONE;
}

static PyObject *after_in_parent(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    is_forking = false;
    pthread_mutex_unlock(&lock);
    resume();
    Py_RETURN_NONE;
}

static PyObject *after_in_child(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    is_forking = has_held = false;
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&left, NULL);
    n_inside = is_inside;
    Py_RETURN_NONE;
}

/* subprocess forks with the GIL but without these hooks if it changes the user or cannot use vfork.
 * To find out whether a thread has the GIL is not part of the stable ABI, and the function has had
 * two names. If neither exists, such forks are not handled. */
static PyThreadState *(*current_state)(void);

static void find_current_state(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    if (!symbol) symbol = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    memcpy(&current_state, &symbol, sizeof symbol);
}

static bool has_gil(void)
{
    const PyThreadState *own = PyGILState_GetThisThreadState();
    return own && current_state && current_state() == own;
}

static void before_any_fork(void)
{
    if (is_forking || !has_gil()) return;
    PyThreadState *thread = PyEval_SaveThread();
    hold();
    PyEval_RestoreThread(thread);
}

static void after_any_fork(void)
{
    if (!is_forking) resume();
}

/* Calls the library first, so that it has added its own handlers: of the "prepare" handlers, the
 * last one added runs first, and ours must run before the library's. */
static void watch_any_fork(void)
{
    find_current_state();
    caterva_background_hold();
    caterva_background_resume();
    (void)pthread_atfork(before_any_fork, after_any_fork, NULL);
}

static PyMethodDef at_forks[] = {
    {"before", before_fork, METH_NOARGS, NULL},
    {"after_in_parent", after_in_parent, METH_NOARGS, NULL},
    {"after_in_child", after_in_child, METH_NOARGS, NULL},
};

static int fill_words(PyObject *words)
{
    for (size_t i = 0; i < sizeof at_forks / sizeof at_forks[0]; i++) {
        PyObject *hook = PyCFunction_New(&at_forks[i], NULL);
        int status = hook ? PyDict_SetItemString(words, at_forks[i].ml_name, hook) : -1;
        Py_XDECREF(hook);
        if (status < 0) return -1;
    }
    return 0;
}

static int watch_forks(void)
{
    PyObject *watch = function_of("os", "register_at_fork");
    PyObject *words = PyDict_New(), *none = PyTuple_New(0), *result = NULL;
    if (watch && words && none && fill_words(words) == 0)
        result = PyObject_Call(watch, none, words);
    Py_XDECREF(result);
    Py_XDECREF(none);
    Py_XDECREF(words);
    Py_XDECREF(watch);
    if (result) watch_any_fork();
    return result ? 0 : -1;
}
#endif

/* ---- Registration ------------------------------------------------------------------ */

static PyMethodDef at_end = {"at_exit", at_exit, METH_NOARGS, NULL};

static int watch_end(void)
{
    PyObject *watch = function_of("atexit", "register");
    PyObject *hook = PyCFunction_New(&at_end, NULL);
    PyObject *result = watch && hook ? PyObject_CallFunctionObjArgs(watch, hook, NULL) : NULL;
    Py_XDECREF(result);
    Py_XDECREF(hook);
    Py_XDECREF(watch);
    return result ? 0 : -1;
}

int foreign_init(void)
{
    PyInterpreterState *here = PyInterpreterState_Get();
    if (interpreter || PyInterpreterState_GetID(here) != 0) return 0;
    if (watch_forks() < 0 || watch_end() < 0) return -1;
    interpreter = here;
    return 0;
}
