/* Room: cli/commands. `caterva tune`: finds a partition and codec that make the given reads of this
 * array fast. Tries candidates on a sample, prints them best first, and then prints the command
 * that converts the array to the best one. */
#include "commands/tune.h"
#include "commands/timing.h"
#include "formats/json.h"
#include "formats/numbers.h"
#include "sources/described.h"
#include "sources/selection.h"
#include "sources/source.h"
#include "terminal/progress.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TRIALS (TUNE_MAX_PARTITIONS * TUNE_MAX_CODECS)
#define MIN_BUDGET 0.002 /* seconds for one read of a trial */
#define MAX_BUDGET 0.2

typedef struct tuning {
    tune_task task;
    tune_trial trials[MAX_TRIALS];
    int n_trials;   /* number of measured trials */
    int n_possible; /* number of candidates */
} tuning;

/* ---- Arguments ----------------------------------------------------------- */

/* Takes the lengths of the read from its selection; the position does not matter. A selection with
 * steps counts as the smallest box that contains its items. */
static cli_exit parse_read(const tune_task *task, const char *text, tune_read *out)
{
    selection sel;
    *out = (tune_read){.text = text};
    CLI_TRY(selection_parse(text, task->info->ndim, task->info->shape, &sel));
    for (int d = 0; d < task->info->ndim; d++) {
        const selection_axis *axis = &sel.axis[d];
        int64_t step = axis->step < 0 ? -axis->step : axis->step;
        if (axis->count == 0) return cli_fail(CLI_USAGE, "--read '%s' selects nothing", text);
        out->lengths[d] = (axis->count - 1) * step + 1;
    }
    return CLI_OK;
}

static const tune_preference preferences[] = {{"balance", 0.5}, {"size", 0.9}, {"speed", 0}};

#define N_PREFERENCES (sizeof preferences / sizeof preferences[0])

const char *tune_preference_name(size_t i)
{
    return i < N_PREFERENCES ? preferences[i].name : NULL;
}

static cli_exit parse_preference(const char *text, tune_preference *out)
{
    *out = preferences[0];
    for (size_t i = 0; text && i < N_PREFERENCES; i++) {
        *out = preferences[i];
        if (strcmp(text, out->name) == 0) return CLI_OK;
    }
    if (!text) return CLI_OK;
    return cli_fail(CLI_USAGE, "--prefer must be size, speed or balance, not '%s'%s", text,
                    words_suggest(text, tune_preference_name).text);
}

static cli_exit parse_reads(const cli_args *args, tune_task *task)
{
    if (task->info->n_items == 0 || task->info->ndim == 0)
        return cli_fail(CLI_USAGE, "%s has %s: nothing to tune", task->path,
                        task->info->ndim ? "no items" : "a single item");
    for (int i = 0; i < args->reads.n; i++)
        CLI_TRY(parse_read(task, args->reads.text[i], &task->reads[task->n_reads++]));
    return CLI_OK;
}

/* ---- Trials -------------------------------------------------------------- */

static int by_score(const void *a, const void *b)
{
    double x = ((const tune_trial *)a)->score, y = ((const tune_trial *)b)->score;
    return (x > y) - (x < y);
}

/* Tries the file's own codec with each partition first, beginning with the file's own partition: if
 * the time runs out, at least the partitions have been compared. */
static cli_exit run_trials(const cli_args *args, caterva_array *array, tuning *t)
{
    tune_task *task = &t->task;
    double started = timing_now(), time = (double)args->time / 1000;
    progress bar;
    t->n_possible = task->n_partitions * task->n_codecs;
    double budget = time / t->n_possible / task->n_reads / 2;
    budget = budget < MIN_BUDGET ? MIN_BUDGET : budget > MAX_BUDGET ? MAX_BUDGET : budget;
    progress_start(&bar, args, t->n_possible); /* counts trials, not bytes */
    bar.hides_bytes = true;
    cli_exit code = CLI_OK;
    for (int i = 0; i < t->n_possible && code == CLI_OK; i++) {
        bool tried;
        if (i > 0 && timing_now() - started > time) break;
        t->trials[t->n_trials] =
            (tune_trial){.partition = &task->partitions[i % task->n_partitions],
                         .codec = &task->codecs[i / task->n_partitions]};
        if (i < task->n_partitions)
            code = tune_take_blocks(task, array, &task->partitions[i]);
        if (code == CLI_OK) code = tune_try(task, budget, &t->trials[t->n_trials], &tried);
        t->n_trials += code == CLI_OK && tried;
        progress_step(&bar, i + 1);
    }
    progress_end(&bar);
    qsort(t->trials, (size_t)t->n_trials, sizeof t->trials[0], by_score);
    return code;
}

/* ---- Text ---------------------------------------------------------------- */

#define CODEC_TEXT_SIZE 200

static void append_name(char *text, const char *name, int number, int meta)
{
    size_t used = strlen(text);
    if (name)
        snprintf(text + used, CODEC_TEXT_SIZE - used, "%s", name);
    else
        snprintf(text + used, CODEC_TEXT_SIZE - used, "%d", number);
    used = strlen(text);
    if (meta) snprintf(text + used, CODEC_TEXT_SIZE - used, ":%d", meta);
}

/* Returns the codec in the form that --codec accepts. */
static const char *codec_text(const tune_codec *c, char text[CODEC_TEXT_SIZE])
{
    text[0] = '\0';
    append_name(text, caterva_codec_name(c->codec), c->codec, c->meta);
    return text;
}

/* Returns the filters in the form that --filters accepts. */
static const char *filters_text(const tune_codec *c, char text[CODEC_TEXT_SIZE])
{
    text[0] = '\0';
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++) {
        if (c->filters[i] == 0 || c->filters[i] == CATERVA_FILTER_NONE) continue;
        if (text[0]) strncat(text, ",", CODEC_TEXT_SIZE - strlen(text) - 1);
        append_name(text, caterva_filter_name(c->filters[i]), c->filters[i],
                    c->filters_meta[i]);
    }
    if (!text[0]) snprintf(text, CODEC_TEXT_SIZE, "none");
    return text;
}

/* Returns "16,32,64", the form that --chunks and --blocks accept. */
static const char *extents_text(const int32_t *extents, int ndim, char text[SHAPE_TEXT_SIZE])
{
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < ndim; d++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT_SIZE - used, "%s%d", d ? "," : "",
                                 extents[d]);
    return ndim ? text : "()";
}

static void print_trial(const tuning *t, const tune_trial *trial)
{
    const tune_task *task = &t->task;
    const tune_partition *p = trial->partition;
    char chunk[SHAPE_TEXT_SIZE], block[SHAPE_TEXT_SIZE], time[NUMBER_TEXT_SIZE];
    char codec[CODEC_TEXT_SIZE], filters[CODEC_TEXT_SIZE], both[2 * CODEC_TEXT_SIZE];
    char bytes[NUMBER_TEXT_SIZE];
    if (trial->codec->automatic)
        snprintf(both, sizeof both, "%s by chunk", codec_text(trial->codec, codec));
    else
        snprintf(both, sizeof both, "%s %d %s", codec_text(trial->codec, codec),
                 trial->codec->level, filters_text(trial->codec, filters));
    printf("%c %-16s %-16s %-24s %9s %6.2f", p->current && trial->codec->current ? '*' : ' ',
           extents_text(p->chunk, task->info->ndim, chunk),
           extents_text(p->block, task->info->ndim, block), both,
           number_bytes((int64_t)trial->bytes, bytes), trial->ratio);
    for (int i = 0; i < task->n_reads; i++)
        printf(" %9s %7.1fx", number_seconds(trial->seconds[i], time),
               trial->amplification[i]);
    printf("\n");
}

static void print_advice(const tuning *t)
{
    const tune_task *task = &t->task;
    const tune_trial *best = &t->trials[0];
    char chunk[SHAPE_TEXT_SIZE], block[SHAPE_TEXT_SIZE];
    char codec[CODEC_TEXT_SIZE], filters[CODEC_TEXT_SIZE];
    if (best->partition->current && best->codec->current) {
        printf("\nNo candidate is better than the file as it is.\n");
        return;
    }
    printf("\ncaterva convert %s NEW.b2nd --chunks %s --blocks %s --codec %s",
           cli_show_place(task->path).text,
           extents_text(best->partition->chunk, task->info->ndim, chunk),
           extents_text(best->partition->block, task->info->ndim, block),
           codec_text(best->codec, codec));
    if (!best->codec->automatic)
        printf(" --level %d --filters %s", best->codec->level,
               filters_text(best->codec, filters));
    printf("\n");
}

static void print_report(const tuning *t)
{
    const tune_task *task = &t->task;
    char shape[SHAPE_TEXT_SIZE], bytes[NUMBER_TEXT_SIZE];
    printf("%s   %s %s", cli_show_place(task->path).text,
           shape_text(task->info->ndim, task->info->shape, shape), task->info->dtype);
    printf(", timed on %s of it, %s\n",
           shape_text(task->info->ndim, task->sample.shape, shape),
           number_bytes((int64_t)task->sample.size, bytes));
    printf(
        "%d of %d candidates, best %s first; the file's expected size, and for each read "
        "its expected time and bytes decoded per byte delivered; * is the file as it is\n\n",
        t->n_trials, t->n_possible, task->prefer.name);
    printf("  %-16s %-16s %-24s %9s %6s", "chunks", "blocks", "codec", "size", "ratio");
    for (int i = 0; i < task->n_reads; i++) printf(" %18s", task->reads[i].text);
    printf("\n");
    for (int i = 0; i < t->n_trials; i++) print_trial(t, &t->trials[i]);
    print_advice(t);
}

/* ---- JSON ---------------------------------------------------------------- */

static void put_extents(json *j, const char *key, const int32_t *extents, int ndim)
{
    json_begin_array(j, key);
    for (int d = 0; d < ndim; d++) json_put_int(j, NULL, extents[d]);
    json_end_array(j);
}

static void put_codec(json *j, const tune_codec *c)
{
    char text[CODEC_TEXT_SIZE];
    json_put_text(j, "codec", codec_text(c, text));
    json_put_int(j, "level", c->level);
    json_put_text(j, "filters", filters_text(c, text));
    json_put_bool(j, "dictionary", c->use_dict);
    json_put_bool(j, "by_chunk", c->automatic);
}

static void put_trial(json *j, const tuning *t, const tune_trial *trial)
{
    const tune_partition *p = trial->partition;
    int ndim = t->task.info->ndim;
    json_begin_object(j, NULL);
    put_extents(j, "chunk_shape", p->chunk, ndim);
    put_extents(j, "block_shape", p->block, ndim);
    put_codec(j, trial->codec);
    json_put_bool(j, "current", p->current && trial->codec->current);
    json_put_bool(j, "automatic_partition", p->automatic);
    json_put_int(j, "bytes", (int64_t)trial->bytes);
    json_put_real(j, "ratio", trial->ratio);
    json_put_real(j, "write_seconds", trial->write_seconds);
    json_begin_array(j, "reads");
    for (int i = 0; i < t->task.n_reads; i++) {
        json_begin_object(j, NULL);
        json_put_real(j, "seconds", trial->seconds[i]);
        json_put_real(j, "amplification", trial->amplification[i]);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void put_report(const tuning *t)
{
    json writer = {.stream = stdout}, *j = &writer;
    const tune_task *task = &t->task;
    json_begin_object(j, NULL);
    json_put_int(j, "schema", 1);
    json_put_place(j, "file", task->path);
    json_put_ints(j, "shape", task->info->shape, task->info->ndim);
    json_put_text(j, "dtype", task->info->dtype);
    json_put_text(j, "prefer", task->prefer.name);
    json_put_ints(j, "sample_shape", task->sample.shape, task->info->ndim);
    json_begin_array(j, "reads");
    for (int i = 0; i < task->n_reads; i++) {
        json_begin_object(j, NULL);
        json_put_text(j, "read", task->reads[i].text);
        json_put_ints(j, "shape", task->reads[i].lengths, task->info->ndim);
        json_end_object(j);
    }
    json_end_array(j);
    json_put_int(j, "possible", t->n_possible);
    json_begin_array(j, "candidates");
    for (int i = 0; i < t->n_trials; i++) put_trial(j, t, &t->trials[i]);
    json_end_array(j);
    json_end_object(j);
    putchar('\n');
}

/* ---- The command --------------------------------------------------------- */

static cli_exit tune(const cli_args *args, caterva_array *array, tuning *t)
{
    t->task.info = info_of(array);
    t->task.threads = (int)args->threads;
    CLI_TRY(parse_preference(args->prefer, &t->task.prefer));
    CLI_TRY(parse_reads(args, &t->task));
    CLI_TRY(tune_choose_candidates(&t->task));
    CLI_TRY(tune_take_sample(&t->task, array));
    CLI_TRY(tune_measure_density(&t->task, array));
    CLI_TRY(run_trials(args, array, t));
    if (t->n_trials == 0)
        return cli_fail(CLI_UNSUPPORTED, "%s: no candidate can be written", t->task.path);
    if (args->json)
        put_report(t);
    else
        print_report(t);
    return CLI_OK;
}

static cli_exit run_tune(const cli_args *args)
{
    caterva_array *array;
    if (args->reads.n == 0)
        return cli_fail(CLI_USAGE, "tune: give at least one read to optimise (--read SEL)");
    tuning *t = cli_alloc(sizeof *t);
    if (!t) return CLI_IO;
    *t = (tuning){.task.path = args->positional[0]};
    cli_exit code = cli_open_array(args, t->task.path, CATERVA_MODE_READ, &array);
    if (code == CLI_OK) {
        code = tune(args, array, t);
        caterva_discard(array);
    }
    for (int i = 0; i < t->task.n_partitions; i++) free(t->task.partitions[i].blocks.items);
    free(t->task.sample.items);
    free(t);
    return code;
}

const cli_command cli_command_tune = {
    .name = "tune",
    .synopsis = "FILE --read SEL...",
    .summary = "compare partitions and codecs for given reads",
    .details =
        "Writes a sample of FILE to memory in several chunk and block shapes and with "
        "several\n"
        "codecs, and times reads of the size of each SEL at random positions. Estimates the\n"
        "file size from blocks in all parts of FILE. Prints for each candidate the expected\n"
        "size and ratio of the whole file, and for each read the time and the bytes decoded\n"
        "per byte delivered; best first, by --prefer.",
    .options =
        CLI_OPT_TUNE | CLI_OPT_JSON | CLI_OPT_THREADS | CLI_OPT_NO_PROGRESS | CLI_OPT_REMOTE,
    .min_args = 1,
    .max_args = 1,
    .run = run_tune,
};
