/* Publishing a finished file: options, and the result. */
#include "call.h"
#include "functions.h"
#include "handle.h"
#include "options.h"
#include "remote.h"

#include <caterva_remote.h>
#include <string.h>

/* Returns the name for the exception: the URL if the message contains one, else the file. */
static PyObject *place_of_error(const caterva_error *err, PyObject *place, PyObject *url)
{
    return strstr(err->message, "://") ? url : place;
}

static PyObject *publish(module_state *state, PyObject *place, PyObject *url,
                         caterva_publish_options *options, PyObject *progress)
{
    caterva_publish_result r = CATERVA_PUBLISH_RESULT_INIT;
    call c;
    PyObject *path = place_encoded(place), *to = path ? place_encoded(url) : NULL;
    if (!to) {
        Py_XDECREF(path);
        return NULL;
    }
    const char *text = PyBytes_AsString(path), *to_text = PyBytes_AsString(to);
    options->progress = call_progress(&c);
    call_begin(&c, NULL, progress);
    c.reporter = &c;
    caterva_status status = caterva_publish(text, to_text, options, &r, &c.err);
    if (status != CATERVA_OK) c.place = place_of_error(&c.err, place, url);
    int result = call_end(state, &c, status);
    Py_DECREF(path);
    Py_DECREF(to);
    if (result < 0) return NULL;
    return Py_BuildValue("LLLLLOO", (long long)r.bytes, (long long)r.parts,
                         (long long)r.parts_kept, (long long)r.requests, (long long)r.retried,
                         r.verified ? Py_True : Py_False, r.was_there ? Py_True : Py_False);
}

/* (path, URL, options, progress, remote) to (bytes, parts, parts kept, requests, retried,
 * verified, was there) */
PyObject *function_publish(PyObject *module, PyObject *args)
{
    module_state *state = module_state_of(module);
    PyObject *place, *url, *words, *progress, *remote;
    caterva_publish_options options;
    if (!PyArg_ParseTuple(args, "UUO!OO", &place, &url, &PyDict_Type, &words, &progress,
                          &remote) ||
        remote_check_thread() < 0 || remote_parse(state, remote, &remote) < 0 ||
        publish_options_parse(words, &options) < 0)
        return NULL;
    options.remote = remote_options_of(remote);
    return publish(state, place, url, &options, progress);
}
