/* Room: cli. `caterva view`: a 2-d slice as a picture. Checks that the selection can
 * be one and fixes the colours; picture_png.c and picture_terminal.c draw. Reads the
 * items twice when the range of values is not given. */
#include "descr.h"
#include "item.h"
#include "numbers.h"
#include "picture.h"
#include "source.h"

#include <math.h>
#include <string.h>

/* "LO,HI"; --range=-5,5 when LO is negative reads well too. */
static cli_exit parse_range(const char *text, colormap *map)
{
    char low[64];
    const char *comma = strchr(text, ',');
    size_t size = comma ? (size_t)(comma - text) : 0;
    bool good = comma && size < sizeof low;
    if (good) {
        memcpy(low, text, size);
        low[size] = '\0';
        good = number_real(low, &map->lo) && number_real(comma + 1, &map->hi);
    }
    if (good && isfinite(map->lo) && isfinite(map->hi) && map->lo < map->hi) return CLI_OK;
    return cli_fail(CLI_USAGE, "--range takes LO,HI with LO < HI, not '%s'", text);
}

static cli_exit show(const cli_args *args, const picture *p)
{
    colormap map;
    CLI_TRY(colormap_init(&map, args->cmap));
    if (args->range)
        CLI_TRY(parse_range(args->range, &map));
    else
        CLI_TRY(picture_range(p, &map.lo, &map.hi));
    if (args->png) return picture_to_png(p, &map, args->png, args->force);
    return picture_to_terminal(p, &map);
}

static cli_exit view_source(const cli_args *args, source *from)
{
    char shape[SHAPE_TEXT_SIZE];
    const array_shape *s = &from->shape;
    if (s->ndim != 2)
        return cli_fail(CLI_USAGE,
                        "a picture needs two axes, the selection has the shape %s; choose a "
                        "slice such as 0,:,:",
                        shape_text(s->ndim, s->shape, shape));
    if (s->shape[0] == 0 || s->shape[1] == 0)
        return cli_fail(CLI_USAGE, "the selection %s is empty",
                        shape_text(s->ndim, s->shape, shape));
    caterva_dtype *dtype;
    CLI_TRY(descr_parse("the array's dtype", from->dtype, &dtype));
    picture p = {args, from, dtype, s->shape[0], s->shape[1]};
    cli_exit code;
    if (item_is_number(dtype))
        code = show(args, &p);
    else
        code = cli_fail(CLI_UNSUPPORTED, "a picture needs numbers, the items are %s",
                        from->dtype);
    caterva_dtype_free(dtype);
    return code;
}

static cli_exit view(const cli_args *args, caterva_array *array)
{
    const caterva_info *info = caterva_describe(array);
    selection sel;
    source *from;
    CLI_TRY(selection_parse(args->n_positional > 1 ? args->positional[1] : NULL, info->ndim,
                            info->shape, &sel));
    cli_exit code = source_of_array(array, args->positional[0], &from);
    if (code != CLI_OK) {
        selection_free(&sel);
        return code;
    }
    CLI_TRY(source_select(from, &sel, &from));
    code = view_source(args, from);
    source_close(from);
    return code;
}

static cli_exit run_view(const cli_args *args)
{
    caterva_array *array;
    CLI_TRY(cli_open_array(args, args->positional[0], CATERVA_READ, &array));
    cli_exit code = view(args, array);
    caterva_discard(array);
    return code;
}

const cli_command cli_command_view = {
    .name = "view",
    .synopsis = "FILE [SEL]",
    .summary = "a 2-d slice as a picture: in the terminal, or PNG",
    .details =
        "Shows a selection with two axes: in a terminal with half-block characters in\n"
        "24-bit or 256 colours, elsewhere or with NO_COLOR with plain characters; with\n"
        "--png as a file that has a pixel for each item. Complex numbers show their\n"
        "absolute value; what is not finite stays black, or empty.",
    .options = CLI_OPT_PICTURE | CLI_OPT_FORCE | CLI_OPT_THREADS | CLI_OPT_MEMORY,
    .min_args = 1,
    .max_args = 2,
    .run = run_view,
};
