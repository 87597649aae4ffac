/* Room: cli/pictures. Reads rows of numbers from a source, as many per read as the memory allows,
 * in groups that end at chunk boundaries. The picture is drawn row by row, never kept as a
 * whole. */
#include "pictures/picture.h"

#include "formats/item.h"

#include <math.h>
#include <stdlib.h>

/* Returns the number of rows of one read: those that fit in a quarter of --memory, and whole rows
 * of chunks if possible. */
static int64_t rows_at_once(const picture *p)
{
    const source *s = p->from;
    int64_t row_size = ((p->width - 1) * s->stretch[1] + 1) * s->shape.item_size;
    row_size *= p->channels;
    int64_t rows = p->args->memory / 4 / row_size / s->stretch[0];
    if (rows > p->height) rows = p->height;
    if (rows >= s->align[0]) rows -= rows % s->align[0];
    return rows > 0 ? rows : 1;
}

static cli_exit give_row(const picture *p, const uint8_t *items, double *values,
                         picture_row *row, void *context, int64_t number)
{
    for (int64_t c = 0; c < p->width * p->channels; c++)
        values[c] = item_number(p->dtype, items + c * p->from->shape.item_size);
    return row(context, number, values);
}

cli_exit picture_rows(const picture *p, picture_row *row, void *context)
{
    int64_t step = rows_at_once(p), row_items = p->width * p->channels;
    int64_t row_size = row_items * p->from->shape.item_size;
    uint8_t *items = cli_alloc((size_t)(step * row_size));
    double *values = cli_alloc((size_t)row_items * sizeof *values);
    cli_exit code = items && values ? CLI_OK : CLI_IO;
    for (int64_t start = 0; code == CLI_OK && start < p->height; start += step) {
        int64_t stop = start + step < p->height ? start + step : p->height;
        box b = {.start = {start}, .stop = {stop, p->width, p->channels}};
        code = cli_interrupted() ? CLI_INTERRUPTED : p->from->read(p->from, &b, items);
        for (int64_t r = start; code == CLI_OK && r < stop; r++)
            code = give_row(p, items + (r - start) * row_size, values, row, context, r);
    }
    free(items);
    free(values);
    return code;
}

typedef struct range {
    int64_t width;
    double lo, hi;
} range;

static cli_exit widen(void *context, int64_t row, const double *values)
{
    range *r = context;
    (void)row;
    for (int64_t c = 0; c < r->width; c++) {
        if (!isfinite(values[c])) continue;
        r->lo = fmin(r->lo, values[c]);
        r->hi = fmax(r->hi, values[c]);
    }
    return CLI_OK;
}

cli_exit picture_range(const picture *p, double *lo, double *hi)
{
    range r = {p->width * p->channels, (double)INFINITY, (double)-INFINITY};
    CLI_TRY(picture_rows(p, widen, &r));
    bool found = r.lo <= r.hi;
    *lo = found ? r.lo : 0;
    *hi = found && r.hi > r.lo ? r.hi : nextafter(*lo + 1, (double)INFINITY);
    return CLI_OK;
}
