/* How close a read comes to the limit: the same boxes are read through caterva and decoded by
 * C-Blosc2's decoder alone, which runs on exactly the blocks that the boxes touch. The limit
 * reads no file, looks nothing up, and copies no item to its place in the box: each block is
 * held as a chunk of its own.
 *
 * One thread, in memory, no cache. The items that our side reads are compared with the array,
 * and so is the last block that the limit decodes. */
#include "bench_readers.h"
#include "bench_rows.h"

enum { CHUNK = 128, PREFIX = BLOSC_EXTENDED_HEADER_LENGTH + 4 };

static bench_table table = {.budget = 0.4, .min_turns = 5, .max_turns = 400};
static uint64_t random_state = 42;

static const bench_kind kinds[] = {
    {"full", {0, 0, 0}, 1},
    {"box 50^3", {50, 50, 50}, 8},
    {"plane 0", {1, 0, 0}, 3},
    {"plane 1", {0, 1, 0}, 3},
    {"plane 2", {0, 0, 1}, 3},
    {"line 0", {0, 1, 1}, 30},
    {"line 1", {1, 0, 1}, 30},
    {"line 2", {1, 1, 0}, 30},
    {"point", {1, 1, 1}, BENCH_MAX_BOXES},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- One chunk for each block ---------------------------------------------------- */

typedef struct packed_block {
    uint8_t *bytes;
    int32_t size;
} packed_block;

typedef struct limit {
    bench_readers *readers;
    const float *data;
    int64_t side;
    bench_boxes boxes;
    packed_block *blocks; /* n^3 of them, n blocks along an axis, in C order */
    int64_t n;
    uint8_t *block_bytes; /* one decoded block */
    blosc2_context *decoder;
} limit;

static int32_t load_int32(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

/* Copies a block out of a chunk. Blocks are stored in any order; each ends where the next
 * begins. */
static packed_block pack_block(const uint8_t *chunk, int32_t block, int32_t n_blocks,
                               int32_t block_bytes)
{
    const uint8_t *starts = chunk + BLOSC_EXTENDED_HEADER_LENGTH;
    int32_t start = load_int32(starts + 4 * block);
    int32_t end = load_int32(chunk + BLOSC2_CHUNK_CBYTES);
    for (int32_t i = 0; i < n_blocks; i++) {
        int32_t other = load_int32(starts + 4 * i);
        if (other > start && other < end) end = other;
    }
    packed_block packed = {.size = PREFIX + end - start};
    packed.bytes = bench_alloc((size_t)packed.size);
    memcpy(packed.bytes, chunk, BLOSC_EXTENDED_HEADER_LENGTH);
    memcpy(packed.bytes + BLOSC2_CHUNK_NBYTES, &block_bytes, 4);
    memcpy(packed.bytes + BLOSC2_CHUNK_BLOCKSIZE, &block_bytes, 4);
    memcpy(packed.bytes + BLOSC2_CHUNK_CBYTES, &packed.size, 4);
    memcpy(packed.bytes + BLOSC_EXTENDED_HEADER_LENGTH, &(int32_t){PREFIX}, 4);
    memcpy(packed.bytes + PREFIX, chunk + start, (size_t)(end - start));
    return packed;
}

/* Makes a chunk of each block of the array. Chunks are in C order in the array, and blocks in C
 * order in the chunk. */
static void pack_blocks(limit *l)
{
    int64_t n_chunks = l->side / CHUNK;
    int64_t per_chunk = CHUNK / l->readers->spec.block[0]; /* along an axis */
    int32_t n_blocks = (int32_t)(per_chunk * per_chunk * per_chunk);
    int32_t block_bytes = (int32_t)sizeof(float) * CHUNK * CHUNK * CHUNK / n_blocks;
    l->n = n_chunks * per_chunk;
    l->blocks = bench_alloc((size_t)(l->n * l->n * l->n) * sizeof(*l->blocks));
    l->block_bytes = bench_alloc((size_t)block_bytes);
    for (int64_t c = 0; c < n_chunks * n_chunks * n_chunks; c++) {
        uint8_t *chunk;
        bool must_free;
        int result = blosc2_schunk_get_chunk(l->readers->theirs->sc, c, &chunk, &must_free);
        bench_need_b2nd(result, "blosc2_schunk_get_chunk");
        bench_need((chunk[BLOSC2_CHUNK_FLAGS] & BLOSC_MEMCPYED) == 0 &&
                       chunk[BLOSC2_CHUNK_BLOSC2_FLAGS] >> 4 == 0,
                   "chunk", "is stored without blocks");
        for (int32_t b = 0; b < n_blocks; b++) {
            int64_t i = c / (n_chunks * n_chunks) * per_chunk + b / (per_chunk * per_chunk);
            int64_t j = c / n_chunks % n_chunks * per_chunk + b / per_chunk % per_chunk;
            int64_t k = c % n_chunks * per_chunk + b % per_chunk;
            l->blocks[(i * l->n + j) * l->n + k] =
                pack_block(chunk, b, n_blocks, block_bytes);
        }
        if (must_free) free(chunk);
    }
}

static void free_blocks(limit *l)
{
    for (int64_t i = 0; i < l->n * l->n * l->n; i++) free(l->blocks[i].bytes);
    free(l->blocks);
    free(l->block_bytes);
}

/* ---- The two sides --------------------------------------------------------------- */

static void prepare(void *context)
{
    limit *l = context;
    bench_move_boxes(&l->boxes, &l->readers->spec, &random_state);
}

static double read_ours(void *context)
{
    const limit *l = context;
    return bench_read_boxes(&l->boxes, l->readers->ours, l->readers->our_bytes);
}

static void decode_block(const limit *l, int64_t i, int64_t j, int64_t k)
{
    const packed_block *b = &l->blocks[(i * l->n + j) * l->n + k];
    int32_t block_bytes = load_int32(b->bytes + BLOSC2_CHUNK_NBYTES);
    int result =
        blosc2_decompress_ctx(l->decoder, b->bytes, b->size, l->block_bytes, block_bytes);
    bench_need(result == block_bytes, "blosc2_decompress_ctx", "failed");
}

static void decode_box(const limit *l, const bench_box *b)
{
    int64_t edge = l->readers->spec.block[0];
    for (int64_t i = b->start[0] / edge; i <= (b->stop[0] - 1) / edge; i++)
        for (int64_t j = b->start[1] / edge; j <= (b->stop[1] - 1) / edge; j++)
            for (int64_t k = b->start[2] / edge; k <= (b->stop[2] - 1) / edge; k++)
                decode_block(l, i, j, k);
}

static double read_limit(void *context)
{
    const limit *l = context;
    double started = bench_now();
    for (int i = 0; i < l->boxes.kind->count; i++) decode_box(l, &l->boxes.at[i]);
    return (bench_now() - started) / l->boxes.kind->count;
}

/* Checks the last box that our side read, and the last block that the limit decoded, which is that
 * of the box's last corner. */
static void compare(void *context)
{
    const limit *l = context;
    const bench_box *b = bench_last_box(&l->boxes);
    const uint8_t *at = l->readers->our_bytes;
    size_t line = (size_t)b->shape[2] * sizeof(float);
    for (int64_t i = b->start[0]; i < b->stop[0]; i++)
        for (int64_t j = b->start[1]; j < b->stop[1]; j++, at += line)
            bench_need(
                memcmp(at, &l->data[(i * l->side + j) * l->side + b->start[2]], line) == 0,
                "read", "differs from the array");
    int64_t edge = l->readers->spec.block[0];
    int64_t corner[BENCH_NDIM];
    for (int d = 0; d < BENCH_NDIM; d++) corner[d] = (b->stop[d] - 1) / edge * edge;
    bench_need(memcmp(l->block_bytes,
                      &l->data[(corner[0] * l->side + corner[1]) * l->side + corner[2]],
                      (size_t)edge * sizeof(float)) == 0,
               "the limit", "decodes another block");
}

/* Returns the bar of a row. For noisy data: at most 1.10 times the limit with 128 KiB blocks, 1.25
 * with 16 KiB. None for the whole array: the limit decodes into one block again and again, and
 * filling memory for all items takes as long as decoding. */
static double bar_of(int noisy, int32_t block, const bench_kind *kind)
{
    if (!noisy || kind == &kinds[0]) return 0;
    return block == 32 ? 1 / 1.10 : 1 / 1.25;
}

static void run_rows(limit *l, int noisy)
{
    int32_t block = l->readers->spec.block[0];
    bench_duel duel = {l, prepare, read_ours, read_limit, compare};
    for (int i = 0; i < N_KINDS; i++) {
        bench_row row = {.rival = "limit", .bar = bar_of(noisy, block, &kinds[i])};
        snprintf(row.name, sizeof(row.name), "%s, %d KiB, limit, %s",
                 noisy ? "noisy" : "compressible", block * block * block / 256,
                 kinds[i].name);
        if (!bench_wanted(&table, row.name)) continue;
        l->boxes.kind = &kinds[i];
        bench_fight_row(&table, &row, &duel);
    }
}

static void run_file(bench_readers *r, const float *data, int64_t side, int32_t block,
                     int noisy)
{
    static limit l;
    size_t size = 0;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    r->spec = bench_cube(side, block);
    bench_make_file(r, data, side * side * side * (int64_t)sizeof(float), 0);
    uint8_t *frame = bench_load_file(r->path, &size);
    bench_open_readers(r, frame, size, 1, BENCH_CACHE_OFF);
    dparams.nthreads = 1;
    l = (limit){.readers = r, .data = data, .side = side};
    l.decoder = blosc2_create_dctx(dparams);
    pack_blocks(&l);
    run_rows(&l, noisy);
    free_blocks(&l);
    blosc2_free_ctx(l.decoder);
    bench_close_readers(r);
    unlink(r->path);
    free(frame);
}

int main(int argc, char **argv)
{
    int quick;
    bench_parse(&table, argc, argv, &quick);
    int64_t side = quick ? 256 : 384;
    if (quick) table.budget = 0.05;
    bench_readers r = {.our_bytes =
                           bench_alloc((size_t)(side * side * side) * sizeof(float))};
    bench_scratch_path(r.path, "limit");
    blosc2_init();
    bench_print_title("the limit: the decoder alone, on the blocks touched; 1 thread");
    for (int noisy = 1; noisy >= 0; noisy--) {
        float *data = bench_field(noisy, side, &random_state);
        for (int32_t block = 32; block >= 16; block /= 2)
            run_file(&r, data, side, block, noisy);
        free(data);
    }
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    free(r.our_bytes);
    return 0;
}
