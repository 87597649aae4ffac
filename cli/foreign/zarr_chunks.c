/* Room: cli/foreign. Reads and decodes chunks of Zarr arrays, and those that can move as they are.
 * Formats: https://zarr-specs.readthedocs.io (codecs, sharding). */
#include "foreign/zarr_chunks.h"

#include "formats/strided.h"

#include <blosc2.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#ifdef CATERVA_ZSTD
#include <zstd.h>
#endif

#define MISSING UINT64_MAX         /* of entries in the index of a shard */
#define MEMORY (INT64_C(64) << 20) /* of all threads that decode */
enum { MAX_THREADS = 64 };

/* ---- Failures --------------------------------------------------------------------------- */

/* Whether one of the threads that decode has reported a failure: the others then do not. */
static atomic_bool was_reported;

void zarr_begin(void) { atomic_store(&was_reported, false); }

static CLI_PRINTF(2, 3) cli_exit fail_once(cli_exit code, const char *fmt, ...)
{
    char sentence[PATH_MAX + 200];
    va_list arguments;
    if (atomic_exchange(&was_reported, true)) return code;
    va_start(arguments, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, arguments);
    va_end(arguments);
    return cli_fail(code, "%s", sentence);
}

/* ---- Files ------------------------------------------------------------------------------ */

cli_exit zarr_read_file(const char *path, int64_t at, int64_t size, uint8_t **bytes,
                        int64_t *got)
{
    struct stat st;
    *bytes = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return CLI_OK;
    if (fd < 0 || fstat(fd, &st) != 0) {
        cli_exit code = cli_fail_sys("cannot read %s", path);
        if (fd >= 0) close(fd);
        return code;
    }
    if (at < 0) at += st.st_size;
    if (size < 0) size = st.st_size;
    if (at < 0 || size > st.st_size - at || size > 2 * MAX_CHUNK) {
        close(fd);
        return fail_once(CLI_CORRUPT, "%s is shorter than its index says", path);
    }
    uint8_t *room = cli_alloc((size_t)size);
    cli_exit code = room ? CLI_OK : CLI_IO;
    for (int64_t done = 0; code == CLI_OK && done < size;) {
        ssize_t n = pread(fd, room + done, (size_t)(size - done), at + done);
        if (n < 0) code = cli_fail_sys("cannot read %s", path);
        if (n == 0) code = fail_once(CLI_CORRUPT, "%s ends early", path);
        done += n;
    }
    close(fd);
    if (code == CLI_OK) *bytes = room;
    if (code != CLI_OK) free(room);
    *got = size;
    return code;
}

/* ---- Decoding --------------------------------------------------------------------------- */

/* Each decoder replaces *bytes, which it frees, by `room` bytes at most. */
typedef struct buffer {
    uint8_t *bytes;
    int64_t size;
} buffer;

static cli_exit take(buffer *b, uint8_t *bytes, int64_t size)
{
    free(b->bytes);
    *b = (buffer){bytes, size};
    return bytes ? CLI_OK : CLI_IO;
}

static cli_exit damaged(const char *path, const char *name)
{
    return fail_once(CLI_CORRUPT, "%s: the bytes are not what the codec %s writes", path, name);
}

static cli_exit decode_blosc(const char *path, buffer *b, int64_t room)
{
    int32_t size, stored, block;
    if (b->size < BLOSC_MIN_HEADER_LENGTH || b->size > INT32_MAX ||
        blosc2_cbuffer_sizes(b->bytes, &size, &stored, &block) < 0 || stored != b->size ||
        size < 0 || size > room)
        return damaged(path, "blosc");
    uint8_t *items = cli_alloc((size_t)size + 1);
    if (!items) return CLI_IO;
    blosc2_dparams params = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_context *context = blosc2_create_dctx(params);
    int got = context ? blosc2_decompress_ctx(context, b->bytes, stored, items, size) : -1;
    blosc2_free_ctx(context);
    cli_exit code = take(b, items, size);
    return got == size ? code : damaged(path, "blosc");
}

/* Decodes gzip and zlib, of which zlib recognizes each. */
static cli_exit decode_deflate(const char *path, buffer *b, int64_t room)
{
    z_stream z = {.next_in = b->bytes, .avail_in = (uInt)b->size};
    uint8_t *items = cli_alloc((size_t)room + 1);
    if (!items) return CLI_IO;
    z.next_out = items;
    z.avail_out = (uInt)room + 1; /* one more byte shows that there is too much */
    int status = inflateInit2(&z, 15 + 32);
    if (status == Z_OK) status = inflate(&z, Z_FINISH);
    int64_t size = (int64_t)z.total_out;
    (void)inflateEnd(&z);
    cli_exit code = take(b, items, size);
    return status == Z_STREAM_END && size <= room ? code : damaged(path, "gzip");
}

static cli_exit decode_zstd(const char *path, buffer *b, int64_t room)
{
#ifdef CATERVA_ZSTD
    uint8_t *items = cli_alloc((size_t)room + 1);
    if (!items) return CLI_IO;
    size_t size = ZSTD_decompress(items, (size_t)room, b->bytes, (size_t)b->size);
    bool failed = ZSTD_isError(size) != 0;
    cli_exit code = take(b, items, failed ? 0 : (int64_t)size);
    return failed ? damaged(path, "zstd") : code;
#else
    (void)b, (void)room;
    return fail_once(CLI_UNSUPPORTED, "%s: this caterva was built without zstd", path);
#endif
}

static uint32_t crc_table[256];

static void make_crc_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ UINT32_C(0x82f63b78) : c >> 1;
        crc_table[i] = c;
    }
}

/* CRC-32C (Castagnoli), as in RFC 3720. */
static uint32_t crc32c(const uint8_t *bytes, int64_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_crc_table);
    uint32_t crc = UINT32_MAX;
    for (int64_t i = 0; i < size; i++) crc = crc >> 8 ^ crc_table[(crc ^ bytes[i]) & 255];
    return ~crc;
}

static uint32_t load32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static void store32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

uint64_t zarr_load64(const uint8_t *at) { return load32(at) | (uint64_t)load32(at + 4) << 32; }

static cli_exit check_crc(const char *path, buffer *b)
{
    if (b->size >= 4 && load32(b->bytes + b->size - 4) == crc32c(b->bytes, b->size - 4)) {
        b->size -= 4;
        return CLI_OK;
    }
    return fail_once(CLI_CORRUPT, "%s: a checksum is wrong", path);
}

/* Decodes to exactly `size` bytes. */
static cli_exit decode(const char *path, const pipeline *p, buffer *b, int64_t size)
{
    for (int i = p->n - 1; i >= 0; i--) {
        int64_t room = i == 0 ? size : MAX_CHUNK - 1; /* of checksums before other codecs too */
        if (i > 0 && p->codecs[i - 1] == CODEC_CRC32C && i == 1) room = size + 4;
        switch (p->codecs[i]) {
        case CODEC_BLOSC: CLI_TRY(decode_blosc(path, b, room)); break;
        case CODEC_ZSTD: CLI_TRY(decode_zstd(path, b, room)); break;
        case CODEC_GZIP:
        case CODEC_ZLIB: CLI_TRY(decode_deflate(path, b, room)); break;
        case CODEC_CRC32C: CLI_TRY(check_crc(path, b)); break;
        }
    }
    if (b->size == size) return CLI_OK;
    return fail_once(CLI_CORRUPT, "%s has %lld bytes of items, but a chunk has %lld", path,
                    (long long)b->size, (long long)size);
}

/* ---- Chunks ----------------------------------------------------------------------------- */

/* Returns the path of a chunk's file, to be freed. */
static char *chunk_path(const zarr_array *a, int ndim, const int64_t *index)
{
    size_t size = strlen(a->folder) + 8 + 21 * (size_t)(ndim + 1);
    char *path = cli_alloc(size);
    if (!path) return NULL;
    size_t used = (size_t)snprintf(path, size, "%s/%s", a->folder, a->prefix);
    if (ndim == 0 && !*a->prefix) used += (size_t)snprintf(path + used, size - used, "0");
    for (int d = 0; d < ndim; d++) {
        if (d > 0 || *a->prefix) path[used++] = a->separator;
        used += (size_t)snprintf(path + used, size - used, "%lld", (long long)index[d]);
    }
    path[used] = '\0';
    return path;
}

/* Reads the index of a shard, unless it is the last one read. The caller has the lock. */
static cli_exit read_index(zarr_array *a, const foreign_node *node, const char *path,
                           const int64_t *shard)
{
    int64_t n = 1;
    buffer b;
    if (a->shard_at[0] >= 0 && memcmp(a->shard_at, shard, sizeof a->shard_at) == 0)
        return CLI_OK;
    free(a->entries);
    a->entries = NULL;
    a->shard_at[0] = -1;
    for (int d = 0; d < node->ndim; d++) n *= a->shard_shape[d] / node->chunk_shape[d];
    int64_t size = 16 * n, stored = size + (a->index.n > 0 ? 4 : 0);
    CLI_TRY(zarr_read_file(path, a->index_first ? 0 : -stored, stored, &b.bytes, &b.size));
    memcpy(a->shard_at, shard, sizeof a->shard_at);
    if (!b.bytes) return CLI_OK; /* the shard does not exist */
    cli_exit code = decode(path, &a->index, &b, size);
    a->entries = code == CLI_OK ? cli_alloc((size_t)size) : NULL;
    for (int64_t i = 0; a->entries && i < 2 * n; i++) a->entries[i] = zarr_load64(b.bytes + 8 * i);
    free(b.bytes);
    if (!a->entries) a->shard_at[0] = -1;
    return a->entries ? CLI_OK : code == CLI_OK ? CLI_IO : code;
}

/* Reads a chunk as it is stored; b->bytes is NULL if it does not exist. `index` counts chunks. */
static cli_exit read_chunk_bytes(zarr_array *a, const foreign_node *node, const int64_t *index,
                                 char **path, buffer *b)
{
    int64_t shard[CATERVA_MAX_DIMS] = {0}, inside = 0;
    b->bytes = NULL;
    for (int d = 0; d < node->ndim; d++) {
        int64_t per = a->sharded ? a->shard_shape[d] / node->chunk_shape[d] : 1;
        shard[d] = index[d] / per;
        inside = inside * per + index[d] % per;
    }
    *path = chunk_path(a, node->ndim, shard);
    if (!*path) return CLI_IO;
    if (!a->sharded) return zarr_read_file(*path, 0, -1, &b->bytes, &b->size);
    pthread_mutex_lock(&a->lock);
    cli_exit code = read_index(a, node, *path, shard);
    uint64_t at = a->entries ? a->entries[2 * inside] : MISSING;
    uint64_t size = a->entries ? a->entries[2 * inside + 1] : 0;
    pthread_mutex_unlock(&a->lock);
    if (code != CLI_OK || at == MISSING) return code;
    if (at > INT64_MAX || size > INT64_MAX)
        return fail_once(CLI_CORRUPT, "%s: the index is damaged", *path);
    return zarr_read_file(*path, (int64_t)at, (int64_t)size, &b->bytes, &b->size);
}

/* Puts the axes of a decoded chunk in the order of the array. */
static cli_exit reorder(const zarr_array *a, const foreign_node *node, buffer *b)
{
    strided_copy copy = {.ndim = node->ndim, .item_size = node->item_size};
    int64_t src = node->item_size, dst = src;
    uint8_t *items = cli_alloc((size_t)b->size);
    if (!items) return CLI_IO;
    for (int d = node->ndim - 1; d >= 0; d--) {
        copy.counts[d] = node->chunk_shape[d];
        copy.dst_strides[d] = dst;
        dst *= node->chunk_shape[d];
        int axis = a->chunk.order[d]; /* stored axis d is this axis of the array */
        copy.src_strides[axis] = src;
        src *= node->chunk_shape[axis];
    }
    strided_copy_run(&copy, b->bytes, items);
    return take(b, items, b->size);
}

/* Decodes a chunk, unless `c` is it already. */
static cli_exit load_chunk(zarr_array *a, const foreign_node *node, const int64_t *index,
                           decoded *c)
{
    buffer b = {NULL, 0};
    char *path = NULL;
    if (c->at[0] >= 0 && memcmp(c->at, index, sizeof c->at) == 0) return CLI_OK;
    free(c->items);
    *c = (decoded){.at = {-1}};
    cli_exit code = read_chunk_bytes(a, node, index, &path, &b);
    if (code == CLI_OK && b.bytes) code = decode(path, &a->chunk, &b, a->chunk_size);
    if (code == CLI_OK && b.bytes && a->chunk.reordered) code = reorder(a, node, &b);
    free(path);
    if (code != CLI_OK) {
        free(b.bytes);
        return code;
    }
    c->items = b.bytes;
    c->missing = !b.bytes;
    memcpy(c->at, index, sizeof c->at);
    return CLI_OK;
}

/* A box that is being read. Threads take its chunks in C order. */
typedef struct task {
    const foreign_node *node;
    const int64_t *start, *stop;
    uint8_t *dst;
    pthread_mutex_t lock; /* of the members below */
    int64_t next[CATERVA_MAX_DIMS];
    bool done;
    cli_exit code;
} task;

/* Copies the part of a chunk that is in the box. */
static void copy_part(const task *t, const decoded *c)
{
    const foreign_node *node = t->node;
    strided_copy copy = {.ndim = node->ndim, .item_size = node->item_size};
    int64_t src = node->item_size, to = src, from_at = 0, to_at = 0;
    for (int d = node->ndim - 1; d >= 0; d--) {
        int64_t length = node->chunk_shape[d], first = c->at[d] * length, last = first + length;
        if (first < t->start[d]) first = t->start[d];
        if (last > t->stop[d]) last = t->stop[d];
        copy.counts[d] = last - first;
        copy.src_strides[d] = c->missing ? 0 : src;
        copy.dst_strides[d] = to;
        from_at += c->missing ? 0 : (first - c->at[d] * length) * src;
        to_at += (first - t->start[d]) * to;
        src *= length;
        to *= t->stop[d] - t->start[d];
    }
    strided_copy_run(&copy, c->missing ? node->fill : c->items + from_at, t->dst + to_at);
}

/* Takes the next chunk; false after the last, and after a failure. */
static bool take_next(task *t, int64_t *index)
{
    const foreign_node *node = t->node;
    pthread_mutex_lock(&t->lock);
    if (t->code == CLI_OK && cli_interrupted()) t->code = CLI_INTERRUPTED;
    bool is_there = !t->done && t->code == CLI_OK;
    memcpy(index, t->next, sizeof t->next);
    int d = node->ndim - 1;
    for (; d >= 0; d--) {
        if (++t->next[d] * node->chunk_shape[d] < t->stop[d]) break;
        t->next[d] = t->start[d] / node->chunk_shape[d];
    }
    t->done = t->done || d < 0;
    pthread_mutex_unlock(&t->lock);
    return is_there;
}

static void read_chunks(task *t, decoded *c)
{
    int64_t index[CATERVA_MAX_DIMS];
    while (take_next(t, index)) {
        cli_exit code = load_chunk(t->node->own, t->node, index, c);
        if (code == CLI_OK) {
            copy_part(t, c);
            continue;
        }
        pthread_mutex_lock(&t->lock);
        t->code = code;
        pthread_mutex_unlock(&t->lock);
    }
}

static void *read_in_thread(void *own)
{
    decoded c = {.at = {-1}};
    read_chunks(own, &c);
    free(c.items);
    return NULL;
}

/* Returns how many threads share the chunks of a box. */
static int threads_for(const task *t, int most)
{
    const zarr_array *a = t->node->own;
    int64_t n = most > 0 ? most : sysconf(_SC_NPROCESSORS_ONLN), chunks = 1;
    int64_t room = MEMORY / (3 * a->chunk_size + 1);
    for (int d = 0; d < t->node->ndim && chunks < MAX_THREADS; d++)
        chunks *= (t->stop[d] - 1) / t->node->chunk_shape[d] - t->next[d] + 1;
    if (n > MAX_THREADS) n = MAX_THREADS;
    if (n > chunks) n = chunks;
    return (int)(n < room ? n : room);
}

/* The file's `own` is the one array that is open. */
static cli_exit read_own(foreign_file *self, const foreign_node *node, const int64_t *start,
                         const int64_t *stop, void *dst)
{
    zarr_array *a = node->own, *before = self->own;
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_error err;
    size_t size = (size_t)node->item_size;
    for (int d = 0; d < node->ndim; d++) size *= (size_t)(stop[d] - start[d]);
    if (before != a && before) {
        caterva_discard(before->frame);
        before->frame = NULL;
    }
    self->own = a;
    options.threads = self->threads;
    if (!a->frame && caterva_open(a->folder, &options, &a->frame, &err) != CATERVA_OK)
        return cli_fail_array(a->folder, &err);
    return caterva_read(a->frame, start, stop, dst, size, &err) == CATERVA_OK
               ? CLI_OK
               : cli_fail_array(a->folder, &err);
}

cli_exit zarr_read_items(foreign_file *self, const foreign_node *node, const int64_t *start,
                         const int64_t *stop, void *dst)
{
    zarr_array *a = node->own;
    pthread_t others[MAX_THREADS];
    int n = 0;
    task t = {.node = node, .start = start, .stop = stop, .dst = dst,
              .lock = PTHREAD_MUTEX_INITIALIZER};
    for (int d = 0; d < node->ndim; d++) t.next[d] = start[d] / node->chunk_shape[d];
    if (a->is_own) return read_own(self, node, start, stop, dst);
    zarr_begin();
    int threads = threads_for(&t, self->threads);
    while (n < threads - 1 && pthread_create(&others[n], NULL, read_in_thread, &t) == 0) n++;
    read_chunks(&t, &a->last);
    for (int i = 0; i < n; i++) pthread_join(others[i], NULL);
    pthread_mutex_destroy(&t.lock);
    return t.code;
}

bool zarr_is_fill(foreign_file *self, const foreign_node *node, const int64_t *start,
                  const int64_t *stop)
{
    (void)self;
    const zarr_array *a = node->own;
    int64_t index[CATERVA_MAX_DIMS] = {0};
    if (a->is_empty) return true;
    if (a->sharded) return false;
    for (int d = 0; d < node->ndim; d++) index[d] = start[d] / node->chunk_shape[d];
    for (int d = 0; d >= 0;) {
        char *path = chunk_path(a, node->ndim, index);
        bool exists = !path || access(path, F_OK) == 0;
        free(path);
        if (exists) return false;
        for (d = node->ndim - 1; d >= 0; d--) {
            if (++index[d] * node->chunk_shape[d] < stop[d]) break;
            index[d] = start[d] / node->chunk_shape[d];
        }
    }
    return true;
}

/* ---- Chunks that move ------------------------------------------------------------------- */

/* A buffer of Blosc 1 is a Blosc2 chunk with a shorter header. It can move if its blocks, which are
 * runs of bytes, are also boxes of the chunk: some rows or slabs of it. */
enum { BLOSC1_HEADER = 16, BLOSC2_HEADER = 32, MAX_MOVED_BLOCK = 1 << 20 };
enum { SHUFFLED = 1, STORED = 2, BITSHUFFLED = 4, NOT_SPLIT = 16, SNAPPY = 2 };

/* Whether the header is of Blosc 1, and describes a chunk of blocks that Blosc2 reads equally. */
static bool is_movable(const uint8_t *header, const foreign_node *node, int64_t chunk_size)
{
    int64_t type_size = header[3], block = load32(header + 8);
    bool extended = (header[2] & (SHUFFLED | BITSHUFFLED)) == (SHUFFLED | BITSHUFFLED);
    return header[0] <= 2 && !extended && header[2] >> 5 != SNAPPY && !(header[2] & 8) &&
           type_size == node->item_size && load32(header + 4) == (uint32_t)chunk_size &&
           block > 0 && block <= MAX_MOVED_BLOCK && chunk_size % block == 0 &&
           block % type_size == 0 &&
           (!(header[2] & BITSHUFFLED) || block % (8 * type_size) == 0);
}

/* Sets `shape` to the box that `items` consecutive items of a chunk make. Returns false if they make no
 * box. */
static bool box_of_run(const foreign_node *node, int64_t items, int32_t *shape)
{
    for (int d = node->ndim - 1; d >= 0; d--) {
        int64_t chunk = node->chunk_shape[d], n = items < chunk ? items : chunk;
        if (n < chunk ? chunk % n != 0 : items % chunk != 0) return false;
        shape[d] = (int32_t)n;
        items /= n;
    }
    return items == 1;
}

/* Makes a Blosc2 chunk of a buffer of Blosc 1 with `n` blocks. */
static uint8_t *extend_header(const buffer *b, int64_t n)
{
    uint8_t *chunk = cli_alloc((size_t)b->size + BLOSC2_HEADER - BLOSC1_HEADER);
    if (!chunk) return NULL;
    uint8_t flags = b->bytes[2], type_size = b->bytes[3];
    uint32_t block = load32(b->bytes + 8);
    memset(chunk, 0, BLOSC2_HEADER);
    memcpy(chunk, b->bytes, BLOSC1_HEADER);
    memcpy(chunk + BLOSC2_HEADER, b->bytes + BLOSC1_HEADER, (size_t)b->size - BLOSC1_HEADER);
    chunk[0] = 5; /* the version of the format */
    chunk[2] = (uint8_t)((flags & ~(SHUFFLED | BITSHUFFLED)) | SHUFFLED | BITSHUFFLED);
    if (type_size > 16 || block / type_size < 128) chunk[2] |= NOT_SPLIT; /* as Blosc 1 does */
    chunk[21] = flags & BITSHUFFLED ? 2 : flags & SHUFFLED && type_size > 1 ? 1 : 0;
    store32(chunk + 12, (uint32_t)b->size + BLOSC2_HEADER - BLOSC1_HEADER);
    for (int64_t i = 0; i < n && !(flags & STORED); i++) {
        uint8_t *start = chunk + BLOSC2_HEADER + 4 * i;
        store32(start, load32(start) + BLOSC2_HEADER - BLOSC1_HEADER);
    }
    return chunk;
}

static cli_exit read_stored(foreign_file *self, const foreign_node *node, int64_t index,
                            void **chunk, size_t *size)
{
    (void)self;
    zarr_array *a = node->own;
    buffer b = {NULL, 0};
    char *path = NULL;
    int64_t at[CATERVA_MAX_DIMS] = {0}, block = node->item_size;
    *size = 0;
    for (int d = node->ndim - 1; d >= 0; d--) {
        int64_t n = (node->shape[d] + node->chunk_shape[d] - 1) / node->chunk_shape[d];
        at[d] = index % n;
        index /= n;
        block *= node->block_shape[d];
    }
    cli_exit code = read_chunk_bytes(a, node, at, &path, &b);
    int64_t blocks = a->chunk_size / block;
    bool moves = code == CLI_OK && b.bytes && b.size >= BLOSC1_HEADER && b.size < MAX_CHUNK &&
                 is_movable(b.bytes, node, a->chunk_size) && load32(b.bytes + 8) == block &&
                 load32(b.bytes + 12) == b.size;
    bool stored = moves && b.bytes[2] & STORED;
    if (moves && b.size >= BLOSC1_HEADER + (stored ? a->chunk_size : 4 * blocks)) {
        *chunk = extend_header(&b, blocks);
        if (*chunk) *size = (size_t)b.size + BLOSC2_HEADER - BLOSC1_HEADER;
        if (!*chunk) code = CLI_IO;
    }
    free(path);
    free(b.bytes);
    return code;
}

cli_exit zarr_find_blocks(foreign_file *file, foreign_node *node, zarr_array *a)
{
    buffer b = {NULL, 0};
    char *path = NULL;
    int32_t shape[CATERVA_MAX_DIMS];
    const int64_t first[CATERVA_MAX_DIMS] = {0};
    if (node->ndim == 0 || a->chunk.n != 1 || a->chunk.codecs[0] != CODEC_BLOSC ||
        a->chunk.reordered)
        return CLI_OK;
    cli_exit code = read_chunk_bytes(a, node, first, &path, &b);
    if (code == CLI_OK && b.bytes && b.size >= BLOSC1_HEADER &&
        is_movable(b.bytes, node, a->chunk_size) &&
        box_of_run(node, load32(b.bytes + 8) / node->item_size, shape)) {
        memcpy(node->block_shape, shape, (size_t)node->ndim * sizeof *shape);
        file->read_stored = read_stored;
    }
    free(path);
    free(b.bytes);
    return code;
}
