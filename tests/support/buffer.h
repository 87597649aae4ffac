/* Callers' memory and boxes, in the form of the calls with strides and selections. */
#ifndef SUPPORT_BUFFER_H
#define SUPPORT_BUFFER_H

#include "caterva.h"

#include <stdint.h>

/* A source or destination of `size_` bytes in C order. */
#define PLAIN(data_, size_)                                                                  \
    (&(caterva_buffer){.struct_size = sizeof(caterva_buffer),                                \
                       .data = (void *)(uintptr_t)(data_),                                   \
                       .size = (size_)})

/* [start_, stop_). */
#define BOX(start_, stop_)                                                                   \
    (&(caterva_selection){                                                                   \
        .struct_size = sizeof(caterva_selection), .start = (start_), .stop = (stop_)})

#endif
