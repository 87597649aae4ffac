/* Room: cli/foreign. Spools, and zlib as a filter before an output file. */
#include "foreign/packer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)1 << 18)
#define PIECE ((size_t)1 << 20)
#define LEVEL 4 /* twice as fast as 6, and images become at most 2 % larger */

/* ---- Spools ----------------------------------------------------------------------------- */

cli_exit spool_open(spool *s, const char *beside)
{
    bool standard = !beside || strcmp(beside, "-") == 0;
    const char *slash = standard ? NULL : strrchr(beside, '/');
    int folder = slash ? (int)(slash - beside) + 1 : 0;
    size_t size = (size_t)folder + 32;
    char *name = cli_alloc(size);
    s->fd = -1;
    if (!name) return CLI_IO;
    snprintf(name, size, "%.*s.caterva-XXXXXX", folder, standard ? "" : beside);
    if (standard) snprintf(name, size, "/tmp/caterva-XXXXXX");
    cli_exit code = CLI_OK;
    s->fd = mkstemp(name);
    if (s->fd < 0)
        code = cli_fail_sys("cannot make a temporary file for %s",
                            standard ? "the output" : beside);
    else
        unlink(name);
    free(name);
    return code;
}

void spool_close(spool *s)
{
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

cli_exit spool_put(void *s, const void *bytes, size_t size, int64_t position)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        ssize_t n = pwrite(((spool *)s)->fd, at, size < PIECE ? size : PIECE, position);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cli_fail_sys("cannot write a temporary file");
        at += n;
        position += n;
        size -= (size_t)n;
    }
    return CLI_OK;
}

/* Reads bytes; those after the end are zeros. */
static cli_exit spool_get(const spool *s, uint8_t *dst, size_t size, int64_t position)
{
    while (size > 0) {
        ssize_t n = pread(s->fd, dst, size, position);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cli_fail_sys("cannot read a temporary file");
        if (n == 0) {
            memset(dst, 0, size);
            n = (ssize_t)size;
        }
        dst += n;
        position += n;
        size -= (size_t)n;
    }
    return CLI_OK;
}

/* ---- Packers ---------------------------------------------------------------------------- */

cli_exit packer_begin(packer *p, output *out, packing how)
{
    *p = (packer){.out = out, .how = how, .crc = (uint32_t)crc32(0, NULL, 0)};
    p->buffer = cli_alloc(BUFFER_SIZE);
    if (!p->buffer) return CLI_IO;
    int window = how == PACKING_GZIP ? MAX_WBITS + 16 : -MAX_WBITS;
    if (how != PACKING_NONE &&
        deflateInit2(&p->z, LEVEL, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(p->buffer);
        *p = (packer){0};
        return cli_fail(CLI_IO, "out of memory");
    }
    return CLI_OK;
}

/* Packs the input of `z`, with Z_FINISH all of it. */
static cli_exit pump(packer *p, int flush)
{
    int status;
    do {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        p->z.next_out = p->buffer;
        p->z.avail_out = (uInt)BUFFER_SIZE;
        status = deflate(&p->z, flush);
        size_t size = BUFFER_SIZE - p->z.avail_out;
        CLI_TRY(output_write(p->out, p->buffer, size));
        p->packed += (int64_t)size;
    } while (p->z.avail_out == 0 || (flush == Z_FINISH && status != Z_STREAM_END));
    return CLI_OK;
}

cli_exit packer_write(packer *p, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t n; size > 0; size -= n, at += n) {
        n = size < PIECE ? size : PIECE;
        p->crc = (uint32_t)crc32(p->crc, at, (uInt)n);
        if (p->how == PACKING_NONE) {
            CLI_TRY(output_write(p->out, at, n));
            p->packed += (int64_t)n;
            continue;
        }
        p->z.next_in = (Bytef *)(uintptr_t)at;
        p->z.avail_in = (uInt)n;
        CLI_TRY(pump(p, Z_NO_FLUSH));
    }
    return CLI_OK;
}

cli_exit packer_write_spool(packer *p, const spool *s, int64_t position, int64_t size)
{
    uint8_t *piece = cli_alloc(PIECE);
    cli_exit code = piece ? CLI_OK : CLI_IO;
    while (code == CLI_OK && size > 0) {
        size_t n = size < (int64_t)PIECE ? (size_t)size : PIECE;
        code = spool_get(s, piece, n, position);
        if (code == CLI_OK) code = packer_write(p, piece, n);
        position += (int64_t)n;
        size -= (int64_t)n;
    }
    free(piece);
    return code;
}

cli_exit packer_end(packer *p, cli_exit code)
{
    if (p->how != PACKING_NONE && p->buffer) {
        p->z.avail_in = 0;
        if (code == CLI_OK) code = pump(p, Z_FINISH);
        deflateEnd(&p->z);
    }
    free(p->buffer);
    p->buffer = NULL;
    return code;
}
