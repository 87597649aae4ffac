/* Room: cli/commands. `caterva resize`: grows or shrinks each axis at its end. */
#include "formats/numbers.h"
#include "sources/described.h"
#include "sources/source.h"

static cli_exit resize(const cli_args *args, caterva_array *array)
{
    const char *path = args->positional[0], *text = args->positional[1];
    const caterva_info *info = info_of(array);
    int64_t shape[CATERVA_MAX_DIMS];
    char old[SHAPE_TEXT_SIZE];
    int ndim;
    CLI_TRY(number_shape(text, "SHAPE", &ndim, shape));
    if (ndim != info->ndim)
        return cli_fail(CLI_USAGE, "SHAPE '%s' has %d axes, but %s has the shape %s", text,
                        ndim, path, shape_text(info->ndim, info->shape, old));
    caterva_error err;
    if (caterva_resize(array, shape, &err) != CATERVA_OK) return cli_fail_array(path, &err);
    return cli_interrupted() ? CLI_INTERRUPTED : CLI_OK;
}

static cli_exit run_resize(const cli_args *args)
{
    caterva_array *array;
    CLI_TRY(cli_open_array(args, args->positional[0], CATERVA_MODE_WRITE, &array));
    return cli_finish_array(array, args->positional[0], resize(args, array));
}

const cli_command cli_command_resize = {
    .name = "resize",
    .synopsis = "FILE SHAPE",
    .summary = "grow or shrink an array",
    .details =
        "Changes the shape of FILE to SHAPE (N,N,...), with the same number of axes. Each\n"
        "axis grows or shrinks at its end. New items have the array's fill. Items outside\n"
        "the new shape are lost: growing the array again does not restore them. The change\n"
        "is committed at the end, as a whole or not at all.",
    .options = CLI_OPT_THREADS | CLI_OPT_WAIT,
    .min_args = 2,
    .max_args = 2,
    .run = run_resize,
};
