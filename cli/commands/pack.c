/* Room: cli/commands. `caterva pack` and `unpack`: convert a tree to an archive or a directory. */
#include "cli.h"
#include "terminal/progress.h"

#include <caterva_tree.h>
#include <stdio.h>

typedef caterva_status (*pack_fn)(caterva_tree *tree, const char *path,
                                  const caterva_tree_pack_options *options,
                                  caterva_error *err);

static cli_exit run(const cli_args *args, pack_fn pack)
{
    caterva_error err;
    caterva_tree *tree;
    progress bar;
    const char *from = args->positional[0], *to = args->positional[1];
    caterva_tree_pack_options options = CATERVA_TREE_PACK_INIT;
    options.overwrite = args->force;
    options.zarr = args->zarr;
    options.progress = progress_of(&bar);
    caterva_tree_options opening = CATERVA_TREE_INIT;
    opening.progress.report = progress_tell;
    if (caterva_tree_open(from, &opening, &tree, &err) != CATERVA_OK)
        return cli_fail_array(from, &err);
    cli_mind_temporaries();
    cli_patience patience = {0};
    caterva_status status;
    progress_start(&bar, args, 0);
    do status = pack(tree, to, &options, &err);
    while (cli_try_again(args, status, &patience));
    progress_end(&bar);
    caterva_tree_close(tree, NULL);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(to, &err);
}

static cli_exit run_pack(const cli_args *args) { return run(args, caterva_tree_pack); }

static cli_exit run_unpack(const cli_args *args) { return run(args, caterva_tree_unpack); }

const cli_command cli_command_pack = {
    .name = "pack",
    .synopsis = "TREE OUT",
    .summary = "pack a tree into an archive .b2z, or for Zarr",
    .details =
        "Stores all files of TREE, a directory .b2d or an archive, unchanged in the archive\n"
        "OUT, so that its arrays can be read in place. OUT appears when it is complete. No\n"
        "other process may write to the arrays of TREE meanwhile. With --zarr OUT is a "
        "directory\n"
        "of Zarr v3 groups instead, whose arrays all commands open for reading, too.",
    .options = CLI_OPT_ZARR | CLI_OPT_FORCE | CLI_OPT_NO_PROGRESS | CLI_OPT_WAIT,
    .min_args = 2,
    .max_args = 2,
    .run = run_pack,
};

const cli_command cli_command_unpack = {
    .name = "unpack",
    .synopsis = "TREE OUT",
    .summary = "unpack an archive into a directory .b2d",
    .details =
        "Writes all members of the archive TREE into a new directory OUT and verifies their\n"
        "checksums. OUT appears when it is complete. Its arrays can be written, and the\n"
        "directory can be packed again.",
    .options = CLI_OPT_NO_PROGRESS | CLI_OPT_WAIT,
    .min_args = 2,
    .max_args = 2,
    .run = run_unpack,
};
