/* What arrays are, asked wherever it is needed. */
#ifndef CLI_DESCRIBED_H
#define CLI_DESCRIBED_H

#include "cli.h"

/* The array as it is now. Stays until the program ends: a command asks about few states.
 * Without memory the program ends. */
const caterva_info *info_of(caterva_array *array);

/* Name `i` of its attributes, of its metalayers; NULL behind the last one. */
const char *attribute_of(caterva_array *array, int i);
const char *metalayer_of(caterva_array *array, int i);

#endif
