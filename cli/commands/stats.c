/* Room: cli/commands. `caterva stats`: statistics of the items. The library computes them block by
 * block; this file handles selections and output. */
#include "formats/descr.h"
#include "formats/item.h"
#include "formats/json.h"
#include "formats/numbers.h"
#include "sources/creation.h"
#include "sources/described.h"
#include "sources/input.h"
#include "sources/selection.h"
#include "sources/source.h"
#include "terminal/progress.h"

#include <caterva_upkeep.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAR_WIDTH 40
#define LABEL_SIZE 64
#define COPY_MEMORY (INT64_C(64) << 20)

/* The arguments of a library call that computes statistics, and its results. */
typedef struct statistics {
    const cli_args *args;
    const char *path;
    caterva_array *array;
    caterva_dtype *dtype;
    selection sel;
    int ndim; /* number of axes of the selection's result */
    int64_t shape[CATERVA_MAX_DIMS];
    caterva_stats found;
    int64_t n_bins; /* 0: no histogram */
    double range[2];
    int64_t *counts;
    progress bar;
} statistics;

/* ---- Counting ------------------------------------------------------------- */

static cli_exit count_bins(statistics *s, const caterva_reduce_options *options)
{
    const caterva_stats *f = &s->found;
    if (!f->finite_min.kind) return CLI_OK; /* no finite number to count */
    s->n_bins = s->args->bins;
    if (!s->args->range) {
        s->range[0] = f->finite_min.f;
        s->range[1] = f->finite_max.f;
    }
    s->counts = cli_alloc((size_t)s->n_bins * sizeof s->counts[0]);
    if (!s->counts) return CLI_IO;
    caterva_error err;
    progress_start(&s->bar, s->args, 0);
    caterva_status status =
        caterva_histogram(s->array, s->range, s->n_bins, options, s->counts, &err);
    progress_end(&s->bar);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(s->path, &err);
}

static cli_exit count(statistics *s)
{
    caterva_axis axes[CATERVA_MAX_DIMS];
    caterva_selection wanted;
    box all = {.start = {0}};
    memcpy(all.stop, s->shape, sizeof all.stop);
    selection_of_box(&s->sel, &all, axes, &wanted);
    caterva_reduce_options options = CATERVA_REDUCE_INIT;
    options.selection = &wanted;
    options.progress = progress_of(&s->bar);
    progress_start(&s->bar, s->args, 0);
    caterva_error err;
    caterva_status status = caterva_statistics(s->array, &options, &s->found, &err);
    progress_end(&s->bar);
    if (status != CATERVA_OK) return cli_fail_array(s->path, &err);
    return s->args->bins > 0 ? count_bins(s, &options) : CLI_OK;
}

/* ---- Text ----------------------------------------------------------------- */

/* Returns the lower edge of bin `i` as numpy.histogram does; the last edge if `i` is n_bins. */
static double edge(const statistics *s, int64_t i)
{
    double lo = s->range[0], hi = s->range[1];
    if (lo == hi) {
        lo -= 0.5;
        hi += 0.5;
    }
    return i == s->n_bins ? hi : (double)i * ((hi - lo) / (double)s->n_bins) + lo;
}

static void item_of(const statistics *s, const caterva_number *n, uint8_t item[8])
{
    if (n->kind == 'f')
        item_store_real(s->dtype, n->f, item, s->dtype->item_size);
    else
        item_store_uint(s->dtype, n->kind == 'i' ? (uint64_t)n->i : n->u, item,
                        s->dtype->item_size);
}

static void print_item(const statistics *s, const char *label, const caterva_number *n)
{
    static const item_style style = {.precision = -1};
    uint8_t item[8];
    if (!n->kind) return;
    item_of(s, n, item);
    printf("  %-8s ", label);
    item_print(stdout, s->dtype, item, &style);
    putchar('\n');
}

static void print_real(const char *label, double value)
{
    char text[JSON_REAL_SIZE];
    if (isfinite(value))
        printf("  %-8s %s\n", label, json_shortest(value, text));
    else
        printf("  %-8s %s\n", label, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static void print_sum(const caterva_number *sum)
{
    switch (sum->kind) {
    case 'i': printf("  %-8s %lld\n", "sum", (long long)sum->i); break;
    case 'u': printf("  %-8s %llu\n", "sum", (unsigned long long)sum->u); break;
    case 'f': print_real("sum", sum->f); break;
    default: break;
    }
}

static void print_bins(const statistics *s)
{
    int64_t most = 1;
    for (int64_t i = 0; i < s->n_bins; i++) most = s->counts[i] > most ? s->counts[i] : most;
    for (int64_t i = 0; i < s->n_bins; i++) {
        char label[LABEL_SIZE], bar[BAR_WIDTH + 1];
        snprintf(label, sizeof label, "[%.6g, %.6g%c", edge(s, i), edge(s, i + 1),
                 i + 1 == s->n_bins ? ']' : ')');
        int length = (int)((double)s->counts[i] / (double)most * BAR_WIDTH + 0.5);
        memset(bar, '#', (size_t)length);
        bar[length] = '\0';
        printf("  %-26s %12lld%s%s\n", label, (long long)s->counts[i], length ? "  " : "",
               bar);
    }
}

static void print_text(const statistics *s)
{
    char shape[SHAPE_TEXT_SIZE], type[ITEM_NAME_SIZE];
    const caterva_stats *f = &s->found;
    item_type_name(s->dtype, info_of(s->array)->dtype, type);
    printf("%s   %s   %s   %lld items\n", cli_show_place(s->path).text,
           shape_text(s->ndim, s->shape, shape), cli_show(type).text, (long long)f->n_items);
    print_item(s, "min", &f->min);
    print_item(s, "max", &f->max);
    print_sum(&f->sum);
    if (f->min.kind && f->sum.kind) {
        print_real("mean", f->mean);
        print_real("std", f->std);
    }
    printf("  %-8s %lld\n", strchr("mM", s->dtype->kind) ? "nat" : "nan",
           (long long)f->n_nan);
    if (f->n_inf) printf("  %-8s %lld\n", "inf", (long long)f->n_inf);
    if (f->n_negative_inf) printf("  %-8s %lld\n", "-inf", (long long)f->n_negative_inf);
    print_bins(s);
}

/* ---- JSON ----------------------------------------------------------------- */

static void put_number(json *j, const char *key, const caterva_number *n)
{
    switch (n->kind) {
    case 'i': json_put_int(j, key, n->i); break;
    case 'u': json_put_uint(j, key, n->u); break;
    case 'f': json_put_real(j, key, n->f); break;
    default: json_put_null(j, key); break;
    }
}

/* Puts a boolean or number as a JSON value, and a time as text in the form that `get` prints. */
static cli_exit put_item(const statistics *s, json *j, const char *key,
                         const caterva_number *n)
{
    static const item_style style = {.precision = -1, .csv = true};
    if (n->kind && s->dtype->kind == 'b') json_put_bool(j, key, n->u != 0);
    if (!n->kind || strchr("iuf", s->dtype->kind)) put_number(j, key, n);
    if (!n->kind || !strchr("mM", s->dtype->kind)) return CLI_OK;
    uint8_t item[8];
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return cli_fail_sys("no memory for a value");
    item_of(s, n, item);
    item_print(stream, s->dtype, item, &style);
    bool good = fclose(stream) == 0;
    if (good) json_put_text_n(j, key, text, size);
    free(text);
    return good ? CLI_OK : cli_fail_sys("no memory for a value");
}

static void put_bins(const statistics *s, json *j)
{
    if (s->n_bins == 0) {
        json_put_null(j, "histogram");
        return;
    }
    json_begin_object(j, "histogram");
    json_begin_array(j, "edges");
    for (int64_t i = 0; i <= s->n_bins; i++) json_put_real(j, NULL, edge(s, i));
    json_end_array(j);
    json_begin_array(j, "counts");
    for (int64_t i = 0; i < s->n_bins; i++) json_put_int(j, NULL, s->counts[i]);
    json_end_array(j);
    json_end_object(j);
}

/* Puts `value`, or null if there are no items or the items are times. */
static void put_moment(json *j, const char *key, const caterva_stats *f, double value)
{
    if (f->min.kind && f->sum.kind)
        json_put_real(j, key, value);
    else
        json_put_null(j, key);
}

static cli_exit print_json(const statistics *s)
{
    const caterva_stats *f = &s->found;
    json j = {.stream = stdout};
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "file", s->path);
    json_put_ints(&j, "shape", s->shape, s->ndim);
    json_put_text(&j, "dtype", info_of(s->array)->dtype);
    json_put_int(&j, "items", f->n_items);
    json_put_int(&j, "nan", f->n_nan);
    json_put_int(&j, "inf", f->n_inf);
    json_put_int(&j, "negative_inf", f->n_negative_inf);
    CLI_TRY(put_item(s, &j, "min", &f->min));
    CLI_TRY(put_item(s, &j, "max", &f->max));
    put_number(&j, "sum", &f->sum);
    put_moment(&j, "mean", f, f->mean);
    put_moment(&j, "std", f, f->std);
    put_bins(s, &j);
    json_end_object(&j);
    putchar('\n');
    return CLI_OK;
}

/* ---- The command ----------------------------------------------------------- */

static cli_exit report(statistics *s)
{
    CLI_TRY(count(s));
    if (s->args->json) return print_json(s);
    print_text(s);
    return CLI_OK;
}

static cli_exit stats(statistics *s)
{
    const caterva_info *info = info_of(s->array);
    if (s->args->range && s->args->bins == 0)
        return cli_fail(CLI_USAGE, "--range requires --bins");
    if (s->args->range) CLI_TRY(number_range(s->args->range, &s->range[0], &s->range[1]));
    CLI_TRY(selection_parse(s->args->n_positional > 1 ? s->args->positional[1] : NULL,
                            info->ndim, info->shape, &s->sel));
    s->ndim = selection_shape(&s->sel, s->shape);
    CLI_TRY(descr_parse(CLI_CORRUPT, "the array", info->dtype, &s->dtype));
    cli_exit code = report(s);
    caterva_dtype_free(s->dtype);
    free(s->counts);
    return code;
}

/* Writes all items of `from` to a new array in memory, which stores them compressed. */
static cli_exit fill_array(source *from, caterva_array *array)
{
    walk w;
    box at;
    int64_t phase[CATERVA_MAX_DIMS] = {0};
    const walk_plan plan = {.align = from->align,
                            .phase = phase,
                            .stretch = from->stretch,
                            .in_order = from->in_order,
                            .first_axis_fastest = from->first_axis_fastest,
                            .memory = COPY_MEMORY};
    walk_begin(&w, &from->shape, &plan);
    if (w.done) return CLI_OK;
    uint8_t *items = cli_alloc(walk_box_size(&w, from->shape.item_size));
    cli_exit code = items ? CLI_OK : CLI_IO;
    while (code == CLI_OK && walk_next(&w, &at)) {
        size_t size = (size_t)(box_items(&at, from->shape.ndim) * from->shape.item_size);
        caterva_error err;
        code = cli_interrupted() ? CLI_INTERRUPTED : from->read(from, &at, items);
        if (code == CLI_OK &&
            caterva_write(array, at.start, at.stop, items, size, &err) != CATERVA_OK)
            code = cli_fail_array("mem:", &err);
    }
    free(items);
    return code;
}

/* Copies the selected items of a NumPy file to an array in memory, for the library to count. */
static cli_exit copy_npy(const cli_args *args, input *in, caterva_array **out)
{
    selection sel;
    creation c = {0};
    caterva_error err;
    const char *text = args->n_positional > 1 ? args->positional[1] : NULL;
    CLI_TRY(input_find(args, args->positional[0], in));
    CLI_TRY(input_open(args, NULL, NULL, in));
    CLI_TRY(selection_parse(text, in->from->shape.ndim, in->from->shape.shape, &sel));
    source *from = in->from;
    in->from = NULL; /* source_select takes ownership, also on failure */
    CLI_TRY(source_select(from, &sel, &in->from));
    cli_exit code = creation_init(&c, args, &in->from->shape, in->from->dtype, NULL);
    if (code == CLI_OK && caterva_create("mem:", &c.options, out, &err) != CATERVA_OK)
        code = cli_fail_array(in->path, &err);
    creation_free(&c);
    return code == CLI_OK ? fill_array(in->from, *out) : code;
}

static cli_exit stats_of_other(const cli_args *args)
{
    cli_args rest = *args;
    input in = {0};
    statistics s = {.args = &rest, .path = args->positional[0], .found = CATERVA_STATS_INIT};
    rest.n_positional = 1; /* the selection is already applied */
    cli_exit code = copy_npy(args, &in, &s.array);
    input_close(&in);
    if (code == CLI_OK) code = stats(&s);
    selection_free(&s.sel);
    caterva_discard(s.array);
    return code;
}

static cli_exit run_stats(const cli_args *args)
{
    statistics s = {.args = args, .path = args->positional[0], .found = CATERVA_STATS_INIT};
    if (input_is_other(s.path)) return stats_of_other(args);
    CLI_TRY(cli_open_array(args, s.path, CATERVA_MODE_READ, &s.array));
    cli_exit code = stats(&s);
    selection_free(&s.sel);
    caterva_discard(s.array);
    return code;
}

const cli_command cli_command_stats = {
    .name = "stats",
    .synopsis = "FILE [SEL]",
    .summary = "min, max, sum, mean, std, NaN count, histogram",
    .details =
        "Prints statistics of the selected numbers, or of all. NaN are counted and "
        "otherwise\n"
        "ignored; times have only min and max. --bins adds a histogram with equal bins\n"
        "between the smallest and largest finite number, or between the bounds of --range.\n"
        "FILE may be one that convert reads: a NumPy file and others.",
    .options =
        CLI_OPT_BINS | CLI_OPT_JSON | CLI_OPT_THREADS | CLI_OPT_NO_PROGRESS | CLI_OPT_REMOTE,
    .min_args = 1,
    .max_args = 2,
    .run = run_stats,
};
