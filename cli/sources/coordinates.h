/* Selections by the names of dimensions and the values of their coordinates:
 * "time=2020-01-01:2020-02-01,lat=45". */
#ifndef CLI_COORDINATES_H
#define CLI_COORDINATES_H

#include "sources/coordinate.h"

/* Finds what axes are called and where their items lie. What it gives stays its own. */
typedef struct coordinate_finder {
    /* The coordinate of the dimension; *out NULL where it has none: then its items are
     * selected by their indices. `n`: items of the axis. */
    cli_exit (*find)(void *context, const char *name, int64_t n, const coordinate **out);
    void *context;
    bool nearest; /* single values take the item next to them */
} coordinate_finder;

/* Reads `text` for an array of this shape, whose axes have these names (NULL: none).
 * CLI_USAGE with a sentence where it cannot be. Release with selection_free. */
cli_exit coordinates_parse(const char *text, int ndim, const int64_t *shape,
                           const char *const *names, const coordinate_finder *finder,
                           selection *out);

/* The finder of an array in a file: the coordinate of `time` is the array time.b2nd beside
 * it, or in an enclosing group of its tree. Close it with coordinate_files_close. */
typedef struct coordinate_files coordinate_files;
cli_exit coordinate_files_open(const cli_args *args, const char *path, coordinate_files **out,
                               coordinate_finder *finder);
void coordinate_files_close(coordinate_files *files); /* NULL is fine */

#endif
