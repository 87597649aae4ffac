/* Selections by names of dimensions and values of coordinates:
 * "time=2020-01-01:2020-02-01,lat=45". */
#ifndef CLI_COORDINATES_H
#define CLI_COORDINATES_H

#include "sources/coordinate.h"

/* Finds the coordinates of dimensions, and owns them. */
typedef struct coordinate_finder {
    /* Finds the coordinate of a dimension with `n` items. Sets *out to NULL if the dimension has
     * none; its items are then selected by index. */
    cli_exit (*find)(void *context, const char *name, int64_t n, const coordinate **out);
    void *context;
    bool nearest; /* single values select the nearest item */
} coordinate_finder;

/* Parses `text` for an array of this shape. names[d] is the name of axis d, or NULL. CLI_USAGE with
 * a message if the text is invalid. Release *out with selection_free. */
cli_exit coordinates_parse(const char *text, int ndim, const int64_t *shape,
                           const char *const *names, const coordinate_finder *finder,
                           selection *out);

/* Makes a finder for an array in a file: the coordinate of the dimension `time` is the array
 * time.b2nd in the same directory, or in an enclosing group of the same tree. Close it with
 * coordinate_files_close. */
typedef struct coordinate_files coordinate_files;
cli_exit coordinate_files_open(const cli_args *args, const char *path, coordinate_files **out,
                               coordinate_finder *finder);
void coordinate_files_close(coordinate_files *files); /* NULL is fine */

#endif
