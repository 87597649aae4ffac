/* Sources of items. Each opener returns a source in *out; release it with source_close. */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "sources/transfer.h"

typedef enum data_format {
    FORMAT_NONE,
    FORMAT_ARRAY, /* b2nd, or the older caterva */
    FORMAT_NPY,
    FORMAT_RAW,
    FORMAT_TEXT,
    FORMAT_CSV,
    FORMAT_ZARR,   /* of an output: an array that is also a Zarr array */
    FORMAT_FOREIGN /* see foreign/foreign.h */
} data_format;

/* Determines the format of `path` by its name, or by `named` if not NULL: the value of `option`
 * (--from or --to). A directory is an array. The result is FORMAT_NONE if the format is unknown.
 * For inputs the first bytes are more reliable: see input.h. */
cli_exit format_find(const char *path, const char *named, const char *option,
                     data_format *out);

/* Reads an open array, which the caller still owns. */
cli_exit source_of_array(caterva_array *array, const char *path, source **out);

/* Like source_of_array, but replaces unreadable items by the item `fill`, which is copied; NULL
 * stands for the array's own fill. Reports each skipped chunk once on stderr. source_skipped
 * returns the number of chunks skipped so far. */
cli_exit source_of_damaged(caterva_array *array, const char *path, const uint8_t *fill,
                           source **out);
int64_t source_skipped(const source *damaged);

/* Reads an npy file that probe_open opened; or standard input ("-"), which can be read only in
 * order. The source takes ownership of the descriptor. */
typedef struct probe probe;
cli_exit source_of_npy(const char *path, probe *opened, source **out);

typedef struct raw_items {
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    const char *dtype;
    int64_t offset; /* bytes before the first item */
} raw_items;

/* Like source_of_npy, for raw items. Opens `path` if `opened` has no descriptor. A file must have
 * exactly as many bytes as the items need. */
cli_exit source_of_raw(const char *path, probe *opened, const raw_items *items, source **out);

/* Reads CSV, or text with blanks between cells, into memory. `dtype` NULL means int64, or float64
 * if a cell is empty or not an integer. If `shape` is not NULL and has as many items as the text,
 * the result has this shape; otherwise one column becomes one axis, and several columns become two
 * axes. The first row is a header if it has words and none of its cells is an item. */
cli_exit source_of_text(const char *path, probe *opened, bool csv, const array_shape *shape,
                        const char *dtype, source **out);

/* Makes a source of an open array deliver only the field `name` of each item. */
cli_exit source_take_field(source *of_array, const char *name);

/* Sets *size to the bytes of items in a raw file after --offset, or to -1 for a pipe. */
cli_exit source_raw_size(const cli_args *args, const char *path, int64_t *size);

/* Reads the selected items of `inner`. Takes ownership of `inner` and the lists of `sel`, also on
 * failure. */
cli_exit source_select(source *inner, selection *sel, source **out);

/* Exchanges the first two axes of `inner`, of which it takes ownership, also on failure. The result
 * has no dtype. */
cli_exit source_transpose(source *inner, source **out);

/* Delivers `item`, which is copied, for every position of the shape. */
cli_exit source_of_value(const array_shape *shape, const char *dtype, const void *item,
                         source **out);

/* Formats a shape as "(3, 4)" for messages. */
#define SHAPE_TEXT_SIZE (CATERVA_MAX_DIMS * 22 + 4)
const char *shape_text(int ndim, const int64_t *shape, char text[SHAPE_TEXT_SIZE]);

#endif
