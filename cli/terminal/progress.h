/* A progress bar on stderr, drawn at most ten times a second, if stderr is a terminal. One bar at a
 * time; any thread may report progress. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli.h"

typedef struct progress {
    bool shown;
    bool hides_bytes; /* shows only the percentage */
    int listener;     /* file descriptor that gets the numbers; 0: none */
    int64_t total;    /* bytes; 0: unknown */
    int64_t done;
    int64_t base, share;          /* range of the current call: [base, base + share) */
    int64_t started, last_update; /* ms */
    int width;                    /* columns of the drawn line; 0: no line */
} progress;

/* Starts a bar. `total` is in bytes; 0 if unknown, or if reports of progress_of will set it. */
void progress_start(progress *bar, const cli_args *args, int64_t total);
void progress_step(progress *bar, int64_t done);
void progress_end(progress *bar); /* erases the line */

/* Until the next phase, maps the reports of progress_tell to [base, base + share). */
void progress_phase(progress *bar, int64_t base, int64_t share);

/* Starts a bar that shows the percentage, and that only progress_tell moves. */
void progress_start_telling(progress *bar, const cli_args *args);

/* Returns the time in milliseconds since some moment. */
int64_t progress_now(void);

/* Returns a caterva_progress whose reports move this bar and set its total. */
caterva_progress progress_of(progress *bar);

/* The caterva_progress.report of every handle: moves the current bar; returns 1 after a signal. */
int progress_tell(void *unused, int64_t done, int64_t total);

#endif
