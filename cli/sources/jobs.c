/* Room: cli/sources. Finds jobs by the first digits of their ids, and opens and finishes parts. */
#include "sources/jobs.h"

#include "terminal/output.h"
#include "terminal/progress.h"

#include <caterva_jobs.h>
#include <caterva_upkeep.h>
#include <string.h>

cli_exit jobs_find(const caterva_job_list *list, const char *path, const char *word,
                   const caterva_job_entry **out)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (strncmp(list->entries[i]->id, word, strlen(word)) != 0) continue;
        *out = list->entries[i];
        n++;
    }
    if (n == 1) return CLI_OK;
    return cli_fail(CLI_NO,
                    n == 0 ? "%s has no job '%s'"
                           : "%s has several jobs whose ids begin with '%s'",
                    path, word);
}

cli_exit jobs_open_part(const cli_args *args, const char *path, caterva_array **out)
{
    caterva_error err;
    const caterva_job_list *list;
    const caterva_job_entry *job = NULL;
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
    o.threads = (int)args->threads;
    o.progress.report = progress_tell;
    options.progress.report = progress_tell;
    if (caterva_jobs_list(path, &options, &list, &err) != CATERVA_OK)
        return cli_fail_array(path, &err);
    cli_exit code = jobs_find(list, path, args->part, &job);
    if (code == CLI_OK &&
        caterva_part_open(path, job->job, job->job_size, &o, out, &err) != CATERVA_OK)
        code = cli_fail_array(path, &err);
    caterva_job_list_release(list);
    return code;
}

cli_exit jobs_finish_part(caterva_array *part, const char *path)
{
    caterva_error err;
    void *token;
    size_t size;
    output out;
    if (caterva_part_finish(part, &token, &size, &err) != CATERVA_OK)
        return cli_fail_array(path ? path : "the part", &err);
    cli_exit code = output_open(&out, path, true);
    if (code == CLI_OK) {
        code = output_write(&out, token, size);
        if (code == CLI_OK)
            code = output_finish(&out);
        else
            output_abandon(&out);
    }
    caterva_free(token);
    return code;
}
