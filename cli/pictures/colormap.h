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

/* Initializes the map of this name; NULL is gray. Returns CLI_USAGE for an unknown name. */
cli_exit colormap_init(colormap *map, const char *name);

/* Returns the i-th name; NULL after the last. */
const char *colormap_name(size_t i);

/* Returns the index of the colour of a finite value. Values outside of the range are clamped. */
int colormap_index(const colormap *map, double value);

#endif
