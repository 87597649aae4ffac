/* Descriptions of arrays for all commands. */
#ifndef CLI_DESCRIBED_H
#define CLI_DESCRIBED_H

#include "cli.h"

/* Returns the array's current info, valid until the program ends, since a command needs few of
 * them. Without memory, ends the program. */
const caterva_info *info_of(caterva_array *array);

/* Return the i-th name of its attributes, or metalayers; NULL after the last one. */
const char *attribute_of(caterva_array *array, int i);
const char *metalayer_of(caterva_array *array, int i);

#endif
