/* `caterva info --json`: an array's description as members of an object. */
#ifndef CLI_INFO_JSON_H
#define CLI_INFO_JSON_H

#include "commands/info_report.h"

/* Puts all members except chunks and jobs. */
cli_exit info_put_fields(json *j, const report *r);

#endif
