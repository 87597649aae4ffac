/* Attributes of an array or of a group, whatever a command is given. */
#ifndef CLI_ATTRIBUTES_H
#define CLI_ATTRIBUTES_H

#include "cli.h"
#include <caterva_tree.h>

typedef struct attributes {
    const char *path;     /* as the command was given it */
    caterva_array *array; /* NULL: of a group */
    caterva_tree *tree;
    char *tree_path;
    const char *group;
    const char **names; /* of a group's: n of them */
    size_t n;
} attributes;

/* Opens the array, the group "TREE::/group" or the tree, "/" of it. Release with
 * attributes_close, also after a failure. */
cli_exit attributes_open(const cli_args *args, const char *path, caterva_mode mode,
                         attributes *out);

/* Commits what was set after `code` OK, drops it after anything else; and releases. */
cli_exit attributes_close(attributes *all, cli_exit code);

/* The i-th name; NULL behind the last. */
const char *attributes_name(const attributes *all, size_t i);

/* As the library's functions. A group's value is fetched to be measured. */
caterva_status attributes_get(attributes *all, const char *name, void **value, size_t *size,
                              caterva_error *err);
caterva_status attributes_measure(attributes *all, const char *name, int64_t *size,
                                  caterva_error *err);
caterva_status attributes_set(attributes *all, const char *name, const void *value,
                              size_t size, caterva_error *err);
caterva_status attributes_remove(attributes *all, const char *name, caterva_error *err);

#endif
