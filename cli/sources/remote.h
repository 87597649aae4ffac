/* How URLs are read and written, as the options of every command that takes one say. */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "cli.h"
#include <caterva_remote.h>

/* CLI_OPT_REMOTE in the library's words; what it points at is the arguments'. */
caterva_remote_options remote_of(const cli_args *args);

#endif
