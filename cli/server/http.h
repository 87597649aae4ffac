/* The HTTP server. */
#ifndef CLI_HTTP_H
#define CLI_HTTP_H

#include "server/answer.h"

typedef struct http_options {
    const char *address; /* "127.0.0.1", "::1", a name */
    int port;            /* 0: any free one */
} http_options;

/* Serves until a signal arrives (CLI_OK), and prints the URL when it is ready. CLI_UNSUPPORTED in a
 * build without the server. */
cli_exit http_serve(answerer *a, const http_options *options, size_t n_items);

#endif
