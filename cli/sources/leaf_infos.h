/* Infos of a tree's arrays, in order. Behind a URL, many are opened concurrently. */
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
    const tree_part *part; /* set by the owner, with `below`; the rest is zero */
    bool below;            /* also arrays in groups below the group */
    size_t first, stop;    /* entries that were opened together */
    leaf_looked looked[LEAF_INFOS_AT_ONCE];
} leaf_infos;

/* Sets *out to the info of entry `i` of the list, valid until the next call. NULL: it is not an
 * array, or is damaged. Reports any other failure to open it. */
cli_exit leaf_info(leaf_infos *all, size_t i, const caterva_info **out);
void leaf_infos_free(leaf_infos *all);

#endif
