/* Room: cli/commands. Reports on files of other formats, with the words of `info` and `ls` for arrays
 * and trees. */
#include "commands/foreign_report.h"

#include "formats/item.h"
#include "formats/numbers.h"
#include "formats/value.h"
#include "sources/foreign_sink.h"
#include "sources/foreign_source.h"

#include <stdio.h>
#include <string.h>

static int64_t data_bytes(const foreign_node *array)
{
    int64_t bytes = array->item_size;
    for (int d = 0; d < array->ndim; d++)
        if (__builtin_mul_overflow(bytes, array->shape[d], &bytes)) return INT64_MAX;
    return bytes;
}

static const char *type_of(const foreign_node *array, char text[ITEM_NAME_SIZE])
{
    caterva_dtype *dtype = NULL;
    (void)caterva_dtype_parse(array->dtype, &dtype, NULL);
    item_type_name(dtype, array->dtype, text);
    caterva_dtype_free(dtype);
    return text;
}

/* ---- Parts of reports ------------------------------------------------------------------- */

static void print_extents(const char *label, const int64_t *extents, int n)
{
    printf("  %-8s %s", label, n ? "" : "()");
    for (int d = 0; d < n; d++) printf("%s%lld", d ? " x " : "", (long long)extents[d]);
    putchar('\n');
}

static void print_dims(const foreign_node *array)
{
    if (!array->dims) return;
    printf("  dims     ");
    for (int d = 0; d < array->ndim; d++)
        printf("%s%s", d ? ", " : "", array->dims[d] ? cli_show(array->dims[d]).text : "-");
    putchar('\n');
}

static cli_exit print_attributes(const foreign_node *node)
{
    for (size_t i = 0; i < node->n_attributes; i++) {
        const foreign_attribute *a = &node->attributes[i];
        json line = {.stream = stdout};
        printf("%s    ", i == 0 ? "  attributes\n" : "");
        CLI_TRY(value_print(&line, a->name, a->value, a->size));
        putchar('\n');
    }
    return CLI_OK;
}

static cli_exit put_attributes(json *j, const foreign_node *node)
{
    json_begin_object(j, "attributes");
    for (size_t i = 0; i < node->n_attributes; i++) {
        const foreign_attribute *a = &node->attributes[i];
        CLI_TRY(value_print(j, a->name, a->value, a->size));
    }
    json_end_object(j);
    return CLI_OK;
}

static void put_array(json *j, const foreign_node *array)
{
    json_put_ints(j, "shape", array->shape, array->ndim);
    json_put_text(j, "dtype", array->dtype);
    if (array->ndim > 0 && array->chunk_shape[0] > 0)
        json_put_ints(j, "chunk_shape", array->chunk_shape, array->ndim);
    if (!array->dims) return;
    json_begin_array(j, "dims");
    for (int d = 0; d < array->ndim; d++) json_put_text(j, NULL, array->dims[d]);
    json_end_array(j);
}

/* ---- Reports ---------------------------------------------------------------------------- */

typedef struct totals {
    int64_t arrays, groups, bytes;
} totals;

static totals count(const foreign_place *place)
{
    totals t = {0};
    for (size_t i = 0; i < place->file->n; i++) {
        const foreign_node *node = &place->file->nodes[i];
        if (!foreign_place_name(place, node)) continue;
        if (node->is_group)
            t.groups++;
        else
            t.arrays++;
        if (!node->is_group) t.bytes += data_bytes(node);
    }
    return t;
}

static cli_exit print_text(const char *text, const foreign_place *place)
{
    char bytes[NUMBER_TEXT_SIZE], type[ITEM_NAME_SIZE];
    const foreign_node *node = place->node;
    printf("%s   %s%s\n", cli_show_place(text).text, node->is_group ? "" : "array in ",
           place->info->title);
    if (node->is_group) {
        const totals t = count(place);
        printf("  arrays    %lld     groups %lld\n", (long long)t.arrays, (long long)t.groups);
        printf("  size      %s\n", number_bytes(t.bytes, bytes));
    } else {
        print_extents("shape", node->shape, node->ndim);
        printf("  dtype    %s     size %s\n", type_of(node, type),
               number_bytes(data_bytes(node), bytes));
        if (node->ndim > 0 && node->chunk_shape[0] > 0)
            print_extents("chunks", node->chunk_shape, node->ndim);
        print_dims(node);
    }
    CLI_TRY(print_attributes(node));
    for (size_t i = 0; i < place->file->n_losses; i++)
        printf("  left out  %s\n", cli_show(place->file->losses[i]).text);
    return CLI_OK;
}

static cli_exit print_json(const char *text, const foreign_place *place)
{
    json j = {.stream = stdout};
    const foreign_node *node = place->node;
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "file", text);
    json_put_text(&j, "format", place->info->name);
    json_put_text(&j, "key", node->key);
    if (node->is_group) {
        const totals t = count(place);
        json_put_int(&j, "arrays", t.arrays);
        json_put_int(&j, "groups", t.groups);
        json_put_int(&j, "data_bytes", t.bytes);
    } else {
        put_array(&j, node);
        json_put_int(&j, "data_bytes", data_bytes(node));
    }
    CLI_TRY(put_attributes(&j, node));
    json_begin_array(&j, "left_out");
    for (size_t i = 0; i < place->file->n_losses; i++)
        json_put_text(&j, NULL, place->file->losses[i]);
    json_end_array(&j);
    json_end_object(&j);
    putchar('\n');
    return CLI_OK;
}

/* A file that is nothing but one array is described as this array. */
static void choose_node(foreign_place *place)
{
    const foreign_file *file = place->file;
    bool is_file = place->node == &file->nodes[0];
    if (is_file && file->n == 2 && !file->nodes[1].is_group && file->nodes[0].n_attributes == 0)
        place->node = &file->nodes[1];
}

cli_exit foreign_info_print(const cli_args *args, const char *text)
{
    foreign_place place;
    cli_exit code = foreign_place_open(text, &place);
    if (code == CLI_OK) choose_node(&place);
    if (code == CLI_OK && !args->json && text != args->files[0]) putchar('\n');
    if (code == CLI_OK) code = args->json ? print_json(text, &place) : print_text(text, &place);
    foreign_place_close(&place);
    return code;
}

/* ---- Lists ------------------------------------------------------------------------------ */

static void print_line(const cli_args *args, const char *name, const foreign_node *node)
{
    char shape[CATERVA_MAX_DIMS * 21] = "-", type[ITEM_NAME_SIZE] = "-";
    size_t used = 0;
    if (!node->is_group) type_of(node, type);
    if (!node->is_group && node->ndim == 0) snprintf(shape, sizeof shape, "()");
    for (int d = 0; d < node->ndim; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", d ? "," : "",
                                 (long long)node->shape[d]);
    if (args->long_lines)
        printf("%-11s %-16s %-9s  ", node->is_group ? "group" : "array", shape, type);
    printf("%s%s\n", cli_show(name).text, node->is_group ? "/" : "");
}

static void put_entry(json *j, const foreign_node *node)
{
    json_begin_object(j, NULL);
    json_put_text(j, "key", node->key);
    json_put_text(j, "kind", node->is_group ? "group" : "array");
    if (!node->is_group) put_array(j, node);
    json_end_object(j);
}

static void list(const cli_args *args, const foreign_place *place, json *j)
{
    for (size_t i = 0; i < place->file->n; i++) {
        const foreign_node *node = &place->file->nodes[i];
        const char *name = foreign_place_name(place, node);
        if (!name || (!args->recursive && strchr(name, '/'))) continue;
        if (j)
            put_entry(j, node);
        else
            print_line(args, name, node);
    }
}

cli_exit foreign_ls(const cli_args *args, const char *text)
{
    foreign_place place;
    json j = {.stream = stdout};
    cli_exit code = foreign_place_open(text, &place);
    if (code == CLI_OK) foreign_report_losses(text, place.file->losses, place.file->n_losses);
    if (code == CLI_OK && !args->json) {
        if (args->n_positional > 1)
            printf("%s%s:\n", text == args->files[0] ? "" : "\n", cli_show_place(text).text);
        list(args, &place, NULL);
    } else if (code == CLI_OK) {
        json_begin_object(&j, NULL);
        json_put_int(&j, "schema", 1);
        json_put_place(&j, "file", text);
        json_put_text(&j, "group", place.node->key);
        json_begin_array(&j, "entries");
        list(args, &place, &j);
        json_end_array(&j);
        json_end_object(&j);
        putchar('\n');
    }
    foreign_place_close(&place);
    return code;
}
