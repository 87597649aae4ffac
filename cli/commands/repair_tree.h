/* `caterva repair` of a tree, and functions shared with the repair of an array. */
#ifndef CLI_REPAIR_TREE_H
#define CLI_REPAIR_TREE_H

#include "cli.h"
#include "formats/json.h"

/* Whether `path` names a tree, which may be damaged. False for an array and for a key in a tree. */
bool repair_is_tree(const cli_args *args, const char *path);

/* Repairs the tree that the arguments name. */
cli_exit repair_tree_run(const cli_args *args);

/* Parses --fill, the value that lost items get, as one item of the dtype in `info`. */
cli_exit repair_parse_fill(const char *text, const caterva_info *info, void *item);

/* Sets *slot to a JSON object with an open list and calls `body`. `body` puts the members of the
 * list, then ends list and object. Prints the object if `body` returned CLI_OK or CLI_NO. */
cli_exit repair_as_json(const char *path, const char *list, json **slot,
                        cli_exit (*body)(void *context), void *context);

#endif
