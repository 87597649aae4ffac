/* Room: engine/read. What counts as damage, and how it is reported. */
#include "engine/read/damage.h"

bool cv_is_damage(cv_status status)
{
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED;
}

void cv_damage_tell(const cv_damage_sink *sink, const cv_grid *grid, int64_t chunk,
                    const cv_error *error)
{
    caterva_damage damage = {.chunk = chunk,
                             .position = error->position,
                             .code = error->code,
                             .message = error->message};
    if (!sink->tell) return;
    if (chunk >= 0) cv_grid_chunk_index(grid, chunk, damage.index);
    sink->tell(sink->context, &damage);
}
