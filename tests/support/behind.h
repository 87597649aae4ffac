/* Writers that do with any chunk what others do with large ones. */
#ifndef SUPPORT_BEHIND_H
#define SUPPORT_BEHIND_H

#include "array/array.h"

/* Has the writer gather each chunk while it encodes it. */
static inline void put_behind(caterva_array *array) { array->pending->least_gathered = 0; }

#endif
