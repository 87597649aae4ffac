/* `caterva info` of a tree. */
#ifndef CLI_INFO_TREE_H
#define CLI_INFO_TREE_H

#include "cli.h"

/* Describes a tree or group as a whole or, with --short, calls `array` for each of its arrays. */
cli_exit info_tree(const cli_args *args, const char *text,
                   cli_exit (*array)(const cli_args *args, const char *path));

#endif
