/* Functions on the array at a path: compact, seal, delete, repair. */
#include "call.h"
#include "damages.h"
#include "functions.h"
#include "handle.h"

#include <caterva_upkeep.h>
#include <string.h>

typedef caterva_status upkeep_function(const char *url, const caterva_upkeep_options *options,
                                       caterva_error *err);

static PyObject *keep_up(PyObject *module, PyObject *args, upkeep_function *function)
{
    int durability;
    PyObject *place, *url, *progress;
    caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
    call c;
    if (!PyArg_ParseTuple(args, "UiO", &place, &durability, &progress) ||
        !(url = place_encoded(place)))
        return NULL;
    options.durability = (caterva_durability)durability;
    options.progress = call_progress(NULL);
    const char *text = PyBytes_AsString(url);
    call_begin(&c, NULL, progress);
    c.place = place;
    caterva_status status = function(text, &options, &c.err);
    int result = call_end(module_state_of(module), &c, status);
    Py_DECREF(url);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

PyObject *function_compact(PyObject *module, PyObject *args)
{
    return keep_up(module, args, caterva_compact);
}

PyObject *function_seal(PyObject *module, PyObject *args)
{
    return keep_up(module, args, caterva_seal);
}

PyObject *function_delete(PyObject *module, PyObject *args)
{
    return keep_up(module, args, caterva_delete);
}

/* ---- Repair ----------------------------------------------------------------------- */

typedef struct repairing {
    PyObject *place, *output; /* str; None without an output */
    damages found;
    const char *fill, *fill_dtype; /* or NULL */
    size_t fill_size;
    int ndim;
    bool fill_fits;
} repairing;

static void on_damage(void *context, const caterva_damage *damage)
{
    damages_add(&((repairing *)context)->found, damage);
}

/* Whether the fill is one item of the array. Only the size is compared for a structured dtype,
 * because several texts can describe it. */
static bool fits(const repairing *r, const caterva_info *info)
{
    const char *dtype = r->fill_dtype;
    if (r->fill_size != (size_t)info->item_size) return false;
    return !dtype || strchr("[{(", dtype[0]) || strcmp(dtype, info->dtype) == 0;
}

static int on_found(void *context, const caterva_info *info, void *fill)
{
    repairing *r = context;
    r->ndim = info->ndim;
    if (!r->fill) return 0;
    r->fill_fits = fits(r, info);
    if (r->fill_fits) memcpy(fill, r->fill, r->fill_size);
    return !r->fill_fits;
}

static PyObject *report_of(repairing *r, const caterva_repair_result *result)
{
    PyObject *list = damages_take(&r->found, r->ndim);
    if (!list) return NULL;
    return Py_BuildValue("iOLLLiOON", (int)result->found,
                         result->complete ? Py_True : Py_False, (long long)result->n_chunks,
                         (long long)result->lost_chunks, (long long)result->unverified_chunks,
                         result->lost_attributes, result->in_place ? Py_True : Py_False,
                         result->written ? Py_True : Py_False, list);
}

static PyObject *repair_at(PyObject *module, const char *url, caterva_repair_options *o,
                           repairing *r, PyObject *progress)
{
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    call c;
    o->on_found = on_found;
    o->on_damage = on_damage;
    o->context = r;
    o->progress = call_progress(NULL);
    call_begin(&c, NULL, progress);
    caterva_status status = caterva_repair(url, o, &result, &c.err);
    c.place = status == CATERVA_EEXIST && o->output ? r->output : r->place;
    int ended = call_end(module_state_of(module), &c, status);
    if (ended == 0) return report_of(r, &result);
    Py_XDECREF(damages_take(&r->found, 0));
    if (r->fill_fits) return NULL;
    PyErr_Clear();
    return PyErr_Format(PyExc_ValueError,
                        "the fill value (%zd bytes of dtype %s) is not an item of %S",
                        (Py_ssize_t)r->fill_size, r->fill_dtype ? r->fill_dtype : "unknown",
                        r->place);
}

/* (url, output or None, overwrite, guess, threads, durability, fill bytes or None, their dtype or
 * None, progress)
 * to (found, complete, chunks, lost chunks, unverified chunks, lost attributes, in place,
 * written, [damages]) */
PyObject *function_repair(PyObject *module, PyObject *args)
{
    Py_ssize_t fill_size;
    PyObject *progress;
    repairing r = {.fill_fits = true};
    caterva_repair_options o = CATERVA_REPAIR_INIT;
    int durability;
    if (!PyArg_ParseTuple(args, "UOppiiz#zO", &r.place, &r.output, &o.overwrite, &o.guess,
                          &o.threads, &durability, &r.fill, &fill_size, &r.fill_dtype,
                          &progress))
        return NULL;
    r.fill_size = (size_t)fill_size;
    o.durability = (caterva_durability)durability;
    PyObject *url = place_encoded(r.place), *target = NULL;
    if (url && r.output != Py_None) target = place_encoded(r.output);
    bool encoded = url && (target || r.output == Py_None);
    PyObject *report = NULL;
    if (encoded) {
        o.output = target ? PyBytes_AsString(target) : NULL;
        report = repair_at(module, PyBytes_AsString(url), &o, &r, progress);
    }
    Py_XDECREF(url);
    Py_XDECREF(target);
    return report;
}
