/* Where items come from. Each opener gives a source that source_close releases. */
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

/* The format of `path` by its name, or `named` (--from, --to: `option`). A
 * directory is an array. FORMAT_NONE when the name does not tell. What an input is its
 * bytes tell better: input.h. */
cli_exit format_find(const char *path, const char *named, const char *option,
                     data_format *out);

/* An open array; the source closes nothing: `array` stays the caller's. */
cli_exit source_of_array(caterva_array *array, const char *path, source **out);

/* The same, with one `fill` item (copied; NULL: the array's own) in the place of
 * what cannot be read; each chunk that is skipped is reported on stderr, once. How
 * many there were so far: */
cli_exit source_of_damaged(caterva_array *array, const char *path, const uint8_t *fill,
                           source **out);
int64_t source_skipped(const source *damaged);

/* An npy file, or "-" for standard input (then in order), that probe_open opened: the
 * source takes the descriptor over. */
typedef struct probe probe;
cli_exit source_of_npy(const char *path, probe *opened, source **out);

typedef struct raw_items {
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    const char *dtype;
    int64_t offset; /* bytes before the first */
} raw_items;

/* Raw items, in the same way; not opened yet when `opened` has no descriptor. A file must
 * have exactly as many. */
cli_exit source_of_raw(const char *path, probe *opened, const raw_items *items, source **out);

/* CSV, or text whose cells are separated by blanks; all of it is held in memory. `dtype` NULL:
 * int64, or float64 if a number is not whole or missing. `shape` (NULL: none) is taken if it has
 * as many items; else one row or column has one axis, and more have two. A first row with a cell
 * that is no number is a header. */
cli_exit source_of_text(const char *path, probe *opened, bool csv, const array_shape *shape,
                        const char *dtype, source **out);

/* The field `name` of structured items of an open array, alone. */
cli_exit source_take_field(source *of_array, const char *name);

/* Bytes of items in a raw file, behind --offset; -1 when only its end will tell: a
 * pipe. */
cli_exit source_raw_size(const cli_args *args, const char *path, int64_t *size);

/* The selected items of `inner`. The result owns `inner` and the lists of `sel` from
 * now on, also after a failure. */
cli_exit source_select(source *inner, selection *sel, source **out);

/* `item` again and again; copied. */
cli_exit source_of_value(const array_shape *shape, const char *dtype, const void *item,
                         source **out);

/* "(3, 4)" for sentences. */
#define SHAPE_TEXT_SIZE (CATERVA_MAX_DIMS * 22 + 4)
const char *shape_text(int ndim, const int64_t *shape, char text[SHAPE_TEXT_SIZE]);

#endif
