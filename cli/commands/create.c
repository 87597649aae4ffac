/* Room: cli/commands. `caterva create`: a new array of one value. Writes no item: the library
 * keeps such chunks without storing them, so that any shape is made in an instant.
 * What the options mean stands in creation.c. */
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
        return cli_fail(CLI_USAGE, "create needs --shape and --dtype");
    creation c = {0};
    cli_exit code = create(args, &c);
    creation_free(&c);
    return code;
}

const cli_command cli_command_create = {
    .name = "create",
    .synopsis = "FILE",
    .summary = "new array of one value",
    .details = "Makes FILE, an array of the given --shape and --dtype whose items all hold\n"
               "the value of --fill (zero when left out).",
    .options = CLI_OPT_WAIT | CLI_OPT_SHAPE | CLI_OPT_DTYPE | CLI_OPT_PARTITION |
               CLI_OPT_FILL | CLI_OPT_FORCE | CLI_OPT_THREADS,
    .min_args = 1,
    .max_args = 1,
    .run = run_create,
};
