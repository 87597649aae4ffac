/* What the files of the reader share: what it keeps of a file and of its datasets. */
#ifndef PLUGIN_HDF5_READ_H
#define PLUGIN_HDF5_READ_H

#include "hdf5.h"

#define NEWER "a type or layout that HDF5 " H5_VERSION " does not know"

/* What a node of a dataset owns. */
typedef struct dataset {
    haddr_t address;
    char *path;                        /* in the file; the key may lack a prefix of netCDF */
    int ndim;                          /* in the file; the axes of an array type follow */
    hsize_t extent[CATERVA_MAX_DIMS];  /* in the file; a growing axis of the node may be longer */
    hsize_t most[CATERVA_MAX_DIMS];    /* to which an axis can grow */
    char *labels[CATERVA_MAX_DIMS];    /* of axes, or NULL */
    haddr_t scales[CATERVA_MAX_DIMS];  /* of each axis; HADDR_UNDEF: none */
    int32_t ids[CATERVA_MAX_DIMS];     /* of the dimensions of a scale of several axes, or -1 */
    size_t group;                      /* node that it is in */
    bool may_be_named;                 /* its type */
} dataset;

/* A named type. */
typedef struct named {
    char *key;
    hid_t type;
    bool used;
} named;

/* A dimension. */
typedef struct scale {
    haddr_t address;
    char *name;
    size_t group;
    hsize_t length;
    int32_t id; /* of netCDF-4, or -1 */
    bool grows, has_variable, used;
    bool used_here; /* by an array in its group */
    bool has_rival; /* an array below looks like its coordinate, or a group above has its name */
} scale;

typedef struct link {
    char *name;
    H5L_type_t type;
} link;

typedef struct pending {
    char *key;
    haddr_t address;
} pending;

/* An entry of the table of visited objects. */
typedef struct visit {
    haddr_t address;
    char *key; /* NULL: the entry is free */
} visit;

typedef struct reader {
    foreign_file *file;
    hid_t id;
    int64_t file_size;
    bool is_netcdf; /* an attribute of one item is a scalar */
    visit *visits;  /* hash table of a power of two entries */
    size_t n_visits, room;
    pending *stack;
    size_t n_stack;
    scale *scales;
    size_t n_scales;
    named *types;
    size_t n_types;
    /* The dataset that was read last. */
    const foreign_node *node;
    hid_t dataset, space;
    h5_type type;
    bool is_deflated; /* and its items are not converted */
    h5_pipeline pipeline;
} reader;

/* Reports a failure of libhdf5 at an object. */
cli_exit h5_read_fail(const reader *r, const char *key);
/* What only a later libhdf5 reads is a loss, of which *problem is the reason. All else that it refuses
 * is damage. */
cli_exit h5_refuse(const reader *r, const char *key, const char **problem);
/* Makes room for one more of `n` entries; NULL after a reported lack of memory. */
void *h5_grow(void *entries, size_t n, size_t size);
bool h5_is_utf8(const char *text, size_t size);

/* ---- Attributes: attributes.c ------------------------------------------------------------ */

/* Sets the attributes of an object. `type` is that of a dataset, or -1. */
cli_exit h5_add_attributes(reader *r, foreign_node *node, hid_t object, hid_t type,
                           bool is_scale);
/* Reads the texts of an attribute that names others. Release with h5_free_names. */
char **h5_read_names(const reader *r, hid_t object, const char *name, size_t *n);
void h5_free_names(char **names, size_t n);

/* ---- Items: items.c ---------------------------------------------------------------------- */

/* Widths of the texts that a scan has met. */
typedef struct widths {
    size_t bytes, characters;
    bool is_utf8;
} widths;

/* Finds the widest text of a dataset of texts of any length. Chunks that are not stored are skipped: a
 * small file may claim any number of items. */
cli_exit h5_scan_texts(const reader *r, hid_t set, const h5_type *type, const dataset *own,
                       const hsize_t *chunk, const char *key, widths *out);

/* Sets node->block_shape if the chunks of the dataset are Blosc2 chunks: according to the first one
 * that is stored. */
cli_exit h5_find_blocks(const reader *r, hid_t set, hid_t space, hid_t properties,
                        foreign_node *node);

/* Closes the dataset that was read last. */
void h5_close_set(reader *r);

/* The functions `read`, `is_fill` and `read_stored` of a file. */
cli_exit h5_read_items(foreign_file *file, const foreign_node *node, const int64_t *start,
                       const int64_t *stop, void *dst);
bool h5_is_fill(foreign_file *file, const foreign_node *node, const int64_t *start,
                const int64_t *stop);
cli_exit h5_read_stored(foreign_file *file, const foreign_node *node, int64_t index,
                        void **chunk, size_t *size);

#endif
