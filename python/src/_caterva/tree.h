/* The type Tree. Its methods are in three files. */
#ifndef TREE_H
#define TREE_H

#include "array.h"
#include <caterva_tree.h>

typedef struct tree_object {
    PyObject_HEAD module_state *state; /* as in call_owner */
    PyObject *place;
    PyObject *progress;   /* callable or NULL */
    caterva_tree *handle; /* NULL: closed; changes only while the gate is shut */
    gate gate;
    caterva_tree_options again; /* to open the tree again */
    pid_t process;              /* opened the tree */
    PyObject *remote;           /* the Remote that `again` points into, or NULL */
    PyObject *weak;
} tree_object;

/* Enters the gate: 0, or -1 with ValueError if the tree is closed. */
int tree_enter(tree_object *self);
static inline void tree_leave(tree_object *self) { gate_leave(&self->gate); }

extern PyMethodDef tree_member_methods[], tree_commit_methods[], tree_verify_methods[];

#endif
