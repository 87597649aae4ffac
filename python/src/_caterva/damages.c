/* A list of damaged places; see damages.h. */
#include "damages.h"

#include "call.h"

#include "options.h"

#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

typedef struct damage {
    int64_t chunk, position;
    int64_t index[CATERVA_MAX_DIMS];
    int code;
    char message[240];
} damage;

void damages_add(void *context, const caterva_damage *found)
{
    damages *d = context;
    if (d->n == d->room) {
        size_t room = d->room ? 2 * d->room : 16;
        damage *list = realloc(d->list, room * sizeof *list);
        if (!list) {
            d->lost = true;
            return;
        }
        d->list = list;
        d->room = room;
    }
    damage *place = &d->list[d->n++];
    *place =
        (damage){.chunk = found->chunk, .position = found->position, .code = found->code};
    memcpy(place->index, found->index, sizeof place->index);
    strncpy(place->message, found->message, sizeof place->message - 1);
}

static PyObject *tuple_of(const damage *place, int ndim)
{
    bool in_chunk = place->chunk >= 0;
    return Py_BuildValue("LNLiN", (long long)place->chunk,
                         tuple_of_int64s(place->index, in_chunk ? ndim : 0),
                         (long long)place->position, place->code, text_of(place->message));
}

PyObject *damages_take(damages *d, int ndim)
{
    PyObject *list = PyList_New(0);
    if (d->lost) Py_CLEAR(list);
    if (d->lost) PyErr_NoMemory();
    for (size_t i = 0; list && i < d->n; i++) {
        PyObject *place = tuple_of(&d->list[i], ndim);
        if (!place || PyList_Append(list, place) < 0) Py_CLEAR(list);
        Py_XDECREF(place);
    }
    damages_drop(d);
    return list;
}

void damages_drop(damages *d)
{
    free(d->list);
    *d = (damages){.list = NULL};
}
