/* Room: cli. Parses selections and does their geometry; knows nothing of files.
 * A selection that passed selection_parse lies inside the array: bounds are clamped
 * as NumPy clamps them, single indices are not. */
#include "selection.h"

#include "numbers.h"

#include <string.h>

/* One comma-separated part while it is read. */
typedef struct part {
    const char *text; /* the whole selection, for messages */
    const char *at;
    int axis;
    int64_t extent;
} part;

static cli_exit malformed(const part *p, const char *expected)
{
    return cli_fail(CLI_USAGE, "selection '%s': expected %s at position %d, found '%s'",
                    p->text, expected, (int)(p->at - p->text) + 1,
                    *p->at ? p->at : "the end");
}

/* A bound of a slice: may be left out; negative counts from the end; clamped as
 * NumPy does, into [lowest, highest]. */
static cli_exit scan_bound(part *p, int64_t missing, int64_t lowest, int64_t highest,
                           int64_t *out)
{
    *out = missing;
    if (!*p->at || *p->at == ':' || *p->at == ',') return CLI_OK;
    int64_t value;
    if (!number_scan(&p->at, &value)) return malformed(p, "a number or ':'");
    if (value < 0) value += p->extent;
    *out = value < lowest ? lowest : value > highest ? highest : value;
    return CLI_OK;
}

/* The step is written last but decides what left-out bounds mean. */
static cli_exit scan_step(const part *p, int64_t *step)
{
    part ahead = *p;
    for (int colons = 0; *ahead.at && *ahead.at != ',' && colons < 2; ahead.at++)
        colons += *ahead.at == ':';
    *step = 1;
    if (ahead.at == p->at || ahead.at[-1] != ':' || !*ahead.at || *ahead.at == ',')
        return CLI_OK;
    if (!number_scan(&ahead.at, step)) return malformed(&ahead, "a step");
    if (*step == 0 || *step == INT64_MIN)
        return cli_fail(CLI_USAGE, "selection '%s': the step of axis %d is %s", p->text,
                        p->axis, *step ? "out of range" : "0");
    return CLI_OK;
}

static int64_t slice_count(int64_t start, int64_t stop, int64_t step)
{
    int64_t length = step > 0 ? stop - start : start - stop;
    int64_t stride = step > 0 ? step : -step;
    return length > 0 ? (length - 1) / stride + 1 : 0;
}

static cli_exit scan_slice(part *p, selection_axis *out)
{
    int64_t stop;
    CLI_TRY(scan_step(p, &out->step));
    bool back = out->step < 0;
    int64_t lowest = back ? -1 : 0, highest = back ? p->extent - 1 : p->extent;
    CLI_TRY(scan_bound(p, back ? highest : lowest, lowest, highest, &out->start));
    if (*p->at != ':') return malformed(p, "':'");
    p->at++;
    CLI_TRY(scan_bound(p, back ? lowest : highest, lowest, highest, &stop));
    if (*p->at == ':') {
        int64_t step;
        p->at++;
        number_scan(&p->at, &step); /* value known from scan_step */
    }
    out->count = slice_count(out->start, stop, out->step);
    if (out->count <= 1) out->step = 1;
    if (out->count == 0) out->start = 0;
    return CLI_OK;
}

static bool part_is_slice(const part *p) { return p->at[strcspn(p->at, ",:")] == ':'; }

static cli_exit scan_part(part *p, selection_axis *out)
{
    *out = (selection_axis){.step = 1};
    if (part_is_slice(p)) return scan_slice(p, out);
    int64_t index;
    if (!number_scan(&p->at, &index)) return malformed(p, "a number, ':' or '...'");
    if (index < -p->extent || index >= p->extent)
        return cli_fail(
            CLI_USAGE,
            "selection '%s': index %lld is out of range for axis %d with %lld items", p->text,
            (long long)index, p->axis, (long long)p->extent);
    out->start = index < 0 ? index + p->extent : index;
    out->count = 1;
    out->dropped = true;
    return CLI_OK;
}

static void select_all(selection *out, int from, int to, const int64_t *shape)
{
    for (int d = from; d < to; d++)
        out->axis[d] = (selection_axis){.step = 1, .count = shape[d]};
}

static bool part_is_ellipsis(const char *at) { return strncmp(at, "...", 3) == 0; }

/* Counts the parts; `*ellipses` of them are "...". */
static int count_parts(const char *text, int *ellipses)
{
    *ellipses = 0;
    if (!*text) return 0;
    int parts = 0;
    for (const char *at = text; at; at = strchr(at, ',')) {
        at += *at == ',';
        *ellipses += part_is_ellipsis(at);
        parts++;
    }
    return parts;
}

static cli_exit check_parts(const char *text, int ndim, int *covered)
{
    int ellipses;
    int parts = count_parts(text, &ellipses);
    if (ellipses > 1)
        return cli_fail(CLI_USAGE, "selection '%s' has more than one '...'", text);
    if (parts - ellipses > ndim)
        return cli_fail(CLI_USAGE, "selection '%s' has %d axes, the array has %d", text,
                        parts - ellipses, ndim);
    *covered = ndim - (parts - ellipses);
    return CLI_OK;
}

cli_exit selection_parse(const char *text, int ndim, const int64_t *shape, selection *out)
{
    *out = (selection){.ndim = ndim};
    select_all(out, 0, ndim, shape);
    if (!text || !*text) return CLI_OK;
    int covered = 0; /* axes that the ellipsis stands for */
    CLI_TRY(check_parts(text, ndim, &covered));
    part p = {.text = text, .at = text};
    for (;;) {
        if (part_is_ellipsis(p.at)) {
            p.at += 3;
            p.axis += covered;
        } else {
            if (p.axis == ndim) return malformed(&p, "'...'");
            p.extent = shape[p.axis];
            CLI_TRY(scan_part(&p, &out->axis[p.axis]));
            p.axis++;
        }
        if (!*p.at) return CLI_OK;
        if (*p.at != ',') return malformed(&p, "',' or the end");
        p.at++;
    }
}

bool selection_is_whole(const selection *sel, const int64_t *shape)
{
    for (int d = 0; d < sel->ndim; d++) {
        const selection_axis *a = &sel->axis[d];
        if (a->dropped || a->start != 0 || a->step != 1 || a->count != shape[d]) return false;
    }
    return true;
}

bool selection_is_box(const selection *sel)
{
    for (int d = 0; d < sel->ndim; d++)
        if (sel->axis[d].step != 1) return false;
    return true;
}

int selection_shape(const selection *sel, int64_t *shape)
{
    int ndim = 0;
    for (int d = 0; d < sel->ndim; d++)
        if (!sel->axis[d].dropped) shape[ndim++] = sel->axis[d].count;
    return ndim;
}

void selection_bounds(const selection *sel, const box *result, box *bounds)
{
    int r = 0; /* axis of the result */
    for (int d = 0; d < sel->ndim; d++) {
        const selection_axis *a = &sel->axis[d];
        int64_t first = a->dropped ? 0 : result->start[r];
        int64_t last = a->dropped ? 0 : result->stop[r] - 1;
        r += !a->dropped;
        int64_t one = a->start + first * a->step, other = a->start + last * a->step;
        bool empty = last < first;
        bounds->start[d] = empty || one < other ? one : other;
        bounds->stop[d] = empty ? one : (one < other ? other : one) + 1;
    }
}

int64_t box_items(const box *b, int ndim)
{
    int64_t items = 1;
    for (int d = 0; d < ndim; d++) items *= b->stop[d] - b->start[d];
    return items;
}
