/* Any text as a URL: its pieces lie inside it, contain no line end and no end of a host, and
 * the displayed form fits. Any text as a file of profiles, too. */
#include "fuzz.h"

#include "remote/server.h"
#include "remote/http.h"

static void check_piece(const char *text, size_t size, const char *at, size_t piece)
{
    FUZZ_NEED(at >= text && at + piece <= text + size, "a piece outside of the URL");
}

static void check(const char *text, size_t size, const cv_url *u)
{
    char encoded[4096];
    check_piece(text, size, u->host, u->host_size);
    check_piece(text, size, u->path, u->path_size);
    FUZZ_NEED(u->host_size > 0 && u->port >= 0 && u->port <= 65535, "no host, or no port");
    for (size_t i = 0; i < u->host_size; i++)
        FUZZ_NEED(!strchr("/?#@\\ \r\n", u->host[i]), "a host with %d", u->host[i]);
    if (u->scheme != CV_SCHEME_S3)
        FUZZ_NEED(!strpbrk(text, " \r\n\t#\\"), "what is no URL was taken");
    if (u->query) check_piece(text, size, u->query, u->query_size);
    char *end = cv_url_encode(u->path, u->path_size, true, encoded, encoded + sizeof encoded);
    for (char *c = encoded; end && c < end; c++)
        FUZZ_NEED(*c > ' ' && *c < 0x7f && !strchr("?#", *c), "a path with %d", *c);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_alloc(size + 1);
    if (size > 0) memcpy(text, bytes, size);
    size_t length = strlen(text), value_size;
    cv_url url;
    cv_error error = {0};
    if (cv_url_parse(text, &url, &error) == CATERVA_OK)
        check(text, length, &url);
    else
        FUZZ_NEED(error.message[0], "a refusal without a sentence");
    FUZZ_NEED(strlen(cv_show_url(text).text) < sizeof(cv_shown_path), "too much is shown");
    const char *value = cv_profile_value(text, length, "default", "region", &value_size);
    if (value) check_piece(text, length, value, value_size);
    free(text);
    return 0;
}
