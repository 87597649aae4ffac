/* Plug-in netcdf. It writes NetCDF-4; the program reads the classic formats, and the plug-in hdf5
 * NetCDF-4, which is HDF5. */
#include "netcdf.h"

cli_exit nc_fail(cli_exit code, const char *path, const char *key, int status)
{
    if (cli_interrupted()) return CLI_INTERRUPTED;
    return cli_fail(code, "%s: %s: libnetcdf: %s", path, key, nc_strerror(status));
}

CLI_API extern const foreign_format caterva_format;
const foreign_format caterva_format = {
    .interface = FOREIGN_INTERFACE,
    .name = "netcdf",
    .create = nc_create_file,
};
