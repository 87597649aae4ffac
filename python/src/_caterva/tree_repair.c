/* Repairs the tree at a path. The results of members are collected without the GIL and converted to
 * Python at the end. */
#include "call.h"
#include "damages.h"
#include "functions.h"
#include "handle.h"

#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

typedef struct member {
    char *key, *kind_name, *reason, *beside; /* owned; the last two may be NULL */
    caterva_outcome outcome;
    caterva_repair_result result;
    damages found;
    int ndim;
} member;

typedef struct repairing {
    PyObject *place, *output; /* str; None without an output */
    damages found;            /* in the current member */
    int ndim;                 /* of the current member; 0: no readable header */
    member *list;             /* the members that were damaged */
    size_t n, room;
    bool lost; /* an allocation failed */
} repairing;

/* ---- Collecting ------------------------------------------------------------------ */

static int on_found(void *context, const char *key, const caterva_info *info, void *fill)
{
    (void)key;
    (void)fill;
    ((repairing *)context)->ndim = info->ndim;
    return 0;
}

static void on_damage(void *context, const char *key, const caterva_damage *damage)
{
    (void)key;
    damages_add(&((repairing *)context)->found, damage);
}

static char *copy_of(const char *text, bool *lost)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) *lost = true;
    return copy;
}

static member *new_member(repairing *r)
{
    if (r->n == r->room) {
        size_t room = r->room ? 2 * r->room : 16;
        member *list = realloc(r->list, room * sizeof *list);
        if (!list) return NULL;
        r->list = list;
        r->room = room;
    }
    return &r->list[r->n++];
}

static int on_member(void *context, const caterva_tree_repaired *m)
{
    repairing *r = context;
    member *kept = m->outcome == CATERVA_OUTCOME_SOUND ? NULL : new_member(r);
    if (kept) {
        *kept = (member){.outcome = m->outcome, .result = *m->result, .ndim = r->ndim};
        kept->key = copy_of(m->key, &r->lost);
        kept->kind_name = copy_of(m->kind_name, &r->lost);
        kept->reason = copy_of(m->reason, &r->lost);
        kept->beside = copy_of(m->beside, &r->lost);
        kept->found = r->found;
    } else {
        if (m->outcome != CATERVA_OUTCOME_SOUND) r->lost = true;
        damages_drop(&r->found);
    }
    r->found = (damages){.list = NULL};
    r->ndim = 0;
    return r->lost;
}

/* ---- Converting --------------------------------------------------------------------- */

static PyObject *text_or_none(const char *text)
{
    if (text) return text_of(text);
    Py_RETURN_NONE;
}

static PyObject *tuple_of(member *m)
{
    const caterva_repair_result *result = &m->result;
    PyObject *places = damages_take(&m->found, m->ndim);
    if (!places) return NULL;
    return Py_BuildValue("NNiNN(iOLLLiOO)N", text_of(m->key), text_of(m->kind_name),
                         (int)m->outcome, text_or_none(m->reason), text_or_none(m->beside),
                         (int)result->found, result->complete ? Py_True : Py_False,
                         (long long)result->n_chunks, (long long)result->lost_chunks,
                         (long long)result->unverified_chunks, result->lost_attributes,
                         result->in_place ? Py_True : Py_False,
                         result->written ? Py_True : Py_False, places);
}

static PyObject *list_of(repairing *r)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < r->n; i++) {
        PyObject *one = tuple_of(&r->list[i]);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static void release(repairing *r)
{
    damages_drop(&r->found);
    for (size_t i = 0; i < r->n; i++) {
        member *m = &r->list[i];
        damages_drop(&m->found);
        free(m->key);
        free(m->kind_name);
        free(m->reason);
        free(m->beside);
    }
    free(r->list);
}

/* ---- The repair ----------------------------------------------------------------------- */

static PyObject *repair_at(PyObject *module, const char *path, caterva_tree_repair_options *o,
                           repairing *r, PyObject *progress)
{
    caterva_tree_repair_result result = CATERVA_TREE_REPAIR_RESULT_INIT;
    call c;
    o->on_found = on_found;
    o->on_damage = on_damage;
    o->on_member = on_member;
    o->context = r;
    o->progress = call_progress(&c);
    call_begin(&c, NULL, progress);
    c.reporter = &c;
    caterva_status status = caterva_tree_repair(path, o, &result, &c.err);
    c.place = status == CATERVA_EEXIST && o->output ? r->output : r->place;
    int ended = call_end(module_state_of(module), &c, r->lost ? CATERVA_ENOMEM : status);
    PyObject *list = ended == 0 ? list_of(r) : NULL;
    if (!list) return NULL;
    return Py_BuildValue("OOLN", result.complete ? Py_True : Py_False,
                         result.settled ? Py_True : Py_False, (long long)result.members,
                         list);
}

/* (path, output or None, overwrite, guess, threads, durability, progress) to (complete, settled,
 * members, [(key, kind's name, outcome, reason or None, beside or None, the first eight results of
 * function_repair, [damages])]). The list contains the damaged members. */
PyObject *function_tree_repair(PyObject *module, PyObject *args)
{
    PyObject *progress;
    repairing r = {.list = NULL};
    caterva_tree_repair_options o = CATERVA_TREE_REPAIR_INIT;
    int durability;
    if (!PyArg_ParseTuple(args, "UOppiiO", &r.place, &r.output, &o.overwrite, &o.guess,
                          &o.threads, &durability, &progress))
        return NULL;
    o.durability = (caterva_durability)durability;
    PyObject *path = place_encoded(r.place), *target = NULL, *report = NULL;
    if (path && r.output != Py_None) target = place_encoded(r.output);
    if (path && (target || r.output == Py_None)) {
        o.output = target ? PyBytes_AsString(target) : NULL;
        report = repair_at(module, PyBytes_AsString(path), &o, &r, progress);
    }
    release(&r);
    Py_XDECREF(path);
    Py_XDECREF(target);
    return report;
}
