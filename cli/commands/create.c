/* Room: cli/commands. `caterva create`: creates an array filled with one value. No item is written,
 * because the library does not store chunks that hold only the fill. So the time does not depend on
 * the shape. creation.c documents the options. */
#include "formats/numbers.h"
#include "sources/creation.h"

static cli_exit create(const cli_args *args, creation *c)
{
    caterva_array *array;
    array_shape shape = {0};
    CLI_TRY(number_shape(args->shape, "--shape", &shape.ndim, shape.shape));
    CLI_TRY(creation_init(c, args, &shape, args->dtype, NULL));
    CLI_TRY(creation_make(c, args->positional[0], &array));
    if (cli_interrupted()) {
        caterva_discard(array);
        return CLI_INTERRUPTED;
    }
    caterva_error err;
    if (caterva_close(array, &err) != CATERVA_OK)
        return cli_fail_array(args->positional[0], &err);
    return CLI_OK;
}

static cli_exit run_create(const cli_args *args)
{
    if (!args->shape || !args->dtype)
        return cli_fail(CLI_USAGE, "create requires --shape and --dtype");
    creation c = {0};
    cli_exit code = create(args, &c);
    creation_free(&c);
    return code;
}

const cli_command cli_command_create = {
    .name = "create",
    .synopsis = "FILE",
    .summary = "create an array filled with one value",
    .details =
        "Creates FILE, an array with the given --shape and --dtype. All items have the\n"
        "value of --fill (default 0).",
    .options = CLI_OPT_WAIT | CLI_OPT_SHAPE | CLI_OPT_DTYPE | CLI_OPT_PARTITION |
               CLI_OPT_FILL | CLI_OPT_FORCE | CLI_OPT_THREADS,
    .min_args = 1,
    .max_args = 1,
    .run = run_create,
};
