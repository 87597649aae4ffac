/* Plug-in hdf5: HDF5 files, and NetCDF-4 files, which are HDF5. types.c has the types, filters.c the
 * codecs, read.c and write.c the two directions. libhdf5 prints nothing: its message becomes part of
 * ours. */
#include "hdf5.h"

#include <stdio.h>
#include <string.h>

void h5_close(hid_t id)
{
    if (id >= 0) H5Idec_ref(id);
}

void h5_begin(void)
{
    static bool has_begun;
    /* At the exit libhdf5 1.10 crashes on files that a full disk kept it from closing. */
    if (!has_begun) H5dont_atexit();
    has_begun = true;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    h5_register_filters();
}

/* The first entry of an upward walk is the cause; of one of the system, its words. */
static herr_t take_cause(unsigned n, const H5E_error2_t *entry, void *text)
{
    static const char key[] = "error message = '";
    if (n != 0 || !entry->desc) return 0;
    const char *words = strstr(entry->desc, key);
    words = words ? words + sizeof key - 1 : entry->desc;
    snprintf(text, 200, "%.*s", words == entry->desc ? 199 : (int)strcspn(words, "'"), words);
    return 0;
}

bool h5_is_newer(void)
{
    char cause[200] = "";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_cause, cause);
    return strncmp(cause, "bad version number", 18) == 0;
}

cli_exit h5_fail(cli_exit code, const char *path, const char *key)
{
    char cause[200] = "the file is damaged";
    if (cli_interrupted()) return CLI_INTERRUPTED;
    bool is_newer = h5_is_newer();
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_cause, cause);
    if (is_newer) code = CLI_UNSUPPORTED;
    return cli_fail(code, "%s: %s%slibhdf5: %s%s", path, key ? key : "", key ? ": " : "", cause,
                    is_newer ? "; files of later versions than HDF5 " H5_VERSION " have such"
                             : "");
}

CLI_API extern const foreign_format caterva_format;
const foreign_format caterva_format = {
    .interface = FOREIGN_INTERFACE,
    .name = "hdf5",
    .open = h5_open,
    .create = h5_create,
};
