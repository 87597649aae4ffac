/* Room: cli/terminal. Waits for an array that another process is writing. */
#include "cli.h"

#include <time.h>

enum { FIRST_PAUSE = 5, LONGEST_PAUSE = 250 }; /* milliseconds */

bool cli_try_again(const cli_args *args, caterva_status status, cli_patience *patience)
{
    int64_t left = args->wait - patience->waited;
    if (status != CATERVA_EBUSY || left <= 0 || cli_interrupted()) return false;
    int64_t pause = patience->waited < FIRST_PAUSE ? FIRST_PAUSE : patience->waited;
    if (pause > LONGEST_PAUSE) pause = LONGEST_PAUSE;
    if (pause > left) pause = left;
    struct timespec time = {pause / 1000, (long)(pause % 1000 * 1000000)};
    nanosleep(&time, NULL); /* ends early at a signal */
    patience->waited += pause;
    return !cli_interrupted();
}
