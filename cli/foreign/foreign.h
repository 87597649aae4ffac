/* Files of other formats: HDF5, NetCDF, NIfTI, TIFF and others. Each is a tree of groups and arrays
 * with attributes, as in docs/conventions.md.
 *
 * A format is a constant foreign_format. Formats that need no library of their own are part of the
 * program. Each of the others is a plug-in: a shared object, found at run time, that exports its
 * format as `caterva_format`. A plug-in may call the functions that are marked CLI_API here and in
 * cli.h, which the program exports, and those of libcaterva. One thread uses a file at a time. */
#ifndef CLI_FOREIGN_H
#define CLI_FOREIGN_H

#include "cli.h"

#define FOREIGN_INTERFACE 1

/* ---- Descriptions ----------------------------------------------------------------------- */

typedef struct foreign_attribute {
    char *name;
    void *value; /* one MessagePack value, see caterva_value.h */
    size_t size;
} foreign_attribute;

/* A group, or an array: then all members count. */
typedef struct foreign_node {
    char *key; /* "/group/name"; the group "/" is the whole file */
    bool is_group;
    foreign_attribute *attributes;
    size_t n_attributes;
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    char *dtype; /* as in array files, see descr_for_array */
    int64_t item_size;
    int64_t chunk_shape[CATERVA_MAX_DIMS]; /* of the stored chunks; 0: not in chunks */
    int32_t block_shape[CATERVA_MAX_DIMS]; /* of chunks that move as stored; see read_stored */
    bool first_axis_fastest;               /* the file is in Fortran order */
    char **dims;                           /* `ndim` names, NULL for an axis without a name; or NULL */
    uint8_t *fill;                         /* the item that unwritten cells hold, or NULL */
    void *own;                             /* of the reader or writer, which releases it in close */
} foreign_node;

/* ---- Reading ---------------------------------------------------------------------------- */

typedef struct foreign_file foreign_file;
struct foreign_file {
    const char *path;    /* borrowed; for messages */
    foreign_node *nodes; /* a group precedes its members; the first one is "/" */
    size_t n;
    char **losses; /* sentences about what is in the file but in no node */
    size_t n_losses;
    bool is_array; /* a format with groups, but this is one array: "/data" in a group without attributes */
    int threads; /* at most this many decode; 0: all cores. May be set after `open` */
    void *own;
    struct foreign_index *index; /* of foreign_find */

    /* Reads the items from start[d] to stop[d] of axis d, at least one, to `dst` in C order. Any
     * order of boxes is allowed; boxes of whole stored chunks are the cheapest. */
    cli_exit (*read)(foreign_file *self, const foreign_node *array, const int64_t *start,
                     const int64_t *stop, void *dst);

    /* Reads a chunk as it is stored: the Blosc2 chunk of an array whose chunk_shape and block_shape
     * it has, for caterva_chunk_write_undecoded. `index` counts chunks in C order. *size is 0 if this
     * chunk must be read as items. NULL if the array's `block_shape` is 0 in all arrays. Release
     * *chunk with free. */
    cli_exit (*read_stored)(foreign_file *self, const foreign_node *array, int64_t index,
                            void **chunk, size_t *size);

    /* Whether nothing is stored for the items of a box: they are the fill, or zeros without one. It
     * takes much less time than `read`. NULL: it is not known. */
    bool (*is_fill)(foreign_file *self, const foreign_node *array, const int64_t *start,
                    const int64_t *stop);

    void (*close)(foreign_file *self); /* releases `own`, of the nodes too; not the rest */
};

/* ---- Writing ---------------------------------------------------------------------------- */

typedef struct foreign_writer foreign_writer;
struct foreign_writer {
    const char *path; /* borrowed; for messages */
    int threads;      /* at most this many encode; 0: all cores */
    bool in_order;    /* set by `create`: boxes must be the next runs of items in C order */
    bool coordinates_first; /* set by `create`: they precede the other arrays of a group */
    void *own;

    /* Adds a group or array, after the group that it is in. "/" is added first, with the attributes
     * of the file. Sets node->own for the calls below, if it needs it. What the format cannot hold
     * is reported with foreign_lose_writing, and CLI_OK returned, unless the node as a whole cannot
     * be written: CLI_UNSUPPORTED. */
    cli_exit (*add)(foreign_writer *self, foreign_node *node);

    /* Writes items, in C order. Boxes do not overlap, and end at multiples of the node's chunk_shape,
     * which `add` may change, where memory allows it. */
    cli_exit (*write)(foreign_writer *self, const foreign_node *array, const int64_t *start,
                      const int64_t *stop, const void *src);

    /* Writes a Blosc2 chunk, see read_stored. NULL: impossible in this format. */
    cli_exit (*write_stored)(foreign_writer *self, const foreign_node *array, int64_t index,
                             const void *chunk, size_t size);

    cli_exit (*finish)(foreign_writer *self); /* the file appears; releases `own` */
    void (*abandon)(foreign_writer *self);    /* no file remains; releases `own` */

    char **losses; /* as in foreign_file */
    size_t n_losses;
};

/* ---- Formats ---------------------------------------------------------------------------- */

typedef struct foreign_format {
    int interface; /* FOREIGN_INTERFACE */
    const char *name;
    /* Opens the file and describes all nodes. Neither items nor values beyond the attributes are
     * read. */
    cli_exit (*open)(foreign_file *file);
    /* Begins a file, which appears at `finish`. Replaces an existing one only if `force`. NULL: the
     * format can only be read. */
    cli_exit (*create)(foreign_writer *writer, bool force);
} foreign_format;

/* ---- For readers and writers ------------------------------------------------------------ */

/* Appends a node; NULL after a reported lack of memory. It is valid until the next call. */
CLI_API foreign_node *foreign_add(foreign_file *file, const char *key, bool is_group);

/* Removes the node that was added last, without its `own`. */
CLI_API void foreign_drop(foreign_file *file);
/* Releases the members of a node that is in no file; its key is borrowed. */
CLI_API void foreign_node_clear(foreign_node *node);

/* Set an attribute; the value is copied. A text has `size` bytes and must be UTF-8. Numbers of
 * `dtype` ("<i2"; "float64" is in this machine's byte order) are in C order; a single float64, int64
 * or bool of that order (ndim 0) becomes a plain value, all others keep their type. */
CLI_API cli_exit foreign_set_text(foreign_node *node, const char *name, const char *text,
                                  size_t size);
CLI_API cli_exit foreign_set_texts(foreign_node *node, const char *name,
                                   const char *const *texts, size_t n);
CLI_API cli_exit foreign_set_numbers(foreign_node *node, const char *name, const char *dtype,
                                     int ndim, const int64_t *shape, const void *items);
/* Takes ownership of a value that caterva_value_pack made, also on failure. */
CLI_API cli_exit foreign_set_packed(foreign_node *node, const char *name, void *value,
                                    size_t size);
CLI_API cli_exit foreign_copy_packed(foreign_node *node, const char *name, const void *value,
                                     size_t size);
/* Whether the name has a meaning of its own in arrays and trees, so that it is left out. */
CLI_API bool foreign_is_reserved(const foreign_node *node, const char *name);
/* Whether the name is that of an attribute by which a writer restores what trees lack. Readers of HDF5 and
 * NetCDF leave out what a file has under it. */
CLI_API bool foreign_restores(const foreign_node *node, const char *name);
/* NULL if there is no attribute of that name. */
CLI_API const foreign_attribute *foreign_attribute_of(const foreign_node *node,
                                                      const char *name);

/* Sets the shape and dtype ("<f4", or a structured one), and computes the item size. Returns
 * CLI_UNSUPPORTED with a message if no array can have them. */
CLI_API cli_exit foreign_set_shape(foreign_file *file, foreign_node *node, const char *dtype,
                                   int ndim, const int64_t *shape);
/* Names an axis; the name is copied. */
CLI_API cli_exit foreign_set_dim(foreign_node *node, int axis, const char *name);

/* Records that something of the file is in no node, or was not written: a sentence that begins with
 * its key. */
CLI_API cli_exit foreign_lose(foreign_file *file, const char *fmt, ...) CLI_PRINTF(2, 3);
CLI_API cli_exit foreign_lose_writing(foreign_writer *writer, const char *fmt, ...)
    CLI_PRINTF(2, 3);

/* ---- For commands ----------------------------------------------------------------------- */

/* A format that the program knows, whether it can read it or not. */
typedef struct foreign_info {
    const char *name;       /* "hdf5", for --from and --to */
    const char *title;      /* "an HDF5 file" */
    const char *extensions; /* ".h5 .hdf5 .he5" */
    const char *package;    /* of the plug-in, "caterva-hdf5", or NULL */
    const foreign_format *format; /* in the program; NULL: in the plug-in. Its `create` may be */
    bool has_groups;
} foreign_info;

/* Returns the format of a file that begins with the `size` bytes `head`, or NULL. */
const foreign_info *foreign_recognize(const uint8_t *head, size_t size);
/* Returns the format by the extension of a path, or by its name; NULL if it is unknown. */
const foreign_info *foreign_by_path(const char *path);
const foreign_info *foreign_by_name(const char *name);
const char *foreign_name(size_t i); /* NULL after the last */

/* Opens a file. Without the plug-in it returns CLI_UNSUPPORTED and names the package. Release *out
 * with foreign_close. */
cli_exit foreign_open(const foreign_info *info, const char *path, foreign_file **out);
void foreign_close(foreign_file *file);

/* Returns the node of a key, the first one if there are several, or NULL. */
const foreign_node *foreign_find(foreign_file *file, const char *key);

/* Begins a file. Release *out with foreign_finish or foreign_abandon. */
cli_exit foreign_create(const foreign_info *info, const char *path, bool force,
                        foreign_writer **out);
cli_exit foreign_finish(foreign_writer *writer);
void foreign_abandon(foreign_writer *writer);

/* Makes a node for a writer that is in no file. Release it with foreign_node_free. */
CLI_API foreign_node *foreign_node_make(const char *key, bool is_group);
CLI_API void foreign_node_free(foreign_node *node);

#endif
