/* Room: cli/commands. `caterva jobs`: many writers of one array, for scripts. A job begun here has
 * no running coordinator: until it is merged or deleted, it is just a folder next to the array. */
#include "sources/jobs.h"
#include "formats/json.h"
#include "formats/numbers.h"
#include "sources/described.h"
#include "terminal/progress.h"
#include "terminal/stream.h"
#include "words.h"

#include <caterva_jobs.h>
#include <caterva_upkeep.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *file_of(const cli_args *args) { return args->files[1]; }

/* Lists the jobs, with a progress bar: listing takes long if there are many parts. */
static cli_exit list_of(const cli_args *args, const caterva_job_list **out)
{
    caterva_error err;
    progress bar;
    caterva_upkeep_options o = CATERVA_UPKEEP_INIT;
    o.progress = progress_of(&bar);
    progress_start(&bar, args, 0);
    bar.hides_bytes = true;
    caterva_status status = caterva_jobs_list(file_of(args), &o, out, &err);
    progress_end(&bar);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(file_of(args), &err);
}

/* ---- begin ------------------------------------------------------------------------------ */

static cli_exit begin(const cli_args *args, caterva_array *array, void **job, size_t *size)
{
    caterva_error err;
    caterva_job_options o = CATERVA_JOB_INIT;
    int64_t shape[CATERVA_MAX_DIMS];
    int ndim = 0;
    if (args->shape) CLI_TRY(number_shape(args->shape, "--shape", &ndim, shape));
    if (args->shape && ndim != info_of(array)->ndim)
        return cli_fail(CLI_USAGE, "--shape has %d axes, but %s has %d", ndim, file_of(args),
                        info_of(array)->ndim);
    if (args->shape) o.shape = shape;
    if (caterva_job_begin(array, &o, job, size, &err) != CATERVA_OK)
        return cli_fail_array(file_of(args), &err);
    return CLI_OK;
}

/* Prints the id of the job with this token. */
static cli_exit print_id(const char *path, const void *job, size_t size)
{
    caterva_error err;
    const caterva_job_list *list;
    if (caterva_jobs_list(path, NULL, &list, &err) != CATERVA_OK)
        return cli_fail_array(path, &err);
    cli_exit code = CLI_IO;
    for (size_t i = 0; i < list->n; i++) {
        const caterva_job_entry *e = list->entries[i];
        if (e->job_size != size || memcmp(e->job, job, size) != 0) continue;
        puts(e->id);
        code = CLI_OK;
    }
    caterva_job_list_release(list);
    return code == CLI_OK ? code
                          : cli_fail(code, "%s: the new job has already been deleted", path);
}

/* Begins a job and prints its id. With --shape, this handle's array grows. The growth is discarded
 * here, and the merge repeats it. */
static cli_exit run_begin(const cli_args *args)
{
    caterva_array *array;
    void *job = NULL;
    size_t size;
    CLI_TRY(cli_open_array(args, file_of(args), CATERVA_MODE_WRITE, &array));
    cli_exit code = begin(args, array, &job, &size);
    caterva_discard(array);
    if (code == CLI_OK) code = print_id(file_of(args), job, size);
    caterva_free(job);
    return code;
}

/* ---- list ------------------------------------------------------------------------------- */

static const char *time_text(int64_t ns, char text[32])
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm at;
    if (!gmtime_r(&seconds, &at) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &at))
        snprintf(text, 32, "?");
    return text;
}

static void print_job(const caterva_job_entry *job)
{
    char began[32], bytes[NUMBER_TEXT_SIZE];
    printf("%s  %s  %lld %s, %s  %s\n", job->id, time_text(job->began_ns, began),
           (long long)job->n_parts, job->n_parts == 1 ? "part" : "parts",
           number_bytes(job->part_bytes, bytes),
           job->has_ended ? "ended, but parts could not be deleted"
           : job->is_live ? "coordinator is running"
                          : "no coordinator");
}

static void put_job(json *j, const caterva_job_entry *job)
{
    char began[32];
    json_begin_object(j, NULL);
    json_put_text(j, "id", job->id);
    json_put_text(j, "folder", job->folder);
    json_put_text(j, "began", time_text(job->began_ns, began));
    json_put_text(j, "host", job->host);
    json_put_int(j, "process", job->process);
    json_put_bool(j, "live", job->is_live);
    json_put_bool(j, "ended", job->has_ended);
    json_put_int(j, "parts", job->n_parts);
    json_put_int(j, "part_bytes", job->part_bytes);
    json_put_int(j, "commit", job->commit_number);
    json_end_object(j);
}

static void list_json(const char *path, const caterva_job_list *list)
{
    json j = {.stream = stdout};
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "file", path);
    json_begin_array(&j, "jobs");
    for (size_t i = 0; i < list->n; i++) put_job(&j, list->entries[i]);
    json_end_array(&j);
    json_end_object(&j);
    putchar('\n');
}

static cli_exit run_list(const cli_args *args)
{
    const caterva_job_list *list;
    CLI_TRY(list_of(args, &list));
    if (args->json) list_json(file_of(args), list);
    for (size_t i = 0; i < list->n && !args->json; i++) print_job(list->entries[i]);
    caterva_job_list_release(list);
    return CLI_OK;
}

/* ---- merge ------------------------------------------------------------------------------ */

typedef struct tokens {
    void **bytes;
    size_t *sizes;
    size_t n;
} tokens;

static cli_exit read_token(const char *path, void **out, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        if (fd >= 0) close(fd);
        return cli_fail_sys("%s", path);
    }
    *out = cli_alloc((size_t)st.st_size);
    cli_exit code = *out ? stream_read(fd, path, *out, (size_t)st.st_size, size) : CLI_IO;
    close(fd);
    return code;
}

static cli_exit read_tokens(const cli_args *args, tokens *t)
{
    size_t n = (size_t)args->n_positional - 2;
    t->bytes = cli_alloc((n + 1) * sizeof t->bytes[0]);
    t->sizes = cli_alloc((n + 1) * sizeof t->sizes[0]);
    if (!t->bytes || !t->sizes) return CLI_IO;
    for (; t->n < n; t->n++)
        CLI_TRY(read_token(args->files[t->n + 2], &t->bytes[t->n], &t->sizes[t->n]));
    return CLI_OK;
}

static void free_tokens(tokens *t)
{
    for (size_t i = 0; i < t->n; i++) free(t->bytes[i]);
    free(t->bytes);
    free(t->sizes);
}

/* Reports a failed merge. Returns CLI_IO instead of CLI_USAGE: the command line was valid, so the
 * token files are wrong. */
static cli_exit fail_merge(const char *path, const caterva_error *err)
{
    cli_exit code = cli_fail_array(path, err);
    return code == CLI_USAGE ? CLI_IO : code;
}

static cli_exit merge(const cli_args *args, caterva_array *array, const tokens *t)
{
    caterva_error err;
    progress bar;
    caterva_merge_options o = CATERVA_MERGE_INIT;
    o.overlap = args->last ? CATERVA_OVERLAP_LAST : CATERVA_OVERLAP_ERROR;
    o.progress = progress_of(&bar);
    progress_start(&bar, args, 0);
    caterva_status status =
        caterva_merge(array, (const void *const *)t->bytes, t->sizes, t->n, &o, NULL, &err);
    progress_end(&bar);
    return status == CATERVA_OK ? CLI_OK : fail_merge(file_of(args), &err);
}

static bool was_open(const caterva_job_list *list, const char *id)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->entries[i]->id, id) == 0) return !list->entries[i]->has_ended;
    return false;
}

static void warn_of_rest(const char *path, const caterva_job_entry *job)
{
    char bytes[NUMBER_TEXT_SIZE];
    cli_warn("%s: job %s is merged, but %lld of its parts, %s, could not be deleted; "
             "a user with permission can run 'caterva jobs delete'",
             path, job->id, (long long)job->n_parts, number_bytes(job->part_bytes, bytes));
}

/* Warns of merged jobs whose parts could not be deleted because other users own them. The merge has
 * succeeded, but the parts still take space. */
static void look_for_rest(const char *path, const caterva_job_list *before)
{
    const caterva_job_list *after;
    if (caterva_jobs_list(path, NULL, &after, NULL) != CATERVA_OK) return;
    for (size_t i = 0; i < after->n; i++) {
        const caterva_job_entry *job = after->entries[i];
        if (job->has_ended && was_open(before, job->id)) warn_of_rest(path, job);
    }
    caterva_job_list_release(after);
}

static cli_exit merge_tokens(const cli_args *args, const tokens *t)
{
    caterva_error err;
    caterva_array *array;
    const char *path = file_of(args);
    const caterva_job_list *before;
    CLI_TRY(cli_open_array(args, path, CATERVA_MODE_WRITE, &array));
    if (caterva_jobs_list(path, NULL, &before, &err) != CATERVA_OK) {
        caterva_discard(array);
        return cli_fail_array(path, &err);
    }
    cli_exit code = cli_finish_array(array, path, merge(args, array, t));
    if (code == CLI_OK) look_for_rest(path, before);
    caterva_job_list_release(before);
    return code;
}

static cli_exit run_merge(const cli_args *args)
{
    tokens t = {NULL, NULL, 0};
    cli_exit code = read_tokens(args, &t);
    if (code == CLI_OK) code = merge_tokens(args, &t);
    free_tokens(&t);
    return code;
}

/* ---- delete ------------------------------------------------------------------------------ */

static cli_exit delete_job(const cli_args *args, const caterva_job_list *list,
                           const char *word)
{
    caterva_error err;
    progress bar;
    caterva_upkeep_options o = CATERVA_UPKEEP_INIT;
    const caterva_job_entry *job = NULL;
    o.progress = progress_of(&bar);
    CLI_TRY(jobs_find(list, file_of(args), word, &job));
    if (job->is_live && !args->live)
        return cli_fail(
            CLI_IO, "the coordinator of job %s is running; --live deletes the job", job->id);
    progress_start(&bar, args, 0);
    bar.hides_bytes = true;
    caterva_status status =
        caterva_job_delete(file_of(args), job->job, job->job_size, &o, &err);
    progress_end(&bar);
    if (status != CATERVA_OK) return cli_fail_array(file_of(args), &err);
    return CLI_OK;
}

static cli_exit run_delete(const cli_args *args)
{
    const caterva_job_list *list;
    cli_exit code = CLI_OK;
    CLI_TRY(list_of(args, &list));
    for (int i = 2; i < args->n_positional && code == CLI_OK; i++)
        code = delete_job(args, list, args->files[i]);
    caterva_job_list_release(list);
    return code;
}

/* ---- The verbs ------------------------------------------------------------------------------ */

typedef struct jobs_verb {
    const char *name, *arguments;
    int min_args, max_args; /* numbers of arguments, including the verb */
    cli_exit (*run)(const cli_args *args);
} jobs_verb;

static const jobs_verb verbs[] = {
    {"begin", "FILE", 2, 2, run_begin},
    {"list", "FILE", 2, 2, run_list},
    {"merge", "FILE TOKEN...", 3, CLI_ANY_NUMBER, run_merge},
    {"delete", "FILE JOB...", 3, CLI_ANY_NUMBER, run_delete},
};

static cli_exit run_jobs(const cli_args *args)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        const jobs_verb *v = &verbs[i];
        if (strcmp(v->name, args->files[0]) != 0) continue;
        if (args->n_positional >= v->min_args && args->n_positional <= v->max_args)
            return v->run(args);
        return cli_fail(CLI_USAGE, "usage: caterva jobs %s %s", v->name, v->arguments);
    }
    return cli_fail(
        CLI_USAGE, "jobs: unknown verb '%s'; verbs are begin, list, merge and delete%s",
        args->files[0], words_suggest(args->files[0], words_of_command("jobs")).text);
}

const cli_command cli_command_jobs = {
    .name = "jobs",
    .synopsis = "VERB FILE [WORD]...",
    .summary = "many writers of one array: begin, list, merge, delete jobs",
    .details =
        "jobs begin FILE              begins a job and prints its id\n"
        "jobs list FILE               prints the jobs that have not ended\n"
        "jobs merge FILE TOKEN...     merges the parts of these token files and commits\n"
        "jobs delete FILE JOB...      deletes jobs and their parts\n\n"
        "Between begin and merge, any number of 'caterva put FILE SEL IN --part JOB -o "
        "TOKEN'\n"
        "processes can write parts at the same time, on any machine that can access FILE.\n"
        "With --shape, the merge grows the array to this shape. If two parts wrote the same\n"
        "items, the merge fails and names both, or with --last takes the items of the later\n"
        "TOKEN. The merge deletes the job and its parts. The exit status is 1 if JOB does\n"
        "not exist.",
    .options = CLI_OPT_JSON | CLI_OPT_WAIT | CLI_OPT_THREADS | CLI_OPT_SHAPE |
               CLI_OPT_NO_PROGRESS | CLI_OPT_JOBS,
    .min_args = 2,
    .max_args = CLI_ANY_NUMBER,
    .run = run_jobs,
};
