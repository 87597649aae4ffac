/* Writers that do with any chunk what others do with large ones. */
#ifndef SUPPORT_BEHIND_H
#define SUPPORT_BEHIND_H

#include "array/array.h"

/* Has the writer gather each chunk while it encodes it, and put it while it encodes the next
 * one, with the one thread that it then has for that. */
static inline void put_behind(caterva_array *array)
{
    cv_pending *pending = array->pending;
    pending->threads = 1;
    pending->least_gathered = 0;
    pending->behind.least = 0;
    pending->behind.cores = 2;
    pending->frame->store->slow_writes = true;
}

#endif
