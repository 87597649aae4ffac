/* Colour maps: 256 colours from the smallest to the largest value. */
#ifndef CLI_COLORMAP_H
#define CLI_COLORMAP_H

#include "cli.h"

typedef struct color {
    uint8_t r, g, b;
} color;

typedef struct colormap {
    color colors[256];
    bool gray;     /* r = g = b everywhere */
    double lo, hi; /* values of the first and the last colour; lo < hi */
} colormap;

/* `name` NULL: gray. CLI_USAGE when there is none of that name. */
cli_exit colormap_init(colormap *map, const char *name);

/* Their names; NULL behind the last. */
const char *colormap_name(size_t i);

/* The colour's index; values outside are clamped. `value` is finite. */
int colormap_index(const colormap *map, double value);

#endif
