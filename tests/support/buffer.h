/* Buffers and selections for library calls, made from plain memory and boxes. */
#ifndef SUPPORT_BUFFER_H
#define SUPPORT_BUFFER_H

#include "caterva.h"

#include <stdint.h>

/* A buffer of `size_` bytes in C order, as source or destination. */
#define PLAIN(data_, size_)                                                                  \
    (&(caterva_buffer){.struct_size = sizeof(caterva_buffer),                                \
                       .data = (void *)(uintptr_t)(data_),                                   \
                       .size = (size_)})

/* The selection of the box [start_, stop_). */
#define BOX(start_, stop_)                                                                   \
    (&(caterva_selection){                                                                   \
        .struct_size = sizeof(caterva_selection), .start = (start_), .stop = (stop_)})

#endif
