/* Room: cli/sources. Trees and files of other formats in one form, for commands that walk through all
 * arrays. */
#include "sources/dataset.h"

#include "sources/foreign_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dataset_order(const char *a, const char *b)
{
    while (*a && *a == *b) a++, b++;
    int x = *a == '/' ? 1 : (unsigned char)*a, y = *b == '/' ? 1 : (unsigned char)*b;
    return (x > y) - (x < y);
}

static int order_of_nodes(const void *a, const void *b)
{
    return dataset_order((*(const foreign_node *const *)a)->key,
                         (*(const foreign_node *const *)b)->key);
}

cli_exit dataset_find(const cli_args *args, const char *text, dataset_sort *out)
{
    foreign_place place;
    size_t arrays = 0;
    *out = DATASET_NONE;
    if (!foreign_place_is(text)) {
        if (tree_part_is(args, text)) *out = DATASET_MANY;
        return CLI_OK;
    }
    cli_exit code = foreign_place_open(text, &place);
    for (size_t i = 0; code == CLI_OK && i < place.file->n; i++)
        arrays += !place.file->nodes[i].is_group &&
                  foreign_place_name(&place, &place.file->nodes[i]);
    if (code == CLI_OK && place.node->is_group)
        *out = arrays == 1 ? DATASET_ONE : DATASET_MANY;
    foreign_place_close(&place);
    return code;
}

static cli_exit list_nodes(dataset *all)
{
    const foreign_file *file = all->place.file;
    all->nodes = cli_alloc(file->n * sizeof *all->nodes);
    if (!all->nodes) return CLI_IO;
    for (size_t i = 0; i < file->n; i++)
        if (foreign_place_name(&all->place, &file->nodes[i]))
            all->nodes[all->n++] = &file->nodes[i];
    qsort(all->nodes, all->n, sizeof *all->nodes, order_of_nodes);
    return CLI_OK;
}

cli_exit dataset_open(const cli_args *args, const char *text, dataset *out)
{
    *out = (dataset){.n = 0};
    if (foreign_place_is(text)) {
        CLI_TRY(foreign_place_open(text, &out->place));
        const foreign_file *file = out->place.file;
        if (!args->quiet) foreign_report_losses(out->place.path, file->losses, file->n_losses);
        return list_nodes(out);
    }
    CLI_TRY(tree_part_open(args, text, &out->tree));
    out->n = out->tree.list->n;
    return CLI_OK;
}

void dataset_close(dataset *all)
{
    free(all->nodes);
    foreign_place_close(&all->place);
    tree_part_close(&all->tree);
}

static const caterva_tree_entry *entry_of(const dataset *all, size_t i)
{
    return all->tree.list->entries[i];
}

const char *dataset_path(const dataset *all)
{
    return all->nodes ? all->place.path : all->tree.path;
}

const char *dataset_name(const dataset *all, size_t i)
{
    if (all->nodes) return foreign_place_name(&all->place, all->nodes[i]);
    return tree_part_name(&all->tree, entry_of(all, i));
}

const char *dataset_kind(const dataset *all, size_t i)
{
    if (all->nodes) return all->nodes[i]->is_group ? "group" : "array";
    return entry_of(all, i)->kind_name;
}

bool dataset_is_array(const dataset *all, size_t i)
{
    if (all->nodes) return !all->nodes[i]->is_group;
    return entry_of(all, i)->kind == CATERVA_TREE_ARRAY;
}

char *dataset_url(const dataset *all, size_t i)
{
    if (!all->nodes) return tree_part_url(&all->tree, entry_of(all, i));
    size_t size = strlen(all->place.path) + strlen(all->nodes[i]->key) + 3;
    char *url = cli_alloc(size);
    if (url) snprintf(url, size, "%s::%s", all->place.path, all->nodes[i]->key);
    return url;
}

cli_exit dataset_open_array(const cli_args *args, const dataset *all, size_t i, input *out)
{
    if (all->nodes) {
        out->format = FORMAT_FOREIGN;
        out->place.node = all->nodes[i]; /* the file stays that of the data set */
        return source_of_foreign(all->place.file, all->nodes[i], &out->from);
    }
    out->format = FORMAT_ARRAY;
    CLI_TRY(tree_part_open_array(args, &all->tree, entry_of(all, i), &out->array));
    return source_of_array(out->array, out->path, &out->from);
}

bool dataset_is_gone(const dataset *all)
{
    return !all->nodes && tree_part_is_gone(&all->tree);
}

cli_exit dataset_attributes(const dataset *all, size_t i, const char *url, attributes *out)
{
    caterva_error err;
    if (all->nodes) {
        *out = (attributes){url, .node = i == DATASET_ROOT ? all->place.node : all->nodes[i]};
        return CLI_OK;
    }
    const char *group = i == DATASET_ROOT ? all->tree.group : entry_of(all, i)->key;
    *out = (attributes){url, .tree = all->tree.tree, .group = group};
    caterva_status status =
        caterva_tree_attr_list(all->tree.tree, group, &out->names, &out->n, &err);
    if (status == CATERVA_ENOTFOUND && group[1]) { /* deleted after listing */
        out->names = NULL;
        out->n = 0;
        return CLI_OK;
    }
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(url, &err);
}
