/* Room: cli/terminal. The progress bar. Redraws its own line and erases it at the end. Never draws
 * if stderr is not a terminal, so that logs hold only messages. Another program that runs this one
 * gets lines "<done> <total>", in bytes, from the file descriptor CATERVA_PROGRESS_FD instead; a
 * command that moves several arrays reports each from 0 on. */
#include "terminal/progress.h"
#include "formats/numbers.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR_WIDTH = 24, UPDATE_MS = 100, LINE_SIZE = 160, TEXT_SIZE = 80 };

/* The current bar. If another thread holds the lock, a report is skipped. */
static progress *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int64_t progress_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void progress_start(progress *bar, const cli_args *args, int64_t total)
{
    const char *listener = getenv("CATERVA_PROGRESS_FD");
    *bar = (progress){.total = total, .listener = listener ? atoi(listener) : 0};
    bar->shown = bar->listener > 0 || (!args->no_progress && isatty(STDERR_FILENO));
    bar->started = bar->last_update = progress_now(); /* short work shows no bar */
    if (bar->shown) current = bar;
}

/* ---- The line ---------------------------------------------------------------- */

/* Returns the number of columns to use: all but the last, where writing may scroll. */
static int columns(void)
{
    struct winsize window;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
    return known && window.ws_col < LINE_SIZE ? window.ws_col - 1 : LINE_SIZE - 1;
}

/* Appends `part` if the line still fits in `most` columns. */
static void put(char *line, int most, const char *part)
{
    size_t used = strlen(line), size = strlen(part);
    if (used + size <= (size_t)most) memcpy(line + used, part, size + 1);
}

static void put_cells(char *line, int most, double part)
{
    char cells[BAR_WIDTH + 3] = "[";
    int filled = (int)(part * (double)BAR_WIDTH);
    for (int i = 0; i < BAR_WIDTH; i++) cells[1 + i] = i < filled ? '#' : '.';
    cells[1 + BAR_WIDTH] = ']';
    if (most >= BAR_WIDTH + 7) put(line, most, cells); /* leaves room for the percentage */
}

static void put_time_left(char *line, int most, double seconds)
{
    char text[TEXT_SIZE];
    if (seconds > 1e6) return; /* no estimate yet */
    int left = (int)(seconds + 0.5), hours = left / 3600;
    if (hours > 0)
        snprintf(text, sizeof text, "  %d:%02d:%02d left", hours, left / 60 % 60, left % 60);
    else
        snprintf(text, sizeof text, "  %d:%02d left", left / 60, left % 60);
    put(line, most, text);
}

static void put_bytes(char *line, int most, double done, double total, double seconds)
{
    char text[TEXT_SIZE], number[NUMBER_TEXT_SIZE], whole[NUMBER_TEXT_SIZE];
    number_bytes((int64_t)done, number);
    if (total > 0)
        snprintf(text, sizeof text, "  %s of %s", number,
                 number_bytes((int64_t)total, whole));
    else
        snprintf(text, sizeof text, "%s", number);
    put(line, most, text);
    if (done <= 0 || seconds <= 0) return;
    snprintf(text, sizeof text, "  %s/s", number_bytes((int64_t)(done / seconds), number));
    put(line, most, text);
}

/* If the listener is gone, the program stops as after SIGTERM. */
static void tell_listener(const progress *bar)
{
    char line[64];
    int size = snprintf(line, sizeof line, "%lld %lld\n", (long long)bar->done,
                        (long long)bar->total);
    if (!bar->hides_bytes && write(bar->listener, line, (size_t)size) < 0)
        raise(SIGTERM);
}

static void draw(progress *bar, int64_t now)
{
    if (bar->listener > 0) {
        tell_listener(bar);
        return;
    }
    char line[LINE_SIZE] = "", percent[TEXT_SIZE];
    int most = columns();
    double part = bar->total > 0 ? (double)bar->done / (double)bar->total : 0;
    double seconds = (double)(now - bar->started) / 1000;
    if (bar->total > 0) {
        put_cells(line, most, part);
        snprintf(percent, sizeof percent, " %3d%%", (int)(part * 100));
        put(line, most, percent);
    }
    if (!bar->hides_bytes && (bar->done > 0 || bar->total == 0))
        put_bytes(line, most, (double)bar->done, (double)bar->total, seconds);
    if (part > 0) put_time_left(line, most, seconds * (1 - part) / part);
    int used = (int)strlen(line), old = bar->width < most ? bar->width : most;
    fprintf(stderr, "\r%s%*s", line, old > used ? old - used : 0, "");
    fflush(stderr);
    bar->width = used;
}

/* ---- Steps ------------------------------------------------------------------- */

/* Moves and redraws the bar. The caller holds the lock. */
static void step(progress *bar, int64_t done)
{
    if (done > bar->done) bar->done = done;
    int64_t now = progress_now();
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
    progress_start(bar, args, PARTS);
    bar->hides_bytes = true;
    progress_phase(bar, 0, PARTS);
}

static int follow(void *context, int64_t done, int64_t total)
{
    progress *bar = context;
    if (bar->shown && pthread_mutex_trylock(&lock) == 0) {
        bar->total = total;
        step(bar, done);
        pthread_mutex_unlock(&lock);
    }
    return cli_interrupted();
}

caterva_progress progress_of(progress *bar)
{
    return (caterva_progress){.report = follow, .context = bar};
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
    if (bar->listener > 0 && bar->shown) tell_listener(bar);
    if (bar->width > 0) fprintf(stderr, "\r%*s\r", bar->width, "");
    if (current == bar) current = NULL;
    bar->shown = false;
    bar->width = 0;
}
