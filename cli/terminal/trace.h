/* --trace: prints the requests for a URL to stderr, one line each. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <caterva.h>
#include <caterva_remote.h>

/* For on_request of caterva_remote_options; ignores the context. */
void trace_request(void *context, const caterva_transfer *transfer);

#endif
