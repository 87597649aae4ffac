/* Trees of arrays in commands: "TREE" or "TREE::/group". */
#ifndef CLI_TREES_H
#define CLI_TREES_H

#include "cli.h"
#include <caterva_tree.h>

typedef struct tree_part {
    char *path;        /* path of the tree */
    const char *group; /* "/" is the whole tree */
    caterva_tree *tree;
    const caterva_tree_list *list; /* entries of the group */
} tree_part;

/* Opens the tree and lists the group. Release *out with tree_part_close, also after a failure. */
cli_exit tree_part_open(const cli_args *args, const char *text, tree_part *out);
void tree_part_close(tree_part *part);

/* Splits the text into the tree's path, owned, and the group in it; "/" if there is none. */
cli_exit tree_part_split(const char *text, char **path, const char **group);

/* Whether `text` names a tree or a group, not an array. Also true for the name of a damaged or
 * missing tree: tree_part_open reports the reason. */
bool tree_part_is(const cli_args *args, const char *text);

/* Whether the array of the entry was deleted after the tree was listed. False for a tree that is
 * not a directory. */
bool tree_part_lacks(const tree_part *part, const caterva_tree_entry *entry);

/* Whether the whole tree was deleted after it was listed, and no other tree has its name. */
bool tree_part_is_gone(const tree_part *part);

/* Opens the array of the entry for reading. Returns CLI_NO without a message if it was deleted
 * after the tree was listed. */
cli_exit tree_part_open_array(const cli_args *args, const tree_part *part,
                              const caterva_tree_entry *entry, caterva_array **out);

/* Whether the text has the form "TREE::/key", and is not the name of a file. */
bool tree_part_is_within(const char *text);

/* Returns "TREE::/key" for an entry, to be freed; NULL after a reported lack of memory. */
char *tree_part_url(const tree_part *part, const caterva_tree_entry *entry);

/* Returns the entry's name relative to the listed group: "x", "g/x". */
const char *tree_part_name(const tree_part *part, const caterva_tree_entry *entry);

#endif
