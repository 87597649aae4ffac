/* What goes into an array that exists: nothing is broadcast and nothing is cast. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "source.h"

typedef struct input {
    const char *path;
    data_format format;   /* npy, raw or array */
    caterva_array *array; /* NULL for the others */
    source *from;
} input;

/* Finds the format of `path` by its name or --from; opens nothing. */
cli_exit input_find(const cli_args *args, const char *path, input *out);

/* Opens it. Raw bytes are items of `dtype` and have the shape `raw`. */
cli_exit input_open(const cli_args *args, const array_shape *raw, const char *dtype,
                    input *in);

/* CLI_USAGE with a sentence unless the items are those of the array at `path`. */
cli_exit input_check_dtype(const input *in, const char *path, const char *dtype);

/* Releases what input_open took; fine also when it failed or did not happen. */
void input_close(input *in);

#endif
