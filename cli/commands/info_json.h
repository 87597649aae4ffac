/* `caterva info --json`: what each array is, as members of an object. */
#ifndef CLI_INFO_JSON_H
#define CLI_INFO_JSON_H

#include "commands/info_report.h"

/* All but chunks and jobs. */
cli_exit info_put_fields(json *j, const report *r);

#endif
