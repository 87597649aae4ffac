/* `caterva repair` of a tree, and functions shared with the repair of an array. */
#ifndef CLI_REPAIR_TREE_H
#define CLI_REPAIR_TREE_H

#include "cli.h"
#include "formats/json.h"

/* Whether `path` names a tree, however damaged: neither an array nor a key in a tree. */
bool repair_is_tree(const cli_args *args, const char *path);

/* Repairs the tree in the arguments. */
cli_exit repair_tree_run(const cli_args *args);

/* Parses the value of lost items with the dtype in `info`. */
cli_exit repair_parse_fill(const char *text, const caterva_info *info, void *item);

/* Runs `body`, which puts the members of the list, and ends the list and the object in *slot.
 * Prints the object when it is complete. */
cli_exit repair_as_json(const char *path, const char *list, json **slot,
                        cli_exit (*body)(void *context), void *context);

#endif
