/* Reports damage: as a line of text, or a JSON object. */
#ifndef CLI_DAMAGE_H
#define CLI_DAMAGE_H

#include "formats/json.h"
#include <caterva_upkeep.h>

/* Prints "PATH: chunk 17 (0,2,1) at byte 4096: block 3 damaged: ...": the library's message, with
 * the chunk's coordinates after its number. */
void damage_print(FILE *stream, const char *path, int ndim, const caterva_damage *damage);

void damage_put(json *j, int ndim, const caterva_damage *damage);

#endif
