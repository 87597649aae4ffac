/* Infos of a tree's arrays, in order. At a URL, many arrays are opened concurrently. */
#ifndef CLI_LEAF_INFOS_H
#define CLI_LEAF_INFOS_H

#include "sources/trees.h"

enum { LEAF_INFOS_AT_ONCE = 64 };

typedef struct leaf_looked {
    const caterva_info *info;
    caterva_status status;
    caterva_error error;
} leaf_looked;

typedef struct leaf_infos {
    const tree_part *part; /* the caller sets `part` and `below`, zeroes the rest */
    bool below;            /* include arrays in groups below */
    size_t first, stop;    /* entries [first, stop) were opened together */
    leaf_looked looked[LEAF_INFOS_AT_ONCE];
} leaf_infos;

/* Sets *out to the info of entry `i` of the list, or to NULL if the entry is damaged or not an
 * array. The info is valid until the next call. Reports any other failure to open the entry. */
cli_exit leaf_info(leaf_infos *all, size_t i, const caterva_info **out);
void leaf_infos_free(leaf_infos *all);

#endif
