/* Room: cli/server. Instead of http.c in a build without the server. */
#include "server/http.h"

cli_exit http_serve(answerer *a, const http_options *options, size_t n_items)
{
    (void)a;
    (void)options;
    (void)n_items;
    return cli_fail(CLI_UNSUPPORTED, "this program was built without the server, "
                                     "which needs libmicrohttpd");
}
