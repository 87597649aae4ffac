/* Plug-in netcdf. read.c reads the classic formats, CDF-1, CDF-2 and CDF-5; write.c writes NetCDF-4.
 * NetCDF-4 files are HDF5: the plug-in hdf5 reads them. */
#include "netcdf.h"

cli_exit nc_fail(cli_exit code, const char *path, const char *key, int status)
{
    if (cli_interrupted()) return CLI_INTERRUPTED;
    return cli_fail(code, "%s: %s: libnetcdf: %s", path, key, nc_strerror(status));
}

__attribute__((visibility("default"))) extern const foreign_format caterva_format;
const foreign_format caterva_format = {
    .interface = FOREIGN_INTERFACE,
    .name = "netcdf",
    .open = nc_open_file,
    .create = nc_create_file,
};
