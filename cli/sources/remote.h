/* Options of URLs, for every command that accepts one. */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "cli.h"
#include <caterva_remote.h>

/* Converts the options of CLI_OPT_REMOTE for the library. Borrows from the arguments. */
caterva_remote_options remote_of(const cli_args *args);

#endif
