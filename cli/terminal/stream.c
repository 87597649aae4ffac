/* Room: cli/terminal. Sequential reading from files and pipes that may deliver any number of bytes
 * at a time. A signal ends a waiting read. Independent of formats. */
#include "terminal/stream.h"

#include "terminal/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* A slow disk reads this much in far less than a second. */
#define PIECE_SIZE ((size_t)4 << 20)

size_t stream_piece(size_t size) { return size < PIECE_SIZE ? size : PIECE_SIZE; }

#define FIRST_SIZE ((size_t)4096)

cli_exit stream_read(int fd, const char *path, void *dst, size_t size, size_t *got)
{
    uint8_t *at = dst;
    *got = 0;
    while (*got < size) {
        CLI_TRY(cli_wait(fd, false));
        ssize_t n = read(fd, at + *got, stream_piece(size - *got));
        if (n < 0 && errno == EINTR && !cli_interrupted()) continue;
        if (n < 0) return cli_fail_sys("cannot read %s", path);
        if (n == 0) break;
        *got += (size_t)n;
        progress_tell(NULL, (int64_t)*got, (int64_t)size);
    }
    return CLI_OK;
}

cli_exit stream_discard(int fd, const char *path, int64_t size, int64_t *got)
{
    uint8_t waste[4096];
    size_t n = 1;
    for (*got = 0; *got < size && n > 0; *got += (int64_t)n) {
        int64_t left = size - *got;
        size_t want = left < (int64_t)sizeof waste ? (size_t)left : sizeof waste;
        CLI_TRY(stream_read(fd, path, waste, want, &n));
    }
    return CLI_OK;
}

static cli_exit enlarge(char **text, size_t *capacity)
{
    size_t larger = *capacity ? *capacity * 2 : FIRST_SIZE;
    char *moved = realloc(*text, larger);
    if (!moved) return cli_fail(CLI_IO, "no memory for %zu bytes", larger);
    *text = moved;
    *capacity = larger;
    return CLI_OK;
}

static cli_exit read_input(size_t limit, char **text, size_t *size)
{
    size_t capacity = 0, got, want;
    *size = 0;
    do {
        if (*size > limit)
            return cli_fail(CLI_USAGE, "standard input has more than %zu bytes", limit);
        CLI_TRY(enlarge(text, &capacity));
        want = capacity - *size - 1;
        CLI_TRY(stream_read(STDIN_FILENO, "standard input", *text + *size, want, &got));
        *size += got;
    } while (got == want);
    (*text)[*size] = '\0';
    return CLI_OK;
}

cli_exit stream_read_input(size_t limit, char **out, size_t *size)
{
    *out = NULL;
    cli_exit code = read_input(limit, out, size);
    if (code == CLI_OK) return CLI_OK;
    free(*out);
    *out = NULL;
    return code;
}
