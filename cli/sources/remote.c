/* Room: cli/sources. Options of URLs. */
#include "sources/remote.h"

#include "terminal/trace.h"
#include <caterva_remote.h>

caterva_remote_options remote_of(const cli_args *args)
{
    caterva_remote_options remote = CATERVA_REMOTE_INIT;
    if (args->trace) remote.on_request = trace_request;
    remote.ca_file = args->ca_file;
    return remote;
}
