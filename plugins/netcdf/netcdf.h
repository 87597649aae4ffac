/* What the two directions of the plug-in share. */
#ifndef PLUGIN_NETCDF_H
#define PLUGIN_NETCDF_H

#include "foreign/foreign.h"

#include <netcdf.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NC_NATIVE "<"
#else
#define NC_NATIVE ">"
#endif

/* Reports "<path>: <key>: <what libnetcdf says>" and returns `code`. */
cli_exit nc_fail(cli_exit code, const char *path, const char *key, int status);

cli_exit nc_create_file(foreign_writer *writer, bool force);

#endif
