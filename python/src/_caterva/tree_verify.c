/* Verifies a tree. The results of damaged members are collected without the GIL and converted to
 * Python at the end. */
#include "damages.h"
#include "tree.h"

#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

typedef struct member {
    char *key, *kind_name; /* owned */
    bool sealed;
    caterva_verify_result result;
    damages found;
    int ndim;
} member;

typedef struct verifying {
    damages found; /* in the current member */
    member *list;  /* the damaged members */
    size_t n, room;
    char **alike; /* pairs of keys that differ only in case; owned, as are the keys */
    size_t n_alike;
    bool lost; /* an allocation failed */
} verifying;

/* ---- Collecting ------------------------------------------------------------------ */

static void on_damage(void *context, const char *key, const caterva_damage *damage)
{
    (void)key;
    damages_add(&((verifying *)context)->found, damage);
}

static member *new_member(verifying *v)
{
    if (v->n == v->room) {
        size_t room = v->room ? 2 * v->room : 16;
        member *list = realloc(v->list, room * sizeof *list);
        if (!list) return NULL;
        v->list = list;
        v->room = room;
    }
    return &v->list[v->n++];
}

static int on_member(void *context, const caterva_tree_member *m)
{
    verifying *v = context;
    if (m->damages == 0) return 0;
    member *kept = new_member(v);
    v->lost = v->lost || !kept;
    if (!kept) return 1;
    *kept = (member){.sealed = m->sealed, .result = *m->result, .ndim = m->ndim};
    kept->key = strdup(m->key);
    kept->kind_name = strdup(m->kind_name);
    kept->found = v->found;
    v->found = (damages){.list = NULL};
    v->lost = !kept->key || !kept->kind_name;
    return v->lost;
}

static void on_case_collision(void *context, const char *key, const char *other)
{
    verifying *v = context;
    char **alike = realloc(v->alike, (v->n_alike + 2) * sizeof *alike);
    v->lost = v->lost || !alike;
    if (!alike) return;
    v->alike = alike;
    alike[v->n_alike++] = strdup(other);
    alike[v->n_alike++] = strdup(key);
    v->lost = v->lost || !alike[v->n_alike - 2] || !alike[v->n_alike - 1];
}

/* ---- Converting --------------------------------------------------------------------- */

static PyObject *tuple_of(member *m)
{
    PyObject *places = damages_take(&m->found, m->ndim);
    if (!places) return NULL;
    return Py_BuildValue("NNO(LLLN)", text_of(m->key), text_of(m->kind_name),
                         m->sealed ? Py_True : Py_False, (long long)m->result.checked_chunks,
                         (long long)m->result.damaged_chunks,
                         (long long)m->result.unverified_chunks, places);
}

static PyObject *list_of(verifying *v)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < v->n; i++) {
        PyObject *one = tuple_of(&v->list[i]);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *pairs_of(const verifying *v)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < v->n_alike; i += 2) {
        PyObject *one = Py_BuildValue("NN", text_of(v->alike[i]), text_of(v->alike[i + 1]));
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static void release(verifying *v)
{
    for (size_t i = 0; i < v->n_alike; i++) free(v->alike[i]);
    free(v->alike);
    damages_drop(&v->found);
    for (size_t i = 0; i < v->n; i++) {
        damages_drop(&v->list[i].found);
        free(v->list[i].key);
        free(v->list[i].kind_name);
    }
    free(v->list);
}

/* (group or None, quick, threads, progress) to (members, unsealed members, skipped members, [(key,
 * kind's name, sealed, (checked, damaged, unverified chunks, [damages]))], [(key, key)]). The first
 * list contains the damaged members, the second one keys that differ only in case. */
static PyObject *verify(PyObject *object, PyObject *args)
{
    tree_object *self = (tree_object *)object;
    const char *group;
    PyObject *progress, *list = NULL, *pairs = NULL;
    verifying v = {.list = NULL};
    caterva_tree_verify_options o = CATERVA_TREE_VERIFY_INIT;
    caterva_tree_verify_result r = CATERVA_TREE_VERIFY_RESULT_INIT;
    call c;
    if (!PyArg_ParseTuple(args, "zpiO", &group, &o.quick, &o.threads, &progress) ||
        tree_enter(self) < 0)
        return NULL;
    o.on_damage = on_damage;
    o.on_member = on_member;
    o.on_case_collision = on_case_collision;
    o.context = &v;
    o.progress = call_progress(&c);
    call_begin(&c, self, progress);
    c.reporter = &c;
    caterva_status status = caterva_tree_verify(self->handle, group, &o, &r, &c.err);
    if (v.lost || v.found.lost) status = CATERVA_ENOMEM;
    if (call_end(self->state, &c, status) == 0) list = list_of(&v);
    if (list) pairs = pairs_of(&v);
    tree_leave(self);
    release(&v);
    if (!pairs) {
        Py_XDECREF(list);
        return NULL;
    }
    return Py_BuildValue("LLLNN", (long long)r.members, (long long)r.unsealed_members,
                         (long long)r.skipped_members, list, pairs);
}

PyMethodDef tree_verify_methods[] = {
    {"_verify", verify, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
