/* `caterva diff` of two trees. */
#ifndef CLI_DIFF_TREE_H
#define CLI_DIFF_TREE_H

#include "cli.h"

/* Compares two open arrays, named `paths` in reports, and closes both. */
typedef cli_exit diff_open_arrays(const cli_args *args, const char *const paths[2],
                                  caterva_array *const arrays[2]);

/* Compares two trees or groups; `arrays` compares each pair of arrays with the same name. */
cli_exit diff_trees(const cli_args *args, const char *a, const char *b,
                    diff_open_arrays *arrays);

#endif
