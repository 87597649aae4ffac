/* Descriptions of arrays for all commands. */
#ifndef CLI_DESCRIBED_H
#define CLI_DESCRIBED_H

#include "cli.h"

/* Returns the array's current info. It stays valid until the program ends: a command needs few
 * infos, so they are never released. If there is no memory, ends the program. */
const caterva_info *info_of(caterva_array *array);

/* Return the name of the array's i-th attribute, or i-th metalayer; NULL after the last one. */
const char *attribute_of(caterva_array *array, int i);
const char *metalayer_of(caterva_array *array, int i);

#endif
