/* Room: cli/commands. `caterva tree`: draws a tree, with types and shapes. */
#include "formats/item.h"
#include "sources/leaf_infos.h"

#include <caterva_tree.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST = 66 };

typedef struct drawing {
    const tree_part *part;
    leaf_infos infos;
    bool goes_on[DEEPEST]; /* another entry follows at this depth */
} drawing;

/* Returns the length of the group's path in the name, including its last slash. */
static size_t parent_size(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) + 1 : 0;
}

static int depth_of(const char *name)
{
    int depth = 0;
    for (const char *at = strchr(name, '/'); at && depth < DEEPEST - 1;
         at = strchr(at + 1, '/'))
        depth++;
    return depth;
}

/* Whether another entry of the same group follows. A group precedes its members. */
static bool has_next(const tree_part *part, size_t i)
{
    const char *name = tree_part_name(part, part->list->entries[i]);
    size_t parent = parent_size(name);
    for (size_t k = i + 1; k < part->list->n; k++) {
        const char *other = tree_part_name(part, part->list->entries[k]);
        if (strncmp(name, other, parent) != 0) return false;
        if (parent_size(other) == parent) return true;
    }
    return false;
}

static void print_what(const caterva_tree_entry *entry, const caterva_info *info)
{
    caterva_dtype *dtype = NULL;
    char type[ITEM_NAME_SIZE];
    if (entry->kind == CATERVA_TREE_OTHER) printf("  %s", cli_show(entry->kind_name).text);
    if (entry->kind != CATERVA_TREE_ARRAY) return;
    if (!info) {
        printf("  damaged");
        return;
    }
    (void)caterva_dtype_parse(info->dtype, &dtype, NULL);
    item_type_name(dtype, info->dtype, type);
    caterva_dtype_free(dtype);
    printf("  %s (", type);
    for (int d = 0; d < info->ndim; d++)
        printf("%s%lld", d ? ", " : "", (long long)info->shape[d]);
    printf(")");
}

static cli_exit draw(drawing *d, size_t i)
{
    const caterva_info *info;
    const caterva_tree_entry *entry = d->part->list->entries[i];
    const char *name = tree_part_name(d->part, entry);
    int depth = depth_of(name);
    CLI_TRY(leaf_info(&d->infos, i, &info));
    d->goes_on[depth] = has_next(d->part, i);
    for (int k = 0; k < depth; k++) printf("%s", d->goes_on[k] ? "│   " : "    ");
    printf("%s%s%s", d->goes_on[depth] ? "├── " : "└── ",
           cli_show(name + parent_size(name)).text,
           entry->kind == CATERVA_TREE_GROUP ? "/" : "");
    print_what(entry, info);
    putchar('\n');
    return CLI_OK;
}

static cli_exit tree(const cli_args *args, const char *text)
{
    tree_part part;
    cli_exit code = tree_part_open(args, text, &part);
    drawing d = {.part = &part, .infos = {.part = &part, .below = true}};
    if (code == CLI_OK && text != args->files[0]) putchar('\n');
    if (code == CLI_OK) printf("%s\n", cli_show_place(text).text);
    for (size_t i = 0; code == CLI_OK && i < part.list->n; i++) {
        code = draw(&d, i);
        if (cli_interrupted()) code = CLI_INTERRUPTED;
    }
    leaf_infos_free(&d.infos);
    tree_part_close(&part);
    return code;
}

static cli_exit run_tree(const cli_args *args) { return cli_each_file(args, tree); }

const cli_command cli_command_tree = {
    .name = "tree",
    .synopsis = "TREE...",
    .summary = "draw a tree of arrays, with types and shapes",
    .details =
        "Draws each TREE, an archive .b2z, a directory .b2d or a file .b2e with several\n"
        "arrays, or a group in one, TREE::/group, with the type and shape of each array.",
    .options = CLI_OPT_REMOTE | CLI_OPT_NO_PROGRESS,
    .min_args = 1,
    .max_args = CLI_ANY_NUMBER,
    .run = run_tree,
};
