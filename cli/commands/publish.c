/* Room: cli/commands. `caterva publish`: uploads a finished file to a server. */
#include "formats/json.h"
#include "sources/probe.h"
#include "sources/remote.h"
#include "sources/trees.h"
#include "terminal/progress.h"

#include <caterva_remote.h>
#include <stdio.h>

static void report_json(const char *path, const char *url,
                        const caterva_publish_result *result)
{
    json j = {.stream = stdout};
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "file", path);
    json_put_place(&j, "url", url);
    json_put_int(&j, "bytes", result->bytes);
    json_put_int(&j, "parts", result->parts);
    json_put_int(&j, "parts_kept", result->parts_kept);
    json_put_int(&j, "requests", result->requests);
    json_put_int(&j, "retried", result->retried);
    json_put_bool(&j, "verified", result->verified);
    json_put_bool(&j, "was_there", result->was_there);
    json_end_object(&j);
    putchar('\n');
}

static void report(const cli_args *args, const caterva_publish_result *result)
{
    const char *path = args->positional[0], *url = args->positional[1];
    if (args->json) {
        report_json(path, url, result);
        return;
    }
    if (args->abandon) {
        printf("%s: the upload to %s is aborted\n", cli_show_place(path).text,
               cli_show_place(url).text);
        return;
    }
    printf("%s: %s %s, %lld bytes", cli_show_place(path).text,
           result->was_there ? "nothing sent, the same bytes are at" : "published to",
           cli_show_place(url).text, (long long)result->bytes);
    if (result->parts > 0) printf(" in %lld parts", (long long)result->parts);
    if (result->parts_kept > 0)
        printf(", %lld of them uploaded before", (long long)result->parts_kept);
    putchar('\n');
}

static caterva_status publish(const cli_args *args, const caterva_publish_options *wanted,
                              caterva_publish_result *result, caterva_error *err)
{
    const char *path = args->positional[0], *url = args->positional[1];
    const caterva_remote_options remote = remote_of(args);
    caterva_publish_options options = *wanted;
    cli_patience patience = {0};
    caterva_status status;
    options.remote = &remote;
    do status = caterva_publish(path, url, &options, result, err);
    while (cli_try_again(args, status, &patience));
    return status;
}

/* Reports a failed upload. For a file that is not an array, reports its kind instead of damage. */
static cli_exit explain(const cli_args *args, const caterva_error *err)
{
    const char *path = args->positional[0];
    if (err->code == CATERVA_ECORRUPT && !args->abandon && !tree_part_is(args, path))
        CLI_TRY(probe_explain(args, path));
    return cli_fail_array(path, err);
}

static cli_exit run_publish(const cli_args *args)
{
    caterva_error err;
    progress bar;
    caterva_publish_result result = CATERVA_PUBLISH_RESULT_INIT;
    caterva_publish_options options = CATERVA_PUBLISH_INIT;
    options.replace = args->force;
    options.if_match = args->if_match;
    options.part_bytes = args->part_size;
    options.resume = args->resume;
    options.abandon = args->abandon;
    options.read_url = args->read_url;
    options.zarr = args->zarr;
    options.progress = progress_of(&bar);
    cli_mind_temporaries();
    progress_start(&bar, args, 0);
    caterva_status status = publish(args, &options, &result, &err);
    progress_end(&bar);
    if (status != CATERVA_OK) return explain(args, &err);
    report(args, &result);
    return CLI_OK;
}

const cli_command cli_command_publish = {
    .name = "publish",
    .synopsis = "FILE URL",
    .summary = "upload a finished file to a server",
    .details =
        "Uploads FILE, a sealed array in one file or an archive .b2z, to URL:\n"
        "s3://BUCKET/KEY, or http:// and https:// if the server accepts PUT. An existing\n"
        "object is replaced only with --force or --if-match. If it has the same bytes,\n"
        "nothing is sent. The object appears when it is complete, and its end is read back.\n"
        "An interrupted upload is aborted; --resume keeps it for a later run. FILE may also "
        "be\n"
        "a Zarr array or group: each of its files becomes an object below URL. --zarr makes\n"
        "one of any array or tree, beside it, and deletes it after the upload.",
    .options = CLI_OPT_ZARR | CLI_OPT_FORCE | CLI_OPT_PUBLISH | CLI_OPT_JSON |
               CLI_OPT_REMOTE | CLI_OPT_NO_PROGRESS | CLI_OPT_WAIT,
    .min_args = 2,
    .max_args = 2,
    .run = run_publish,
};
