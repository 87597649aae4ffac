/* An input: raw items, an npy file, text, an array, or an array in a file of another format. Items are never broadcast, and cast only if
 * requested. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "sources/foreign_source.h"
#include "sources/probe.h"
#include "sources/source.h"

typedef struct input {
    const char *path;
    data_format format; /* npy, csv, text, raw, array or foreign */
    probe probe;
    caterva_array *array; /* NULL for other formats */
    foreign_place place;  /* the array in a file of another format */
    source *from;
} input;

/* Determines the format of `path` by its first bytes or, if these are not known, by --from or its
 * name. Known formats that are no input are rejected by name; --from raw accepts any bytes. Release
 * with input_close, also after a failure. */
cli_exit input_find(const cli_args *args, const char *path, input *out);

/* Whether the path is a NumPy file, or an array in a file of another format. */
bool input_is_other(const char *path);

/* Opens the input. Bytes of raw input after --offset are items of `dtype`, with the shape `raw`.
 * For text, `raw` and `dtype` may be NULL: see source_of_text. */
cli_exit input_open(const cli_args *args, const array_shape *raw, const char *dtype,
                    input *in);

/* Rejects --astype and --casting for raw items, which have the array's dtype. */
cli_exit input_check_cast(const cli_args *args, const input *in);

/* Converts the items as --astype and --casting request. Returns CLI_USAGE with a message if the
 * result does not have `dtype`, the dtype of the array at `path`. */
cli_exit input_fit_dtype(const cli_args *args, input *in, const char *path,
                         const char *dtype);

/* Releases what input_find and input_open allocated. */
void input_close(input *in);

#endif
