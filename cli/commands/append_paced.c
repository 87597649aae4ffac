/* Room: cli/commands. `append --every` and `--follow`: one process, many commits. A reader that
 * refreshes sees each commit. A killed process loses only the items after the last commit. An
 * incomplete item stays in the buffer until its missing bytes arrive, and is never written. */
#include "commands/append.h"
#include "commands/timing.h"
#include "formats/numbers.h"
#include "terminal/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FOLLOWED_MS = 1000, /* pace of --follow without --every */
    LOOK_MS = 100       /* interval between checks for a signal */
};

typedef struct pacer {
    growth *g;
    const char *name;
    append_pace pace;
    int64_t appended; /* items appended but not committed */
    int64_t total;    /* items appended */
    double since;     /* time when the first uncommitted byte arrived, if any */
    uint8_t *bytes;   /* bytes received but not appended */
    size_t used, capacity;
} pacer;

/* ---- The pace -------------------------------------------------------------- */

static cli_exit parse_pace(const char *text, append_pace *out)
{
    const char *end = text;
    int64_t value;
    if (number_scan(&end, &value) && !*end && value > 0) {
        out->items = value;
        return CLI_OK;
    }
    if (number_time(text, &value) && value > 0) {
        out->milliseconds = value;
        return CLI_OK;
    }
    return cli_fail(CLI_USAGE,
                    "--every takes a number of items or a time such as 5s, not '%s'", text);
}

cli_exit append_pace_of(const cli_args *args, append_pace *out, bool *paced)
{
    *out = (append_pace){.milliseconds = -1};
    for (int i = 0; i < args->every.n; i++) CLI_TRY(parse_pace(args->every.text[i], out));
    *paced = args->follow || args->every.n > 0;
    if (args->follow && args->every.n == 0) out->milliseconds = FOLLOWED_MS;
    return CLI_OK;
}

/* ---- Commits ----------------------------------------------------------------- */

static bool has_something(const pacer *p)
{
    return p->appended > 0 || p->used >= (size_t)p->g->stride;
}

static int64_t milliseconds_left(const pacer *p)
{
    int64_t passed = (int64_t)(1000 * (timing_now() - p->since));
    return passed < p->pace.milliseconds ? p->pace.milliseconds - passed : 0;
}

static bool is_due(const pacer *p)
{
    if (p->pace.items > 0 && p->appended >= p->pace.items) return true;
    return p->pace.milliseconds >= 0 && has_something(p) && milliseconds_left(p) == 0;
}

static cli_exit commit(pacer *p)
{
    caterva_error err;
    if (cli_interrupted()) return CLI_INTERRUPTED;
    p->appended = 0;
    if (caterva_commit(p->g->array, &err) == CATERVA_OK) return CLI_OK;
    return cli_fail_array(p->g->path, &err);
}

/* Appends the whole items among the buffered bytes. */
static cli_exit append_whole(pacer *p)
{
    size_t rest = p->used % (size_t)p->g->stride, whole = p->used - rest;
    if (whole > 0) CLI_TRY(append_slab(p->g, p->name, p->bytes, whole));
    memmove(p->bytes, p->bytes + whole, rest);
    p->used = rest;
    p->appended += (int64_t)(whole / (size_t)p->g->stride);
    p->total += (int64_t)(whole / (size_t)p->g->stride);
    return CLI_OK;
}

/* ---- A stream ------------------------------------------------------------------ */

/* Returns the number of buffered bytes at which whole items are appended. They end at the end of a
 * chunk or at the next commit, and never exceed the capacity. */
static size_t bytes_wanted(const pacer *p)
{
    const growth *g = p->g;
    int64_t n = (int64_t)(p->capacity / (size_t)g->stride);
    if (n >= g->chunk) n -= g->shape.shape[g->axis] % g->chunk;
    if (p->pace.items > 0 && n > p->pace.items - p->appended) n = p->pace.items - p->appended;
    return (size_t)(n * g->stride);
}

/* Waits until bytes arrive, a commit is due or a signal came. */
static cli_exit wait_for_bytes(const pacer *p, int fd, bool *ready)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    *ready = false;
    while (!*ready && !is_due(p)) {
        int64_t wait = LOOK_MS;
        if (p->pace.milliseconds >= 0 && has_something(p) && milliseconds_left(p) < wait)
            wait = milliseconds_left(p);
        int n = poll(&wanted, 1, (int)wait);
        if (cli_interrupted()) return CLI_INTERRUPTED;
        if (n < 0 && errno != EINTR) return cli_fail_sys("cannot read %s", p->name);
        *ready = n > 0;
    }
    return CLI_OK;
}

static cli_exit take_bytes(pacer *p, int fd, bool *ended)
{
    size_t wanted = bytes_wanted(p);
    ssize_t n = read(fd, p->bytes + p->used, wanted - p->used);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return CLI_OK;
    if (n < 0) return cli_fail_sys("cannot read %s", p->name);
    if (!has_something(p)) p->since = timing_now();
    p->used += (size_t)n;
    *ended = n == 0;
    return p->used == wanted ? append_whole(p) : CLI_OK;
}

/* Called if the stream ends inside an item: commits the items before it, and returns a failure. */
static cli_exit keep_whole(pacer *p)
{
    CLI_TRY(commit(p));
    return cli_fail(
        CLI_CORRUPT,
        "%s ends inside an item of axis %d: %lld whole %s before it %s committed, "
        "%zu of its %lld bytes are left over",
        p->name, p->g->axis, (long long)p->total, p->total == 1 ? "item" : "items",
        p->total == 1 ? "is" : "are", p->used, (long long)p->g->stride);
}

static cli_exit follow(pacer *p, int fd)
{
    bool ended = false, ready;
    while (!ended) {
        CLI_TRY(wait_for_bytes(p, fd, &ready));
        if (ready) CLI_TRY(take_bytes(p, fd, &ended));
        if (!is_due(p)) continue;
        CLI_TRY(append_whole(p));
        CLI_TRY(commit(p));
    }
    CLI_TRY(append_whole(p));
    return p->used == 0 ? CLI_OK : keep_whole(p);
}

cli_exit append_stream(const cli_args *args, growth *g, int fd, const char *name,
                       const append_pace *pace)
{
    pacer p = {.g = g, .name = name, .pace = *pace};
    int64_t length, skipped;
    CLI_TRY(append_slab_length(args, g, &length));
    CLI_TRY(stream_discard(fd, name, args->offset, &skipped));
    p.capacity = (size_t)(length * g->stride);
    p.bytes = cli_alloc(p.capacity);
    cli_exit code = p.bytes ? follow(&p, fd) : CLI_IO;
    free(p.bytes);
    return code;
}

/* ---- An input with a known length ------------------------------------------------------- */

/* Returns the box of items [first, first + n) along the axis, with the axes of the input. */
static box box_of_items(const growth *g, const array_shape *in, int64_t first, int64_t n)
{
    box b = {0};
    for (int d = 0; d < in->ndim; d++) b.stop[d] = in->shape[d];
    if (in->ndim < g->shape.ndim) return b; /* the input is one item, without the axis */
    b.start[g->axis] = first;
    b.stop[g->axis] = first + n;
    return b;
}

cli_exit append_source(const cli_args *args, growth *g, source *from, int64_t n,
                       const append_pace *pace)
{
    pacer p = {.g = g, .name = g->path, .pace = *pace, .since = timing_now()};
    int64_t length;
    if (from->in_order && g->outer != 1)
        return cli_fail(CLI_UNSUPPORTED,
                        "items from a pipe can be committed along axis 0 only, not axis %d",
                        g->axis);
    if (g->stride == 0)
        return cli_fail(CLI_USAGE, "one step along axis %d has no items: nothing to commit",
                        g->axis);
    CLI_TRY(append_slab_length(args, g, &length));
    p.capacity = (size_t)(length * g->stride);
    p.bytes = cli_alloc(p.capacity);
    cli_exit code = p.bytes ? CLI_OK : CLI_IO;
    for (int64_t done = 0, step; code == CLI_OK && done < n; done += step) {
        size_t wanted = bytes_wanted(&p);
        step = (int64_t)wanted / g->stride;
        if (step > n - done) step = n - done;
        box b = box_of_items(g, &from->shape, done, step);
        if (p.appended == 0) p.since = timing_now();
        code = from->read(from, &b, p.bytes);
        p.used = (size_t)(step * g->stride);
        if (code == CLI_OK) code = append_whole(&p);
        if (code == CLI_OK && is_due(&p)) code = commit(&p);
        if (code == CLI_OK && cli_interrupted()) code = CLI_INTERRUPTED;
    }
    free(p.bytes);
    return code;
}
