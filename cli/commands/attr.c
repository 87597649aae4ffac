/* Room: cli/commands. `caterva attr`: lists, prints, sets and deletes attributes as JSON. The file
 * stores a value as MessagePack, like python-blosc2; bytes that are not MessagePack appear as
 * base64. Items of the array are not changed. */
#include "formats/value.h"
#include "sources/attributes.h"
#include "terminal/stream.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VALUE ((size_t)1 << 28) /* bytes of JSON */

typedef struct attribute {
    void *value;
    size_t size;
} attribute;

static cli_exit no_such(const char *path, const char *name)
{
    return cli_fail(CLI_NO, "%s has no attribute '%s'", path, name);
}

static cli_exit fetch(attributes *all, const char *name, attribute *out)
{
    caterva_error err;
    caterva_status status = attributes_get(all, name, &out->value, &out->size, &err);
    if (status == CATERVA_ENOTFOUND) return no_such(all->path, name);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(all->path, &err);
}

/* ---- Reports ------------------------------------------------------------ */

/* If the value is too long for a list, prints its size instead and sets *is_long. 'caterva attr
 * get' prints the whole value. */
static cli_exit show_long(attributes *all, const char *name, json *j, bool *is_long)
{
    enum { LONGEST_VALUE = 1 << 20 };
    int64_t size;
    caterva_error err;
    if (attributes_measure(all, name, &size, &err) != CATERVA_OK)
        return cli_fail_array(all->path, &err);
    *is_long = size > LONGEST_VALUE;
    if (!*is_long) return CLI_OK;
    json_begin_object(j, name);
    json_put_int(j, "$bytes", size);
    json_end_object(j);
    return CLI_OK;
}

/* Prints each attribute: as a line "name: value" if `j` is NULL, otherwise as a JSON member. */
static cli_exit list_values(attributes *all, json *j)
{
    const char *name;
    for (size_t i = 0; (name = attributes_name(all, i)); i++) {
        attribute a;
        json line = {.stream = stdout};
        bool is_long = false;
        if (cli_interrupted()) return CLI_INTERRUPTED;
        CLI_TRY(show_long(all, name, j ? j : &line, &is_long));
        if (is_long && !j) putchar('\n');
        if (is_long) continue;
        CLI_TRY(fetch(all, name, &a));
        cli_exit code = value_print(j ? j : &line, name, a.value, a.size);
        caterva_free(a.value);
        CLI_TRY(code);
        if (!j) putchar('\n');
    }
    return CLI_OK;
}

static cli_exit list(const cli_args *args, attributes *all)
{
    const char *path = args->positional[1];
    if (!args->json) return list_values(all, NULL);
    json j = {.stream = stdout};
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "file", path);
    json_begin_object(&j, "attributes");
    CLI_TRY(list_values(all, &j));
    json_end_object(&j);
    json_end_object(&j);
    putchar('\n');
    return CLI_OK;
}

static cli_exit get(const cli_args *args, attributes *all)
{
    const char *path = args->positional[1], *name = args->positional[2];
    json j = {.stream = stdout};
    attribute a;
    CLI_TRY(fetch(all, name, &a));
    if (args->json) {
        json_begin_object(&j, NULL);
        json_put_int(&j, "schema", 1);
        json_put_place(&j, "file", path);
        json_put_text(&j, "name", name);
    }
    cli_exit code = value_print(&j, args->json ? "value" : NULL, a.value, a.size);
    if (args->json) json_end_object(&j);
    putchar('\n');
    caterva_free(a.value);
    return code;
}

static cli_exit run_list(const cli_args *args)
{
    attributes all;
    cli_exit code = attributes_open(args, args->positional[1], CATERVA_MODE_READ, &all);
    if (code == CLI_OK) code = list(args, &all);
    return attributes_close(&all, code);
}

static cli_exit run_get(const cli_args *args)
{
    attributes all;
    cli_exit code = attributes_open(args, args->positional[1], CATERVA_MODE_READ, &all);
    if (code == CLI_OK) code = get(args, &all);
    return attributes_close(&all, code);
}

/* ---- Changes ------------------------------------------------------------ */

/* Packs VALUE of the command line. If VALUE is not JSON, the message gives a hint: VALUE in double
 * quotes if VALUE is one plain word, otherwise an example. */
static cli_exit pack_argument(const cli_args *args, void **value, size_t *size)
{
    const char *text = args->positional[3];
    char what[64], hint[160];
    size_t length = strlen(text);
    bool is_word = length > 0 && length < 40 && !strpbrk(text, "\"'\\[{\t\n");
    snprintf(what, sizeof what, "VALUE '%.40s%s'", text, length > 40 ? "..." : "");
    snprintf(hint, sizeof hint,
             "; text needs double quotes, inside single ones for a shell: "
             "'%s%s%s'",
             is_word ? "\"" : "", is_word ? text : "[\"text\", 1, {\"key\": null}]",
             is_word ? "\"" : "");
    value_input in = {text, length, args->dtype, what, hint};
    return value_parse(&in, value, size);
}

static cli_exit pack_input(const cli_args *args, void **value, size_t *size)
{
    char *text;
    size_t length;
    CLI_TRY(stream_read_input(MAX_VALUE, &text, &length));
    value_input in = {text, length, args->dtype, "standard input",
                      "; text needs double quotes"};
    cli_exit code = value_parse(&in, value, size);
    free(text);
    return code;
}

/* Reads the value before opening the file, because opening takes the writer's lock. */
static cli_exit run_set(const cli_args *args)
{
    const char *path = args->positional[1];
    void *value = NULL;
    size_t size;
    attributes all;
    CLI_TRY(strcmp(args->positional[3], "-") == 0 ? pack_input(args, &value, &size)
                                                  : pack_argument(args, &value, &size));
    cli_exit code = attributes_open(args, path, CATERVA_MODE_WRITE, &all);
    caterva_error err;
    if (code == CLI_OK &&
        attributes_set(&all, args->positional[2], value, size, &err) != CATERVA_OK)
        code = cli_fail_array(path, &err);
    caterva_free(value);
    return attributes_close(&all, code);
}

static cli_exit run_delete(const cli_args *args)
{
    const char *path = args->positional[1], *name = args->positional[2];
    attributes all;
    caterva_error err;
    cli_exit code = attributes_open(args, path, CATERVA_MODE_WRITE, &all);
    if (code == CLI_OK) {
        caterva_status status = attributes_remove(&all, name, &err);
        if (status == CATERVA_ENOTFOUND)
            code = no_such(path, name);
        else if (status != CATERVA_OK)
            code = cli_fail_array(path, &err);
    }
    return attributes_close(&all, code);
}

/* ---- The verbs ---------------------------------------------------------- */

typedef struct attr_verb {
    const char *name, *arguments;
    int n_args; /* number of arguments, including the verb */
    cli_exit (*run)(const cli_args *args);
} attr_verb;

static const attr_verb verbs[] = {
    {"list", "FILE", 2, run_list},
    {"get", "FILE KEY", 3, run_get},
    {"set", "FILE KEY VALUE", 4, run_set},
    {"delete", "FILE KEY", 3, run_delete},
};

static cli_exit run_attr(const cli_args *args)
{
    if (args->dtype && strcmp(args->positional[0], "set") != 0)
        return cli_fail(CLI_USAGE, "--dtype requires attr set");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        const attr_verb *v = &verbs[i];
        if (strcmp(v->name, args->positional[0]) != 0) continue;
        if (args->n_positional == v->n_args) return v->run(args);
        return cli_fail(CLI_USAGE, "usage: caterva attr %s %s", v->name, v->arguments);
    }
    return cli_fail(CLI_USAGE,
                    "attr: unknown verb '%s'; verbs are list, get, set and delete%s",
                    args->positional[0],
                    words_suggest(args->positional[0], words_of_command("attr")).text);
}

const cli_command cli_command_attr = {
    .name = "attr",
    .synopsis = "VERB FILE [KEY] [VALUE]",
    .summary = "user metadata, as JSON",
    .details =
        "attr list FILE            prints every attribute\n"
        "attr get FILE KEY         prints one value\n"
        "attr set FILE KEY VALUE   sets VALUE ('-': standard input)\n"
        "attr delete FILE KEY      deletes one\n\n"
        "FILE can also be a tree or one of its groups, TREE.b2d::/group.\n"
        "Values are JSON. Text needs double quotes, and single ones around them in a shell\n"
        "('\"kelvin\"'). The file holds MessagePack, as python-blosc2 stores it. Types that\n"
        "JSON lacks are objects with a marker: {\"$binary\": base64}, {\"$tuple\": [...]},\n"
        "{\"$set\": [...]}, {\"$complex\": [re, im]}, {\"$array\": ...}, {\"$map\": ...}, "
        "{\"$ext\":\n"
        "number, \"data\": base64}. --dtype stores numbers as items of this type: '<i2'.\n"
        "The exit status is 1 if KEY does not exist.",
    .options = CLI_OPT_JSON | CLI_OPT_WAIT | CLI_OPT_DTYPE | CLI_OPT_REMOTE,
    .min_args = 2,
    .max_args = 4,
    .run = run_attr,
};
