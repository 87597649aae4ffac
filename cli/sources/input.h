/* An input: raw items, an npy file, text, an array. Nothing is broadcast, and nothing is cast
 * that was not asked for. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "sources/probe.h"
#include "sources/source.h"

typedef struct input {
    const char *path;
    data_format format; /* npy, csv, text, raw or array */
    probe probe;
    caterva_array *array; /* NULL for the others */
    source *from;
} input;

/* Finds out what `path` is: by its first bytes, else by --from or its name. A mark of
 * another format is refused by name; --from raw takes any bytes as they are. Release with
 * input_close, also after a failure. */
cli_exit input_find(const cli_args *args, const char *path, input *out);

/* Opens it. Raw bytes, behind --offset, are items of `dtype` and have the shape `raw`; of text
 * both may be NULL, see source_of_text. */
cli_exit input_open(const cli_args *args, const array_shape *raw, const char *dtype,
                    input *in);

/* CLI_USAGE when raw items, which have no dtype but the array's, are to be cast. */
cli_exit input_check_cast(const cli_args *args, const input *in);

/* The items of the input as the array at `path` has them: cast when --astype or
 * --casting say so, else CLI_USAGE with a sentence unless they are of its dtype. */
cli_exit input_fit_dtype(const cli_args *args, input *in, const char *path,
                         const char *dtype);

/* Releases what input_find and input_open took. */
void input_close(input *in);

#endif
