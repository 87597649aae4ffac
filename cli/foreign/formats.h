/* The formats that are part of the program. */
#ifndef CLI_FORMATS_H
#define CLI_FORMATS_H

#include "foreign/foreign.h"

extern const foreign_format foreign_cdf, foreign_nifti, foreign_npz, foreign_nrrd, foreign_zarr;

#endif
