/* `caterva verify` of a tree. */
#ifndef CLI_VERIFY_TREE_H
#define CLI_VERIFY_TREE_H

#include "cli.h"

/* Verifies all members of a tree or group and reports each like a file. */
cli_exit verify_tree_run(const cli_args *args, const char *text);

#endif
