/* `caterva repair` of a tree, and what it has in common with that of an array. */
#ifndef CLI_REPAIR_TREE_H
#define CLI_REPAIR_TREE_H

#include "cli.h"
#include "formats/json.h"

/* Whether `path` is a tree's, however damaged it is: no array's, and no key in a tree. */
bool repair_is_tree(const cli_args *args, const char *path);

/* Repairs the tree that the arguments name. */
cli_exit repair_tree_run(const cli_args *args);

/* The value of lost items, of the dtype that `info` tells of. */
cli_exit repair_parse_fill(const char *text, const caterva_info *info, void *item);

/* Runs `body`, which puts the members of the list, ends it and the object in *slot. The object
 * is printed when it is whole. */
cli_exit repair_as_json(const char *path, const char *list, json **slot,
                        cli_exit (*body)(void *context), void *context);

#endif
