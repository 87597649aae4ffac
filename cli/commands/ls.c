/* Room: cli/commands. `caterva ls`: lists a tree. -l and --json open each array for its shape. */
#include "commands/foreign_report.h"
#include "formats/item.h"
#include "formats/json.h"
#include "formats/numbers.h"
#include "sources/foreign_source.h"
#include "sources/leaf_infos.h"

#include <caterva_tree.h>
#include <stdio.h>
#include <string.h>

/* Whether an entry is listed. Without -r, only the direct members of the group are listed. */
static bool is_listed(const cli_args *args, const char *name)
{
    return args->recursive || !strchr(name, '/');
}

/* ---- Lines ---------------------------------------------------------------------------- */

static void print_details(const caterva_info *info, const caterva_tree_entry *entry)
{
    char shape[CATERVA_MAX_DIMS * 21] = "-", type[ITEM_NAME_SIZE] = "-";
    char bytes[NUMBER_TEXT_SIZE];
    if (info) {
        caterva_dtype *dtype = NULL;
        size_t used = (size_t)snprintf(shape, sizeof shape, "%s", info->ndim ? "" : "()");
        for (int d = 0; d < info->ndim; d++)
            used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld",
                                     d ? "," : "", (long long)info->shape[d]);
        (void)caterva_dtype_parse(info->dtype, &dtype, NULL);
        item_type_name(dtype, info->dtype, type);
        caterva_dtype_free(dtype);
    }
    const char *stored =
        entry->path || entry->embedded ? number_bytes(entry->stored_bytes, bytes) : "-";
    printf("%-11s %-16s %-9s %10s  ", cli_show(entry->kind_name).text, shape, type, stored);
}

static cli_exit print_line(const cli_args *args, leaf_infos *infos, size_t i)
{
    const caterva_info *info = NULL;
    const caterva_tree_entry *entry = infos->part->list->entries[i];
    const char *name = tree_part_name(infos->part, entry);
    if (args->long_lines) {
        CLI_TRY(leaf_info(infos, i, &info));
        print_details(info, entry);
    }
    printf("%s%s\n", cli_show(name).text, entry->kind == CATERVA_TREE_GROUP ? "/" : "");
    return CLI_OK;
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void put_entry(json *j, const caterva_info *info, const caterva_tree_entry *entry)
{
    static const char *const kinds[] = {"array", "group", "other"};
    json_begin_object(j, NULL);
    json_put_text(j, "key", entry->key);
    json_put_text(j, "kind", kinds[entry->kind]);
    json_put_text(j, "kind_name", entry->kind_name);
    json_put_bool(j, "read_only", entry->read_only);
    json_put_bool(j, "embedded", entry->embedded);
    json_put_int(j, "stored_bytes", entry->stored_bytes);
    json_put_text(j, "path", entry->path);
    if (info) {
        json_put_ints(j, "shape", info->shape, info->ndim);
        json_put_text(j, "dtype", info->dtype);
    }
    json_end_object(j);
}

static cli_exit print_json(const cli_args *args, const char *text, leaf_infos *infos)
{
    const tree_part *part = infos->part;
    json j = {.stream = stdout};
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "file", text);
    json_put_text(&j, "group", part->group);
    json_begin_array(&j, "entries");
    for (size_t i = 0; i < part->list->n; i++) {
        const caterva_tree_entry *entry = part->list->entries[i];
        if (cli_interrupted()) return CLI_INTERRUPTED;
        if (!is_listed(args, tree_part_name(part, entry))) continue;
        const caterva_info *info;
        CLI_TRY(leaf_info(infos, i, &info));
        put_entry(&j, info, entry);
    }
    json_end_array(&j);
    json_end_object(&j);
    putchar('\n');
    return CLI_OK;
}

/* ---- The commands ----------------------------------------------------------------------- */

static cli_exit print_lines(const cli_args *args, const char *text, leaf_infos *infos)
{
    const tree_part *part = infos->part;
    if (args->n_positional > 1)
        printf("%s%s:\n", text == args->files[0] ? "" : "\n", cli_show_place(text).text);
    for (size_t i = 0; i < part->list->n; i++) {
        const char *name = tree_part_name(part, part->list->entries[i]);
        if (cli_interrupted()) return CLI_INTERRUPTED;
        if (is_listed(args, name)) CLI_TRY(print_line(args, infos, i));
    }
    return CLI_OK;
}

static cli_exit ls(const cli_args *args, const char *text)
{
    tree_part part;
    if (foreign_place_is(text)) return foreign_ls(args, text);
    cli_exit code = tree_part_open(args, text, &part);
    leaf_infos infos = {.part = &part, .below = args->recursive};
    if (code == CLI_OK)
        code = args->json ? print_json(args, text, &infos) : print_lines(args, text, &infos);
    leaf_infos_free(&infos);
    tree_part_close(&part);
    return code;
}

static cli_exit run_ls(const cli_args *args) { return cli_each_file(args, ls); }

const cli_command cli_command_ls = {
    .name = "ls",
    .synopsis = "TREE...",
    .summary = "list a tree of arrays: TREE.b2z, TREE.b2d, TREE::/group",
    .details =
        "Lists the members of each TREE: an archive .b2z, a directory .b2d or a file .b2e\n"
        "with several arrays, or a group in one, TREE::/group. Names of groups end with a\n"
        "slash. Every command that reads accepts TREE::/name for an array in a tree. Files\n"
        "of other formats, such as HDF5, are listed in the same way.",
    .options = CLI_OPT_JSON | CLI_OPT_LIST | CLI_OPT_REMOTE | CLI_OPT_NO_PROGRESS,
    .min_args = 1,
    .max_args = CLI_ANY_NUMBER,
    .run = run_ls,
};
