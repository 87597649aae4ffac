/* Room: cli/commands. `caterva diff` of two trees: walks both sorted lists side by side. An empty
 * group is compared like an array. Entries of other kinds are compared by kind only. */
#include "commands/diff_tree.h"

#include "commands/diff_attributes.h"
#include "sources/trees.h"

#include <caterva_tree.h>
#include <stdlib.h>
#include <string.h>

typedef struct comparison {
    const cli_args *args;
    tree_part side[2];
    diff_open_arrays *arrays;
    cli_exit worst;
    bool is_over; /* the tree of one side was deleted */
} comparison;

static void note(comparison *c, cli_exit code)
{
    if (code > c->worst) c->worst = code;
}

/* Compares names in the order of tree lists, where a slash sorts before all other characters. */
static int compare_names(const char *a, const char *b)
{
    while (*a && *a == *b) a++, b++;
    int x = *a == '/' ? 1 : (unsigned char)*a, y = *b == '/' ? 1 : (unsigned char)*b;
    return (x > y) - (x < y);
}

static void report(const comparison *c, const char *key, const char *text, const char *url,
                   const char *sentence)
{
    json j = {.stream = stdout};
    if (c->args->quiet) return;
    if (!c->args->json) {
        printf("%s: %s\n", cli_show_place(url).text, sentence);
        return;
    }
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "file", url);
    json_put_text(&j, key, text);
    json_put_bool(&j, "equal", false);
    json_end_object(&j);
    putchar('\n');
}

/* Reports an entry that the other side lacks. */
static void report_only(comparison *c, int side, const caterva_tree_entry *entry)
{
    char sentence[200];
    const char *other = c->side[!side].path;
    char *url = tree_part_url(&c->side[side], entry);
    snprintf(sentence, sizeof sentence, "does not exist in %.160s",
             cli_show_place(other).text);
    if (url) report(c, "only", side ? "b" : "a", url, sentence);
    note(c, url ? CLI_NO : CLI_IO);
    free(url);
}

static void report_kinds(comparison *c, const char *url, const caterva_tree_entry *a,
                         const caterva_tree_entry *b)
{
    char sentence[120];
    snprintf(sentence, sizeof sentence, "the kind differs: %.40s and %.40s", a->kind_name,
             b->kind_name);
    report(c, "reason", "kind", url, sentence);
    note(c, CLI_NO);
}

/* ---- Groups ------------------------------------------------------------------ */

static cli_exit list_attributes(const tree_part *part, const char *group, const char *url,
                                attributes *out)
{
    caterva_error err;
    *out = (attributes){.path = url, .tree = part->tree, .group = group};
    caterva_status status =
        caterva_tree_attr_list(part->tree, group, &out->names, &out->n, &err);
    if (status == CATERVA_ENOTFOUND && group[1]) { /* deleted after listing */
        out->names = NULL;
        out->n = 0;
        return CLI_OK;
    }
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(url, &err);
}

/* Compares the attributes of two groups and prints a JSON object if any differ. */
static cli_exit put_attributes(attributes side[2])
{
    int64_t n;
    json j = {.stream = stdout};
    attribute_sides sides = {.side = {&side[0], &side[1]}, .j = &j};
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "a", side[0].path);
    json_put_place(&j, "b", side[1].path);
    CLI_TRY(diff_attributes(&sides, &n));
    json_put_bool(&j, "equal", false);
    json_end_object(&j);
    putchar('\n');
    return CLI_OK;
}

static cli_exit compare_attributes(const comparison *c, attributes side[2])
{
    int64_t n = 0;
    attribute_sides sides = {.side = {&side[0], &side[1]},
                             .quiet = c->args->quiet || c->args->json};
    CLI_TRY(diff_attributes(&sides, &n));
    if (n > 0 && c->args->json && !c->args->quiet) CLI_TRY(put_attributes(side));
    return n > 0 ? CLI_NO : CLI_OK;
}

static void compare_groups(comparison *c, const char *const keys[2],
                           const char *const urls[2])
{
    attributes side[2] = {{.path = NULL}, {.path = NULL}};
    if (c->args->no_attributes) return;
    cli_exit code = list_attributes(&c->side[0], keys[0], urls[0], &side[0]);
    if (code == CLI_OK) code = list_attributes(&c->side[1], keys[1], urls[1], &side[1]);
    if (code == CLI_OK) code = compare_attributes(c, side);
    note(c, code);
    caterva_free(side[0].names);
    caterva_free(side[1].names);
}

/* Compares the two groups that the command line names. The lists do not contain them. */
static void compare_roots(comparison *c, const char *a, const char *b)
{
    compare_groups(c, (const char *const[]){c->side[0].group, c->side[1].group},
                   (const char *const[]){a, b});
}

/* ---- The walk ---------------------------------------------------------------- */

/* Checks whether a tree was deleted during the walk. Reports a deletion once, not per array. */
static bool check_gone(comparison *c, const cli_exit code[2])
{
    for (int i = 0; i < 2 && !c->is_over; i++) {
        c->is_over = code[i] == CLI_NO && tree_part_is_gone(&c->side[i]);
        if (c->is_over)
            note(c, cli_fail(CLI_IO, "%s was deleted during the comparison",
                             cli_show_place(c->side[i].path).text));
    }
    return c->is_over;
}

/* Compares two arrays of the same name. An array deleted after it was listed counts as missing. */
static void compare_arrays(comparison *c, const caterva_tree_entry *const entries[2],
                           const char *const urls[2])
{
    cli_exit code[2] = {CLI_OK, CLI_OK};
    caterva_array *arrays[2] = {NULL, NULL};
    for (int i = 0; i < 2 && code[0] <= CLI_NO; i++)
        code[i] = tree_part_open_array(c->args, &c->side[i], entries[i], &arrays[i]);
    if (code[0] == CLI_OK && code[1] == CLI_OK) {
        note(c, c->arrays(c->args, urls, arrays));
        return;
    }
    bool is_over = check_gone(c, code);
    for (int i = 0; i < 2; i++) {
        if (code[i] > CLI_NO) note(c, code[i]);
        if (!is_over && code[i] == CLI_OK && code[!i] == CLI_NO)
            report_only(c, i, entries[i]);
        caterva_discard(arrays[i]);
    }
}

static void compare_pair(comparison *c, const caterva_tree_entry *const entries[2])
{
    const caterva_tree_entry *a = entries[0], *b = entries[1];
    char *urls[2] = {tree_part_url(&c->side[0], a), tree_part_url(&c->side[1], b)};
    if (!urls[0] || !urls[1])
        note(c, CLI_IO);
    else if (a->kind == CATERVA_TREE_ARRAY && b->kind == CATERVA_TREE_ARRAY)
        compare_arrays(c, entries, (const char *const[]){urls[0], urls[1]});
    else if (strcmp(a->kind_name, b->kind_name) != 0)
        report_kinds(c, urls[0], a, b);
    else if (a->kind == CATERVA_TREE_GROUP)
        compare_groups(c, (const char *const[]){a->key, b->key},
                       (const char *const[]){urls[0], urls[1]});
    free(urls[0]);
    free(urls[1]);
}

/* Whether to report the entry if the other side lacks it. False for a group with listed members. */
static bool counts(const tree_part *part, size_t i)
{
    const caterva_tree_entry *entry = part->list->entries[i];
    if (entry->kind != CATERVA_TREE_GROUP) return true;
    size_t size = strlen(entry->key);
    if (i + 1 == part->list->n) return true;
    const char *next = part->list->entries[i + 1]->key;
    return strncmp(next, entry->key, size) != 0 || next[size] != '/';
}

static void walk(comparison *c)
{
    size_t at[2] = {0, 0};
    const tree_part *a = &c->side[0], *b = &c->side[1];
    while (at[0] < a->list->n || at[1] < b->list->n) {
        bool has_a = at[0] < a->list->n, has_b = at[1] < b->list->n;
        int order = !has_a ? 1 : !has_b ? -1 : 0;
        if (cli_interrupted()) note(c, CLI_INTERRUPTED);
        bool is_enough = c->is_over || (c->args->quiet && c->worst != CLI_OK);
        if (cli_interrupted() || is_enough) return;
        if (order == 0)
            order = compare_names(tree_part_name(a, a->list->entries[at[0]]),
                                  tree_part_name(b, b->list->entries[at[1]]));
        if (order == 0) {
            compare_pair(c, (const caterva_tree_entry *const[]){a->list->entries[at[0]],
                                                                b->list->entries[at[1]]});
        } else {
            int side = order > 0;
            if (counts(&c->side[side], at[side]))
                report_only(c, side, c->side[side].list->entries[at[side]]);
        }
        at[0] += order <= 0;
        at[1] += order >= 0;
    }
}

cli_exit diff_trees(const cli_args *args, const char *a, const char *b,
                    diff_open_arrays *arrays)
{
    comparison c = {.args = args, .arrays = arrays};
    note(&c, tree_part_open(args, a, &c.side[0]));
    if (c.worst == CLI_OK) note(&c, tree_part_open(args, b, &c.side[1]));
    if (c.worst == CLI_OK) compare_roots(&c, a, b);
    if (c.worst == CLI_OK || (c.worst == CLI_NO && !args->quiet)) walk(&c);
    tree_part_close(&c.side[0]);
    tree_part_close(&c.side[1]);
    return c.worst;
}
