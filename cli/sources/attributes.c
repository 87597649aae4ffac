/* Room: cli/sources. One interface for the attributes of arrays and groups, whatever their file. */
#include "sources/attributes.h"

#include "sources/described.h"
#include "sources/remote.h"
#include "sources/trees.h"
#include "terminal/progress.h"

#include <caterva_remote.h>
#include <caterva_tree.h>
#include <caterva_value.h>
#include <stdlib.h>
#include <string.h>

static cli_exit open_group(const cli_args *args, caterva_mode mode, attributes *out)
{
    caterva_error err;
    caterva_status status;
    cli_patience patience = {0};
    caterva_tree_options options = CATERVA_TREE_INIT;
    const caterva_remote_options remote = remote_of(args);
    options.mode = mode;
    options.remote = &remote;
    options.progress.report = progress_tell;
    CLI_TRY(tree_part_split(out->path, &out->tree_path, &out->group));
    do status = caterva_tree_open(out->tree_path, &options, &out->tree, &err);
    while (cli_try_again(args, status, &patience));
    if (status == CATERVA_OK)
        status = caterva_tree_attr_list(out->tree, out->group, &out->names, &out->n, &err);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(out->path, &err);
}

cli_exit attributes_open(const cli_args *args, const char *path, caterva_mode mode,
                         attributes *out)
{
    *out = (attributes){.path = path};
    if (tree_part_is(args, path)) return open_group(args, mode, out);
    return cli_open_array(args, path, mode, &out->array);
}

static cli_exit close_group(attributes *all, cli_exit code)
{
    caterva_error err;
    if (all->tree && (code != CLI_OK || cli_interrupted()))
        (void)caterva_tree_rollback(all->tree, NULL);
    if (caterva_tree_close(all->tree, &err) != CATERVA_OK && code == CLI_OK)
        code = cli_fail_array(all->path, &err);
    free(all->tree_path);
    caterva_free(all->names);
    return code;
}

cli_exit attributes_close(attributes *all, cli_exit code)
{
    if (!all->array) return close_group(all, code);
    if (info_of(all->array)->mode == CATERVA_MODE_WRITE)
        return cli_finish_array(all->array, all->path, code);
    caterva_discard(all->array);
    return code;
}

const char *attributes_name(const attributes *all, size_t i)
{
    if (all->array) return attribute_of(all->array, (int)i);
    if (all->node) return i < all->node->n_attributes ? all->node->attributes[i].name : NULL;
    return i < all->n ? all->names[i] : NULL;
}

/* Copies a packed value to memory of the library: unpacks and packs it. */
static caterva_status copy_value(const foreign_attribute *a, void **value, size_t *size,
                                 caterva_error *err)
{
    size_t n = 0, room = 0;
    caterva_value *values = NULL;
    caterva_status status = CATERVA_OK;
    for (size_t at = 0; at < a->size && status == CATERVA_OK; n++) {
        if (n == room) {
            caterva_value *grown = realloc(values, (room = 2 * room + 1) * sizeof *grown);
            if (!grown) status = CATERVA_ENOMEM;
            if (!grown) break;
            values = grown;
        }
        values[n] = (caterva_value)CATERVA_VALUE_INIT;
        status = caterva_value_next(a->value, a->size, &at, &values[n], err);
    }
    if (status == CATERVA_OK) status = caterva_value_pack(values, n, value, size, err);
    free(values);
    return status;
}

caterva_status attributes_get(attributes *all, const char *name, void **value, size_t *size,
                              caterva_error *err)
{
    const foreign_attribute *a = all->node ? foreign_attribute_of(all->node, name) : NULL;
    if (a) return copy_value(a, value, size, err);
    if (all->array) return caterva_attr_get(all->array, name, value, size, err);
    return caterva_tree_attr_get(all->tree, all->group, name, value, size, err);
}

caterva_status attributes_measure(attributes *all, const char *name, int64_t *size,
                                  caterva_error *err)
{
    void *value;
    size_t bytes;
    if (all->array) return caterva_attr_read(all->array, name, 0, NULL, 0, size, err);
    if (all->node) {
        const foreign_attribute *a = foreign_attribute_of(all->node, name);
        *size = a ? (int64_t)a->size : 0;
        return a ? CATERVA_OK : CATERVA_ENOTFOUND;
    }
    caterva_status status =
        caterva_tree_attr_get(all->tree, all->group, name, &value, &bytes, err);
    if (status != CATERVA_OK) return status;
    caterva_free(value);
    *size = (int64_t)bytes;
    return CATERVA_OK;
}

caterva_status attributes_set(attributes *all, const char *name, const void *value,
                              size_t size, caterva_error *err)
{
    if (all->array) return caterva_attr_set(all->array, name, value, size, err);
    return caterva_tree_attr_set(all->tree, all->group, name, value, size, err);
}

caterva_status attributes_remove(attributes *all, const char *name, caterva_error *err)
{
    if (all->array) return caterva_attr_delete(all->array, name, err);
    return caterva_tree_attr_delete(all->tree, all->group, name, err);
}
