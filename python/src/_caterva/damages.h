/* A list of damaged places. Any thread can add to it; at the end it is converted to Python. */
#ifndef DAMAGES_H
#define DAMAGES_H

#include "extension.h"
#include <caterva_upkeep.h>

typedef struct damages {
    struct damage *list;
    size_t n, room;
    bool lost; /* an allocation failed: the list is incomplete */
} damages;

/* An on_damage function. `context` points to a damages struct, initially all zeros. */
void damages_add(void *context, const caterva_damage *found);

/* Returns a Python list of (chunk, index, position, code, message), and frees the places. */
PyObject *damages_take(damages *d, int ndim);

/* Frees the places. Called with or without the GIL. */
void damages_drop(damages *d);

#endif
