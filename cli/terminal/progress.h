/* A progress bar on stderr, drawn at most ten times a second, and only when stderr is a
 * terminal. One at a time; it may be told of progress from any thread. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli.h"

typedef struct progress {
    bool shown;
    bool hides_bytes; /* what is counted says little: only its share is shown */
    int64_t total;    /* bytes; 0: unknown */
    int64_t done;
    int64_t base, share; /* what the call under way stands for: [base, base + share) */
    int64_t started, last_update; /* ms */
    int width;                    /* of the line that is drawn; 0: none */
} progress;

/* `total`: bytes, or 0 if it is not known, or progress_follow will set it. */
void progress_start(progress *bar, const cli_args *args, int64_t total);
void progress_step(progress *bar, int64_t done);
void progress_end(progress *bar); /* wipes the line */

/* What handles report until the next phase stands for [base, base + share). */
void progress_phase(progress *bar, int64_t base, int64_t share);

/* A bar of what handles report. */
void progress_start_telling(progress *bar, const cli_args *args);

/* The progress of a call that the bar follows. */
caterva_progress progress_of(progress *bar);

/* The caterva_progress.report of every handle: moves the bar that is shown, if any, and says
 * whether to stop. */
int progress_tell(void *unused, int64_t done, int64_t total);

#endif
