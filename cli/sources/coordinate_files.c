/* Room: cli/sources. Coordinates that are arrays next to the array from which items are selected:
 * in the same directory or, in a tree, in the nearest enclosing group that has a 1-d array with the
 * dimension's name. A directory with the file embed.b2e is a tree too. */
#include "formats/descr.h"
#include "formats/item.h"
#include "sources/coordinates.h"
#include "sources/described.h"
#include "sources/dims.h"
#include "sources/remote.h"
#include "sources/trees.h"

#include <caterva_remote.h>
#include <caterva_value.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_GROUPS = 64 };

/* An open coordinate. The finder keeps it open until the finder is closed. */
typedef struct opened {
    coordinate coordinate;
    caterva_array *array;
    caterva_dtype *dtype;
    char *path, *name;
    uint8_t *items; /* a piece of the items, as stored */
    int64_t capacity;
} opened;

struct coordinate_files {
    const cli_args *args;
    char *folder; /* folder of the array: a directory, or "TREE::/group" */
    bool is_tree;
    int n_groups; /* folders to search, from `folder` upwards */
    opened *found[CATERVA_MAX_DIMS];
    int n_found;
};

static void close_one(opened *o)
{
    if (!o) return;
    caterva_discard(o->array);
    caterva_dtype_free(o->dtype);
    free(o->path);
    free(o->name);
    free(o->items);
    free(o);
}

/* ---- Values -------------------------------------------------------------- */

static cli_exit read_values(void *context, int64_t start, int64_t n, coordinate_value *values)
{
    opened *o = context;
    int64_t size = o->dtype->item_size, stop = start + n;
    caterva_error err;
    if (n > o->capacity) {
        free(o->items);
        o->items = cli_alloc((size_t)(n * size));
        if (!o->items) return CLI_IO;
        o->capacity = n;
    }
    if (caterva_read(o->array, &start, &stop, o->items, (size_t)(n * size), &err) !=
        CATERVA_OK)
        return cli_fail_array(o->path, &err);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *item = o->items + i * size;
        if (o->dtype->kind == 'f')
            values[i].real = item_load_real(o->dtype, item, size);
        else if (o->dtype->kind == 'u')
            values[i].whole = (int64_t)item_load_uint(o->dtype, item, size);
        else
            values[i].whole = item_load_int(o->dtype, item, size);
        if (o->dtype->kind == 'u' && values[i].whole < 0)
            return cli_fail(CLI_UNSUPPORTED, "%s: item %lld exceeds 2^63", o->path,
                            (long long)(start + i));
    }
    return CLI_OK;
}

/* Returns the value of a text attribute, to be freed; NULL if the array lacks it. */
static char *attribute_text(caterva_array *array, const char *name)
{
    void *packed;
    size_t size, at = 0;
    int64_t length;
    caterva_error err;
    if (caterva_attr_read(array, name, 0, NULL, 0, &length, &err) != CATERVA_OK ||
        length > 1 << 16 || caterva_attr_get(array, name, &packed, &size, &err) != CATERVA_OK)
        return NULL;
    caterva_value v = CATERVA_VALUE_INIT;
    char *text = NULL;
    if (caterva_value_next(packed, size, &at, &v, &err) == CATERVA_OK &&
        v.kind == CATERVA_VALUE_TEXT && (text = cli_alloc(v.size + 1))) {
        memcpy(text, v.bytes, v.size);
        text[v.size] = '\0';
    }
    caterva_free(packed);
    return text;
}

/* If `units` is a text such as "days since 2000-01-01", makes the numbers of the coordinate times.
 * `named` is the calendar's name, or NULL. */
static cli_exit set_time(opened *o, const char *units, const char *named)
{
    coordinate *c = &o->coordinate;
    calendar of = CALENDAR_STANDARD;
    if (!strstr(units, " since ")) return CLI_OK;
    c->is_time = true;
    if (named && !calendar_find(named, &of))
        return cli_fail(CLI_UNSUPPORTED, "%s: unknown calendar '%s'", o->path,
                        cli_show(named).text);
    if (time_count_parse(units, of, &c->time)) return CLI_OK;
    return cli_fail(CLI_UNSUPPORTED, "%s: units '%s' are not days, hours, ... since a date",
                    o->path, cli_show(units).text);
}

static cli_exit set_kind(opened *o)
{
    const caterva_dtype *t = o->dtype;
    coordinate *c = &o->coordinate;
    bool plain = t->ndim == 0 && t->n_fields == 0;
    if (plain && strchr("iu", t->kind)) {
        c->kind = COORDINATE_WHOLE;
    } else if (plain && t->kind == 'f' && t->item_size <= 8) {
        c->kind = t->item_size == 8 ? COORDINATE_REAL : COORDINATE_SINGLE;
    } else if (plain && t->kind == 'M' && time_count_of_datetime(t->unit, &c->time)) {
        c->kind = COORDINATE_WHOLE;
        c->is_time = true;
    } else {
        return cli_fail(CLI_UNSUPPORTED, "%s: coordinates must be numbers or times, not %s",
                        o->path, info_of(o->array)->dtype);
    }
    if (t->kind == 'M') return CLI_OK;
    char *units = attribute_text(o->array, "units");
    char *named = attribute_text(o->array, "calendar");
    cli_exit code = units ? set_time(o, units, named) : CLI_OK;
    free(units);
    free(named);
    return code;
}

/* ---- Finding the arrays ----------------------------------------------------------------- */

static bool exists(const char *folder, const char *name)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

/* Changes "a/b/c" to "a/b". Returns false if there is no folder above. */
static bool cut_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path) return false;
    *slash = '\0';
    return true;
}

/* Returns the number of folders from `folder` up to the top of its tree; 1 outside of a tree. */
static int count_groups(const char *folder)
{
    char *path = cli_copy_text(folder);
    int n = 0;
    for (int i = 1; path && i < MAX_GROUPS && n == 0; i++) {
        if (exists(path, "embed.b2e")) n = i;
        if (!cut_folder(path)) break;
    }
    free(path);
    return n > 0 ? n : 1;
}

/* Returns the number of groups from `folder` up to the root: 3 for "TREE::/a/b". */
static int depth_in_tree(const char *folder)
{
    int n = 1;
    for (const char *at = strrchr(folder, ':'); at && *at; at++) n += *at == '/';
    return n;
}

static bool has_own_name(caterva_array *array, const char *name)
{
    const char **names = dims_of(array);
    bool has = names && info_of(array)->ndim == 1 && names[0] && strcmp(names[0], name) == 0;
    caterva_free(names);
    return has;
}

static cli_exit check_length(const opened *o, int64_t n)
{
    int64_t length = info_of(o->array)->shape[0];
    if (length == n) return CLI_OK;
    return cli_fail(CLI_USAGE, "%s has %lld items, but the axis %s has %lld", o->path,
                    (long long)length, cli_show(o->name).text, (long long)n);
}

static bool is_in_tree(const cli_args *args, const char *url)
{
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.cache_bytes = -1;
    options.threads = 1;
    const caterva_remote_options remote = remote_of(args);
    options.remote = &remote;
    bool found = caterva_open(url, &options, &array, NULL) == CATERVA_OK;
    if (found) caterva_discard(array);
    return found;
}

/* Opens the array of this name in the folder. Sets *found if it exists and is a coordinate: it has
 * one axis, whose dimension name is `name`. */
static cli_exit open_at(const coordinate_files *files, const char *folder, const char *name,
                        opened *o, bool *found)
{
    size_t size = strlen(folder) + strlen(name) + 8;
    free(o->path);
    o->path = cli_alloc(size);
    if (!o->path) return CLI_IO;
    snprintf(o->path, size, "%s/%s%s", folder, name, files->is_tree ? "" : ".b2nd");
    if (!(files->is_tree ? is_in_tree(files->args, o->path) : access(o->path, F_OK) == 0))
        return CLI_OK;
    CLI_TRY(cli_open_array(files->args, o->path, CATERVA_MODE_READ, &o->array));
    *found = has_own_name(o->array, name);
    if (*found) return CLI_OK;
    caterva_discard(o->array);
    o->array = NULL;
    return CLI_OK;
}

static cli_exit search(const coordinate_files *files, const char *name, int64_t n, opened *o,
                       bool *found)
{
    char *folder = cli_copy_text(files->folder);
    cli_exit code = folder ? CLI_OK : CLI_IO;
    for (int i = 0; i < files->n_groups && code == CLI_OK && !*found; i++) {
        code = open_at(files, folder, name, o, found);
        if (!cut_folder(folder)) break;
    }
    free(folder);
    if (code != CLI_OK || !*found) return code;
    o->name = cli_copy_text(name);
    if (!o->name) return CLI_IO;
    CLI_TRY(check_length(o, n));
    CLI_TRY(descr_parse(CLI_CORRUPT, o->path, info_of(o->array)->dtype, &o->dtype));
    o->coordinate = (coordinate){.name = o->name, .n = n, .read = read_values, .context = o};
    return set_kind(o);
}

/* Whether a name is a valid file name and not a path. */
static bool is_file_name(const char *name)
{
    return name[0] && strlen(name) < 240 && !strchr(name, '/') && strcmp(name, "..") != 0 &&
           strcmp(name, ".") != 0;
}

static cli_exit find(void *context, const char *name, int64_t n, const coordinate **out)
{
    coordinate_files *files = context;
    bool found = false;
    *out = NULL;
    if (!is_file_name(name) || files->n_found == CATERVA_MAX_DIMS) return CLI_OK;
    opened *o = cli_alloc(sizeof *o);
    if (!o) return CLI_IO;
    *o = (opened){.array = NULL};
    cli_exit code = search(files, name, n, o, &found);
    if (code != CLI_OK || !found) {
        close_one(o);
        return code;
    }
    files->found[files->n_found++] = o;
    *out = &o->coordinate;
    return CLI_OK;
}

cli_exit coordinate_files_open(const cli_args *args, const char *path, coordinate_files **out,
                               coordinate_finder *finder)
{
    coordinate_files *files = cli_alloc(sizeof *files);
    if (!files) return CLI_IO;
    *files = (coordinate_files){.args = args, .n_groups = 1};
    files->is_tree = tree_part_is_within(path);
    files->folder = files->is_tree ? cli_copy_text(path) : realpath(path, NULL);
    if (!files->folder) files->folder = cli_copy_text("./array");
    if (files->folder && !cut_folder(files->folder))
        files->folder[0] = '\0'; /* the array is in "/" */
    if (!files->folder) {
        free(files);
        return CLI_IO;
    }
    files->n_groups =
        files->is_tree ? depth_in_tree(files->folder) : count_groups(files->folder);
    *finder = (coordinate_finder){.find = find, .context = files};
    *out = files;
    return CLI_OK;
}

void coordinate_files_close(coordinate_files *files)
{
    if (!files) return;
    for (int i = 0; i < files->n_found; i++) close_one(files->found[i]);
    free(files->folder);
    free(files);
}
