/* An array in one line: shape, type, bytes of the file, ratio, codec and filters, seal, name. */
#ifndef CLI_INFO_LINE_H
#define CLI_INFO_LINE_H

#include "cli.h"

/* Prints the line. `info` is NULL for a file that cannot be read, `dtype` if it is unknown. */
void info_line_print(const char *path, const caterva_info *info, const caterva_dtype *dtype);

#endif
