/* `caterva info` and `caterva ls` of files of other formats. Nothing but the description of the file
 * is read. */
#ifndef CLI_FOREIGN_REPORT_H
#define CLI_FOREIGN_REPORT_H

#include "cli.h"

/* Describes the file, the group or the array that `text` names. */
cli_exit foreign_info_print(const cli_args *args, const char *text);

/* Lists the members of the file or group. */
cli_exit foreign_ls(const cli_args *args, const char *text);

#endif
