/* The same functions for the attributes of an array, of a group, and of both in other formats. */
#ifndef CLI_ATTRIBUTES_H
#define CLI_ATTRIBUTES_H

#include "cli.h"
#include "foreign/foreign.h"
#include <caterva_tree.h>

typedef struct attributes {
    const char *path;         /* as given to the command */
    caterva_array *array;     /* NULL: a group, or a node */
    const foreign_node *node; /* of a file of another format, which can only be read */
    caterva_tree *tree;
    char *tree_path;
    const char *group;
    const char **names; /* names of a group's attributes, n entries */
    size_t n;
} attributes;

/* Opens the array, the group "TREE::/group", or the root group of a tree. Release with
 * attributes_close, also after a failure. */
cli_exit attributes_open(const cli_args *args, const char *path, caterva_mode mode,
                         attributes *out);

/* Commits changes if `code` is CLI_OK, otherwise discards them. Releases `all`. */
cli_exit attributes_close(attributes *all, cli_exit code);

/* Returns the i-th name; NULL after the last. */
const char *attributes_name(const attributes *all, size_t i);

/* Behave like the library's functions. For a group, attributes_measure reads the whole value. */
caterva_status attributes_get(attributes *all, const char *name, void **value, size_t *size,
                              caterva_error *err);
caterva_status attributes_measure(attributes *all, const char *name, int64_t *size,
                                  caterva_error *err);
caterva_status attributes_set(attributes *all, const char *name, const void *value,
                              size_t size, caterva_error *err);
caterva_status attributes_remove(attributes *all, const char *name, caterva_error *err);

#endif
