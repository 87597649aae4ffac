/* Room: cli/commands. `caterva repair`: saves the readable items of a damaged array. The library
 * does the repair; this file parses the fill and reports findings and losses. */
#include "commands/repair_tree.h"
#include "formats/descr.h"
#include "formats/item.h"
#include "sources/creation.h"
#include "sources/damage.h"
#include "terminal/output.h"
#include "terminal/progress.h"

#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

typedef struct repairing {
    const cli_args *args;
    const char *path;
    char *output; /* path of the new array */
    json *j;      /* NULL: text */
    int ndim;
    cli_exit code; /* set if --fill cannot be parsed */
    progress bar;
} repairing;

cli_exit repair_parse_fill(const char *text, const caterva_info *info, void *item)
{
    caterva_dtype *dtype;
    CLI_TRY(descr_parse(CLI_CORRUPT, "the array", info->dtype, &dtype));
    cli_exit code = item_parse("--fill", dtype, text, item);
    caterva_dtype_free(dtype);
    return code;
}

static int on_found(void *context, const caterva_info *info, void *fill)
{
    repairing *r = context;
    r->ndim = info->ndim;
    if (r->args->fill) r->code = repair_parse_fill(r->args->fill, info, fill);
    if (r->code == CLI_OK) progress_start(&r->bar, r->args, 0);
    return r->code != CLI_OK;
}

static void on_damage(void *context, const caterva_damage *damage)
{
    const repairing *r = context;
    if (r->j)
        damage_put(r->j, r->ndim, damage);
    else
        damage_print(stdout, r->path, r->ndim, damage);
}

/* ---- The verdict -------------------------------------------------------- */

static const char *found_word(caterva_found found)
{
    switch (found) {
    case CATERVA_FOUND_STANDING: return "header";
    case CATERVA_FOUND_COPY: return "copy";
    case CATERVA_FOUND_OLDER: return "older";
    default: return "order";
    }
}

static void print_doubts(const repairing *r, const caterva_repair_result *result)
{
    if (result->found == CATERVA_FOUND_OLDER)
        printf(
            "%s: this is an older commit; changes of later commits are lost, and a chunk may "
            "hold items of a later commit\n",
            cli_show_place(r->path).text);
    if (result->found == CATERVA_FOUND_ORDER)
        printf("%s: the chunks were numbered by position, which is a guess\n",
               cli_show_place(r->path).text);
    if (result->unverified_chunks > 0 && result->written)
        printf("%s: %lld chunks have no checksums: wrong items in them are not detected\n",
               cli_show_place(r->path).text, (long long)result->unverified_chunks);
}

static void print_losses(const repairing *r, const caterva_repair_result *result)
{
    printf("%s: %lld of %lld chunks lost", cli_show_place(r->path).text,
           (long long)result->lost_chunks, (long long)result->n_chunks);
    if (result->lost_attributes < 0) printf(", all attributes lost");
    if (result->lost_attributes > 0)
        printf(", %d %s lost", result->lost_attributes,
               result->lost_attributes == 1 ? "attribute" : "attributes");
    printf("; the rest is in %s\n", cli_show_place(r->output).text);
}

static void print_verdict(const repairing *r, const caterva_repair_result *result)
{
    print_doubts(r, result);
    if (result->in_place)
        printf("%s: repaired in place: the %s, nothing is lost\n",
               cli_show_place(r->path).text,
               result->found == CATERVA_FOUND_STANDING ? "copy of the header was rewritten"
                                                       : "header was restored from its copy");
    else if (!result->written)
        printf("%s: undamaged, nothing to repair\n", cli_show_place(r->path).text);
    else if (result->complete)
        printf("%s: nothing is lost; the repaired array is %s\n",
               cli_show_place(r->path).text, cli_show_place(r->output).text);
    else
        print_losses(r, result);
}

static void put_verdict(const repairing *r, const caterva_repair_result *result)
{
    json_end_array(r->j);
    json_put_bool(r->j, "complete", result->complete);
    json_put_text(r->j, "found", found_word(result->found));
    json_put_int(r->j, "chunks", result->n_chunks);
    json_put_int(r->j, "lost_chunks", result->lost_chunks);
    if (result->lost_attributes < 0)
        json_put_null(r->j, "lost_attributes");
    else
        json_put_int(r->j, "lost_attributes", result->lost_attributes);
    json_put_int(r->j, "unverified_chunks", result->unverified_chunks);
    json_put_bool(r->j, "in_place", result->in_place);
    json_put_text(r->j, "output", result->written ? r->output : NULL);
    json_end_object(r->j);
}

/* ---- The command -------------------------------------------------------- */

static cli_exit fail_repair(const repairing *r, const caterva_error *err)
{
    caterva_error told = *err;
    size_t used = strlen(told.message);
    if (!r->args->guess && strstr(told.message, "a guess"))
        snprintf(told.message + used, sizeof told.message - used, "; see --guess");
    return cli_fail_array(r->path, &told);
}

static cli_exit repair(void *context)
{
    repairing *r = context;
    const cli_args *args = r->args;
    caterva_repair_options options = CATERVA_REPAIR_INIT;
    options.output = args->output;
    options.overwrite = args->force;
    options.guess = args->guess;
    options.threads = (int)args->threads;
    options.on_found = on_found;
    options.on_damage = on_damage;
    options.context = r;
    options.progress = progress_of(&r->bar);
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    caterva_error err;
    cli_mind_temporaries();
    cli_patience patience = {0};
    caterva_status status;
    do status = caterva_repair(r->path, &options, &result, &err);
    while (cli_try_again(args, status, &patience));
    progress_end(&r->bar);
    if (r->code != CLI_OK) return r->code;
    if (status != CATERVA_OK) return fail_repair(r, &err);
    if (r->j)
        put_verdict(r, &result);
    else
        print_verdict(r, &result);
    return result.complete ? CLI_OK : CLI_NO;
}

/* Returns the path of the new array: OUT, or the library's default FILE.repaired. */
static char *output_name(const cli_args *args)
{
    static const char suffix[] = ".repaired";
    if (args->output) return cli_copy_text(args->output);
    const char *path = args->positional[0];
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') size--;
    char *name = cli_alloc(size + sizeof suffix);
    if (!name) return NULL;
    memcpy(name, path, size);
    memcpy(name + size, suffix, sizeof suffix);
    return name;
}

cli_exit repair_as_json(const char *path, const char *list, json **slot,
                        cli_exit (*body)(void *context), void *context)
{
    char *text = NULL;
    size_t size;
    json j = {.stream = open_memstream(&text, &size)};
    if (!j.stream) return cli_fail_sys("no memory for the report");
    *slot = &j;
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "file", path);
    json_begin_array(&j, list);
    cli_exit code = body(context);
    if (fclose(j.stream) != 0 && (code == CLI_OK || code == CLI_NO))
        code = cli_fail_sys("no memory for the report");
    if (code == CLI_OK || code == CLI_NO) puts(text);
    free(text);
    return code;
}

static cli_exit run_repair(const cli_args *args)
{
    if (repair_is_tree(args, args->positional[0])) return repair_tree_run(args);
    repairing r = {.args = args, .path = args->positional[0], .output = output_name(args)};
    if (!r.output) return CLI_IO;
    cli_exit code = args->output ? output_check_array(args->output, args->force) : CLI_OK;
    if (code == CLI_OK && args->output) code = creation_check_name(args->output);
    if (code == CLI_OK)
        code = args->json ? repair_as_json(r.path, "damages", &r.j, repair, &r) : repair(&r);
    free(r.output);
    return code;
}

const cli_command cli_command_repair = {
    .name = "repair",
    .synopsis = "FILE",
    .summary = "restore a torn header, or save what can be read",
    .details =
        "Restores a torn or damaged header from its copy, in place. If that is not "
        "possible,\n"
        "copies what can be read of FILE to a new array, OUT or FILE.repaired, and leaves\n"
        "FILE unchanged; lost chunks hold the fill, and each is named. The exit status is 0\n"
        "if nothing is lost, 1 if something is lost, 4 if nothing can be recovered. For a\n"
        "tree (.b2d, .b2z), repairs every member in place or into the new tree OUT; an\n"
        "archive requires OUT.",
    .options = CLI_OPT_WAIT | CLI_OPT_JSON | CLI_OPT_OUTPUT | CLI_OPT_FILL | CLI_OPT_GUESS |
               CLI_OPT_FORCE | CLI_OPT_THREADS | CLI_OPT_NO_PROGRESS,
    .min_args = 1,
    .max_args = 1,
    .run = run_repair,
};
