/* `caterva diff`: attributes and names of dimensions. */
#ifndef CLI_DIFF_ATTRIBUTES_H
#define CLI_DIFF_ATTRIBUTES_H

#include "formats/json.h"
#include "sources/attributes.h"

/* What has attributes on both sides: two arrays, or two groups. */
typedef struct attribute_sides {
    attributes *side[2];
    json *j;    /* NULL: text. An object that is open: members are added where something
                   differs */
    bool quiet; /* nothing is printed, and the first difference is enough */
} attribute_sides;

/* Tells of each attribute that differs, and of names of dimensions; how many there are. */
cli_exit diff_attributes(const attribute_sides *sides, int64_t *n_different);

#endif
