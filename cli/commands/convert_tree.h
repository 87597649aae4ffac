/* `caterva convert` between files of other formats with several arrays and trees. */
#ifndef CLI_CONVERT_TREE_H
#define CLI_CONVERT_TREE_H

#include "cli.h"

/* Sets *is to whether IN or OUT has several arrays: a group of a file of another format, and a tree
 * or a Zarr hierarchy. */
cli_exit convert_is_tree(const cli_args *args, bool *is);

/* Converts a file or group of another format to a tree, a directory .b2d or an archive .b2z, or to a
 * Zarr hierarchy; or a tree or group to a file of another format. OUT appears when it is complete. */
cli_exit convert_tree(const cli_args *args);

/* Whether IN is one array, and OUT a tree. */
bool convert_is_array_in_tree(const cli_args *args);

/* Makes a tree of one array, which has the name of the file IN. `convert` writes the array. */
cli_exit convert_array_to_tree(const cli_args *args, cli_exit (*convert)(const cli_args *));

#endif
