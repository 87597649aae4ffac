/* Room: cli. The progress bar. Draws over its own line and wipes it at the end;
 * what it counts is the caller's business. Never draws where stderr is a file, so
 * that logs hold sentences only. */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH 40
#define UPDATE_MS 100

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void progress_start(progress *bar, const cli_args *args, int64_t total)
{
    *bar = (progress){.total = total};
    bar->shown = !args->no_progress && total > 0 && isatty(STDERR_FILENO);
    bar->last_update = now_ms(); /* work shorter than one update shows no bar */
}

void progress_step(progress *bar, int64_t done)
{
    if (!bar->shown) return;
    int64_t now = now_ms();
    if (now - bar->last_update < UPDATE_MS) return;
    bar->last_update = now;
    bar->drawn = true;
    double part = (double)done / (double)bar->total;
    int filled = (int)(part * BAR_WIDTH);
    char cells[BAR_WIDTH + 1];
    for (int i = 0; i < BAR_WIDTH; i++) cells[i] = i < filled ? '#' : '.';
    cells[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %3d%%", cells, (int)(part * 100));
    fflush(stderr);
}

void progress_end(progress *bar)
{
    if (bar->drawn) fprintf(stderr, "\r%*s\r", BAR_WIDTH + 8, "");
    bar->shown = bar->drawn = false;
}
