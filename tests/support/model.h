/* A small 2-d array of int32 with one attribute. Operations are random, but determined by the kind
 * of a series and the number of the operation. So the writing and the checking process need not
 * communicate. */
#ifndef SUPPORT_MODEL_H
#define SUPPORT_MODEL_H

#include "check.h"

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_NOTE = 256 };

typedef struct model {
    int64_t shape[2];
    int32_t *items; /* C order, owned */
    uint8_t note[MODEL_NOTE];
    size_t note_size; /* 0: no attribute "note" */
} model;

/* Whether `kind` is a kind of series: append, aligned, unaligned, resize, insert, remove,
 * attributes, compact or mixed. */
bool model_knows(const char *kind);

model model_begin(const char *kind); /* the state before the first operation */
void model_free(model *m);
bool model_equal(const model *a, const model *b);

/* Whether the model is a half-applied change: each item is that of `a` or of `b`; both occur. */
bool model_is_mixture(const model *m, const model *a, const model *b);

/* Applies operation `i` (from 0) to the model and to `array`, if not NULL. Does not commit. */
caterva_status model_step(model *m, const char *kind, int i, caterva_array *array,
                          caterva_error *err);

/* Creates an array with the model's contents, and commits it. */
caterva_status model_create(const model *m, const char *path, caterva_layout layout,
                            caterva_error *err);

/* Load a file with this library, or with C-Blosc2's b2nd. `why` gets the message of a failure. */
typedef enum model_fault { MODEL_OK, MODEL_NO_OPEN, MODEL_NO_READ } model_fault;
model_fault model_load(model *out, const char *path, char why[256]);
model_fault model_load_b2nd(model *out, const char *path, char why[256]);

#endif
