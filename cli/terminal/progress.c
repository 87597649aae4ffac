/* Room: cli/terminal. The progress bar. Draws over its own line and wipes it at the end;
 * what it counts is the caller's business. Never draws where stderr is a file, so that logs
 * hold sentences only. */
#include "terminal/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { BAR_WIDTH = 24, UPDATE_MS = 100, LINE_SIZE = 160 };

/* The bar that is shown. Whoever finds the lock taken has nothing new to draw. */
static progress *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void progress_start(progress *bar, const cli_args *args, int64_t total, int64_t bytes)
{
    *bar = (progress){.total = total, .bytes = bytes};
    bar->shown = !args->no_progress && isatty(STDERR_FILENO);
    bar->started = bar->last_update = now_ms(); /* short work shows no bar */
    if (bar->shown) current = bar;
}

/* ---- The line ---------------------------------------------------------------- */

static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
enum { N_UNITS = sizeof units / sizeof units[0] };

static int unit_of(double bytes)
{
    int unit = 0;
    for (; bytes >= 1000 && unit < N_UNITS - 1; unit++) bytes /= 1000;
    return unit;
}

static double in_unit(double bytes, int unit)
{
    for (; unit > 0; unit--) bytes /= 1000;
    return bytes;
}

static int put_cells(char *line, double part)
{
    int filled = (int)(part * BAR_WIDTH);
    line[0] = '[';
    for (int i = 0; i < BAR_WIDTH; i++) line[1 + i] = i < filled ? '#' : '.';
    return 1 + BAR_WIDTH + snprintf(line + 1 + BAR_WIDTH, 16, "] %3d%%", (int)(part * 100));
}

static int put_bytes(char *line, size_t size, double done, double total)
{
    int unit = unit_of(total > done ? total : done), digits = unit > 0;
    if (total <= 0)
        return snprintf(line, size, "%.*f %s", digits, in_unit(done, unit), units[unit]);
    return snprintf(line, size, "  %.*f of %.*f %s", digits, in_unit(done, unit), digits,
                    in_unit(total, unit), units[unit]);
}

static int put_rate(char *line, size_t size, double rate)
{
    int unit = unit_of(rate);
    return snprintf(line, size, "  %.*f %s/s", unit > 0, in_unit(rate, unit), units[unit]);
}

static int put_time_left(char *line, size_t size, double seconds)
{
    if (seconds > 1e6) return 0; /* nobody knows */
    int left = (int)(seconds + 0.5), hours = left / 3600;
    if (hours > 0)
        return snprintf(line, size, "  %d:%02d:%02d left", hours, left / 60 % 60, left % 60);
    return snprintf(line, size, "  %d:%02d left", left / 60, left % 60);
}

static void draw(progress *bar, int64_t now)
{
    char line[LINE_SIZE];
    int used = 0;
    double part = bar->total > 0 ? (double)bar->done / (double)bar->total : 0;
    double seconds = (double)(now - bar->started) / 1000;
    double bytes = bar->total > 0 ? part * (double)bar->bytes : (double)bar->done;
    if (bar->total > 0) used = put_cells(line, part);
    if (bytes > 0 || bar->total == 0)
        used += put_bytes(line + used, LINE_SIZE - (size_t)used, bytes,
                          bar->total > 0 ? (double)bar->bytes : 0);
    if (bytes > 0 && seconds > 0)
        used += put_rate(line + used, LINE_SIZE - (size_t)used, bytes / seconds);
    if (part > 0)
        used +=
            put_time_left(line + used, LINE_SIZE - (size_t)used, seconds * (1 - part) / part);
    fprintf(stderr, "\r%s%*s", line, bar->width > used ? bar->width - used : 0, "");
    fflush(stderr);
    bar->width = used;
}

/* ---- Steps ------------------------------------------------------------------- */

/* With the lock. */
static void step(progress *bar, int64_t done)
{
    if (done > bar->done) bar->done = done;
    int64_t now = now_ms();
    if (now - bar->last_update < UPDATE_MS) return;
    bar->last_update = now;
    draw(bar, now);
}

void progress_step(progress *bar, int64_t done)
{
    if (!bar->shown || pthread_mutex_trylock(&lock) != 0) return;
    step(bar, done);
    pthread_mutex_unlock(&lock);
}

void progress_phase(progress *bar, int64_t base, int64_t share)
{
    if (!bar->shown) return;
    pthread_mutex_lock(&lock);
    bar->base = base;
    bar->share = share;
    step(bar, base);
    pthread_mutex_unlock(&lock);
}

void progress_start_telling(progress *bar, const cli_args *args)
{
    enum { PARTS = 10000 };
    progress_start(bar, args, PARTS, 0);
    progress_phase(bar, 0, PARTS);
}

int progress_tell(void *unused, int64_t done, int64_t total)
{
    (void)unused;
    if (current && pthread_mutex_trylock(&lock) == 0) {
        double part = total > 0 ? (double)done / (double)total : 0;
        step(current, current->base + (int64_t)(part * (double)current->share));
        pthread_mutex_unlock(&lock);
    }
    return cli_interrupted();
}

void progress_end(progress *bar)
{
    if (bar->width > 0) fprintf(stderr, "\r%*s\r", bar->width, "");
    if (current == bar) current = NULL;
    bar->shown = false;
    bar->width = 0;
}
