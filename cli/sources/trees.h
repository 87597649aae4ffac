/* Trees of arrays, for commands: "TREE" or "TREE::/group". */
#ifndef CLI_TREES_H
#define CLI_TREES_H

#include "cli.h"
#include <caterva_tree.h>

typedef struct tree_part {
    char *path;        /* of the tree */
    const char *group; /* "/" is all of it */
    caterva_tree *tree;
    const caterva_tree_list *list; /* what is in the group */
} tree_part;

/* Opens the tree and lists the group. Release *out with tree_part_close, also after a
 * failure. */
cli_exit tree_part_open(const cli_args *args, const char *text, tree_part *out);
void tree_part_close(tree_part *part);

/* The tree's path, owned, and the group in it: "/" where the text has none. */
cli_exit tree_part_split(const char *text, char **path, const char **group);

/* Whether `text` names a tree or a group, so that it is no array. So does the name of an archive
 * or directory that is damaged or missing, which tree_part_open says then. */
bool tree_part_is(const cli_args *args, const char *text);

/* Whether a writer of a directory has removed an array since it was listed. */
bool tree_part_lacks(const tree_part *part, const caterva_tree_entry *entry);

/* Whether a writer has removed the directory since it was listed, and put no tree there. */
bool tree_part_is_gone(const tree_part *part);

/* Opens an array of it for reading. CLI_NO, and no sentence: a writer of a directory has removed
 * it since it was listed. */
cli_exit tree_part_open_array(const cli_args *args, const tree_part *part,
                              const caterva_tree_entry *entry, caterva_array **out);

/* Whether it is written as one in a tree is, "TREE::/key", and is no file's name. */
bool tree_part_is_within(const char *text);

/* "TREE::/key" of an entry; owned. NULL without memory, after a sentence. */
char *tree_part_url(const tree_part *part, const caterva_tree_entry *entry);

/* The entry's name in the group that is listed: "x", "g/x". */
const char *tree_part_name(const tree_part *part, const caterva_tree_entry *entry);

#endif
