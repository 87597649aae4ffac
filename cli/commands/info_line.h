/* An array in one line: shape, type, bytes of the file, ratio, codec and filters,
 * whether it is sealed, and last its name. */
#ifndef CLI_INFO_LINE_H
#define CLI_INFO_LINE_H

#include "cli.h"

/* `info` NULL: the file could not be read, and the line says so. `dtype` NULL: it is not
 * understood. */
void info_line_print(const char *path, const caterva_info *info, const caterva_dtype *dtype);

#endif
