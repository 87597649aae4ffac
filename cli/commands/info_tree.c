/* Room: cli/commands. `caterva info` of a tree: totals, the dimensions with their sizes, the
 * attributes of the group. Each array is opened once. */
#include "commands/info_tree.h"

#include "commands/info_report.h"
#include "formats/numbers.h"
#include "formats/value.h"
#include "sources/dims.h"
#include "sources/trees.h"

#include <caterva_tree.h>
#include <stdlib.h>
#include <string.h>

/* A dimension name, and the size of the axes with this name. `varies`: their sizes differ. */
typedef struct dimension {
    char *name;
    int64_t size;
    bool varies;
} dimension;

typedef struct contents {
    int64_t arrays, groups, others, unread;
    int64_t data, stored; /* bytes of all arrays */
    dimension *dims;
    size_t n_dims, room;
    bool out_of_memory;
} contents;

/* ---- Gathering -------------------------------------------------------------------------- */

static void note_dim(contents *c, const char *name, int64_t size)
{
    for (size_t i = 0; i < c->n_dims; i++) {
        if (strcmp(c->dims[i].name, name) != 0) continue;
        c->dims[i].varies = c->dims[i].varies || c->dims[i].size != size;
        return;
    }
    if (c->n_dims == c->room) {
        size_t room = c->room ? 2 * c->room : 8;
        dimension *grown = realloc(c->dims, room * sizeof *grown);
        c->out_of_memory = c->out_of_memory || !grown;
        if (!grown) return;
        c->dims = grown;
        c->room = room;
    }
    char *copy = cli_copy_text(name);
    c->out_of_memory = c->out_of_memory || !copy;
    if (copy) c->dims[c->n_dims++] = (dimension){.name = copy, .size = size};
}

static caterva_status note_array(contents *c, caterva_array *array, caterva_error *err)
{
    const caterva_info *info;
    caterva_status status = caterva_info_get(array, &info, err);
    if (status != CATERVA_OK) return status;
    const char **names = dims_of(array);
    c->data += info->data_bytes;
    c->stored += info->frame_bytes;
    for (int d = 0; names && d < info->ndim; d++)
        if (names[d]) note_dim(c, names[d], info->shape[d]);
    caterva_info_release(info);
    caterva_free(names);
    return CATERVA_OK;
}

static cli_exit fail_entry(const tree_part *part, const caterva_tree_entry *entry,
                           const caterva_error *err)
{
    char *url = tree_part_url(part, entry);
    cli_exit code = url ? cli_fail_array(url, err) : CLI_IO;
    free(url);
    return code;
}

/* Adds an entry to the totals. A damaged array is counted as unread; any other failure to open an
 * array ends the command. */
static cli_exit note_entry(contents *c, const tree_part *part,
                           const caterva_tree_entry *entry)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.cache_bytes = -1;
    options.threads = 1;
    c->groups += entry->kind == CATERVA_TREE_GROUP;
    c->others += entry->kind == CATERVA_TREE_OTHER;
    if (entry->kind != CATERVA_TREE_ARRAY) return CLI_OK;
    caterva_status status =
        caterva_tree_open_array(part->tree, entry->key, &options, &array, &err);
    if (status == CATERVA_OK) {
        status = note_array(c, array, &err);
        caterva_discard(array);
    }
    if (status == CATERVA_ENOTFOUND && tree_part_lacks(part, entry)) return CLI_OK;
    c->arrays++;
    c->unread += cli_is_damage(status);
    return status == CATERVA_OK || cli_is_damage(status) ? CLI_OK
                                                         : fail_entry(part, entry, &err);
}

/* ---- Reporting -------------------------------------------------------------------------- */

/* Prints each attribute: as a line "name: value" if `j` is NULL, otherwise as a JSON member. */
static cli_exit put_attributes(const tree_part *part, json *j)
{
    size_t n;
    const char **names;
    caterva_error err;
    cli_exit code = CLI_OK;
    if (caterva_tree_attr_list(part->tree, part->group, &names, &n, &err) != CATERVA_OK)
        return cli_fail_array(part->path, &err);
    if (j) json_begin_object(j, "attributes");
    for (size_t i = 0; i < n && code == CLI_OK; i++) {
        void *value;
        size_t size;
        json line = {.stream = stdout};
        if (caterva_tree_attr_get(part->tree, part->group, names[i], &value, &size, &err) !=
            CATERVA_OK) {
            code = cli_fail_array(part->path, &err);
            break;
        }
        if (!j) printf("%s    ", i == 0 ? "  attributes\n" : "");
        code = value_print(j ? j : &line, names[i], value, size);
        if (!j) putchar('\n');
        caterva_free(value);
    }
    if (j) json_end_object(j);
    caterva_free(names);
    return code;
}

static void print_dims(const contents *c)
{
    if (c->n_dims == 0) return;
    printf("  dims      ");
    for (size_t i = 0; i < c->n_dims; i++) {
        printf("%s%s", i ? ", " : "", cli_show(c->dims[i].name).text);
        if (c->dims[i].varies)
            printf(" (several sizes)");
        else
            printf(" %lld", (long long)c->dims[i].size);
    }
    putchar('\n');
}

static cli_exit print_text(const char *text, const tree_part *part, const contents *c)
{
    char data[NUMBER_TEXT_SIZE], stored[NUMBER_TEXT_SIZE];
    printf("%s\n", cli_show_place(text).text);
    printf("  arrays    %lld", (long long)c->arrays);
    if (c->unread > 0) printf(", %lld of them unread", (long long)c->unread);
    printf("     groups %lld     others %lld\n", (long long)c->groups, (long long)c->others);
    printf("  size      %s     ratio %.2f, %s stored\n", number_bytes(c->data, data),
           report_ratio(c->data, c->stored), number_bytes(c->stored, stored));
    print_dims(c);
    return put_attributes(part, NULL);
}

static cli_exit print_json(const char *text, const tree_part *part, const contents *c)
{
    json j = {.stream = stdout};
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "file", text);
    json_put_text(&j, "group", part->group);
    json_put_int(&j, "arrays", c->arrays);
    json_put_int(&j, "unread", c->unread);
    json_put_int(&j, "groups", c->groups);
    json_put_int(&j, "others", c->others);
    json_put_int(&j, "data_bytes", c->data);
    json_put_int(&j, "stored_bytes", c->stored);
    json_begin_object(&j, "dims");
    for (size_t i = 0; i < c->n_dims; i++) {
        if (c->dims[i].varies)
            json_put_null(&j, c->dims[i].name);
        else
            json_put_int(&j, c->dims[i].name, c->dims[i].size);
    }
    json_end_object(&j);
    cli_exit code = put_attributes(part, &j);
    json_end_object(&j);
    putchar('\n');
    return code;
}

static cli_exit report_all(const cli_args *args, const char *text, const tree_part *part)
{
    contents c = {.arrays = 0};
    cli_exit code = CLI_OK;
    for (size_t i = 0; i < part->list->n && code == CLI_OK; i++) {
        code = note_entry(&c, part, part->list->entries[i]);
        if (cli_interrupted()) code = CLI_INTERRUPTED;
        if (c.out_of_memory) code = cli_fail(CLI_IO, "no memory for a list of dimensions");
    }
    if (code == CLI_OK && !args->json && text != args->files[0]) putchar('\n');
    if (code == CLI_OK)
        code = args->json ? print_json(text, part, &c) : print_text(text, part, &c);
    for (size_t i = 0; i < c.n_dims; i++) free(c.dims[i].name);
    free(c.dims);
    if (code == CLI_OK && c.unread > 0)
        return cli_fail(CLI_CORRUPT, "%s: %lld arrays cannot be read; see 'caterva verify'",
                        text, (long long)c.unread);
    return code;
}

static cli_exit report_each(const cli_args *args, const tree_part *part,
                            cli_exit (*array)(const cli_args *args, const char *path))
{
    cli_exit worst = CLI_OK;
    for (size_t i = 0; i < part->list->n && worst != CLI_INTERRUPTED; i++) {
        if (part->list->entries[i]->kind != CATERVA_TREE_ARRAY) continue;
        if (tree_part_lacks(part, part->list->entries[i])) continue;
        char *url = tree_part_url(part, part->list->entries[i]);
        cli_exit code = url ? array(args, url) : CLI_IO;
        if (code > worst) worst = code;
        free(url);
    }
    return worst;
}

cli_exit info_tree(const cli_args *args, const char *text,
                   cli_exit (*array)(const cli_args *args, const char *path))
{
    tree_part part;
    bool each = args->list_chunks || (args->short_lines && !args->json);
    cli_exit code = tree_part_open(args, text, &part);
    if (code == CLI_OK)
        code = each ? report_each(args, &part, array) : report_all(args, text, &part);
    tree_part_close(&part);
    return code;
}
