/* A progress bar on stderr, drawn at most ten times a second, and only when stderr is a
 * terminal. One at a time; it may be told of progress from any thread. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli.h"

typedef struct progress {
    bool shown;
    int64_t total; /* what is counted; 0: nobody knows */
    int64_t bytes; /* that the total stands for; 0: there are none to tell */
    int64_t done;
    int64_t base, share; /* what the call under way stands for: [base, base + share) */
    int64_t started, last_update; /* ms */
    int width;                    /* of the line that is drawn; 0: none */
} progress;

/* `bytes`: that `total` stands for, or 0. Without a total, `done` is bytes. */
void progress_start(progress *bar, const cli_args *args, int64_t total, int64_t bytes);
void progress_step(progress *bar, int64_t done);
void progress_end(progress *bar); /* wipes the line */

/* What progress_tell hears until the next phase stands for [base, base + share). */
void progress_phase(progress *bar, int64_t base, int64_t share);

/* A bar of what progress_tell hears, which counts whatever it does. */
void progress_start_telling(progress *bar, const cli_args *args);

/* The library's on_progress, for every handle: moves the bar that is shown, if any, and
 * says whether to stop. */
int progress_tell(void *unused, int64_t done, int64_t total);

#endif
