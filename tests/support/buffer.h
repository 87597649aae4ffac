/* Callers' memory and boxes as the calls that take strides and selections want them. */
#ifndef SUPPORT_BUFFER_H
#define SUPPORT_BUFFER_H

#include "caterva.h"

#include <stdint.h>

/* `size_` bytes in C order, of a source or a destination. */
#define PLAIN(data_, size_)                                                                  \
    (&(caterva_buffer){.struct_size = sizeof(caterva_buffer),                                \
                       .data = (void *)(uintptr_t)(data_),                                   \
                       .size = (size_)})

/* [start_, stop_). */
#define BOX(start_, stop_)                                                                   \
    (&(caterva_selection){                                                                   \
        .struct_size = sizeof(caterva_selection), .start = (start_), .stop = (stop_)})

#endif
