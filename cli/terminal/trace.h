/* --trace: the requests that a URL takes, each a line on stderr. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <caterva.h>
#include <caterva_remote.h>

/* For on_request of caterva_remote_options; the context is not used. */
void trace_request(void *context, const caterva_transfer *transfer);

#endif
