/* How damaged places are reported: a line of text, or an object of JSON. */
#ifndef CLI_DAMAGE_H
#define CLI_DAMAGE_H

#include "formats/json.h"
#include <caterva_upkeep.h>

/* "PATH: chunk 17 (0,2,1) at byte 4096: block 3 damaged: ...": the library's
 * sentence, with the chunk's coordinates behind its number. */
void damage_print(FILE *stream, const char *path, int ndim, const caterva_damage *damage);

void damage_put(json *j, int ndim, const caterva_damage *damage);

#endif
