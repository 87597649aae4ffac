/* Room: cli/commands. `caterva bench`: times common reads of the user's own array: the whole array,
 * a box, planes and lines along each axis, and points. */
#include "commands/timing.h"
#include "formats/json.h"
#include "formats/numbers.h"
#include "sources/described.h"
#include "sources/probe.h"
#include "sources/remote.h"
#include "sources/source.h"

#include <caterva_remote.h>
#include <stdio.h>
#include <string.h>

#define BOX_LENGTH 50
#define SECONDS_FOR_EACH 0.25
#define MAX_KINDS (2 * CATERVA_MAX_DIMS + 3)

/* One kind of read, and its result. */
typedef struct kind {
    char name[16];
    int64_t lengths[CATERVA_MAX_DIMS];
    bool part; /* the read was cut to fit in --memory */
    timed_reads result;
} kind;

typedef struct bench {
    const char *path;
    const caterva_info *info;
    int64_t memory;
    kind kinds[MAX_KINDS];
    int n;
} bench;

/* ---- The reads -------------------------------------------------------------------------- */

static bool fits(const bench *b, const int64_t *lengths)
{
    int64_t bytes = b->info->item_size;
    for (int d = 0; d < b->info->ndim; d++)
        if (__builtin_mul_overflow(bytes, lengths[d], &bytes)) return false;
    return bytes <= b->memory;
}

/* Halves the longest axis of the read until the read fits in memory or is a single item. */
static void cut_to_memory(const bench *b, kind *k)
{
    while (!fits(b, k->lengths)) {
        int longest = 0;
        for (int d = 1; d < b->info->ndim; d++)
            if (k->lengths[d] > k->lengths[longest]) longest = d;
        if (k->lengths[longest] <= 1) return;
        k->lengths[longest] = (k->lengths[longest] + 1) / 2;
        k->part = true;
    }
}

/* Adds a kind of read with `here` items along `axis` and `elsewhere` items along each other axis; 0
 * stands for the whole axis. If `axis` is -1, all axes have `elsewhere` items. */
static void add_kind(bench *b, const char *name, int axis, int64_t here, int64_t elsewhere)
{
    kind *k = &b->kinds[b->n++];
    *k = (kind){.part = false};
    if (axis >= 0)
        snprintf(k->name, sizeof k->name, "%s %d", name, axis);
    else
        snprintf(k->name, sizeof k->name, "%s", name);
    for (int d = 0; d < b->info->ndim; d++) {
        int64_t length = d == axis ? here : elsewhere, shape = b->info->shape[d];
        k->lengths[d] = length > 0 && length < shape ? length : shape;
    }
    cut_to_memory(b, k);
}

/* Omits planes of a 2-d array, because a plane across one axis is a line along the other. */
static void choose_kinds(bench *b)
{
    int ndim = b->info->ndim;
    add_kind(b, "all", -1, 0, 0);
    add_kind(b, "box", -1, 0, BOX_LENGTH);
    for (int d = 0; d < ndim && ndim > 2; d++) add_kind(b, "plane", d, 1, 0);
    for (int d = 0; d < ndim && ndim > 1; d++) add_kind(b, "line", d, 0, 1);
    add_kind(b, "point", -1, 0, 1);
}

/* ---- The report ---------------------------------------------------------- */

static double bytes_per_second(const kind *k)
{
    return k->result.seconds > 0 ? (double)k->result.bytes / k->result.seconds : 0;
}

static double amplification(const bench *b, const kind *k)
{
    return k->result.blocks * (double)b->info->block_bytes / (double)k->result.bytes;
}

static void print_title(const bench *b)
{
    char shape[SHAPE_TEXT_SIZE], bytes[NUMBER_TEXT_SIZE];
    printf("%s   %s %s", cli_show_place(b->path).text,
           shape_text(b->info->ndim, b->info->shape, shape), cli_show(b->info->dtype).text);
    printf(", blocks of %s\n", number_bytes(b->info->block_bytes, bytes));
    printf("  %-9s %9s %9s %9s %9s %9s   %s\n", "read", "time", "again", "MB/s", "blocks",
           "decoded", "items");
}

static void print_kind(const bench *b, const kind *k)
{
    char shape[SHAPE_TEXT_SIZE], decoded[NUMBER_TEXT_SIZE];
    char time[NUMBER_TEXT_SIZE], again[NUMBER_TEXT_SIZE];
    double factor = amplification(b, k);
    snprintf(decoded, sizeof decoded, "%.*fx", factor < 9.995 ? 2 : 0, factor);
    printf("  %-9s %9s %9s %9.*f %9.0f %9s   %s%s\n", k->name,
           number_seconds(k->result.seconds, time), number_seconds(k->result.again, again),
           bytes_per_second(k) < 1e8 ? 1 : 0, bytes_per_second(k) / 1e6, k->result.blocks,
           decoded, shape_text(b->info->ndim, k->lengths, shape), k->part ? " (a part)" : "");
    fflush(stdout);
}

static void put_kind(const bench *b, const kind *k, json *j)
{
    json_begin_object(j, NULL);
    json_put_text(j, "read", k->name);
    json_put_ints(j, "shape", k->lengths, b->info->ndim);
    json_put_bool(j, "part", k->part);
    json_put_int(j, "count", k->result.n);
    json_put_real(j, "seconds", k->result.seconds);
    json_put_real(j, "again_seconds", k->result.again);
    json_put_int(j, "bytes", k->result.bytes);
    json_put_real(j, "bytes_per_second", bytes_per_second(k));
    json_put_real(j, "blocks", k->result.blocks);
    json_put_real(j, "amplification", amplification(b, k));
    json_end_object(j);
}

static void put_title(const bench *b, json *j)
{
    json_begin_object(j, NULL);
    json_put_int(j, "schema", 1);
    json_put_place(j, "file", b->path);
    json_put_ints(j, "shape", b->info->shape, b->info->ndim);
    json_put_text(j, "dtype", b->info->dtype);
    json_put_int(j, "block_bytes", b->info->block_bytes);
    json_begin_array(j, "reads");
}

static cli_exit run_kinds(bench *b, caterva_array *array, caterva_array *other, json *j)
{
    for (int i = 0; i < b->n; i++) {
        kind *k = &b->kinds[i];
        CLI_TRY(timing_run(array, other, b->path, k->lengths, SECONDS_FOR_EACH, &k->result));
        if (j)
            put_kind(b, k, j);
        else
            print_kind(b, k);
    }
    return CLI_OK;
}

static cli_exit report_all(const cli_args *args, bench *b, caterva_array *array,
                           caterva_array *other)
{
    json j = {.stream = stdout};
    b->info = info_of(array);
    if (b->info->n_items == 0) return cli_fail(CLI_USAGE, "%s has no items to read", b->path);
    choose_kinds(b);
    if (!args->json) {
        print_title(b);
        return run_kinds(b, array, other, NULL);
    }
    put_title(b, &j);
    CLI_TRY(run_kinds(b, array, other, &j));
    json_end_array(&j);
    json_end_object(&j);
    putchar('\n');
    return CLI_OK;
}

/* Opens the array for timed reads. Timed reads do not check for signals: a signal ends the program
 * after the current read, whose size --memory limits. If `cache_bytes` is -1, every read
 * decodes. */
static cli_exit open_timed(const cli_args *args, const char *path, int64_t cache_bytes,
                           caterva_array **out)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = (int)args->threads;
    options.cache_bytes = cache_bytes;
    const caterva_remote_options remote = remote_of(args);
    options.remote = &remote;
    caterva_error err;
    if (caterva_open(path, &options, out, &err) == CATERVA_OK) return CLI_OK;
    if (err.code == CATERVA_ECORRUPT) CLI_TRY(probe_explain(args, path));
    return cli_fail_array(path, &err);
}

static cli_exit run_bench(const cli_args *args)
{
    caterva_array *array, *other;
    bench b = {.path = args->positional[0], .memory = args->memory};
    CLI_TRY(open_timed(args, b.path, -1, &array));
    cli_exit code = open_timed(args, b.path, 0, &other);
    if (code == CLI_OK) {
        code = report_all(args, &b, array, other);
        caterva_discard(other);
    }
    caterva_discard(array);
    return code;
}

const cli_command cli_command_bench = {
    .name = "bench",
    .synopsis = "FILE",
    .summary = "time common reads of the array",
    .details =
        "Reads all of FILE, a box, planes and lines along each axis, and points, at\n"
        "random positions. Prints for each the median time of one read and of the same\n"
        "read again with decoded blocks in the cache, MB delivered per second, blocks\n"
        "read, and bytes decoded per byte delivered. Reads larger than --memory are cut.",
    .options = CLI_OPT_JSON | CLI_OPT_THREADS | CLI_OPT_MEMORY | CLI_OPT_REMOTE,
    .min_args = 1,
    .max_args = 1,
    .run = run_bench,
};
