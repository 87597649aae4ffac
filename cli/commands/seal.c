/* Room: cli/commands. `caterva seal`: adds checksums to arrays that other programs wrote. */
#include "formats/json.h"
#include "terminal/progress.h"
#include <caterva_upkeep.h>

static void report(const cli_args *args, const caterva_space *space)
{
    const char *path = args->positional[0];
    if (args->json) {
        json j = {.stream = stdout};
        json_begin_object(&j, NULL);
        json_put_int(&j, "schema", 1);
        json_put_place(&j, "file", path);
        json_put_int(&j, "stored_chunks", space->stored_chunks);
        json_end_object(&j);
        putchar('\n');
    } else {
        printf("%s: sealed, %lld stored\n", cli_show_place(path).text,
               (long long)space->stored_chunks);
    }
}

static cli_exit run_seal(const cli_args *args)
{
    const char *path = args->positional[0];
    caterva_array *array;
    caterva_space space = CATERVA_SPACE_INIT;
    caterva_error err;
    caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
    progress bar;
    options.progress = progress_of(&bar);
    progress_start(&bar, args, 0);
    cli_patience patience = {0};
    caterva_status status;
    do status = caterva_seal(path, &options, &err);
    while (cli_try_again(args, status, &patience));
    progress_end(&bar);
    if (status != CATERVA_OK) return cli_fail_array(path, &err);
    CLI_TRY(cli_open_array(args, path, CATERVA_MODE_READ, &array));
    status = caterva_measure(array, &space, &err);
    caterva_discard(array);
    if (status != CATERVA_OK) return cli_fail_array(path, &err);
    report(args, &space);
    return CLI_OK;
}

const cli_command cli_command_seal = {
    .name = "seal",
    .synopsis = "FILE",
    .summary = "add checksums to an array of another writer",
    .details =
        "Adds checksums to the chunks of FILE that have none, in their present state, and\n"
        "seals FILE: from then on reads detect any accidental change of its bytes. The exit\n"
        "status is 4 if a chunk's header is damaged; the other chunks are sealed all the\n"
        "same.",
    .options = CLI_OPT_JSON | CLI_OPT_WAIT,
    .min_args = 1,
    .max_args = 1,
    .run = run_seal,
};
