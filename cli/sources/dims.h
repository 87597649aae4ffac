/* Names of an array's dimensions, as the command line shows and takes them. */
#ifndef CLI_DIMS_H
#define CLI_DIMS_H

#include "sources/source.h"

/* One for each axis, NULL for an axis without one; NULL when the array has none. Release
 * with caterva_free. */
const char **dims_of(caterva_array *array);

/* The name of axis `r` of a selection's result; NULL without one. `names` may be NULL. */
const char *dims_of_result(const char *const *names, const selection *sel, int r);

/* `to` gets the names that `like` has for the axes that `from` shows of it. */
cli_exit dims_carry(caterva_array *like, const source *from, caterva_array *to,
                    const char *path);

#endif
