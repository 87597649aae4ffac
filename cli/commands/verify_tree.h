/* `caterva verify` of a tree. */
#ifndef CLI_VERIFY_TREE_H
#define CLI_VERIFY_TREE_H

#include "cli.h"

/* Verifies all that is in a tree or group, each member reported as a file of its own. */
cli_exit verify_tree_run(const cli_args *args, const char *text);

#endif
