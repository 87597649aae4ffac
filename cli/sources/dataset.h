/* The arrays and groups of a tree, or of a file of another format, as one sorted list. */
#ifndef CLI_DATASET_H
#define CLI_DATASET_H

#include "sources/attributes.h"
#include "sources/input.h"
#include "sources/trees.h"

typedef struct dataset {
    tree_part tree;      /* of a tree */
    foreign_place place; /* of a file of another format */
    const foreign_node **nodes;
    size_t n; /* entries; a group precedes its members */
} dataset;

#define DATASET_ROOT SIZE_MAX /* the group that the text names */

typedef enum dataset_sort {
    DATASET_NONE, /* one array, or no data set */
    DATASET_ONE,  /* a file or group of another format with one array, which stands for the array */
    DATASET_MANY  /* a tree, a group, or another format with several arrays */
} dataset_sort;

/* Finds out what the text names. A file that cannot be opened is a failure only in another
 * format. */
cli_exit dataset_find(const cli_args *args, const char *text, dataset_sort *out);

/* Opens and lists it. Release *out with dataset_close, also after a failure. */
cli_exit dataset_open(const cli_args *args, const char *text, dataset *out);
void dataset_close(dataset *all);

const char *dataset_path(const dataset *all);

/* Properties of entry `i`: its name relative to the group, "g/x"; its kind, "array", "group" or
 * another word; "PATH::/g/x", to be freed. */
const char *dataset_name(const dataset *all, size_t i);
const char *dataset_kind(const dataset *all, size_t i);
bool dataset_is_array(const dataset *all, size_t i);
char *dataset_url(const dataset *all, size_t i);

/* Compares names in the order of lists, where a slash sorts before all other characters. */
int dataset_order(const char *a, const char *b);

/* Opens the array as an input, whose path is set. CLI_NO: it was deleted after it was listed. */
cli_exit dataset_open_array(const cli_args *args, const dataset *all, size_t i, input *out);

/* Whether the whole tree was deleted after it was listed. */
bool dataset_is_gone(const dataset *all);

/* Lists the attributes of a group. Release out->names with caterva_free. */
cli_exit dataset_attributes(const dataset *all, size_t i, const char *url, attributes *out);

#endif
