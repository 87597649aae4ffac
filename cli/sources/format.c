/* Room: cli/sources. Determines formats by the names of files, and prints shapes. Only the two
 * tables define extensions. Contents are not examined: a file name always means the same format. */
#include "foreign/foreign.h"
#include "sources/source.h"
#include "sources/trees.h"
#include "words.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

typedef struct format_name {
    const char *name;
    data_format format;
} format_name;

static const format_name extensions[] = {
    {".b2nd", FORMAT_ARRAY},    {".b2frame", FORMAT_ARRAY}, {".cat", FORMAT_ARRAY},
    {".caterva", FORMAT_ARRAY}, {".npy", FORMAT_NPY},       {".raw", FORMAT_RAW},
    {".bin", FORMAT_RAW},       {".dat", FORMAT_RAW},       {".txt", FORMAT_TEXT},
    {".csv", FORMAT_CSV},       {".zarr", FORMAT_ZARR},
};

static const format_name names[] = {
    {"b2nd", FORMAT_ARRAY}, {"npy", FORMAT_NPY}, {"raw", FORMAT_RAW},
    {"text", FORMAT_TEXT},  {"csv", FORMAT_CSV}, {"zarr", FORMAT_ZARR},
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

cli_exit format_find(const char *path, const char *named, const char *option,
                     data_format *out)
{
    *out = FORMAT_NONE;
    for (size_t i = 0; named && i < COUNT(names); i++)
        if (strcasecmp(named, names[i].name) == 0) *out = names[i].format;
    if (named && *out == FORMAT_NONE && foreign_by_name(named)) *out = FORMAT_FOREIGN;
    if (named && *out == FORMAT_NONE)
        return cli_fail(CLI_USAGE, "%s: unknown format '%s'%s", option, named,
                        words_suggest(named, words_of_option("to")).text);
    if (named) return CLI_OK;
    if (cli_is_url(path) || tree_part_is_within(path)) { /* a key may end with any suffix */
        *out = FORMAT_ARRAY;
        return CLI_OK;
    }
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < COUNT(extensions); i++)
        if (strcasecmp(dot, extensions[i].name) == 0) *out = extensions[i].format;
    if (*out == FORMAT_NONE && foreign_by_path(path)) *out = FORMAT_FOREIGN;
    if (*out == FORMAT_NONE && is_directory(path)) *out = FORMAT_ARRAY;
    return CLI_OK;
}

const char *shape_text(int ndim, const int64_t *shape, char text[SHAPE_TEXT_SIZE])
{
    size_t used = (size_t)snprintf(text, SHAPE_TEXT_SIZE, "(");
    for (int d = 0; d < ndim; d++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT_SIZE - used, "%s%lld", d ? ", " : "",
                                 (long long)shape[d]);
    snprintf(text + used, SHAPE_TEXT_SIZE - used, ndim == 1 ? ",)" : ")");
    return text;
}
