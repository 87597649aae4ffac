/* `caterva diff`: compares attributes and dimension names. */
#ifndef CLI_DIFF_ATTRIBUTES_H
#define CLI_DIFF_ATTRIBUTES_H

#include "formats/json.h"
#include "sources/attributes.h"

/* Both sides of a comparison: two arrays, or two groups. */
typedef struct attribute_sides {
    attributes *side[2];
    json *j;    /* NULL: print text. Otherwise an open object that gets the differences */
    bool quiet; /* print nothing and stop at the first difference */
} attribute_sides;

/* Reports attributes and dimension names that differ, and sets *n_different to their number. */
cli_exit diff_attributes(const attribute_sides *sides, int64_t *n_different);

#endif
