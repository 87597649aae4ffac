/* The header of NIfTI images: 348 bytes in version 1, 540 in version 2, in either byte order. */
#ifndef CLI_NIFTI_HEADER_H
#define CLI_NIFTI_HEADER_H

#include "foreign/values.h"

#define NIFTI_MAX_HEADER 540

typedef struct nifti_header {
    uint8_t bytes[NIFTI_MAX_HEADER];
    int version; /* 1 or 2 */
    bool big_endian;
} nifti_header;

size_t nifti_header_size(int version);

/* A field by its name in nifti1.h. Entry `i` counts in fields with several numbers; fields that the
 * version lacks are 0. */
double nifti_get(const nifti_header *h, const char *field, int i);
void nifti_set(nifti_header *h, const char *field, int i, double value);

/* Recognises version and byte order of NIFTI_MAX_HEADER bytes, of which `size` are from the file.
 * Sets *single if header and items are one file. Returns CLI_UNSUPPORTED for Analyze 7.5, and
 * CLI_CORRUPT for other files. */
cli_exit nifti_recognize(const char *path, size_t size, nifti_header *h, bool *single);

/* Begins a header: version, magic, and defaults. */
void nifti_begin(nifti_header *h, int version, bool big_endian, bool single);

/* Adds all fields that are not zero to an attribute, a map of names to numbers, lists and texts. */
cli_exit nifti_fields_to_map(const nifti_header *h, foreign_node *node,
                             const char *attribute);
/* Sets the fields that a map has. */
void nifti_fields_from_map(nifti_header *h, packed_value map);

/* The shape as nibabel gives it, also of FreeSurfer's long vectors. Returns false if a length is
 * negative or there are more than 7. */
bool nifti_shape(const nifti_header *h, int *ndim, int64_t shape[7]);

/* The affine matrix of the sform, of the qform, and the one that nibabel prefers: the sform, or the
 * qform, whose code is not 0, or else the voxel sizes with the first axis to the left and the
 * origin in the centre. */
typedef double nifti_matrix[4][4];
void nifti_sform(const nifti_header *h, nifti_matrix out);
void nifti_qform(const nifti_header *h, nifti_matrix out);
void nifti_best_affine(const nifti_header *h, nifti_matrix out);

#endif
