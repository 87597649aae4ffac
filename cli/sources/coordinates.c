/* Room: cli/sources. Parses "name=value,...". coordinate.c interprets the values; the finder
 * locates the coordinate arrays. */
#include "sources/coordinates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One "name=value" of the text, without surrounding blanks. */
typedef struct part {
    const char *name, *value;
    size_t name_size, value_size;
} part;

static void trim(const char **at, size_t *size)
{
    while (*size > 0 && strchr(" \t", (*at)[*size - 1])) --*size;
    while (*size > 0 && strchr(" \t", **at)) ++*at, --*size;
}

/* Returns the size of a value, which ends at a comma outside of brackets. */
static size_t value_size(const char *at)
{
    size_t size = 0;
    for (int depth = 0; at[size] && (at[size] != ',' || depth > 0); size++) {
        depth += at[size] == '[';
        depth -= at[size] == ']' && depth > 0;
    }
    return size;
}

static cli_exit take_part(const char *text, const char **at, part *out)
{
    out->name = *at;
    out->name_size = strcspn(*at, "=,");
    if ((*at)[out->name_size] != '=')
        return cli_fail(CLI_USAGE, "--sel '%s': expected name=value at position %d", text,
                        (int)(*at - text) + 1);
    out->value = *at + out->name_size + 1;
    out->value_size = value_size(out->value);
    *at = out->value + out->value_size;
    *at += **at == ',';
    trim(&out->name, &out->name_size);
    trim(&out->value, &out->value_size);
    return CLI_OK;
}

static bool is_name(const char *name, const part *p)
{
    return name && strlen(name) == p->name_size && memcmp(name, p->name, p->name_size) == 0;
}

static cli_exit fail_unknown(const part *p, int ndim, const char *const *names)
{
    char list[400] = "";
    size_t used = 0;
    for (int d = 0; d < ndim && used < sizeof list - 64; d++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s", d ? ", " : "",
                                 names[d] ? cli_show(names[d]).text : "-");
    return cli_fail(CLI_USAGE, "unknown dimension '%.*s': the array has (%s)",
                    (int)p->name_size, p->name, list);
}

static cli_exit find_axis(const part *p, int ndim, const char *const *names, int *out)
{
    *out = -1;
    for (int d = 0; d < ndim; d++) {
        if (!is_name(names[d], p)) continue;
        if (*out >= 0)
            return cli_fail(CLI_USAGE, "axes %d and %d both have the name '%.*s'", *out, d,
                            (int)p->name_size, p->name);
        *out = d;
    }
    return *out >= 0 ? CLI_OK : fail_unknown(p, ndim, names);
}

/* Parses the value for an axis without a coordinate: an index or slice in NumPy's syntax. */
static cli_exit take_indices(const part *p, int64_t extent, selection_axis *out)
{
    char *text = cli_alloc(p->value_size + 1);
    if (!text) return CLI_IO;
    memcpy(text, p->value, p->value_size);
    text[p->value_size] = '\0';
    selection one;
    bool plain = p->value_size > 0 && strchr("-+0123456789:[", text[0]) != NULL;
    cli_exit code = plain ? selection_parse(text, 1, &extent, &one) : CLI_USAGE;
    if (!plain)
        cli_fail(CLI_USAGE,
                 "%.*s=%s: no coordinate of this name was found, and this is not an index",
                 (int)p->name_size, p->name, text);
    free(text);
    if (code == CLI_OK) *out = one.axis[0];
    return code;
}

static cli_exit take_axis(const part *p, int64_t extent, const char *name,
                          const coordinate_finder *finder, selection_axis *out)
{
    const coordinate *c = NULL;
    CLI_TRY(finder->find(finder->context, name, extent, &c));
    if (!c) return take_indices(p, extent, out);
    return coordinate_match(c, p->value, p->value_size, finder->nearest, out);
}

static void keep_axes(selection *sel)
{
    sel->n_result = 0;
    for (int d = 0; d < sel->ndim; d++)
        if (!sel->axis[d].dropped) sel->result[sel->n_result++] = d;
}

cli_exit coordinates_parse(const char *text, int ndim, const int64_t *shape,
                           const char *const *names, const coordinate_finder *finder,
                           selection *out)
{
    bool taken[CATERVA_MAX_DIMS] = {false};
    const char *at = text;
    selection_whole(ndim, shape, out);
    cli_exit code = CLI_OK;
    while (code == CLI_OK && (*at || at == text)) {
        part p = {.name = NULL};
        int d = -1;
        selection_axis axis = {.step = 1};
        code = take_part(text, &at, &p);
        if (code == CLI_OK) code = find_axis(&p, ndim, names, &d);
        if (code == CLI_OK && taken[d])
            code = cli_fail(CLI_USAGE, "--sel '%s' names %s twice", text,
                            cli_show(names[d]).text);
        if (code == CLI_OK) code = take_axis(&p, shape[d], names[d], finder, &axis);
        if (code != CLI_OK) break;
        taken[d] = true;
        out->axis[d] = axis;
    }
    keep_axes(out);
    if (code != CLI_OK) selection_free(out);
    return code;
}
