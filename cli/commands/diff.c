/* Room: cli/commands. `caterva diff`: compares two arrays box by box. compare.c compares items. */
#include "commands/compare.h"
#include "commands/diff_attributes.h"
#include "commands/diff_tree.h"
#include "formats/descr.h"
#include "formats/item.h"
#include "formats/json.h"
#include "formats/numbers.h"
#include "sources/described.h"
#include "sources/foreign_sink.h"
#include "sources/input.h"
#include "terminal/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Both sides, and the differences found so far. */
typedef struct difference {
    const cli_args *args;
    input side[2];
    caterva_dtype *dtype;
    tolerance close;
    json *j; /* NULL: text */
    int64_t n_items, n_different;
    int64_t n_attributes; /* attributes that differ */
    double largest;       /* largest difference of two numbers */
} difference;

/* True for numbers that have a difference |a - b|: integers, floats and complex numbers. */
static bool has_distance(const caterva_dtype *dtype)
{
    return item_is_number(dtype) && strchr("iufc", dtype->kind);
}

/* ---- Reporting -------------------------------------------------------------- */

static void put_value(const difference *d, const char *key, const uint8_t *item)
{
    static const item_style style = {.precision = -1, .csv = true};
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return;
    item_print(stream, d->dtype, item, &style);
    fclose(stream);
    if (text) json_put_text_n(d->j, key, text, size);
    free(text);
}

static void report_item(const difference *d, const int64_t *index, const uint8_t *a,
                        const uint8_t *b)
{
    static const item_style style = {.precision = -1};
    int ndim = d->side[0].from->shape.ndim;
    if (d->j) {
        json_begin_object(d->j, NULL);
        json_put_ints(d->j, "index", index, ndim);
        put_value(d, "a", a);
        put_value(d, "b", b);
        json_end_object(d->j);
        return;
    }
    putchar('[');
    for (int i = 0; i < ndim; i++) printf("%s%lld", i ? "," : "", (long long)index[i]);
    fputs("]  ", stdout);
    item_print(stdout, d->dtype, a, &style);
    fputs("  ", stdout);
    item_print(stdout, d->dtype, b, &style);
    putchar('\n');
}

static void begin_report(difference *d)
{
    if (!d->j) return;
    json_begin_object(d->j, NULL);
    json_put_int(d->j, "schema", 1);
    json_put_place(d->j, "a", d->side[0].path);
    json_put_place(d->j, "b", d->side[1].path);
}

static void end_report(const difference *d, bool compared)
{
    bool number = has_distance(d->dtype);
    if (d->j && compared) {
        json_put_int(d->j, "items", d->n_items);
        json_put_int(d->j, "different", d->n_different);
        if (number) json_put_real(d->j, "largest", d->largest);
    }
    if (d->j) {
        json_put_bool(d->j, "equal", compared && d->n_different == 0 && d->n_attributes == 0);
        json_end_object(d->j);
        putchar('\n');
    } else if (compared && d->n_different > 0 && !d->args->quiet) {
        char text[JSON_REAL_SIZE];
        printf("%s and %s: %lld of %lld items differ", cli_show_place(d->side[0].path).text,
               cli_show_place(d->side[1].path).text, (long long)d->n_different,
               (long long)d->n_items);
        if (number && isfinite(d->largest))
            printf(", by %s at most", json_shortest(d->largest, text));
        putchar('\n');
    }
}

/* Reports shapes or dtypes that differ. */
static void report_kind(const difference *d, const char *what, const char *a, const char *b)
{
    if (d->j) {
        json_put_text(d->j, "reason", what);
    } else if (!d->args->quiet) {
        printf("%s and %s: the %s differs: %s and %s\n", cli_show_place(d->side[0].path).text,
               cli_show_place(d->side[1].path).text, what, cli_show(a).text,
               cli_show(b).text);
    }
}

/* ---- Comparing --------------------------------------------------------------- */

/* With --quiet the first difference ends the comparison. */
static bool enough(const difference *d) { return d->args->quiet && d->n_different > 0; }

static void compare_box(difference *d, const box *b, const uint8_t *a_items,
                        const uint8_t *b_items)
{
    const array_shape *shape = &d->side[0].from->shape;
    int64_t index[CATERVA_MAX_DIMS], n = box_items(b, shape->ndim);
    if (memcmp(a_items, b_items, (size_t)(n * shape->item_size)) == 0) return;
    bool number = has_distance(d->dtype);
    memcpy(index, b->start, sizeof index);
    for (int64_t i = 0; i < n && !enough(d); i++) {
        const uint8_t *x = a_items + i * shape->item_size;
        const uint8_t *y = b_items + i * shape->item_size;
        if (!compare_items(d->dtype, x, y, &d->close)) {
            if (d->n_different++ < d->args->max && !d->args->quiet)
                report_item(d, index, x, y);
            double apart =
                number ? fabs(item_number(d->dtype, x) - item_number(d->dtype, y)) : 0;
            if (apart > d->largest) d->largest = apart;
        }
        for (int k = shape->ndim - 1; k >= 0 && ++index[k] == b->stop[k]; k--)
            index[k] = b->start[k];
    }
}

static void plan_walk(const difference *d, walk *w)
{
    const source *a = d->side[0].from, *b = d->side[1].from;
    int64_t align[CATERVA_MAX_DIMS], stretch[CATERVA_MAX_DIMS], phase[CATERVA_MAX_DIMS] = {0};
    transfer_neutral(align, stretch);
    for (int i = 0; i < a->shape.ndim; i++)
        align[i] = a->align[i] > b->align[i] ? a->align[i] : b->align[i];
    walk_plan plan = {.align = align,
                      .phase = phase,
                      .stretch = stretch,
                      .in_order = a->in_order || b->in_order,
                      .first_axis_fastest = a->first_axis_fastest || b->first_axis_fastest,
                      .memory = d->args->memory / 4};
    walk_begin(w, &a->shape, &plan);
}

static cli_exit walk_items(difference *d, walk *w, uint8_t *items, size_t size)
{
    source *a = d->side[0].from, *b = d->side[1].from;
    int64_t done = 0, item_size = a->shape.item_size + b->shape.item_size;
    box at;
    progress bar;
    cli_exit code = CLI_OK;
    progress_start(&bar, d->args, d->n_items * item_size);
    while (code == CLI_OK && !enough(d) && walk_next(w, &at)) {
        int64_t half = box_items(&at, a->shape.ndim) * item_size / 2;
        progress_phase(&bar, done, half);
        code = cli_interrupted() ? CLI_INTERRUPTED : a->read(a, &at, items);
        progress_phase(&bar, done + half, half);
        if (code == CLI_OK) code = b->read(b, &at, items + size);
        if (code == CLI_OK) compare_box(d, &at, items, items + size);
        done += 2 * half;
    }
    progress_end(&bar);
    return code;
}

static bool same_number(const caterva_number *a, const caterva_number *b)
{
    switch (a->kind) {
    case 'i': return a->i == b->i;
    case 'u': return a->u == b->u;
    default: return a->f == b->f;
    }
}

/* Returns true and sets *out to the statistics if all items of the array are the same number, and
 * if this is known without reading chunks. */
static bool one_number(caterva_array *array, caterva_stats *out)
{
    caterva_space space = CATERVA_SPACE_INIT;
    caterva_chunk_info first = CATERVA_CHUNK_INFO_INIT;
    *out = (caterva_stats)CATERVA_STATS_INIT;
    if (!array || info_of(array)->n_chunks == 0) return false;
    if (caterva_chunk_describe(array, 0, &first, NULL) != CATERVA_OK ||
        first.kind == CATERVA_CHUNK_STORED)
        return false;
    if (caterva_measure(array, &space, NULL) != CATERVA_OK || space.stored_chunks > 0)
        return false;
    if (caterva_statistics(array, NULL, out, NULL) != CATERVA_OK) return false;
    return out->n_nan == out->n_items ||
           (out->n_nan == 0 && same_number(&out->min, &out->max));
}

/* Whether all items of both sides are the same number. False if that takes reading chunks. */
static bool are_one_number(const difference *d)
{
    caterva_stats a, b;
    if (!has_distance(d->dtype) || d->dtype->ndim > 0) return false;
    if (!one_number(d->side[0].array, &a) || !one_number(d->side[1].array, &b)) return false;
    return a.n_items > 0 && a.n_nan == b.n_nan &&
           (a.n_nan > 0 || same_number(&a.min, &b.min));
}

static cli_exit compare_values(difference *d)
{
    const array_shape *shape = &d->side[0].from->shape;
    box all = {.start = {0}};
    memcpy(all.stop, shape->shape, sizeof all.stop);
    d->n_items = box_items(&all, shape->ndim);
    if (d->j) json_begin_array(d->j, "differences");
    if (are_one_number(d)) {
        if (d->j) json_end_array(d->j);
        return CLI_OK;
    }
    walk w;
    plan_walk(d, &w);
    cli_exit code = CLI_OK;
    if (!w.done) {
        size_t size = walk_box_size(&w, shape->item_size);
        uint8_t *items = cli_alloc(2 * size);
        code = items ? walk_items(d, &w, items, size) : CLI_IO;
        free(items);
    }
    if (d->j) json_end_array(d->j);
    return code;
}

static bool same_shape(const difference *d)
{
    char text[2][SHAPE_TEXT_SIZE];
    const array_shape *a = &d->side[0].from->shape, *b = &d->side[1].from->shape;
    bool same = a->ndim == b->ndim;
    for (int i = 0; i < a->ndim && same; i++) same = a->shape[i] == b->shape[i];
    if (!same)
        report_kind(d, "shape", shape_text(a->ndim, a->shape, text[0]),
                    shape_text(b->ndim, b->shape, text[1]));
    return same;
}

static cli_exit same_dtype(const difference *d, bool *same)
{
    caterva_dtype *other;
    const char *a = d->side[0].from->dtype, *b = d->side[1].from->dtype;
    CLI_TRY(descr_parse(CLI_CORRUPT, d->side[1].path, b, &other));
    *same = compare_dtypes(d->dtype, other);
    caterva_dtype_free(other);
    if (!*same) report_kind(d, "dtype", a, b);
    return CLI_OK;
}

/* Compares the attributes of two arrays; npy, raw and text have none. */
static cli_exit compare_attributes(difference *d)
{
    attributes side[2];
    attribute_sides sides = {.j = d->j, .quiet = d->args->quiet};
    if (d->args->no_attributes || enough(d)) return CLI_OK;
    for (int i = 0; i < 2; i++) {
        const foreign_node *node = d->side[i].place.node;
        if (!d->side[i].array && !node) return CLI_OK;
        side[i] = (attributes){d->side[i].path, .array = d->side[i].array, .node = node};
        sides.side[i] = &side[i];
    }
    return diff_attributes(&sides, &d->n_attributes);
}

static cli_exit compare(difference *d)
{
    bool same = false;
    CLI_TRY(descr_parse(CLI_CORRUPT, d->side[0].path, d->side[0].from->dtype, &d->dtype));
    begin_report(d);
    cli_exit code = CLI_OK;
    if (same_shape(d)) code = same_dtype(d, &same);
    if (code == CLI_OK && same) code = compare_values(d);
    if (code == CLI_OK) code = compare_attributes(d);
    if (code == CLI_OK) end_report(d, same);
    caterva_dtype_free(d->dtype);
    if (code != CLI_OK) return code;
    return same && d->n_different == 0 && d->n_attributes == 0 ? CLI_OK : CLI_NO;
}

/* ---- The command -------------------------------------------------------------- */

static cli_exit open_side(const cli_args *args, const char *path, input *in)
{
    CLI_TRY(input_find(args, path, in));
    if (in->format == FORMAT_RAW)
        return cli_fail(CLI_USAGE, "%s is raw, without a shape; diff reads b2nd and npy",
                        path);
    CLI_TRY(input_open(args, NULL, NULL, in));
    const foreign_file *file = in->place.file;
    if (file && !args->quiet) foreign_report_losses(in->path, file->losses, file->n_losses);
    return CLI_OK;
}

static cli_exit parse_tolerance(const char *text, const char *option, double *out)
{
    *out = 0;
    if (!text || (number_real(text, out) && *out >= 0 && isfinite(*out))) return CLI_OK;
    return cli_fail(CLI_USAGE, "%s must be a number of at least 0, not '%s'", option, text);
}

static cli_exit begin(difference *d, const cli_args *args, json *j)
{
    *d = (difference){.args = args, .j = args->json && !args->quiet ? j : NULL};
    CLI_TRY(parse_tolerance(args->atol, "--atol", &d->close.absolute));
    return parse_tolerance(args->rtol, "--rtol", &d->close.relative);
}

static cli_exit finish(difference *d, cli_exit code)
{
    if (code == CLI_OK) code = compare(d);
    input_close(&d->side[0]);
    input_close(&d->side[1]);
    return code;
}

static cli_exit diff_files(const cli_args *args, const char *a, const char *b)
{
    json j = {.stream = stdout};
    difference d;
    CLI_TRY(begin(&d, args, &j));
    cli_exit code = open_side(args, a, &d.side[0]);
    if (code == CLI_OK) code = open_side(args, b, &d.side[1]);
    return finish(&d, code);
}

static cli_exit diff_arrays(const cli_args *args, input side[2])
{
    json j = {.stream = stdout};
    difference d;
    cli_exit code = begin(&d, args, &j);
    memcpy(d.side, side, sizeof d.side);
    return finish(&d, code);
}

/* Reports that `tree` is a tree but `other` is not. If `other` cannot be opened, reports that
 * failure instead. */
static cli_exit refuse_pair(const cli_args *args, const char *tree, const char *other)
{
    input in = {.path = NULL};
    cli_exit code = open_side(args, other, &in);
    input_close(&in);
    if (code != CLI_OK) return code;
    return cli_fail(CLI_USAGE, "%s is a tree, but %s is not", tree, other);
}

static cli_exit run_diff(const cli_args *args)
{
    const char *a = args->positional[0], *b = args->positional[1];
    dataset_sort x, y;
    CLI_TRY(dataset_find(args, a, &x));
    CLI_TRY(dataset_find(args, b, &y));
    if (x == DATASET_MANY && y == DATASET_NONE) return refuse_pair(args, a, b);
    if (x == DATASET_NONE && y == DATASET_MANY) return refuse_pair(args, b, a);
    if (x == DATASET_MANY || y == DATASET_MANY) return diff_trees(args, a, b, diff_arrays);
    return diff_files(args, a, b);
}

const cli_command cli_command_diff = {
    .name = "diff",
    .synopsis = "A B",
    .summary = "compare shape, dtype, values and attributes",
    .details =
        "Compares two arrays, each b2nd or npy: shape, dtype, then every item. NaN equals\n"
        "NaN. Prints the first items that differ, with their indices, and their number.\n"
        "Numbers a and b are equal if |a - b| <= ATOL + RTOL * |b|. If both sides are b2nd,\n"
        "attributes and dimension names are compared. The exit status is 0 if the arrays "
        "are\n"
        "the same, 1 if they differ. For two trees (.b2z, .b2d) or groups, compares the\n"
        "arrays and groups that both have and lists those that one lacks. A and B may also\n"
        "be files that convert reads.",
    .options = CLI_OPT_DIFF | CLI_OPT_JSON | CLI_OPT_MEMORY | CLI_OPT_THREADS |
               CLI_OPT_NO_PROGRESS | CLI_OPT_REMOTE,
    .min_args = 2,
    .max_args = 2,
    .run = run_diff,
};
