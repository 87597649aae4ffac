/* Sources of items. Each opener returns a source that source_close releases. */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "sources/transfer.h"

typedef enum data_format {
    FORMAT_NONE,
    FORMAT_ARRAY, /* b2nd, or the older caterva */
    FORMAT_NPY,
    FORMAT_RAW,
    FORMAT_TEXT,
    FORMAT_CSV
} data_format;

/* Determines the format of `path` by its name, or by `named` (the value of `option`, --from or
 * --to). A directory is an array. FORMAT_NONE: unknown. For inputs the first bytes are more
 * reliable: input.h. */
cli_exit format_find(const char *path, const char *named, const char *option,
                     data_format *out);

/* Reads an open array, which stays the caller's. */
cli_exit source_of_array(caterva_array *array, const char *path, source **out);

/* The same, with the item `fill` (copied; NULL: the array's own) for items that cannot be read.
 * Reports each skipped chunk once on stderr; source_skipped returns their number so far. */
cli_exit source_of_damaged(caterva_array *array, const char *path, const uint8_t *fill,
                           source **out);
int64_t source_skipped(const source *damaged);

/* Reads an npy file, or standard input ("-", only in order), that probe_open opened. The source
 * takes ownership of the descriptor. */
typedef struct probe probe;
cli_exit source_of_npy(const char *path, probe *opened, source **out);

typedef struct raw_items {
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    const char *dtype;
    int64_t offset; /* bytes before the first item */
} raw_items;

/* Reads raw items in the same way; opens `path` if `opened` has no descriptor. A file must have
 * exactly the bytes of the items. */
cli_exit source_of_raw(const char *path, probe *opened, const raw_items *items, source **out);

/* Reads CSV, or text whose cells are separated by blanks, into memory. `dtype` NULL: int64, or
 * float64 if a number is not an integer or is missing. `shape` (NULL: none) is used if it has as
 * many items; else a single column becomes one axis, others two. A first row of words, without a
 * number or other item, is a header. */
cli_exit source_of_text(const char *path, probe *opened, bool csv, const array_shape *shape,
                        const char *dtype, source **out);

/* Reduces the items of an open array to their field `name`. */
cli_exit source_take_field(source *of_array, const char *name);

/* Returns the bytes of items in a raw file, after --offset; -1: a pipe of unknown size. */
cli_exit source_raw_size(const cli_args *args, const char *path, int64_t *size);

/* Reads the selected items of `inner`. Takes ownership of it and the lists of `sel`, also on
 * failure. */
cli_exit source_select(source *inner, selection *sel, source **out);

/* Repeats `item`, which is copied. */
cli_exit source_of_value(const array_shape *shape, const char *dtype, const void *item,
                         source **out);

/* Formats a shape as "(3, 4)" for messages. */
#define SHAPE_TEXT_SIZE (CATERVA_MAX_DIMS * 22 + 4)
const char *shape_text(int ndim, const int64_t *shape, char text[SHAPE_TEXT_SIZE]);

#endif
