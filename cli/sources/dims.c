/* Room: cli/sources. Dimension names of arrays and of selections. */
#include "sources/dims.h"

#include "sources/described.h"

const char **dims_of(caterva_array *array)
{
    const char **names;
    caterva_error err;
    return caterva_dims_get(array, &names, &err) == CATERVA_OK ? names : NULL;
}

const char *dims_of_result(const char *const *names, const selection *sel, int r)
{
    if (!names || sel->points || sel->result[r] < 0) return NULL;
    return names[sel->result[r]];
}

/* Does nothing if `to` has the axes of `like`: the names were copied with the attributes. */
cli_exit dims_carry(caterva_array *like, const source *from, caterva_array *to,
                    const char *path)
{
    const caterva_info *info = info_of(like);
    const char *kept[CATERVA_MAX_DIMS] = {0};
    caterva_error err;
    bool same = from->shape.ndim == info->ndim;
    for (int d = 0; d < from->shape.ndim; d++) same = same && from->axes[d] == d + 1;
    const char **names = same ? NULL : dims_of(like);
    if (!names) return CLI_OK;
    for (int d = 0; d < from->shape.ndim; d++)
        if (from->axes[d] > 0) kept[d] = names[from->axes[d] - 1];
    caterva_status status = caterva_dims_set(to, kept, &err);
    caterva_free(names);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(path, &err);
}
