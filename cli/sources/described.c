/* Room: cli/sources. Keeps each info of an array once, even if it is requested often. */
#include "sources/described.h"

#include <stdlib.h>

static const caterva_info **held;
static int n_held;

static bool is_held(const caterva_info *info)
{
    for (int i = n_held; i-- > 0;)
        if (held[i] == info) return true;
    return false;
}

const caterva_info *info_of(caterva_array *array)
{
    const caterva_info *info;
    caterva_error err;
    if (caterva_info_get(array, &info, &err) != CATERVA_OK)
        exit((int)cli_fail(CLI_IO, "%s", err.message));
    if (is_held(info)) {
        caterva_info_release(info);
        return info;
    }
    const caterva_info **more = realloc(held, ((size_t)n_held + 1) * sizeof held[0]);
    if (!more) exit((int)cli_fail(CLI_IO, "no memory for a description"));
    held = more;
    held[n_held++] = info;
    return info;
}

const char *attribute_of(caterva_array *array, int i)
{
    const caterva_info *info = info_of(array);
    return i < info->n_attributes ? info->attribute_names[i] : NULL;
}

const char *metalayer_of(caterva_array *array, int i)
{
    const caterva_info *info = info_of(array);
    return i < info->n_metalayers ? info->metalayers[i].name : NULL;
}
