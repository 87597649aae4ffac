/* Room: cli. `caterva attr`: user metadata as JSON. In the file it is MessagePack,
 * as python-blosc2 stores it; bytes that are none are shown as base64. Reads only:
 * the array's items are not touched. */
#include "json.h"

#include <stdio.h>
#include <string.h>

typedef struct attribute {
    void *value;
    size_t size;
} attribute;

static cli_exit fetch(caterva_array *array, const char *path, const char *name,
                      attribute *out)
{
    caterva_error err;
    caterva_status status = caterva_attr_get(array, name, &out->value, &out->size, &err);
    if (status == CATERVA_ENOTFOUND)
        return cli_fail(CLI_NO, "%s has no attribute '%s'", path, name);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(path, &err);
}

/* A line "name: value" each, or with `j` the members of an object. */
static cli_exit list_values(caterva_array *array, const char *path, json *j)
{
    const char *name;
    for (int i = 0; (name = caterva_attr_name(array, i)); i++) {
        attribute a;
        json line = {.stream = stdout};
        CLI_TRY(fetch(array, path, name, &a));
        json_msgpack(j ? j : &line, name, a.value, a.size);
        caterva_free(a.value);
        if (!j) putchar('\n');
    }
    return CLI_OK;
}

static cli_exit list(const cli_args *args, caterva_array *array)
{
    const char *path = args->positional[1];
    if (!args->json) return list_values(array, path, NULL);
    json j = {.stream = stdout};
    json_object_begin(&j, NULL);
    json_int(&j, "schema", 1);
    json_text(&j, "file", path);
    json_object_begin(&j, "attributes");
    CLI_TRY(list_values(array, path, &j));
    json_object_end(&j);
    json_object_end(&j);
    putchar('\n');
    return CLI_OK;
}

static cli_exit get(const cli_args *args, caterva_array *array)
{
    const char *path = args->positional[1], *name = args->positional[2];
    json j = {.stream = stdout};
    attribute a;
    CLI_TRY(fetch(array, path, name, &a));
    if (args->json) {
        json_object_begin(&j, NULL);
        json_int(&j, "schema", 1);
        json_text(&j, "file", path);
        json_text(&j, "name", name);
    }
    json_msgpack(&j, args->json ? "value" : NULL, a.value, a.size);
    if (args->json) json_object_end(&j);
    putchar('\n');
    caterva_free(a.value);
    return CLI_OK;
}

static cli_exit run_attr(const cli_args *args)
{
    const char *verb = args->positional[0];
    bool is_list = strcmp(verb, "list") == 0;
    if (!is_list && strcmp(verb, "get") != 0)
        return cli_fail(CLI_USAGE, "attr knows 'list' and 'get', not '%s'", verb);
    if (args->n_positional != (is_list ? 2 : 3))
        return cli_fail(CLI_USAGE, "usage: caterva attr %s",
                        is_list ? "list FILE" : "get FILE KEY");
    caterva_array *array;
    CLI_TRY(cli_open_array(args, args->positional[1], CATERVA_READ, &array));
    cli_exit code = is_list ? list(args, array) : get(args, array);
    caterva_discard(array);
    return code;
}

const cli_command cli_command_attr = {
    .name = "attr",
    .synopsis = "list|get FILE [KEY]",
    .summary = "user metadata, as JSON",
    .details =
        "'attr list FILE' prints every attribute, 'attr get FILE KEY' the value of one.\n"
        "Values are JSON; bytes appear as {\"$binary\": base64}, extension types as\n"
        "{\"$ext\": number, \"data\": base64}. Exit status 1 when there is no such KEY.",
    .options = CLI_OPT_JSON,
    .min_args = 2,
    .max_args = 3,
    .run = run_attr,
};
