/* Room: cli/sources. Moves items from any source to any sink. Boxes are as large as the memory
 * allows and end at chunk boundaries, so that no chunk is decoded or encoded twice. Independent of
 * formats. */
#include "sources/transfer.h"

#include "terminal/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMIT_MS 2000

void transfer_neutral(int64_t *align, int64_t *stretch)
{
    for (int d = 0; d < CATERVA_MAX_DIMS; d++) align[d] = stretch[d] = 1;
}

void source_close(source *s)
{
    if (!s) return;
    if (s->close) s->close(s);
    free(s->dtype);
    free(s);
}

/* ---- Iterating over boxes --------------------------------------------------------------- */

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns the greatest length of axis `d` with which the stretched tile has at most `items` items;
 * at least 1. */
static int64_t longest_reach(const walk *w, const int64_t *stretch, int d, int64_t items)
{
    for (int e = 0; e < w->ndim; e++)
        if (e != d) items /= (w->tile[e] - 1) * stretch[e] + 1;
    return items < 1 ? 1 : (items - 1) / stretch[d] + 1;
}

static bool fits(const walk *w, const int64_t *stretch, int64_t items)
{
    for (int d = 0; d < w->ndim; d++) items /= (w->tile[d] - 1) * stretch[d] + 1;
    return items >= 1;
}

static void start_tile(walk *w, const walk_plan *plan, int64_t items)
{
    for (int d = 0; d < w->ndim; d++) w->tile[d] = min_i64(plan->align[d], w->shape[d]);
    if (!plan->in_order && fits(w, plan->stretch, items)) return;
    for (int d = 0; d < w->ndim; d++) w->tile[d] = 1;
}

/* Lengthens the tile axis by axis, beginning with the fastest one, until an axis does not fit as a
 * whole. That axis gets a multiple of the alignment if possible. */
static void grow_tile(walk *w, const walk_plan *plan, int64_t items)
{
    for (int i = 0; i < w->ndim; i++) {
        int d = plan->first_axis_fastest && !plan->in_order ? i : w->ndim - 1 - i;
        int64_t reach = longest_reach(w, plan->stretch, d, items);
        if (reach < w->shape[d]) {
            if (reach >= plan->align[d]) reach -= reach % plan->align[d];
            w->tile[d] = reach;
            break;
        }
        w->tile[d] = w->shape[d];
    }
}

/* Shifts the tiles so that they end at chunk boundaries even if the first chunk is partial. */
static void shift_tiles(walk *w, const walk_plan *plan)
{
    for (int d = 0; d < w->ndim; d++)
        if (w->tile[d] < w->shape[d] && w->tile[d] % plan->align[d] == 0)
            w->phase[d] = plan->phase[d];
}

static int64_t first_stop(const walk *w, int d)
{
    return min_i64(w->tile[d] - w->phase[d], w->shape[d]);
}

void walk_begin(walk *w, const array_shape *shape, const walk_plan *plan)
{
    *w = (walk){.ndim = shape->ndim};
    for (int d = 0; d < shape->ndim; d++) {
        w->shape[d] = shape->shape[d];
        w->done = w->done || shape->shape[d] == 0;
    }
    if (w->done) return;
    int64_t items = plan->memory / shape->item_size;
    start_tile(w, plan, items);
    grow_tile(w, plan, items);
    shift_tiles(w, plan);
    for (int d = 0; d < w->ndim; d++) w->next.stop[d] = first_stop(w, d);
}

bool walk_next(walk *w, box *out)
{
    if (w->done) return false;
    *out = w->next;
    w->done = true;
    for (int d = w->ndim - 1; d >= 0 && w->done; d--) {
        int64_t start = w->next.stop[d] < w->shape[d] ? w->next.stop[d] : 0;
        w->next.start[d] = start;
        w->next.stop[d] = start ? min_i64(start + w->tile[d], w->shape[d]) : first_stop(w, d);
        w->done = start == 0; /* wrapped around: advance the next axis */
    }
    return true;
}

size_t walk_box_size(const walk *w, int64_t item_size)
{
    int64_t size = item_size;
    for (int d = 0; d < w->ndim; d++) size *= w->tile[d];
    return (size_t)size;
}

/* ---- Moving ----------------------------------------------------------------------------- */

/* Returns the bytes of a chunk, if that is less than 2 GiB. */
static int64_t chunk_size(const array_shape *shape, const int64_t *chunk)
{
    int64_t bytes = shape->item_size;
    for (int d = 0; d < shape->ndim && bytes < INT32_MAX; d++)
        bytes *= min_i64(chunk[d], shape->shape[d]);
    return bytes < INT32_MAX ? bytes : 0;
}

/* Plans boxes for half of --memory. A quarter is for the block cache, and a quarter for source,
 * sink and library. A larger chunk that must be decoded as a whole, or is encoded, is one box: it is
 * in memory anyway, and would be decoded again for each part, or replace one stored before. If whole
 * chunks of both sides need more than --memory, chunks of the source are decoded again. */
static void plan_walk(const cli_args *args, const source *from, const sink *to, walk *w)
{
    int64_t align[CATERVA_MAX_DIMS], phase[CATERVA_MAX_DIMS], stretch[CATERVA_MAX_DIMS];
    for (int d = 0; d < from->shape.ndim; d++) {
        bool more = to->align[d] == 1 || from->align[d] % to->align[d] == 0;
        align[d] = more ? from->align[d] : to->align[d];
        phase[d] = to->phase[d];
        stretch[d] = from->stretch[d] > to->stretch[d] ? from->stretch[d] : to->stretch[d];
    }
    walk_plan plan = {
        .align = align,
        .phase = phase,
        .stretch = stretch,
        .in_order = from->in_order || to->in_order,
        .first_axis_fastest = from->first_axis_fastest || to->first_axis_fastest,
        .memory = args->memory / 2,
    };
    int64_t read = from->decodes_whole ? chunk_size(&from->shape, from->align) : 0;
    int64_t written = to->encodes ? chunk_size(&from->shape, to->align) : 0;
    if (read > plan.memory || written > plan.memory) {
        plan.memory = read > written ? read : written;
        plan.align = read > written ? from->align : to->align;
    } else if (written > 0 && !plan.in_order) {
        int64_t both = chunk_size(&from->shape, align);
        bool fits_both = both > 0 && both <= args->memory;
        if (fits_both && both > plan.memory) plan.memory = both;
        if (!fits_both) plan.align = to->align;
    }
    walk_begin(w, &from->shape, &plan);
    caterva_cache_set_limit(args->memory / 4, NULL);
}

/* Returns the share of a box's time that is spent on reading, for the progress bar. Decoding is
 * faster than encoding; raw files are faster than both. */
static double share_of_reading(const source *from, const sink *to)
{
    if (from->decodes) return to->encodes ? 0.25 : 0.9;
    return to->encodes ? 0.02 : 0.5;
}

static cli_exit move_box(progress *bar, source *from, sink *to, const box *b, void *items)
{
    int64_t size = box_items(b, from->shape.ndim) * from->shape.item_size;
    int64_t reading = (int64_t)(share_of_reading(from, to) * (double)size);
    int64_t done = bar->done;
    if (cli_interrupted()) return CLI_INTERRUPTED;
    progress_phase(bar, done, reading);
    if (to->holds_fill && from->is_fill && from->is_fill(from, b)) {
        progress_phase(bar, done + size, 0);
        return CLI_OK;
    }
    CLI_TRY(from->read(from, b, items));
    progress_phase(bar, done + reading, size - reading);
    CLI_TRY(to->write(to, b, items));
    progress_phase(bar, done + size, 0);
    return CLI_OK;
}

/* Passes over the boxes that an earlier run has moved. */
static int64_t skip_boxes(walk *w, const source *from, const sink *to, progress *bar)
{
    box b;
    int64_t n = 0;
    for (; n < to->boxes_done && walk_next(w, &b); n++)
        progress_step(bar, bar->done + box_items(&b, w->ndim) * from->shape.item_size);
    return n;
}

static cli_exit move_boxes(source *from, sink *to, walk *w, progress *bar, void *items)
{
    box b;
    int64_t n = skip_boxes(w, from, to, bar), last = progress_now() - COMMIT_MS;
    while (walk_next(w, &b)) {
        CLI_TRY(move_box(bar, from, to, &b, items));
        n++;
        if (!to->commit || progress_now() - last < COMMIT_MS) continue;
        CLI_TRY(to->commit(to, n));
        last = progress_now();
    }
    return CLI_OK;
}

static cli_exit move_items(const cli_args *args, source *from, sink *to, progress *bar)
{
    walk w;
    plan_walk(args, from, to, &w);
    box everything = {0};
    for (int d = 0; d < w.ndim; d++) everything.stop[d] = w.shape[d];
    int64_t size = box_items(&everything, w.ndim) * from->shape.item_size;
    progress_start(bar, args, size);
    if (w.done) return CLI_OK;
    if (to->holds_fill && from->is_fill && from->is_fill(from, &everything)) {
        progress_phase(bar, size, 0);
        return CLI_OK;
    }
    void *items = cli_alloc(walk_box_size(&w, from->shape.item_size));
    if (!items) return CLI_IO;
    cli_exit code = move_boxes(from, to, &w, bar, items);
    free(items);
    return code;
}

cli_exit transfer_items(const cli_args *args, source *from, sink *to)
{
    progress bar;
    cli_exit code = move_items(args, from, to, &bar);
    progress_end(&bar);
    return code;
}

cli_exit transfer(const cli_args *args, source *from, sink *to)
{
    progress bar; /* shown until the sink has committed */
    cli_exit code = move_items(args, from, to, &bar);
    if (code == CLI_OK && cli_interrupted()) code = CLI_INTERRUPTED;
    if (code == CLI_OK)
        code = to->finish(to);
    else
        to->abandon(to);
    progress_end(&bar);
    return code;
}

/* ---- Comparing -------------------------------------------------------------------------- */

static cli_exit fail_box(const char *what, int ndim, const box *b)
{
    char text[CATERVA_MAX_DIMS * 44] = "";
    size_t used = 0;
    for (int d = 0; d < ndim; d++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld:%lld", d ? "," : "",
                                 (long long)b->start[d], (long long)b->stop[d]);
    return cli_fail(CLI_CORRUPT, "--verify: %s: the output differs from the input in [%s]",
                    what, text);
}

static cli_exit compare_boxes(const char *what, source *a, source *b, walk *w, progress *bar,
                              uint8_t *items)
{
    box next;
    size_t room = walk_box_size(w, a->shape.item_size);
    while (walk_next(w, &next)) {
        int64_t size = box_items(&next, w->ndim) * a->shape.item_size;
        if (cli_interrupted()) return CLI_INTERRUPTED;
        CLI_TRY(a->read(a, &next, items));
        CLI_TRY(b->read(b, &next, items + room));
        if (memcmp(items, items + room, (size_t)size) != 0)
            return fail_box(what, w->ndim, &next);
        progress_step(bar, bar->done + size);
    }
    return CLI_OK;
}

/* Whether equal items have equal bytes. */
static bool are_comparable(const source *a, const source *b)
{
    bool same = a->shape.ndim == b->shape.ndim && a->shape.item_size == b->shape.item_size;
    for (int d = 0; same && d < a->shape.ndim; d++)
        same = a->shape.shape[d] == b->shape.shape[d];
    const char x = a->dtype[0], y = b->dtype[0];
    return same && !((x == '<' && y == '>') || (x == '>' && y == '<'));
}

cli_exit transfer_compare(const cli_args *args, const char *what, source *a, source *b)
{
    walk w;
    progress bar;
    if (!are_comparable(a, b)) {
        cli_warn("--verify: %s has another type or shape in the output, and is not compared", what);
        return CLI_OK;
    }
    box everything = {0};
    const walk_plan plan = {.align = a->align,
                            .phase = (const int64_t[CATERVA_MAX_DIMS]){0},
                            .stretch = a->stretch,
                            .first_axis_fastest = a->first_axis_fastest,
                            .memory = args->memory / 4};
    walk_begin(&w, &a->shape, &plan);
    if (w.done) return CLI_OK;
    for (int d = 0; d < w.ndim; d++) everything.stop[d] = w.shape[d];
    progress_start(&bar, args, box_items(&everything, w.ndim) * a->shape.item_size);
    uint8_t *items = cli_alloc(2 * walk_box_size(&w, a->shape.item_size));
    cli_exit code = items ? compare_boxes(what, a, b, &w, &bar, items) : CLI_IO;
    free(items);
    progress_end(&bar);
    return code;
}
