/* Room: engine/read. What counts as damage, and how it is told of. */
#include "engine/read/damage.h"

#include "base/os_file.h"

bool cv_is_damage(cv_status status, const cv_error *error)
{
    switch (status) {
    case CATERVA_ECORRUPT:
    case CATERVA_EUNSUPPORTED:
    case CATERVA_ENOTFOUND: return true;
    case CATERVA_EIO: return error->sys_errno == EIO; /* a bad sector */
    default: return false;
    }
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
