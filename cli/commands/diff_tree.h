/* `caterva diff` of two trees. */
#ifndef CLI_DIFF_TREE_H
#define CLI_DIFF_TREE_H

#include "cli.h"

/* Compares two trees or groups: arrays of one name by `arrays`, by their URLs. */
cli_exit diff_trees(const cli_args *args, const char *a, const char *b,
                    cli_exit (*arrays)(const cli_args *args, const char *a, const char *b));

#endif
