/* Room: format. Chunks of which every block is also a Blosc 1 buffer; see dual.h. Streams are
 * copied, never decoded. Streams that Blosc 1 lacks are written by hand: each codec can express a
 * run of equal bytes in a few bytes. */
#include "format/dual.h"

#include "base/arith.h"

#include <string.h>

enum {
    BLOSC1_VERSION = 2,
    FORMAT_VERSION = 1,
    HEAD_FIXED = 16, /* of the 20 bytes before a block */
    FLAG_SHUFFLE = 0x01,
    FLAG_BITSHUFFLE = 0x04,
    FLAG_NOT_SPLIT = 0x10,
    CODEC_SHIFT = 5
};

/* As in a chunk header. */
enum { CODEC_BLOSCLZ = 0, CODEC_LZ4 = 1, CODEC_ZLIB = 3, CODEC_ZSTD = 4 };

/* ---- Runs of equal bytes -------------------------------------------------------
 *
 * Compressed streams that consist of runs: `count` values, each repeated `length` times. Shorter
 * runs than SHORT are stored, which also satisfies LZ4's rules for the end of a block. */

enum { SHORT = 64 };

typedef struct runs {
    const uint8_t *values;
    int32_t count;
    int32_t length;
} runs;

typedef struct sink {
    cv_buffer *out;
    cv_status status;
    cv_error *err;
} sink;

static void put(sink *s, const void *bytes, size_t size)
{
    if (s->status == CV_OK) s->status = cv_buffer_append(s->out, bytes, size, s->err);
}

static void put_byte(sink *s, uint32_t byte) { put(s, &(uint8_t){(uint8_t)byte}, 1); }

static void put_le32(sink *s, uint32_t number)
{
    uint8_t bytes[4];
    cv_store_le32(bytes, number);
    put(s, bytes, sizeof bytes);
}

/* A length in bytes of 255 and a smaller last one. */
static void put_long(sink *s, int32_t n)
{
    for (; n >= 255; n -= 255) put_byte(s, 255);
    put_byte(s, (uint32_t)n);
}

/* One literal and a match at distance 1 for each run, and five literals at the end. */
static void put_lz4(sink *s, const runs *r)
{
    enum { LITERALS = 5, LEAST_MATCH = 4 };
    for (int32_t i = 0; i < r->count; i++) {
        bool is_last = i == r->count - 1;
        uint8_t value = r->values[i];
        put_byte(s, 0x1f);
        put_byte(s, value);
        put(s, "\x01\x00", 2);
        put_long(s, r->length - 1 - LEAST_MATCH - 15 - (is_last ? LITERALS : 0));
        if (!is_last) continue;
        put_byte(s, LITERALS << 4);
        for (int k = 0; k < LITERALS; k++) put_byte(s, value);
    }
}

/* The same for BloscLZ, which must end with a literal; its first byte has a mark. */
static void put_blosclz(sink *s, const runs *r)
{
    enum { MARK = 0x20, LONG_MATCH = 7 << 5, LEAST_MATCH = 9 };
    for (int32_t i = 0; i < r->count; i++) {
        bool is_last = i == r->count - 1;
        put_byte(s, i == 0 ? MARK : 0);
        put_byte(s, r->values[i]);
        put_byte(s, LONG_MATCH);
        put_long(s, r->length - 1 - LEAST_MATCH - is_last);
        put_byte(s, 0);
        if (!is_last) continue;
        put_byte(s, 0);
        put_byte(s, r->values[i]);
    }
}

/* A frame of one segment with its size, in 2 bytes or 4, without a checksum; of RLE blocks. */
static void put_zstd(sink *s, const runs *r)
{
    enum { MOST = 128 << 10, RLE = 1 << 1, LAST = 1, LEAST_SHORT = 256 };
    uint32_t size = (uint32_t)r->count * (uint32_t)r->length, above = size - LEAST_SHORT;
    bool is_short = size >= LEAST_SHORT && above <= UINT16_MAX;
    put(s, is_short ? "\x28\xb5\x2f\xfd\x60" : "\x28\xb5\x2f\xfd\xa0", 5);
    put_byte(s, is_short ? above & 0xff : size & 0xff);
    put_byte(s, is_short ? above >> 8 : size >> 8 & 0xff);
    if (!is_short) put(s, (const uint8_t[]){(uint8_t)(size >> 16), (uint8_t)(size >> 24)}, 2);
    for (int32_t i = 0; i < r->count; i++) {
        for (int32_t left = r->length, n; left > 0; left -= n) {
            n = left < MOST ? left : MOST;
            bool is_last = left == n && i == r->count - 1;
            uint8_t block[4];
            cv_store_le32(block, (uint32_t)n << 3 | RLE | (is_last ? LAST : 0));
            block[3] = r->values[i];
            put(s, block, sizeof block);
        }
    }
}

/* Bits of a deflate stream, the first one lowest. */
typedef struct bits {
    sink *sink;
    uint32_t held;
    int n;
} bits;

static void put_bits(bits *b, uint32_t value, int n)
{
    b->held |= value << b->n;
    for (b->n += n; b->n >= 8; b->n -= 8, b->held >>= 8) put_byte(b->sink, b->held & 0xff);
}

/* Huffman codes are stored from their highest bit on. */
static void put_code(bits *b, uint32_t code, int n)
{
    for (int i = n - 1; i >= 0; i--) put_bits(b, code >> i & 1, 1);
}

/* The fixed code of a literal, a length or the end (256). */
static void put_symbol(bits *b, uint32_t symbol)
{
    if (symbol < 144)
        put_code(b, 0x30 + symbol, 8);
    else if (symbol < 256)
        put_code(b, 0x190 + symbol - 144, 9);
    else if (symbol < 280)
        put_code(b, symbol - 256, 7);
    else
        put_code(b, 0xc0 + symbol - 280, 8);
}

static uint32_t adler32(const runs *r)
{
    enum { PRIME = 65521 };
    uint32_t a = 1, b = 0;
    for (int32_t i = 0; i < r->count; i++)
        for (int32_t k = 0; k < r->length; k++) {
            a = (a + r->values[i]) % PRIME;
            b = (b + a) % PRIME;
        }
    return b << 16 | a;
}

/* Matches of 258 bytes at distance 1, then literals. */
static void put_zlib(sink *s, const runs *r)
{
    enum { LONGEST = 258, LONGEST_SYMBOL = 285, END = 256, FINAL_FIXED = 3 };
    bits b = {.sink = s};
    uint8_t sum[4];
    put(s, "\x78\x9c", 2);
    put_bits(&b, FINAL_FIXED, 3);
    for (int32_t i = 0; i < r->count; i++) {
        int32_t left = r->length - 1;
        put_symbol(&b, r->values[i]);
        for (; left >= LONGEST; left -= LONGEST) {
            put_symbol(&b, LONGEST_SYMBOL);
            put_code(&b, 0, 5);
        }
        for (; left > 0; left--) put_symbol(&b, r->values[i]);
    }
    put_symbol(&b, END);
    put_bits(&b, 0, 7);
    cv_store_be32(sum, adler32(r));
    put(s, sum, sizeof sum);
}

/* A stored stream has as many bytes as it decodes to. */
static void put_stored(sink *s, const runs *r)
{
    put_le32(s, (uint32_t)r->count * (uint32_t)r->length);
    for (int32_t i = 0; i < r->count; i++)
        for (int32_t k = 0; k < r->length; k++) put_byte(s, r->values[i]);
}

/* Appends a stream: its size, and its bytes. */
static void put_runs(sink *s, int codec, const runs *r)
{
    size_t at = s->out->size;
    if (r->length >= SHORT) {
        put_le32(s, 0);
        switch (codec) {
        case CODEC_BLOSCLZ: put_blosclz(s, r); break;
        case CODEC_LZ4: put_lz4(s, r); break;
        case CODEC_ZLIB: put_zlib(s, r); break;
        default: put_zstd(s, r); break;
        }
        if (s->status != CV_OK) return;
        size_t size = s->out->size - at - 4, stored = (size_t)r->count * (size_t)r->length;
        cv_store_le32(s->out->data + at, (uint32_t)size);
        if (size < stored) return;
        s->out->size = at;
    }
    put_stored(s, r);
}

/* ---- Pipelines ------------------------------------------------------------------ */

static bool is_known(int codec)
{
    return codec == CODEC_BLOSCLZ || codec == CODEC_LZ4 || codec == CODEC_ZLIB ||
           codec == CODEC_ZSTD;
}

/* Stored streams need no codec, but readers check its number. */
static int codec_of(const cv_chunk_header *h)
{
    return is_known(h->codec) ? h->codec : CODEC_LZ4;
}

/* The flags of a Blosc 1 buffer with the streams of such a chunk; -1: Blosc 1 has no such
 * pipeline. */
static int flags_of(const cv_chunk_header *h)
{
    int filter = 0;
    for (size_t i = 0; i < sizeof h->filters; i++) {
        if (h->filters[i] == 0 || h->filters[i] == CATERVA_FILTER_TRUNC_PREC)
            continue; /* decoding truncated items changes nothing */
        bool is_shuffle = h->filters[i] == CATERVA_FILTER_SHUFFLE ||
                          h->filters[i] == CATERVA_FILTER_BITSHUFFLE;
        if (!is_shuffle || filter != 0 || h->filters_meta[i] != 0) return -1;
        filter = h->filters[i];
    }
    int flags = h->codec << CODEC_SHIFT | (h->split ? 0 : FLAG_NOT_SPLIT);
    if (filter == CATERVA_FILTER_SHUFFLE) flags |= FLAG_SHUFFLE;
    if (filter == CATERVA_FILTER_BITSHUFFLE) flags |= FLAG_BITSHUFFLE;
    return flags;
}

bool cv_dual_splits(int64_t type_size, int64_t block_size)
{
    enum { MOST_STREAMS = 16, LEAST_BYTES = 128 };
    if (type_size == 1) return true;
    return type_size <= MOST_STREAMS && block_size / type_size >= LEAST_BYTES;
}

bool cv_dual_fits(const cv_chunk_header *h)
{
    if (h->nbytes % h->block_size != 0) return false; /* its last block is shorter */
    if (h->memcpyed || h->special != CV_SPECIAL_NONE) return true;
    int flags = flags_of(h);
    if (flags < 0 || !is_known(h->codec) || h->has_dict || h->block_size % h->type_size != 0)
        return false;
    if (h->split && !cv_dual_splits(h->type_size, h->block_size)) return false;
    /* Blosc 1 leaves blocks unchanged whose items are not a multiple of 8. */
    return !(flags & FLAG_BITSHUFFLE) || h->block_size / h->type_size % 8 == 0;
}

/* ---- Streams of a block ----------------------------------------------------------- */

typedef struct stream {
    const uint8_t *bytes; /* with its size before it */
    int32_t size;         /* the same */
    bool is_run;
    uint8_t value; /* of a run */
} stream;

typedef struct walker {
    const uint8_t *at, *end;
    int32_t left;   /* streams */
    int32_t stream; /* bytes of a decoded stream */
} walker;

static walker walk(const uint8_t *chunk, const cv_chunk_header *h,
                   const cv_block_range *range)
{
    int32_t n = h->split ? h->type_size : 1;
    return (walker){chunk + range->start, chunk + range->end, n, h->block_size / n};
}

/* Returns false at the end, and for streams that are no streams; `left` is 0 at the end. */
static bool next_stream(walker *w, stream *out)
{
    if (w->left == 0 || w->end - w->at < 4) return false;
    int32_t size = (int32_t)cv_load_le32(w->at), n = 4;
    *out = (stream){.bytes = w->at, .is_run = size <= 0};
    if (size > w->stream || size < -255) return false;
    if (size > 0) n += size;
    if (size < 0) n++; /* a token */
    if (w->end - w->at < n || (size < 0 && !(w->at[4] & 1))) return false;
    if (size < 0) out->value = (uint8_t)-size;
    out->size = n;
    w->at += n;
    w->left--;
    return true;
}

bool cv_dual_has_streams(const uint8_t *chunk, const cv_chunk_header *h,
                         const cv_block_range *range)
{
    stream s;
    walker w = walk(chunk, h, range);
    while (next_stream(&w, &s)) continue;
    return w.left == 0;
}

/* Whether all items of the block are one item, known from its streams alone. */
static bool is_item(walker w, const cv_chunk_header *h, int64_t item_size, uint8_t *item)
{
    stream s;
    uint8_t values[UINT8_MAX];
    int32_t n = 0;
    int flags = flags_of(h);
    bool by_byte = h->split && h->type_size > 1 && /* one stream for each byte of an item */
                   (flags & (FLAG_SHUFFLE | FLAG_BITSHUFFLE));
    for (; next_stream(&w, &s); n++) {
        if (!s.is_run || (!by_byte && n > 0 && s.value != values[0])) return false;
        if ((flags & FLAG_BITSHUFFLE) && s.value != 0 && s.value != 0xff) return false;
        values[n] = s.value;
    }
    if (w.left > 0 || n == 0 || (by_byte && item_size != n)) return false;
    for (int64_t i = 0; i < item_size; i++) item[i] = values[by_byte ? i : 0];
    return true;
}

/* ---- Writing ---------------------------------------------------------------------- */

typedef struct head {
    int flags, type_size;
    int64_t block_bytes;
    size_t size; /* of the buffer */
} head;

static void write_head(const head *h, uint8_t out[CV_DUAL_HEAD])
{
    out[0] = BLOSC1_VERSION;
    out[1] = FORMAT_VERSION;
    out[2] = (uint8_t)h->flags;
    out[3] = (uint8_t)h->type_size;
    cv_store_le32(out + 4, (uint32_t)h->block_bytes);
    cv_store_le32(out + 8, (uint32_t)h->block_bytes);
    cv_store_le32(out + 12, (uint32_t)h->size);
    cv_store_le32(out + HEAD_FIXED, CV_DUAL_HEAD);
}

static cv_status fail_streams(int64_t block, cv_error *err)
{
    return cv_fail(err, CATERVA_ECORRUPT, -1, "the streams of block %lld do not fit it",
                   (long long)block);
}

static cv_status put_streams(walker w, const cv_chunk_header *h, int64_t block, sink *out)
{
    stream s;
    while (next_stream(&w, &s)) {
        if (s.is_run)
            put_runs(out, h->codec, &(runs){&s.value, 1, w.stream});
        else
            put(out, s.bytes, (size_t)s.size);
    }
    return w.left > 0 ? fail_streams(block, out->err) : out->status;
}

/* The streams as they are. */
static cv_status copy_streams(walker w, int64_t block, sink *out)
{
    stream s;
    while (next_stream(&w, &s)) put(out, s.bytes, (size_t)s.size);
    return w.left > 0 ? fail_streams(block, out->err) : out->status;
}

/* An uncompressed block becomes one stored stream. */
static cv_status put_raw_stream(const uint8_t *chunk, const cv_chunk_header *h, int64_t block,
                                sink *out)
{
    size_t size = (size_t)h->block_size;
    put_le32(out, (uint32_t)size);
    put(out, chunk + CV_CHUNK_HEADER_SIZE + (size_t)block * size, size);
    return out->status;
}

cv_status cv_dual_write_block(const uint8_t *chunk, const cv_chunk_header *h,
                              const cv_block_range *range, int64_t block, cv_buffer *out,
                              cv_error *err)
{
    sink s = {.out = out, .err = err};
    size_t at = out->size;
    uint8_t bytes[CV_DUAL_HEAD] = {0};
    put(&s, bytes, sizeof bytes);
    CV_TRY(h->memcpyed ? put_raw_stream(chunk, h, block, &s)
                       : put_streams(walk(chunk, h, range), h, block, &s));
    head full = {h->memcpyed ? codec_of(h) << CODEC_SHIFT | FLAG_NOT_SPLIT : flags_of(h),
                 h->type_size, h->block_size, out->size - at};
    write_head(&full, out->data + at);
    return CV_OK;
}

/* C-Blosc2 reads a block and what is behind it, up to the start of the next one, into memory of
 * this size. */
static bool has_room(const cv_chunk_header *h, size_t buffer_size)
{
    return buffer_size <= (size_t)h->block_size + 4 * (size_t)h->type_size;
}

/* ---- The order of blocks -------------------------------------------------------------- */

/* The blocks of a chunk in the order of their bytes: see dual.h. */
typedef struct tour {
    const cv_grid *grid;
    int64_t step, n_steps;
    bool is_plain; /* C order */
} tour;

static bool has_bit(int64_t count, int bit) { return (count - 1) >> bit > 0; }

/* Steps to indices beyond the chunk are skipped. If they were many, the order is C's. */
static tour begin_tour(const cv_grid *grid)
{
    enum { MOST_SKIPPED = 8 };
    tour t = {.grid = grid, .n_steps = 1};
    for (int d = 0; d < grid->ndim; d++)
        for (int bit = 0; has_bit(grid->block_counts[d], bit); bit++)
            if (t.n_steps <= grid->n_blocks * MOST_SKIPPED) t.n_steps *= 2;
    t.is_plain = t.n_steps > grid->n_blocks * MOST_SKIPPED;
    if (t.is_plain) t.n_steps = grid->n_blocks;
    return t;
}

/* Distributes the bits of a code over the axes, the lowest to axis 0. */
static bool find_block(const cv_grid *grid, uint64_t code, int64_t *block)
{
    int64_t index[CV_MAX_DIMS] = {0};
    *block = 0;
    for (int bit = 0; code != 0; bit++)
        for (int d = 0; d < grid->ndim; d++) {
            if (!has_bit(grid->block_counts[d], bit)) continue;
            index[d] |= (int64_t)(code & 1) << bit;
            code >>= 1;
        }
    for (int d = 0; d < grid->ndim; d++) {
        if (index[d] >= grid->block_counts[d]) return false;
        *block += index[d] * grid->block_strides[d];
    }
    return true;
}

static bool next_block(tour *t, int64_t *block)
{
    bool found = false;
    while (!found && t->step < t->n_steps) {
        uint64_t step = (uint64_t)t->step++;
        *block = (int64_t)step;
        found = t->is_plain || find_block(t->grid, step ^ step >> 1, block);
    }
    return found;
}

/* ---- Chunks ----------------------------------------------------------------------------- */

/* A chunk in the making: begins at byte `origin` of the output. */
typedef struct rewriting {
    const uint8_t *chunk;
    const cv_chunk_header *header;
    const cv_block_range *ranges;
    cv_buffer *out;
    size_t origin;
    cv_error *err;
} rewriting;

static void set_start(const rewriting *r, int64_t block, size_t start)
{
    uint8_t *starts = r->out->data + r->origin + CV_CHUNK_HEADER_SIZE;
    cv_store_le32(starts + 4 * block, (uint32_t)(start - r->origin));
}

/* Sets *done to false, and appends nothing, for a block that gets no head. */
static cv_status put_with_head(const rewriting *r, int64_t block, bool *done)
{
    const cv_chunk_header *h = r->header;
    const cv_block_range *range = h->memcpyed ? NULL : &r->ranges[block];
    uint8_t item[UINT8_MAX];
    size_t at = r->out->size;
    *done = false;
    if (range && is_item(walk(r->chunk, h, range), h, h->type_size, item)) return CV_OK;
    CV_TRY(cv_dual_write_block(r->chunk, h, range, block, r->out, r->err));
    *done = has_room(h, r->out->size - at);
    if (*done)
        set_start(r, block, at + CV_DUAL_HEAD);
    else
        r->out->size = at;
    return CV_OK;
}

static cv_status put_without_head(const rewriting *r, int64_t block)
{
    sink s = {.out = r->out, .err = r->err};
    size_t at = r->out->size;
    CV_TRY(copy_streams(walk(r->chunk, r->header, &r->ranges[block]), block, &s));
    set_start(r, block, at);
    return CV_OK;
}

static cv_status put_blocks(const rewriting *r, const cv_grid *grid, bool *has_head)
{
    int64_t i;
    tour t = begin_tour(grid);
    while (next_block(&t, &i)) CV_TRY(put_with_head(r, i, &has_head[i]));
    for (i = 0; i < grid->n_blocks; i++)
        if (!has_head[i]) CV_TRY(put_without_head(r, i));
    return CV_OK;
}

static cv_status reserve(const cv_chunk_header *h, int64_t n_blocks, cv_buffer *out,
                         cv_error *err)
{
    int64_t size = (int64_t)h->cbytes + n_blocks * (CV_DUAL_HEAD + 8);
    if (size > INT32_MAX)
        return cv_fail(
            err, CATERVA_EUNSUPPORTED, -1,
            "a chunk of %lld blocks would take %lld bytes as a part of a Zarr array: "
            "choose larger blocks or smaller chunks",
            (long long)n_blocks, (long long)size);
    return cv_buffer_reserve(out, out->size + (size_t)size, err);
}

static cv_status rewrite(const rewriting *r, const cv_grid *grid, bool *has_head)
{
    int64_t n_blocks = grid->n_blocks;
    const cv_chunk_header *h = r->header;
    cv_buffer *out = r->out;
    CV_TRY(reserve(h, n_blocks, out, r->err));
    CV_TRY(cv_buffer_resize(out, r->origin + CV_CHUNK_HEADER_SIZE + 4 * (size_t)n_blocks,
                            r->err));
    memcpy(out->data + r->origin, r->chunk, CV_CHUNK_HEADER_SIZE);
    CV_TRY(put_blocks(r, grid, has_head));
    size_t size = out->size - r->origin;
    if (size > INT32_MAX)
        return cv_fail(r->err, CATERVA_EUNSUPPORTED, -1, "a chunk of %zu bytes exceeds %d",
                       size, INT32_MAX);
    if (h->memcpyed)
        cv_chunk_header_set_streams(out->data + r->origin, codec_of(h), h->block_size);
    cv_chunk_header_set_size(out->data + r->origin, (int32_t)size);
    return CV_OK;
}

cv_status cv_dual_write(const uint8_t *chunk, const cv_chunk_header *h,
                        const cv_block_range *ranges, const cv_grid *grid, cv_buffer *out,
                        cv_error *err)
{
    rewriting r = {chunk, h, ranges, out, out->size, err};
    bool stays = h->memcpyed && !has_room(h, CV_DUAL_HEAD + 4 + (size_t)h->block_size);
    if (h->special != CV_SPECIAL_NONE || stays)
        return cv_buffer_append(out, chunk, (size_t)h->cbytes, err);
    size_t n_blocks = (size_t)grid->n_blocks;
    bool *has_head = cv_calloc(n_blocks, sizeof *has_head);
    if (!has_head) return cv_fail_memory(err, n_blocks, "a list of blocks");
    cv_status status = rewrite(&r, grid, has_head);
    cv_free(has_head);
    return status;
}

/* ---- What Zarr readers find --------------------------------------------------------- */

/* Whether the head before the streams is that of a buffer of them. */
static bool has_head(const uint8_t *chunk, const cv_chunk_header *h,
                     const cv_block_range *range, size_t size)
{
    uint8_t expected[CV_DUAL_HEAD];
    head full = {flags_of(h), h->type_size, h->block_size, size};
    if (range->start < CV_CHUNK_HEADER_SIZE + CV_DUAL_HEAD) return false;
    write_head(&full, expected);
    return memcmp(chunk + range->start - CV_DUAL_HEAD, expected, sizeof expected) == 0;
}

cv_dual_block cv_dual_look(const uint8_t *chunk, const cv_chunk_header *h,
                           const cv_block_range *range, int64_t item_size, uint8_t *item)
{
    stream s;
    bool has_runs = false;
    if (!cv_dual_fits(h)) return (cv_dual_block){.kind = CV_DUAL_NEITHER};
    if (h->memcpyed) return (cv_dual_block){.kind = CV_DUAL_APART};
    walker w = walk(chunk, h, range);
    if (is_item(w, h, item_size, item)) return (cv_dual_block){.kind = CV_DUAL_ITEM};
    while (next_stream(&w, &s)) has_runs = has_runs || s.is_run;
    if (w.left > 0) return (cv_dual_block){.kind = CV_DUAL_NEITHER};
    size_t size = (size_t)(w.at - chunk) - (size_t)range->start + CV_DUAL_HEAD;
    if (has_runs || !has_head(chunk, h, range, size))
        return (cv_dual_block){.kind = CV_DUAL_APART};
    return (cv_dual_block){CV_DUAL_BUFFER, (uint32_t)size};
}

bool cv_dual_is_head(const uint8_t *bytes, const cv_chunk_header *h, int64_t most,
                     uint32_t *size)
{
    enum { AT_SIZE = 12 };
    uint8_t expected[CV_DUAL_HEAD];
    *size = cv_load_le32(bytes + AT_SIZE);
    head full = {flags_of(h), h->type_size, h->block_size, *size};
    write_head(&full, expected);
    return *size > CV_DUAL_HEAD && *size - CV_DUAL_HEAD <= most &&
           memcmp(bytes, expected, sizeof expected) == 0;
}

/* Items that are too long for the type size are stored one after another. */
static void put_items(sink *s, const uint8_t *item, int64_t item_size, int64_t block_bytes)
{
    put_le32(s, (uint32_t)block_bytes);
    for (int64_t at = 0; at < block_bytes; at += item_size) put(s, item, (size_t)item_size);
}

cv_status cv_dual_write_item(int codec, const uint8_t *item, int64_t item_size,
                             int64_t block_bytes, cv_buffer *out, cv_error *err)
{
    sink s = {.out = out, .err = err};
    size_t at = out->size;
    bool is_long = item_size > UINT8_MAX;
    uint8_t bytes[CV_DUAL_HEAD] = {0};
    put(&s, bytes, sizeof bytes);
    if (is_long)
        put_items(&s, item, item_size, block_bytes);
    else
        put_runs(&s, codec,
                 &(runs){item, (int32_t)item_size, (int32_t)(block_bytes / item_size)});
    if (s.status != CV_OK) return s.status;
    int flags = codec << CODEC_SHIFT | FLAG_NOT_SPLIT;
    head full = {is_long || item_size == 1 ? flags : flags | FLAG_SHUFFLE,
                 is_long ? 1 : (int)item_size, block_bytes, out->size - at};
    write_head(&full, out->data + at);
    return CV_OK;
}
