/* Room: cli/terminal. Prints one line for each request. Each line is a single call of fprintf,
 * because several threads print concurrently. */
#include "terminal/trace.h"

#include "cli.h"

#include <caterva_remote.h>
#include <inttypes.h>
#include <stdio.h>

void trace_request(void *context, const caterva_transfer *t)
{
    char range[64], more[64] = "";
    (void)context;
    if (t->first == UINT64_MAX)
        snprintf(range, sizeof range, "last %" PRIu64, t->size);
    else
        snprintf(range, sizeof range, "%" PRIu64 "+%" PRIu64, t->first, t->size);
    if (t->attempt > 1) snprintf(more, sizeof more, "  attempt %d", t->attempt);
    if (t->ranges > 1 && t->attempt == 1)
        snprintf(more, sizeof more, "  %d ranges joined", t->ranges);
    fprintf(stderr, "%s %s  %s  %d  %" PRIu64 " bytes  %.1f ms%s%s%s\n", t->method,
            cli_show(t->url).text, range, t->status, t->received,
            (double)t->nanoseconds / 1e6, more, t->error ? "  " : "",
            t->error ? cli_show(t->error).text : "");
}
