/* Names of an array's dimensions. */
#ifndef CLI_DIMS_H
#define CLI_DIMS_H

#include "sources/source.h"

/* Returns one name for each axis, NULL for an axis without a name; or NULL if no axis has a name.
 * Release with caterva_free. */
const char **dims_of(caterva_array *array);

/* Returns the name of axis `r` of a selection's result, or NULL. `names` may be NULL. */
const char *dims_of_result(const char *const *names, const selection *sel, int r);

/* Sets the names of `to` to those that `like` has for the axes of `from`. */
cli_exit dims_carry(caterva_array *like, const source *from, caterva_array *to,
                    const char *path);

#endif
