/* Damaged places, gathered on any thread and given to Python at the end. */
#ifndef DAMAGES_H
#define DAMAGES_H

#include "extension.h"
#include <caterva_upkeep.h>

typedef struct damages {
    struct damage *list;
    size_t n, room;
    bool lost; /* memory was short, and the list is not whole */
} damages;

/* on_damage: context is a damages that began as zero. */
void damages_add(void *context, const caterva_damage *found);

/* A list of (chunk, index, position, code, message), and the memory given back. */
PyObject *damages_take(damages *d, int ndim);

/* The memory given back. Any thread. */
void damages_drop(damages *d);

#endif
