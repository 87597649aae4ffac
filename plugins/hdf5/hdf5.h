/* What the files of the plug-in share: types, filters, and messages of libhdf5. */
#ifndef PLUGIN_HDF5_H
#define PLUGIN_HDF5_H

#include "foreign/foreign.h"

#define H5_USE_110_API
#include <hdf5.h>

#define H5_TEXT_LIMIT ((size_t)1 << 24) /* bytes of the longest text in an array */

/* Names of attributes that restore what HDF5 cannot express; docs/conventions.md. */
#define H5_ENUM "_enum"
#define H5_VLEN "_vlen"
#define H5_UNLIMITED "_unlimited_dims"
#define H5_DIMS "_dims" /* of a group: dimensions that only arrays in groups below have */
#define H5_NULL "_null"   /* true: the dataset has a null dataspace */
#define H5_TYPE "_type"   /* the key of a named type */
#define H5_TYPES "_types" /* types of texts and null attributes, by the attribute's name */
#define H5_MAXSHAPE "_maxshape" /* of each axis, nil: unlimited */
#define H5_LABELS "_labels"     /* of each axis, or nil; one that is in `dims` too has no scale */
#define H5_SCALE "_scale"       /* the name of a dimension scale that differs from its dataset's */
#define H5_NAME "_name"   /* in HDF5 only: of a dimension whose name an array has */
#define H5_DTYPE "_dtype" /* in HDF5 only: the dtype of texts of one width */
#define H5_JSON "_json"   /* in HDF5 only: names of attributes that are JSON */

/* How netCDF-4 names a dimension scale that has no variable, and a variable that has the name of
 * another variable's dimension. */
#define H5_NO_VARIABLE "This is a netCDF dimension but not a netCDF variable."
#define H5_NOT_COORDINATE "_nc4_non_coord_"

#define H5_FILTER_LZF 32000
#define H5_FILTER_BLOSC2 32026

/* Closes an object, type, property list, space or file; an invalid id is fine. */
void h5_close(hid_t id);

/* Turns off the messages that libhdf5 prints, and registers the filters of filters.c. Every entry
 * point calls it, because libhdf5 keeps this setting for each thread. */
void h5_begin(void);

/* Whether the last call failed because a later version of HDF5 wrote what it met. */
bool h5_is_newer(void);

/* Reports "<path>: <key>: <what libhdf5 says>" and returns `code`, or CLI_UNSUPPORTED if a later version
 * wrote it. `key` may be NULL. */
cli_exit h5_fail(cli_exit code, const char *path, const char *key);

/* ---- Types ------------------------------------------------------------------------------ */

typedef enum h5_text { H5_NO_TEXT = 0, H5_FIXED_TEXT, H5_ANY_LENGTH } h5_text;

/* A type of items, as it is read. */
typedef struct h5_type {
    char *dtype;       /* of one item, without the axes; NULL for texts of any length */
    hid_t memory;      /* the type for H5Dread: items of dtype, with the axes */
    size_t item_size;  /* of `dtype` */
    int n_axes;        /* of an array type: they follow the axes of the dataset */
    hsize_t axes[CATERVA_MAX_DIMS];
    h5_text text;
    bool is_utf8;      /* of texts */
    bool is_enum;      /* with names; a boolean is none */
    bool is_structure;
    bool is_bytes;     /* opaque items */
    bool has_enum_fields;
    char tag[64];      /* of opaque items without dtype */
} h5_type;

/* Describes the type of a dataset or attribute. Returns NULL, or a phrase that says what it is if
 * an array cannot hold it; "" after a reported lack of memory. Release with h5_type_free. */
const char *h5_type_of(hid_t file_type, h5_type *out);
void h5_type_free(h5_type *type);

/* Returns the HDF5 type for items, or -1 if there is none. A text `<U3` is opaque: the caller
 * stores texts of arrays as strings. */
hid_t h5_type_for(const caterva_dtype *dtype);
hid_t h5_type_bool(void);
hid_t h5_type_string(bool is_utf8, size_t size); /* H5T_VARIABLE: of any length */

/* ---- Chunks of Blosc2 ------------------------------------------------------------------- */

/* Opens an HDF5 chunk of filter 32026, which is a frame. The bytes are borrowed. */
caterva_status h5_frame_open(const void *frame, size_t size, caterva_array **out,
                             caterva_error *err);
/* Makes an HDF5 chunk of a Blosc2 chunk. Release *frame with caterva_free. */
caterva_status h5_frame_make(const foreign_node *array, const void *chunk, size_t size,
                             void **frame, size_t *frame_size, caterva_error *err);
void h5_register_filters(void);
/* Returns how users know a filter, and who has its plug-in. */
const char *h5_filter_name(H5Z_filter_t filter);

/* ---- Chunks of deflate ------------------------------------------------------------------ */

enum { H5_MAX_FILTERS = 4 };

typedef struct h5_pipeline {
    int n;
    H5Z_filter_t filters[H5_MAX_FILTERS];
    unsigned element[H5_MAX_FILTERS]; /* bytes of an element, of shuffle; level of deflate */
} h5_pipeline;

/* Returns whether the filters are deflate and shuffle only. */
bool h5_pipeline_of(hid_t properties, h5_pipeline *out);

/* A box of whole chunks, of items that libhdf5 would not convert. */
typedef struct h5_chunk_box {
    const char *path;
    hid_t dataset;
    const foreign_node *node;
    const h5_pipeline *pipeline;
    const int64_t *start, *stop;
    uint8_t *items; /* only read by h5_write_chunks */
} h5_chunk_box;

/* Read and write a box by at most `threads` threads (0: all cores), and set *code. Return false if
 * libhdf5 should do it. To write, deflate must be the last filter. */
bool h5_read_chunks(const h5_chunk_box *box, int threads, cli_exit *code);
bool h5_write_chunks(const h5_chunk_box *box, int threads, cli_exit *code);

/* ---- Formats ---------------------------------------------------------------------------- */

cli_exit h5_open(foreign_file *file);
cli_exit h5_create(foreign_writer *writer, bool force);

#endif
