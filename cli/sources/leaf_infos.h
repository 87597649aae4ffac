/* What the arrays of a tree are, one after the other. Behind a URL, where each takes as long as
 * an answer does, many are opened at once. */
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
    const tree_part *part; /* given, with what is asked for; the rest zero */
    bool below;            /* also of arrays in groups of the group */
    size_t first, stop;    /* entries that were looked at together */
    leaf_looked looked[LEAF_INFOS_AT_ONCE];
} leaf_infos;

/* Sets *out to the info of entry `i` of the list, which is valid until the next one is asked for.
 * NULL: it is not an array, or it is damaged. Reports any other failure to open it. */
cli_exit leaf_info(leaf_infos *all, size_t i, const caterva_info **out);
void leaf_infos_free(leaf_infos *all);

#endif
