/* Random lossless compression settings, and creation options for geometries. */
#ifndef SUPPORT_PIPELINES_H
#define SUPPORT_PIPELINES_H

#include "caterva.h"
#include "oracle.h"
#include "random.h"

typedef struct pipeline {
    int codec;
    int level;
    int filters[CATERVA_MAX_FILTERS];
    int filters_meta[CATERVA_MAX_FILTERS];
} pipeline;

/* Chooses any built-in codec and level, and filters that restore their input. */
pipeline random_pipeline(rng *r, int32_t item_size);

/* Returns options for an array of opaque items. The geometry must live as long as the options. */
caterva_create_options options_for(const geometry *g, const pipeline *p);

/* Fills `size` bytes with contents like those of real data: noise, a ramp, one value, or zeros. */
void random_data(rng *r, void *bytes, size_t size, int32_t item_size);

#endif
