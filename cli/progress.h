/* A progress bar on stderr, drawn at most ten times a second, and only when
 * stderr is a terminal. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli.h"

typedef struct progress {
    bool shown;
    bool drawn;
    int64_t total;
    int64_t last_update; /* ms */
} progress;

void progress_start(progress *bar, const cli_args *args, int64_t total);
void progress_step(progress *bar, int64_t done);
void progress_end(progress *bar); /* wipes the line */

#endif
