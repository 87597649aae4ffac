/* Room: cli/commands. `caterva diff` of two trees: walks both sorted lists side by side. An empty
 * group is compared like an array. Entries of other kinds are compared by kind only. */
#include "commands/diff_tree.h"

#include "commands/diff_attributes.h"

#include <caterva_tree.h>
#include <stdlib.h>
#include <string.h>

typedef struct comparison {
    const cli_args *args;
    dataset side[2];
    diff_open_arrays *arrays;
    cli_exit worst;
    bool is_over; /* the tree of one side was deleted */
} comparison;

static void note(comparison *c, cli_exit code)
{
    if (code > c->worst) c->worst = code;
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
static void report_only(comparison *c, int side, size_t i)
{
    char sentence[200];
    char *url = dataset_url(&c->side[side], i);
    snprintf(sentence, sizeof sentence, "does not exist in %.160s",
             cli_show_place(dataset_path(&c->side[!side])).text);
    if (url) report(c, "only", side ? "b" : "a", url, sentence);
    note(c, url ? CLI_NO : CLI_IO);
    free(url);
}

static void report_kinds(comparison *c, const char *url, const char *a, const char *b)
{
    char sentence[120];
    snprintf(sentence, sizeof sentence, "the kind differs: %.40s and %.40s", a, b);
    report(c, "reason", "kind", url, sentence);
    note(c, CLI_NO);
}

/* ---- Groups ------------------------------------------------------------------ */

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

/* Compares the groups at[0] and at[1]; DATASET_ROOT is the group that the command line names, which
 * the lists do not contain. */
static void compare_groups(comparison *c, const size_t at[2], const char *const urls[2])
{
    attributes side[2] = {{.path = NULL}, {.path = NULL}};
    if (c->args->no_attributes) return;
    cli_exit code = dataset_attributes(&c->side[0], at[0], urls[0], &side[0]);
    if (code == CLI_OK) code = dataset_attributes(&c->side[1], at[1], urls[1], &side[1]);
    if (code == CLI_OK) code = compare_attributes(c, side);
    note(c, code);
    caterva_free(side[0].names);
    caterva_free(side[1].names);
}

/* ---- The walk ---------------------------------------------------------------- */

/* Checks whether a tree was deleted during the walk. Reports a deletion once, not per array. */
static bool check_gone(comparison *c, const cli_exit code[2])
{
    for (int i = 0; i < 2 && !c->is_over; i++) {
        c->is_over = code[i] == CLI_NO && dataset_is_gone(&c->side[i]);
        if (c->is_over)
            note(c, cli_fail(CLI_IO, "%s was deleted during the comparison",
                             cli_show_place(dataset_path(&c->side[i])).text));
    }
    return c->is_over;
}

/* Compares two arrays of the same name. An array deleted after it was listed counts as missing. */
static void compare_arrays(comparison *c, const size_t at[2], const char *const urls[2])
{
    cli_exit code[2] = {CLI_OK, CLI_OK};
    input side[2] = {{.path = urls[0], .probe = PROBE_INIT},
                     {.path = urls[1], .probe = PROBE_INIT}};
    for (int i = 0; i < 2 && code[0] <= CLI_NO; i++)
        code[i] = dataset_open_array(c->args, &c->side[i], at[i], &side[i]);
    if (code[0] == CLI_OK && code[1] == CLI_OK) {
        note(c, c->arrays(c->args, side));
        return;
    }
    bool is_over = check_gone(c, code);
    for (int i = 0; i < 2; i++) {
        if (code[i] > CLI_NO) note(c, code[i]);
        if (!is_over && code[i] == CLI_OK && code[!i] == CLI_NO) report_only(c, i, at[i]);
        input_close(&side[i]);
    }
}

static void compare_pair(comparison *c, const size_t at[2])
{
    char *urls[2] = {dataset_url(&c->side[0], at[0]), dataset_url(&c->side[1], at[1])};
    const char *a = dataset_kind(&c->side[0], at[0]), *b = dataset_kind(&c->side[1], at[1]);
    const char *const shown[2] = {urls[0], urls[1]};
    if (!urls[0] || !urls[1])
        note(c, CLI_IO);
    else if (dataset_is_array(&c->side[0], at[0]) && dataset_is_array(&c->side[1], at[1]))
        compare_arrays(c, at, shown);
    else if (strcmp(a, b) != 0)
        report_kinds(c, urls[0], a, b);
    else if (strcmp(a, "group") == 0)
        compare_groups(c, at, shown);
    free(urls[0]);
    free(urls[1]);
}

/* Whether to report the entry if the other side lacks it. False for a group with listed members. */
static bool counts(const dataset *all, size_t i)
{
    const char *name = dataset_name(all, i);
    size_t size = strlen(name);
    if (strcmp(dataset_kind(all, i), "group") != 0 || i + 1 == all->n) return true;
    const char *next = dataset_name(all, i + 1);
    return strncmp(next, name, size) != 0 || next[size] != '/';
}

static void walk_both(comparison *c)
{
    size_t at[2] = {0, 0};
    const dataset *a = &c->side[0], *b = &c->side[1];
    while (at[0] < a->n || at[1] < b->n) {
        int order = at[0] == a->n ? 1 : at[1] == b->n ? -1 : 0;
        if (cli_interrupted()) note(c, CLI_INTERRUPTED);
        bool is_enough = c->is_over || (c->args->quiet && c->worst != CLI_OK);
        if (cli_interrupted() || is_enough) return;
        if (order == 0)
            order = dataset_order(dataset_name(a, at[0]), dataset_name(b, at[1]));
        if (order == 0) {
            compare_pair(c, at);
        } else {
            int side = order > 0;
            if (counts(&c->side[side], at[side])) report_only(c, side, at[side]);
        }
        at[0] += order <= 0;
        at[1] += order >= 0;
    }
}

cli_exit diff_trees(const cli_args *args, const char *a, const char *b,
                    diff_open_arrays *arrays)
{
    const size_t roots[2] = {DATASET_ROOT, DATASET_ROOT};
    comparison c = {.args = args, .arrays = arrays};
    note(&c, dataset_open(args, a, &c.side[0]));
    if (c.worst == CLI_OK) note(&c, dataset_open(args, b, &c.side[1]));
    if (c.worst == CLI_OK) compare_groups(&c, roots, (const char *const[]){a, b});
    if (c.worst == CLI_OK || (c.worst == CLI_NO && !args->quiet)) walk_both(&c);
    dataset_close(&c.side[0]);
    dataset_close(&c.side[1]);
    return c.worst;
}
