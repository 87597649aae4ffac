/* A small 2-d array of int32 and one attribute, whose state after each of a
 * series of operations follows from the kind of series and a number alone: the
 * process that works and the process that checks need not talk. */
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

/* A kind of series: append, aligned, unaligned, resize, insert, remove,
 * attributes, compact or mixed. False for other words. */
bool model_knows(const char *kind);

model model_begin(const char *kind); /* before the first operation */
void model_free(model *m);
bool model_equal(const model *a, const model *b);

/* Every item is one of `a` or of `b`, but both occur: half of a change. */
bool model_is_mixture(const model *m, const model *a, const model *b);

/* Operation `i`, from 0 on the model and, unless NULL, on an array that is open
 * for writing; not committed. */
caterva_status model_step(model *m, const char *kind, int i, caterva_array *array,
                          caterva_error *err);

/* An array that holds the model, published by the call. */
caterva_status model_create(const model *m, const char *path, caterva_layout layout,
                            caterva_error *err);

/* What a file holds, read with our library or with C-Blosc2's b2nd. */
typedef enum model_fault { MODEL_OK, MODEL_NO_OPEN, MODEL_NO_READ } model_fault;
model_fault model_load(model *out, const char *path, char why[256]);
model_fault model_load_b2nd(model *out, const char *path, char why[256]);

#endif
