/* The formats that are part of the program. */
#ifndef CLI_FORMATS_H
#define CLI_FORMATS_H

#include "foreign/foreign.h"

extern const foreign_format foreign_zarr;

#endif
