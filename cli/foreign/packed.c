/* Room: cli/foreign. Packed bytes at any position. One decoder moves forward; a point is a state
 * from which it can be started again: a position in the file, to the bit, and the 32 KiB of bytes
 * before it. Points also keep the running CRC-32, so the checksum of a gzip member is compared
 * whenever the decoder reaches its end, from whichever point it was started. */
#include "foreign/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define INPUT_SIZE 65536
#define WASTE_SIZE 65536
#define WINDOW_SIZE 32768
#define MAX_POINTS 1024
#define FIRST_SPAN ((int64_t)4 << 20)
#define MAX_RATIO 1032              /* of deflate: 258 bytes for two bits */
#define MAX_PIECE ((size_t)1 << 24) /* bytes between two checks for signals */

typedef struct point {
    int64_t out;     /* decoded bytes before it */
    int64_t in;      /* position in the file of the first byte of which all bits are unused */
    int bits;        /* unused bits of the byte before that */
    uint32_t crc;    /* of the member's bytes before it */
    int64_t member;  /* decoded bytes before the member */
    uint8_t *window; /* NULL: a member begins here */
    unsigned window_size;
} point;

struct packed {
    const char *path;
    int fd;
    packing how;
    int64_t start, stop;       /* of the stored bytes in the file */
    int64_t expected, checked; /* -1: not declared; bytes of which `running` is the CRC-32 */
    bool has_crc;
    uint32_t crc, running;

    z_stream z;
    bool is_ready;  /* z is initialised */
    bool in_member; /* otherwise the decoder stands between members */
    bool at_end;
    int64_t out, member; /* as in point, of the decoder */
    uint32_t member_crc;
    int64_t in; /* position in the file of the byte after `input` */
    point *points;
    size_t n_points;
    int64_t span; /* bytes between points, at least */
    uint8_t *input;
    uint8_t *waste; /* for bytes that are skipped; in the memory of `input` */
};

static cli_exit damaged(const packed *p, const char *what)
{
    return cli_fail(CLI_CORRUPT, "%s: %s", p->path, what);
}

static cli_exit ends_early(const packed *p)
{
    return damaged(p, "the file ends before its last item");
}

/* ---- Opening ---------------------------------------------------------------------------- */

cli_exit packed_open(const char *path, packing how, int64_t start, int64_t stored,
                     packed **out)
{
    struct stat st;
    packed *p = cli_alloc(sizeof *p);
    if (!p) return CLI_IO;
    *p = (packed){.path = path, .how = how, .start = start, .expected = -1};
    p->span = FIRST_SPAN;
    p->fd = open(path, O_RDONLY | O_CLOEXEC);
    cli_exit code = CLI_OK;
    if (p->fd < 0 || fstat(p->fd, &st) != 0) code = cli_fail_sys("cannot open %s", path);
    if (code == CLI_OK && !S_ISREG(st.st_mode))
        code = cli_fail(CLI_UNSUPPORTED, "%s is not a regular file", path);
    if (code == CLI_OK) {
        p->stop = stored < 0 || stored > st.st_size - start ? st.st_size : start + stored;
        p->input = cli_alloc(INPUT_SIZE + WASTE_SIZE);
        if (!p->input) code = CLI_IO;
    }
    if (code == CLI_OK) p->waste = p->input + INPUT_SIZE;
    if (code == CLI_OK)
        *out = p;
    else
        packed_close(p);
    return code;
}

void packed_close(packed *p)
{
    if (!p) return;
    if (p->is_ready) inflateEnd(&p->z);
    for (size_t i = 0; i < p->n_points; i++) free(p->points[i].window);
    free(p->points);
    free(p->input);
    if (p->fd >= 0) close(p->fd);
    free(p);
}

cli_exit packed_is_gzip(const char *path, bool *out)
{
    uint8_t head[2];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return cli_fail_sys("cannot open %s", path);
    *out = read(fd, head, 2) == 2 && head[0] == 0x1f && head[1] == 0x8b;
    close(fd);
    return CLI_OK;
}

int64_t packed_stored(const packed *p) { return p->stop - p->start; }

cli_exit packed_expect(packed *p, int64_t size)
{
    int64_t stored = p->stop > p->start ? p->stop - p->start : 0;
    int64_t most = p->how == PACKING_NONE           ? stored
                   : stored > INT64_MAX / MAX_RATIO ? INT64_MAX
                                                    : stored * MAX_RATIO;
    if (size > most)
        return cli_fail(CLI_CORRUPT, "%s: the items need %lld bytes, but the file has %lld%s",
                        p->path, (long long)size, (long long)stored,
                        p->how == PACKING_NONE ? "" : " packed ones");
    p->expected = size;
    return CLI_OK;
}

cli_exit packed_expect_crc(packed *p, int64_t size, uint32_t crc)
{
    p->has_crc = true;
    p->crc = crc;
    return packed_expect(p, size);
}

/* ---- Stored bytes ----------------------------------------------------------------------- */

static cli_exit read_file(const packed *p, uint8_t *dst, size_t size, int64_t at, size_t *got)
{
    *got = 0;
    while (*got < size) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        size_t want = size - *got < MAX_PIECE ? size - *got : MAX_PIECE;
        ssize_t n = pread(p->fd, dst + *got, want, at + (int64_t)*got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cli_fail_sys("cannot read %s", p->path);
        if (n == 0) break;
        *got += (size_t)n;
    }
    return CLI_OK;
}

static cli_exit read_stored(packed *p, uint8_t *dst, size_t size, int64_t position,
                            size_t *got)
{
    int64_t left = p->stop - p->start - position;
    if (left < 0) left = 0;
    if ((int64_t)size > left) size = (size_t)left;
    return read_file(p, dst, size, p->start + position, got);
}

/* ---- The decoder's input ---------------------------------------------------------------- */

/* Makes at least one byte of input available, if there is one. */
static cli_exit refill(packed *p)
{
    size_t got;
    int64_t left = p->stop - p->in;
    if (p->z.avail_in > 0 || left <= 0) return CLI_OK;
    CLI_TRY(
        read_file(p, p->input, left < INPUT_SIZE ? (size_t)left : INPUT_SIZE, p->in, &got));
    p->in += (int64_t)got;
    p->z.next_in = p->input;
    p->z.avail_in = (uInt)got;
    return CLI_OK;
}

/* Returns the next byte, or -1 at the end. Sets *code after a failure. */
static int next_byte(packed *p, cli_exit *code)
{
    if (*code == CLI_OK) *code = refill(p);
    if (*code != CLI_OK || p->z.avail_in == 0) return -1;
    p->z.avail_in--;
    return *p->z.next_in++;
}

/* Reads a little-endian number; *code becomes CLI_CORRUPT if the file ends. */
static uint32_t next_number(packed *p, int n_bytes, cli_exit *code)
{
    uint32_t number = 0;
    for (int i = 0; i < n_bytes; i++) {
        int byte = next_byte(p, code);
        if (byte < 0 && *code == CLI_OK) *code = ends_early(p);
        number |= (uint32_t)(byte & 255) << 8 * i;
    }
    return number;
}

static void skip_text(packed *p, cli_exit *code)
{
    while (*code == CLI_OK && next_number(p, 1, code) != 0) continue;
}

/* Skips the header of a gzip member. Sets at_end if none follows: zeros may stand after the last
 * member. */
static cli_exit skip_header(packed *p)
{
    enum { CHECKED = 2, EXTRA = 4, NAME = 8, COMMENT = 16, RESERVED = 0xE0 };
    cli_exit code = CLI_OK;
    int first = next_byte(p, &code);
    bool is_first = p->out == 0;
    while (first == 0 && !is_first) first = next_byte(p, &code);
    p->at_end = first < 0;
    if (p->at_end) return code;
    int second = next_byte(p, &code);
    if (code == CLI_OK && (first != 0x1f || second != 0x8b))
        return damaged(p, is_first ? "it is not a gzip file"
                                   : "other bytes follow those that gzip packed");
    uint32_t method = next_number(p, 1, &code), flags = next_number(p, 1, &code);
    if (code == CLI_OK && (method != 8 || flags & RESERVED))
        return damaged(p, "gzip packed it by a method that is not known");
    next_number(p, 4, &code); /* time */
    next_number(p, 2, &code); /* level and system */
    if (flags & EXTRA)
        for (uint32_t n = next_number(p, 2, &code); n > 0 && code == CLI_OK; n--)
            next_number(p, 1, &code);
    if (flags & NAME) skip_text(p, &code);
    if (flags & COMMENT) skip_text(p, &code);
    if (flags & CHECKED) next_number(p, 2, &code);
    return code;
}

static cli_exit check_trailer(packed *p)
{
    cli_exit code = CLI_OK;
    uint32_t crc = next_number(p, 4, &code), size = next_number(p, 4, &code);
    if (code == CLI_OK && (crc != p->member_crc || size != (uint32_t)(p->out - p->member)))
        return damaged(p, "the checksum of the packed bytes is wrong");
    return code;
}

/* ---- Points ----------------------------------------------------------------------------- */

/* Drops every second point but the first. */
static void thin(packed *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->n_points; i++)
        if (i % 2 == 0)
            p->points[kept++] = p->points[i];
        else
            free(p->points[i].window);
    p->n_points = kept;
    p->span *= 2;
}

/* Keeps the decoder's state if the last point is far enough behind. */
static cli_exit add_point(packed *p)
{
    if (p->n_points > 0 && p->out - p->points[p->n_points - 1].out < p->span) return CLI_OK;
    if (p->n_points == MAX_POINTS) thin(p);
    if (!p->points && !(p->points = cli_alloc(MAX_POINTS * sizeof *p->points))) return CLI_IO;
    point *new = &p->points[p->n_points];
    *new = (point){.out = p->out, .in = p->in - (int64_t)p->z.avail_in};
    new->member = p->member;
    new->crc = p->member_crc;
    if (p->in_member) {
        new->bits = p->z.data_type & 7;
        new->window = cli_alloc(WINDOW_SIZE);
        if (!new->window) return CLI_IO;
        inflateGetDictionary(&p->z, new->window, &new->window_size);
    }
    p->n_points++;
    return CLI_OK;
}

/* Starts the decoder at a point; NULL is the beginning. */
static cli_exit restart(packed *p, const point *from)
{
    static const point beginning = {0};
    if (!p->is_ready && inflateInit2(&p->z, -MAX_WBITS) != Z_OK)
        return cli_fail(CLI_IO, "out of memory");
    p->is_ready = true;
    if (inflateReset(&p->z) != Z_OK) return damaged(p, "the decoder cannot be restarted");
    p->in = from ? from->in : p->start;
    if (!from) from = &beginning;
    p->z.avail_in = 0;
    p->at_end = false;
    p->out = from->out;
    p->member = from->member;
    p->member_crc = from->crc;
    p->in_member = from->window;
    if (!p->in_member) return CLI_OK;
    if (from->bits) {
        uint8_t byte;
        size_t got;
        CLI_TRY(read_file(p, &byte, 1, p->in - 1, &got));
        if (got != 1) return ends_early(p);
        inflatePrime(&p->z, from->bits, byte >> (8 - from->bits));
    }
    inflateSetDictionary(&p->z, from->window, from->window_size);
    return CLI_OK;
}

/* Starts the decoder again if that is the shortest way to `position`. */
static cli_exit approach(packed *p, int64_t position)
{
    const point *best = NULL;
    for (size_t i = 0; i < p->n_points && p->points[i].out <= position; i++)
        best = &p->points[i];
    if (p->is_ready && p->out <= position && (!best || best->out <= p->out)) return CLI_OK;
    return restart(p, best);
}

/* ---- Decoding --------------------------------------------------------------------------- */

static cli_exit begin_member(packed *p)
{
    p->member = p->out;
    p->member_crc = (uint32_t)crc32(0, NULL, 0);
    CLI_TRY(add_point(p));
    if (p->how == PACKING_GZIP) CLI_TRY(skip_header(p));
    p->in_member = !p->at_end;
    return CLI_OK;
}

static cli_exit end_member(packed *p)
{
    p->in_member = false;
    if (p->how == PACKING_DEFLATE) {
        p->at_end = true;
        return CLI_OK;
    }
    CLI_TRY(check_trailer(p));
    return inflateReset(&p->z) == Z_OK ? CLI_OK
                                       : damaged(p, "the decoder cannot be restarted");
}

/* Decodes up to the end of a block of deflate, or `size` bytes. *got may be 0 before the end. */
static cli_exit step(packed *p, uint8_t *dst, size_t size, size_t *got)
{
    *got = 0;
    if (!p->in_member) return begin_member(p);
    CLI_TRY(refill(p));
    p->z.next_out = dst;
    p->z.avail_out = (uInt)(size < MAX_PIECE ? size : MAX_PIECE);
    int status = inflate(&p->z, Z_BLOCK);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        return damaged(p, "the packed bytes are damaged");
    if (status == Z_BUF_ERROR && p->z.avail_in == 0 && p->z.avail_out > 0)
        return ends_early(p);
    *got = (size_t)(p->z.next_out - dst);
    p->out += (int64_t)*got;
    p->member_crc = (uint32_t)crc32(p->member_crc, dst, (uInt)*got);
    if (status == Z_STREAM_END) return end_member(p);
    bool between_blocks = (p->z.data_type & 128) && !(p->z.data_type & 64);
    return between_blocks ? add_point(p) : CLI_OK;
}

static cli_exit decode(packed *p, uint8_t *dst, size_t size, int64_t position, size_t *got)
{
    size_t n;
    *got = 0;
    CLI_TRY(approach(p, position));
    while (p->out < position && !p->at_end) {
        int64_t left = position - p->out;
        CLI_TRY(step(p, p->waste, left < WASTE_SIZE ? (size_t)left : WASTE_SIZE, &n));
    }
    while (*got < size && !p->at_end) {
        CLI_TRY(step(p, dst + *got, size - *got, &n));
        *got += n;
    }
    return CLI_OK;
}

/* After the last expected byte, goes on to the end of the member, where its checksum is. Other
 * bytes may follow. */
static cli_exit verify_end(packed *p)
{
    uint8_t more;
    size_t got = 0;
    while (got == 0 && p->in_member && !p->at_end) CLI_TRY(step(p, &more, 1, &got));
    return CLI_OK;
}

/* ---- Reading ---------------------------------------------------------------------------- */

static cli_exit check_crc(packed *p, const uint8_t *bytes, size_t size, int64_t position)
{
    if (!p->has_crc || position != p->checked) return CLI_OK;
    p->checked += (int64_t)size;
    for (size_t n; size > 0; size -= n, bytes += n) {
        n = size < MAX_PIECE ? size : MAX_PIECE;
        p->running = (uint32_t)crc32(p->running, bytes, (uInt)n);
    }
    if (p->checked == p->expected && p->running != p->crc)
        return damaged(p, "the checksum of the packed bytes is wrong");
    return CLI_OK;
}

cli_exit packed_read_some(packed *p, void *dst, size_t size, int64_t position, size_t *got)
{
    if (p->how == PACKING_NONE)
        CLI_TRY(read_stored(p, dst, size, position, got));
    else
        CLI_TRY(decode(p, dst, size, position, got));
    if (p->how == PACKING_GZIP && position + (int64_t)*got == p->expected)
        CLI_TRY(verify_end(p));
    return check_crc(p, dst, *got, position);
}

cli_exit packed_read(packed *p, void *dst, size_t size, int64_t position)
{
    size_t got;
    CLI_TRY(packed_read_some(p, dst, size, position, &got));
    return got == size ? CLI_OK : ends_early(p);
}
