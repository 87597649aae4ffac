/* Room: cli/sources. Reads a coordinate once, piece by piece, in bounded memory for any length.
 * Values are compared in the coordinate's own type, so that 0.1 finds the float32 nearest to
 * 0.1. */
#include "sources/coordinate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parsing ---------------------------------------------------------------------------- */

/* A wanted value. Integer coordinates use whole + rest, float coordinates use real. */
typedef struct point {
    int64_t whole;
    double rest; /* [0, 1) */
    double real;
} point;

typedef struct wanted {
    const char *text; /* as given, for messages */
    int size;
    bool is_range, has_from, has_until;
    bool until_is_open; /* `until` itself is excluded */
    point from, until;
} wanted;

static cli_exit fail_value(const coordinate *c, const char *text, size_t size)
{
    const char *expected =
        c->is_time ? "a date such as 2020-01-31 or 2020-01-31T12:00" : "a number";
    return cli_fail(CLI_USAGE, "%s=%.*s: expected %s, or two with ':' between them",
                    cli_show(c->name).text, (int)size, text, expected);
}

/* Returns the tolerance for comparisons with `value`. Times stored as floats are results of a
 * computation and may differ in the last digit. Other values are compared exactly. */
static double slack_of(const coordinate *c, double value)
{
    if (!c->is_time || c->kind == COORDINATE_WHOLE) return 0;
    float single = fabsf((float)value);
    if (c->kind == COORDINATE_SINGLE)
        return 2 * (double)(nextafterf(single, INFINITY) - single);
    return 2 * (nextafter(fabs(value), INFINITY) - fabs(value));
}

static double in_type(const coordinate *c, double value)
{
    return c->kind == COORDINATE_SINGLE ? (double)(float)value : value;
}

static bool set_moment(const coordinate *c, moment at, point *out)
{
    if (!time_count_of(&c->time, at, &out->whole, &out->rest)) return false;
    out->real = in_type(c, (double)out->whole + out->rest);
    return true;
}

static bool begins_number(char c)
{
    return c == '+' || c == '-' || c == '.' || (c >= '0' && c <= '9');
}

/* Parses a decimal number; an integer is parsed exactly. */
static bool read_number(const coordinate *c, const char *text, size_t size, point *out)
{
    char copy[64], *end;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): turn_round has no NULL text */
    if (size == 0 || size >= sizeof copy || !begins_number(text[0])) return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    if (strspn(copy, "+-.0123456789eE") != size) return false;
    out->real =
        c->kind == COORDINATE_SINGLE ? (double)strtof(copy, &end) : strtod(copy, &end);
    if (*end || !isfinite(out->real)) return false;
    out->whole = strtoll(copy, &end, 10);
    out->rest = 0;
    if (!*end) return true;
    double exact = strtod(copy, NULL), below = floor(exact);
    if (fabs(below) >= 9.2e18) return c->kind != COORDINATE_WHOLE;
    out->whole = (int64_t)below;
    out->rest = exact - below;
    return true;
}

/* Parses a value as [*from, *until): a date lasts until the next day; a number has no length. */
static bool read_value(const coordinate *c, const char *text, size_t size, point *from,
                       point *until)
{
    moment first, last;
    if (!c->is_time) {
        if (!read_number(c, text, size, from)) return false;
        *until = *from;
        return true;
    }
    return moment_parse(text, size, c->time.calendar, &first, &last) &&
           set_moment(c, first, from) && set_moment(c, last, until);
}

/* Parses "from:to" with its colon at byte `colon`. Either side may be empty. */
static bool read_range(const coordinate *c, const char *text, size_t size, size_t colon,
                       wanted *out)
{
    point ignored;
    size_t behind = size - colon - 1;
    out->has_from = colon > 0;
    out->has_until = behind > 0;
    out->until_is_open = c->is_time;
    return (!out->has_from || read_value(c, text, colon, &out->from, &ignored)) &&
           (!out->has_until ||
            read_value(c, text + colon + 1, behind, &ignored, &out->until));
}

/* Parses a value or a range. Because times contain colons, a range is split at the first colon with
 * a valid value or nothing on each side. */
static cli_exit read_wanted(const coordinate *c, const char *text, size_t size, wanted *out)
{
    *out = (wanted){.text = text, .size = (int)size};
    if (size > 400)
        return cli_fail(CLI_USAGE, "%s=...: the value is too long (%zu characters)", c->name,
                        size);
    if (read_value(c, text, size, &out->from, &out->until)) return CLI_OK;
    out->is_range = true;
    for (size_t i = 0; i < size; i++)
        if (text[i] == ':' && read_range(c, text, size, i, out)) return CLI_OK;
    return fail_value(c, text, size);
}

/* ---- Searching -------------------------------------------------------------------------- */

typedef struct search {
    const coordinate *c;
    const wanted *w;
    coordinate_value last;
    int64_t falls, rises;          /* first item below, or above, the previous one; or -1 */
    int64_t n_found, first, final; /* matching items: number, first and last one */
    int64_t nearest;
    double distance;
} search;

static bool is_below(const coordinate *c, coordinate_value a, coordinate_value b)
{
    return c->kind == COORDINATE_WHOLE ? a.whole < b.whole : a.real < b.real;
}

static bool is_from(const coordinate *c, coordinate_value v, const point *p)
{
    if (c->kind != COORDINATE_WHOLE) return v.real >= p->real - slack_of(c, p->real);
    return v.whole > p->whole || (v.whole == p->whole && p->rest == 0);
}

static bool is_until(const coordinate *c, coordinate_value v, const point *p, bool open)
{
    double slack = slack_of(c, p->real);
    if (c->kind != COORDINATE_WHOLE)
        return open ? v.real < p->real - slack : v.real <= p->real + slack;
    return v.whole < p->whole || (v.whole == p->whole && (!open || p->rest > 0));
}

static bool belongs(const search *s, coordinate_value v)
{
    const wanted *w = s->w;
    if (!w->is_range) return is_from(s->c, v, &w->from) && is_until(s->c, v, &w->from, false);
    return (!w->has_from || is_from(s->c, v, &w->from)) &&
           (!w->has_until || is_until(s->c, v, &w->until, w->until_is_open));
}

static double distance_of(const coordinate *c, coordinate_value v, const point *p)
{
    if (c->kind != COORDINATE_WHOLE) return fabs(v.real - p->real);
    return fabs(((double)v.whole - (double)p->whole) - p->rest);
}

static cli_exit take_value(search *s, int64_t i, coordinate_value v)
{
    const coordinate *c = s->c;
    if (c->kind != COORDINATE_WHOLE && isnan(v.real))
        return cli_fail(CLI_USAGE, "coordinate %s is NaN at item %lld",
                        cli_show(c->name).text, (long long)i);
    if (i > 0 && s->falls < 0 && is_below(c, v, s->last)) s->falls = i;
    if (i > 0 && s->rises < 0 && is_below(c, s->last, v)) s->rises = i;
    s->last = v;
    if (belongs(s, v)) {
        if (s->n_found++ == 0) s->first = i;
        s->final = i;
    }
    double distance = distance_of(c, v, &s->w->from);
    if (s->nearest < 0 || distance < s->distance) {
        s->nearest = i;
        s->distance = distance;
    }
    return CLI_OK;
}

static cli_exit walk(search *s)
{
    enum { PIECE = 1 << 14 };
    coordinate_value *values = cli_alloc(PIECE * sizeof *values);
    cli_exit code = values ? CLI_OK : CLI_IO;
    for (int64_t at = 0; at < s->c->n && code == CLI_OK; at += PIECE) {
        int64_t n = s->c->n - at < PIECE ? s->c->n - at : PIECE;
        code = s->c->read(s->c->context, at, n, values);
        for (int64_t i = 0; i < n && code == CLI_OK; i++)
            code = take_value(s, at + i, values[i]);
    }
    free(values);
    return code;
}

/* ---- Results ---------------------------------------------------------------------------- */

static cli_exit fail_search(const search *s, const char *why)
{
    return cli_fail(CLI_USAGE, "%s=%.*s: %s", cli_show(s->c->name).text, s->w->size,
                    s->w->text, why);
}

/* Whether a range's first value is greater than its second, as usual for a falling coordinate. */
static bool is_backwards(const wanted *w, const coordinate *c)
{
    if (!w->is_range || !w->has_from || !w->has_until) return false;
    if (c->kind != COORDINATE_WHOLE)
        return w->until_is_open ? w->from.real >= w->until.real
                                : w->from.real > w->until.real;
    if (w->until_is_open && w->from.whole == w->until.whole && w->from.rest == w->until.rest)
        return true;
    return w->from.whole > w->until.whole ||
           (w->from.whole == w->until.whole && w->from.rest > w->until.rest);
}

static cli_exit answer_range(const search *s, selection_axis *out)
{
    char why[128];
    int64_t turn = s->falls > s->rises ? s->falls : s->rises;
    if (s->falls >= 0 && s->rises >= 0) {
        snprintf(why, sizeof why,
                 "the coordinate is not monotonic at item %lld: only single values can be "
                 "selected",
                 (long long)turn);
        return fail_search(s, why);
    }
    *out = (selection_axis){.step = 1, .start = s->first, .count = s->n_found};
    if (s->n_found == 0) out->start = 0;
    return CLI_OK;
}

static cli_exit answer_one(const search *s, bool nearest, selection_axis *out)
{
    char why[128];
    int64_t item = nearest ? s->nearest : s->first;
    if (s->c->n == 0) return fail_search(s, "the coordinate is empty");
    if (!nearest && s->n_found == 0)
        return fail_search(s, "no item has this value; --nearest selects the nearest one");
    if (!nearest && s->n_found > 1) {
        snprintf(why, sizeof why, "%lld items have this value, the first is %lld",
                 (long long)s->n_found, (long long)s->first);
        return fail_search(s, why);
    }
    *out = (selection_axis){.step = 1, .start = item, .count = 1, .dropped = true};
    return CLI_OK;
}

/* Exchanges the ends of a range. Parses both ends again, because a range extends to the end of the
 * later value, such as the end of its day. */
static cli_exit turn_round(const coordinate *c, const char *text, size_t size, wanted *w)
{
    const char *colon = NULL;
    for (size_t i = 0; i < size && !colon; i++) {
        wanted ignored = {0};
        if (text[i] == ':' && read_range(c, text, size, i, &ignored)) colon = text + i;
    }
    size_t first = (size_t)(colon - text);
    point ignored;
    (void)read_value(c, text, first, &ignored, &w->until);
    (void)read_value(c, colon + 1, size - first - 1, &w->from, &ignored);
    return CLI_OK;
}

static cli_exit search_for(const coordinate *c, const wanted *w, search *s)
{
    *s = (search){.c = c, .w = w, .falls = -1, .rises = -1, .nearest = -1};
    return walk(s);
}

cli_exit coordinate_match(const coordinate *c, const char *text, size_t size, bool nearest,
                          selection_axis *out)
{
    wanted w;
    search s;
    CLI_TRY(read_wanted(c, text, size, &w));
    bool backwards = is_backwards(&w, c);
    if (backwards) CLI_TRY(turn_round(c, text, size, &w));
    CLI_TRY(search_for(c, &w, &s));
    if (backwards && s.falls < 0)
        return fail_search(
            &s, "the first value is greater than the second, but the coordinate rises");
    return w.is_range ? answer_range(&s, out) : answer_one(&s, nearest, out);
}
