/* Room: cli/commands. `caterva view`: shows a 2-d slice as a picture. Checks the selection and
 * chooses the colours; picture_png.c and picture_terminal.c draw. Reads the items twice if the
 * range of values is not given. If a selection has far more items than the terminal has pixels,
 * reads only a sample. */
#include "formats/descr.h"
#include "formats/item.h"
#include "formats/numbers.h"
#include "pictures/picture.h"
#include "sources/described.h"
#include "sources/dims.h"
#include "sources/input.h"
#include "sources/source.h"
#include "terminal/output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXACT_ITEMS (INT64_C(1) << 24) /* a selection with more items is sampled */

/* Sets the values of the first and last colour: the values of --range if given, else 0 and 255 for
 * colours in uint8, else the smallest and largest value. */
static cli_exit choose_range(const cli_args *args, const picture *p, colormap *map)
{
    if (args->range) return number_range(args->range, &map->lo, &map->hi);
    bool bytes = p->channels > 1 && p->dtype->kind == 'u' && p->dtype->item_size == 1;
    if (!bytes) return picture_range(p, &map->lo, &map->hi);
    map->lo = 0;
    map->hi = 255;
    return CLI_OK;
}

static cli_exit show(const cli_args *args, const picture *p)
{
    colormap map;
    CLI_TRY(colormap_init(&map, args->cmap));
    CLI_TRY(choose_range(args, p, &map));
    if (args->png) return picture_to_png(p, &map, args->png, args->force);
    return picture_to_terminal(p, &map);
}

/* ---- The selection ---------------------------------------------------------------------- */

typedef struct viewing {
    const cli_args *args;
    caterva_dtype *dtype;
    selection sel;
    array_shape shape;                  /* of the selection */
    const char *const *dims;            /* names of the array's axes; or NULL */
    const char *axes[CATERVA_MAX_DIMS]; /* names of the selection's axes; or NULL */
    int channels;
    int64_t step[2]; /* step of the sample along rows, and along columns */
} viewing;

/* Decides whether a last axis of three or four items holds the channels of a colour. */
static cli_exit find_channels(viewing *v)
{
    const char *when = v->args->rgb ? v->args->rgb : "auto";
    int64_t last = v->shape.ndim == 3 ? v->shape.shape[2] : 0;
    bool may = last == 3 || last == 4, yes = strcmp(when, "yes") == 0;
    bool bytes = v->dtype->kind == 'u' && v->dtype->item_size == 1 && v->dtype->ndim == 0;
    char shape[SHAPE_TEXT_SIZE];
    if (!yes && strcmp(when, "auto") != 0 && strcmp(when, "no") != 0)
        return cli_fail(CLI_USAGE, "--rgb must be auto, yes or no, not '%s'", when);
    if (yes && !may)
        return cli_fail(
            CLI_USAGE,
            "--rgb yes requires the shape (rows, columns, 3 or 4), but the selection has "
            "%s",
            shape_text(v->shape.ndim, v->shape.shape, shape));
    bool colors = may && (yes || (bytes && strcmp(when, "auto") == 0));
    v->channels = colors ? (int)last : 1;
    return CLI_OK;
}

/* Reports a selection that is not 2-d, with its shape and, if its axes have names, these names. */
static cli_exit fail_axes(const viewing *v, const char *shape)
{
    char names[400] = "";
    size_t used = 0;
    bool named = false;
    for (int r = 0; r < v->shape.ndim; r++) {
        named = named || v->axes[r];
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.20s", r ? ", " : "",
                                 v->axes[r] ? cli_show(v->axes[r]).text : "-");
    }
    return cli_fail(CLI_USAGE,
                    "a picture requires two axes, but the selection has the shape %s%s%s%s%s",
                    shape, named ? ", axes (" : "", named ? names : "", named ? ")" : "",
                    v->shape.ndim > 2 ? "; choose a slice such as 0,:,:" : "");
}

static cli_exit check_viewing(viewing *v, const char *dtype)
{
    char shape[SHAPE_TEXT_SIZE];
    const array_shape *s = &v->shape;
    CLI_TRY(find_channels(v));
    shape_text(s->ndim, s->shape, shape);
    if (s->ndim != (v->channels > 1 ? 3 : 2)) return fail_axes(v, shape);
    if (s->shape[0] == 0 || s->shape[1] == 0)
        return cli_fail(CLI_USAGE, "the selection %s is empty", shape);
    if (item_is_number(v->dtype)) return CLI_OK;
    return cli_fail(CLI_UNSUPPORTED, "a picture requires numbers, but the items are %s",
                    dtype);
}

/* Chooses the step of a sample, so that about two items along each axis make a pixel. More items
 * would not change the picture. */
static void thin(viewing *v)
{
    int64_t pixels[2];
    v->step[0] = v->step[1] = 1;
    const int64_t *shape = v->shape.shape;
    if (v->args->png || shape[0] <= EXACT_ITEMS / shape[1]) return;
    int rows = v->args->transpose, columns = !rows; /* axes of the selection */
    picture_terminal_size(shape[rows], shape[columns], &pixels[rows], &pixels[columns]);
    for (int d = 0; d < 2; d++) {
        v->step[d] = shape[d] / (2 * pixels[d]);
        if (v->step[d] <= 1 || v->sel.result[d] < 0)
            v->step[d] = 1;
        else
            selection_thin(&v->sel, d, v->step[d]);
    }
}

/* axis_name returns " (time)", or "" if the axis has no name. */
enum { AXIS_NAME_SIZE = 64 };

static const char *axis_name(const viewing *v, int r, char text[AXIS_NAME_SIZE])
{
    text[0] = '\0';
    if (v->axes[r]) snprintf(text, AXIS_NAME_SIZE, " (%.58s)", cli_show(v->axes[r]).text);
    return text;
}

static void say_thinned(const viewing *v)
{
    if (v->step[0] == 1 && v->step[1] == 1) return;
    int r = v->args->transpose, c = !r;
    char rows[AXIS_NAME_SIZE], columns[AXIS_NAME_SIZE];
    fprintf(stderr,
            "caterva: sampled: one of %lld rows%s and one of %lld columns%s of %lld x %lld\n",
            (long long)v->step[r], axis_name(v, r, rows), (long long)v->step[c],
            axis_name(v, c, columns), (long long)v->shape.shape[r],
            (long long)v->shape.shape[c]);
}

static cli_exit view_source(viewing *v, source *from)
{
    picture p = {.args = v->args,
                 .from = from,
                 .dtype = v->dtype,
                 .height = from->shape.shape[0],
                 .width = from->shape.shape[1],
                 .channels = v->channels,
                 .full_height = v->shape.shape[v->args->transpose],
                 .full_width = v->shape.shape[!v->args->transpose]};
    CLI_TRY(show(v->args, &p));
    say_thinned(v);
    return CLI_OK;
}

/* Parses the selection. A selection with a single axis becomes one row. */
static cli_exit parse_viewing(viewing *v, const source *of)
{
    const char *text = v->args->n_positional > 1 ? v->args->positional[1] : NULL;
    CLI_TRY(selection_parse(text, of->shape.ndim, of->shape.shape, &v->sel));
    if (v->sel.n_result == 1 && !v->sel.points) selection_add_axis(&v->sel);
    v->shape.ndim = selection_shape(&v->sel, v->shape.shape);
    for (int r = 0; r < v->shape.ndim; r++) v->axes[r] = dims_of_result(v->dims, &v->sel, r);
    CLI_TRY(descr_parse(CLI_CORRUPT, v->args->positional[0], of->dtype, &v->dtype));
    return check_viewing(v, of->dtype);
}

/* Takes ownership of in->from. */
static cli_exit view(const cli_args *args, input *in)
{
    const char **names = in->array ? dims_of(in->array) : NULL;
    viewing v = {.args = args, .dims = names};
    if (in->place.node) v.dims = (const char *const *)in->place.node->dims;
    cli_exit code = parse_viewing(&v, in->from);
    if (code == CLI_OK) {
        source *from = in->from;
        in->from = NULL; /* source_select owns both, also on failure */
        thin(&v);
        code = source_select(from, &v.sel, &in->from);
        v.sel = (selection){.ndim = 0};
    }
    if (code == CLI_OK && args->transpose) {
        source *from = in->from;
        in->from = NULL;
        code = source_transpose(from, &in->from);
    }
    if (code == CLI_OK) code = view_source(&v, in->from);
    selection_free(&v.sel);
    caterva_dtype_free(v.dtype);
    caterva_free(names);
    return code;
}

static cli_exit open_seen(const cli_args *args, const char *path, input *in)
{
    *in = (input){.path = path, .probe = PROBE_INIT};
    if (input_is_other(path)) {
        CLI_TRY(input_find(args, path, in));
        return input_open(args, NULL, NULL, in);
    }
    CLI_TRY(cli_open_array(args, path, CATERVA_MODE_READ, &in->array));
    return source_of_array(in->array, path, &in->from);
}

static cli_exit run_view(const cli_args *args)
{
    input in;
    CLI_TRY(output_check_input(args->png, args->positional[0]));
    cli_exit code = open_seen(args, args->positional[0], &in);
    if (code == CLI_OK) code = view(args, &in);
    input_close(&in);
    return code;
}

const cli_command cli_command_view = {
    .name = "view",
    .synopsis = "FILE [SEL]",
    .summary = "show a 2-d slice as a picture, in the terminal or as PNG",
    .details =
        "Shows a selection with one or two axes, or (rows, columns, 3 or 4) of uint8 in its\n"
        "own colours. A terminal shows half-block characters in 24-bit or 256 colours; "
        "other\n"
        "outputs, or NO_COLOR, show plain characters; --png writes a file with a pixel for\n"
        "each item. For more than 16 million items, a terminal shows a sample. Complex\n"
        "numbers show their absolute value; values that are not finite are black, or empty.\n"
        "FILE may be one that convert reads: a NumPy file and others.",
    .options = CLI_OPT_PICTURE | CLI_OPT_RGB | CLI_OPT_FORCE | CLI_OPT_THREADS |
               CLI_OPT_MEMORY | CLI_OPT_REMOTE,
    .min_args = 1,
    .max_args = 2,
    .run = run_view,
};
