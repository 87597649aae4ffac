/* `caterva diff` of two trees. */
#ifndef CLI_DIFF_TREE_H
#define CLI_DIFF_TREE_H

#include "sources/dataset.h"

/* Compares two open arrays and closes both. */
typedef cli_exit diff_open_arrays(const cli_args *args, input side[2]);

/* Compares two trees or groups; `arrays` compares each pair of arrays with the same name. */
cli_exit diff_trees(const cli_args *args, const char *a, const char *b,
                    diff_open_arrays *arrays);

#endif
