/* Makes writers handle every chunk as they handle large ones. */
#ifndef SUPPORT_BEHIND_H
#define SUPPORT_BEHIND_H

#include "array/array.h"

/* Makes the writer gather the blocks of each chunk while it encodes them, and put the chunk into
 * the store in one other thread while it encodes the next chunk. */
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
