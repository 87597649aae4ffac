/* Selections by names of dimensions and values of coordinates:
 * "time=2020-01-01:2020-02-01,lat=45". */
#ifndef CLI_COORDINATES_H
#define CLI_COORDINATES_H

#include "sources/coordinate.h"

/* Finds the coordinate of a dimension. The finder owns what it returns. */
typedef struct coordinate_finder {
    /* Finds the coordinate of a dimension with `n` items; *out NULL: it has none, and its items are
     * selected by index. */
    cli_exit (*find)(void *context, const char *name, int64_t n, const coordinate **out);
    void *context;
    bool nearest; /* single values select the nearest item */
} coordinate_finder;

/* Parses `text` for an array of this shape, whose axes have these names (NULL: none). CLI_USAGE
 * with a message if it is invalid. Release with selection_free. */
cli_exit coordinates_parse(const char *text, int ndim, const int64_t *shape,
                           const char *const *names, const coordinate_finder *finder,
                           selection *out);

/* A finder for an array in a file: the coordinate of `time` is the array time.b2nd in the same
 * directory, or in an enclosing group of its tree. Close it with coordinate_files_close. */
typedef struct coordinate_files coordinate_files;
cli_exit coordinate_files_open(const cli_args *args, const char *path, coordinate_files **out,
                               coordinate_finder *finder);
void coordinate_files_close(coordinate_files *files); /* NULL is fine */

#endif
