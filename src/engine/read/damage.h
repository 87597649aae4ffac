/* Damage: what may happen to one chunk and leaves the others readable. */
#ifndef CV_ENGINE_DAMAGE_H
#define CV_ENGINE_DAMAGE_H

#include "base/grid.h"

/* Whom to tell of damaged places. */
typedef struct cv_damage_sink {
    void (*tell)(void *context, const caterva_damage *damage); /* NULL: nobody */
    void *context;
} cv_damage_sink;

/* Whether a failure to read a chunk is damage: its bytes were read and are wrong, or its file
 * is missing from a directory that is there. A chunk that could not be read is not damaged,
 * whatever the reason: the system or the server refused, the connection broke, the file or
 * directory is gone. */
bool cv_is_damage(cv_status status);

/* Reports damage in chunk `chunk` of the grid; -1: outside of chunks. */
void cv_damage_tell(const cv_damage_sink *sink, const cv_grid *grid, int64_t chunk,
                    const cv_error *error);

#endif
