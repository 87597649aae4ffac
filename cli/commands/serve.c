/* Room: cli/commands. `caterva serve`: arrays and trees as Zarr and as files, by HTTP. */
#include "server/http.h"

enum { DEFAULT_PORT = 8080, CACHE = 32 << 20 };

static cli_exit serve(const cli_args *args, shelves *offered)
{
    http_options options = {.address = args->bind ? args->bind : "127.0.0.1",
                            .port = args->port < 0 ? DEFAULT_PORT : (int)args->port};
    const shelf *all = shelves_take(offered, false);
    size_t n = all->n;
    if (all->is_cut) cli_warn("only the first %d files are served", SHELF_MOST);
    if (all->n_linked > 0)
        cli_warn("not served, because of symbolic links in their directories: %zu",
                 all->n_linked);
    shelves_give(offered, all);
    if (n == 0) return cli_fail(CLI_IO, "there is no array or tree to serve");
    answerer *answers = answerer_new(offered);
    if (!answers) return CLI_IO;
    cli_exit code = http_serve(answers, &options, n);
    answerer_free(answers);
    return code;
}

static cli_exit run_serve(const cli_args *args)
{
    shelves *offered;
    (void)caterva_cache_set_limit(CACHE, NULL);
    CLI_TRY(shelves_new(args->files, args->n_positional, &offered));
    cli_exit code = serve(args, offered);
    shelves_free(offered);
    return code;
}

const cli_command cli_command_serve = {
    .name = "serve",
    .synopsis = "PATH...",
    .summary = "serve arrays by HTTP, as Zarr and as files",
    .details =
        "Serves arrays, trees and the arrays and trees in directories by HTTP, for reading,\n"
        "until SIGINT or SIGTERM. x.b2nd is at /x.zarr as a Zarr v3 array, and at /x.b2nd "
        "as\n"
        "a file. / lists all arrays, and /view/x.zarr shows slices of one. Only programs on\n"
        "this computer can connect unless --bind is given: there is no access control.",
    .options = CLI_OPT_SERVE,
    .min_args = 1,
    .max_args = CLI_ANY_NUMBER,
    .run = run_serve,
};
