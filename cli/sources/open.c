/* Room: cli/sources. Opens array files for all commands. */
#include "cli.h"
#include "sources/probe.h"
#include "sources/remote.h"
#include "terminal/progress.h"
#include <caterva_remote.h>

cli_exit cli_open_array(const cli_args *args, const char *path, caterva_mode mode,
                        caterva_array **out)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = mode;
    options.threads = (int)args->threads;
    options.progress.report = progress_tell;
    options.compact_percent = mode == CATERVA_MODE_WRITE ? (int)args->compact_at : 0;
    const caterva_remote_options remote = remote_of(args);
    options.remote = &remote;
    caterva_error err;
    cli_patience patience = {0};
    caterva_status status;
    do status = caterva_open(path, &options, out, &err);
    while (cli_try_again(args, status, &patience));
    if (status == CATERVA_OK) return CLI_OK;
    if (err.code == CATERVA_ECORRUPT || err.code == CATERVA_ENOTFOUND ||
        err.code == CATERVA_EUNSUPPORTED)
        CLI_TRY(probe_explain(args, path));
    return cli_fail_array(path, &err);
}
