/* The type Tree, whose methods stand in two files. */
#ifndef TREE_H
#define TREE_H

#include "array.h"

typedef struct tree_object {
    PyObject_HEAD module_state *state; /* as in call_owner */
    PyObject *place;
    caterva_tree *handle; /* NULL: closed; changes with the gate shut only */
    gate gate;
    caterva_tree_options again; /* to open it anew with                    */
    pid_t process;              /* that opened it                          */
    PyObject *weak;
} tree_object;

/* Enters the gate: 0, or -1 and ValueError when the tree is closed. */
int tree_enter(tree_object *self);
static inline void tree_leave(tree_object *self) { gate_leave(&self->gate); }

/* A new object of `type` for a handle that it takes over, also when this fails. */
PyObject *tree_wrap(module_state *state, PyTypeObject *type, caterva_tree *handle,
                    const caterva_tree_options *again, PyObject *place);

extern PyMethodDef tree_member_methods[], tree_commit_methods[];

#endif
