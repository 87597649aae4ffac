/* Room: cli/commands. Estimates the size of the whole file in a candidate's partition and codec.
 * Blocks are encoded independently, so a sample of them suffices: chunks are picked at random, one
 * from each of equal stretches of the array, and blocks from each picked chunk in the same way. The
 * picked blocks become an array in memory, whose size is measured.
 *
 *     the candidate's chunks       | . . a . | . . . b | . c . . | . d . . | ...
 *     blocks of the picked chunks  a: 3 of 128, b: 3 of 128, ...
 *     the array in memory          chunk 0: a a a   chunk 1: b b b   ...
 *
 * tune_density.c corrects for picked blocks that compress better or worse than the whole array. The
 * overhead of a chunk (header, a start and a checksum for each block) is included. A block outside
 * of the array is never picked: it takes just a start and a checksum. A chunk of zeros is stored
 * without blocks and takes no bytes. */
#include "commands/tune.h"
#include "sources/described.h"

#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_CHUNKS = 8, CHUNK_HEADER = 32, EMPTY_BLOCK = 8 };
#define BLOCKS_BYTES ((int64_t)24 << 20) /* limit for the picked blocks of a partition */
#define FEW_BYTES ((int64_t)64 << 20)    /* higher limit if MIN_CHUNKS blocks need it */
#define WHOLE_CHUNK ((int64_t)16 << 20)  /* larger chunks are not read as a whole */

/* A partition of the array, counted in chunks and blocks along each axis. */
typedef struct cut {
    int ndim;
    int64_t chunks[CATERVA_MAX_DIMS], blocks[CATERVA_MAX_DIMS]; /* blocks: of one chunk */
    int64_t n_chunks, n_blocks;
    int64_t block_bytes, chunk_bytes; /* sizes with padding */
} cut;

/* The array in a partition, and the state of picking its blocks. */
typedef struct cut_array {
    const tune_task *task;
    caterva_array *array;
    const tune_partition *p;
    cut c;
    uint64_t random;
} cut_array;

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static cut cut_up(const caterva_info *info, const tune_partition *p)
{
    cut c = {
        .ndim = info->ndim, .n_chunks = 1, .n_blocks = 1, .block_bytes = info->item_size};
    for (int d = 0; d < info->ndim; d++) {
        c.chunks[d] = ceil_div(info->shape[d], p->chunk[d]);
        c.blocks[d] = ceil_div(p->chunk[d], p->block[d]);
        c.n_chunks *= c.chunks[d];
        c.n_blocks *= c.blocks[d];
        c.block_bytes *= p->block[d];
    }
    c.chunk_bytes = c.n_blocks * c.block_bytes;
    return c;
}

/* Returns a random position in the i-th of `n` equal stretches of `total`. The ends of a stretch
 * may be fractions, so all positions are equally likely. SplitMix64 makes the same picks in every
 * run. */
static int64_t pick(uint64_t *state, int64_t i, int64_t n, int64_t total)
{
    if (n >= total) return i * total / n;
    *state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    double part = (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
    int64_t place = (int64_t)(((double)i + part) * (double)total / (double)n);
    return place < total ? place : total - 1;
}

/* ---- Reading blocks ------------------------------------------------------ */

/* Sets `place` to the index of chunk or block `number` in a grid of `counts`. */
static void place_of(int64_t number, int ndim, const int64_t *counts, int64_t *place)
{
    for (int d = ndim - 1; d >= 0; d--) {
        /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): no axis is empty */
        place[d] = number % counts[d];
        number /= counts[d];
    }
}

/* Expands a box, cut off by the end of the array, in place to a whole block. Moves each row to
 * its position in the block, beginning with the last row, so that no row is overwritten. */
static void spread(const tune_task *task, const int32_t *block, const int64_t *lengths,
                   uint8_t *items)
{
    int ndim = task->info->ndim;
    int64_t size = task->info->item_size, rows = 1;
    for (int d = 0; d + 1 < ndim; d++) rows *= lengths[d];
    size_t row = (size_t)(lengths[ndim - 1] * size);
    size_t whole = (size_t)size;
    for (int d = 0; d < ndim; d++) whole *= (size_t)block[d];
    size_t end = whole;
    for (int64_t i = rows - 1; i >= 0; i--) {
        int64_t place[CATERVA_MAX_DIMS], at = 0;
        place_of(i, ndim - 1, lengths, place);
        for (int d = 0; d + 1 < ndim; d++)
            at = (at + place[d]) * (d + 2 < ndim ? block[d + 1] : 1);
        uint8_t *to = items + (size_t)at * (size_t)block[ndim - 1] * (size_t)size;
        memmove(to, items + (size_t)i * row, row);
        size_t behind = (size_t)(to - items) + row;
        memset(items + behind, 0, end - behind);
        end = (size_t)(to - items);
    }
}

/* Counts, along each axis, the blocks of a chunk that hold items. Returns the counts' product. */
static int64_t count_filled(const cut_array *from, int64_t chunk, int64_t *counts)
{
    const cut *c = &from->c;
    int64_t at[CATERVA_MAX_DIMS], n = 1;
    place_of(chunk, c->ndim, c->chunks, at);
    for (int d = 0; d < c->ndim; d++) {
        int64_t left = from->task->info->shape[d] - at[d] * from->p->chunk[d];
        int64_t length = left < from->p->chunk[d] ? left : from->p->chunk[d];
        n *= counts[d] = ceil_div(length, from->p->block[d]);
    }
    return n;
}

static double items_of_chunk(const cut_array *from, int64_t chunk)
{
    const cut *c = &from->c;
    int64_t at[CATERVA_MAX_DIMS];
    double n = 1;
    place_of(chunk, c->ndim, c->chunks, at);
    for (int d = 0; d < c->ndim; d++) {
        int64_t left = from->task->info->shape[d] - at[d] * from->p->chunk[d];
        n *= (double)(left < from->p->chunk[d] ? left : from->p->chunk[d]);
    }
    return n;
}

/* Reads a block with the layout of a chunk's blocks, with zeros outside of the array. Sets *n_items
 * to the number of items inside. */
static cli_exit read_block(const cut_array *from, int64_t chunk, const int64_t *at_block,
                           uint8_t *items, double *n_items)
{
    const tune_task *task = from->task;
    const tune_partition *p = from->p;
    const cut *c = &from->c;
    int64_t at_chunk[CATERVA_MAX_DIMS];
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS], lengths[CATERVA_MAX_DIMS];
    size_t size = (size_t)task->info->item_size;
    place_of(chunk, c->ndim, c->chunks, at_chunk);
    for (int d = 0; d < c->ndim; d++) {
        int64_t in_chunk = at_block[d] * p->block[d];
        start[d] = at_chunk[d] * p->chunk[d] + in_chunk;
        lengths[d] = p->chunk[d] - in_chunk;
        if (lengths[d] > p->block[d]) lengths[d] = p->block[d];
        if (lengths[d] > task->info->shape[d] - start[d])
            lengths[d] = task->info->shape[d] - start[d];
        stop[d] = start[d] + lengths[d];
        size *= (size_t)lengths[d];
    }
    caterva_error err;
    *n_items = (double)size / (double)task->info->item_size;
    if (caterva_read(from->array, start, stop, items, size, &err) != CATERVA_OK)
        return cli_fail_array(task->path, &err);
    if (size < (size_t)c->block_bytes) spread(task, p->block, lengths, items);
    return CLI_OK;
}

/* Finds the block of the present file that contains the middle of this block. Adds the found
 * block's size to *bytes, and its number of items to *n_items. */
static cli_exit add_density(const cut_array *from, int64_t chunk, const int64_t *at_block,
                            double *bytes, double *n_items)
{
    const tune_task *task = from->task;
    const tune_partition *p = from->p;
    const cut *c = &from->c;
    int64_t at_chunk[CATERVA_MAX_DIMS], item[CATERVA_MAX_DIMS];
    place_of(chunk, c->ndim, c->chunks, at_chunk);
    for (int d = 0; d < c->ndim; d++) {
        int64_t in_chunk = at_block[d] * p->block[d] + p->block[d] / 2;
        if (in_chunk >= p->chunk[d]) in_chunk = p->chunk[d] - 1;
        item[d] = at_chunk[d] * p->chunk[d] + in_chunk;
        if (item[d] >= task->info->shape[d]) item[d] = task->info->shape[d] - 1;
    }
    return tune_add_density(task, from->array, item, bytes, n_items);
}

static bool is_zeros(const uint8_t *bytes, size_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Called if all picked blocks of a chunk are zeros. Sets *empty to whether all of the chunk is
 * zeros. A chunk larger than WHOLE_CHUNK is not read: *empty is then true. */
static cli_exit chunk_is_empty(const cut_array *from, int64_t chunk, bool *empty)
{
    const cut *c = &from->c;
    uint8_t *items = NULL;
    int64_t counts[CATERVA_MAX_DIMS], at[CATERVA_MAX_DIMS];
    double n_items;
    cli_exit code = CLI_OK;
    *empty = true;
    if (c->chunk_bytes > WHOLE_CHUNK) return CLI_OK;
    items = cli_alloc((size_t)c->block_bytes);
    if (!items) return CLI_IO;
    int64_t n_filled = count_filled(from, chunk, counts);
    for (int64_t i = 0; i < n_filled && *empty && code == CLI_OK; i++) {
        place_of(i, c->ndim, counts, at);
        code = read_block(from, chunk, at, items, &n_items);
        if (code == CLI_OK) *empty = is_zeros(items, (size_t)c->block_bytes);
    }
    free(items);
    return code;
}

/* ---- The blocks of a partition --------------------------------------------- */

static int64_t at_most(int64_t value, int64_t most) { return value < most ? value : most; }
static int64_t at_least(int64_t value, int64_t least)
{
    return value > least ? value : least;
}

/* Reads per_chunk blocks of a chunk, one from each of equal stretches of its blocks. */
static cli_exit take_chunk(cut_array *from, int64_t chunk, uint8_t *to, tune_chunk *out)
{
    int64_t n = from->p->blocks.per_chunk, counts[CATERVA_MAX_DIMS], at[CATERVA_MAX_DIMS];
    int64_t n_filled = count_filled(from, chunk, counts);
    double bytes = 0, n_items = 0, inside;
    *out = (tune_chunk){.n_items = items_of_chunk(from, chunk)};
    for (int64_t k = 0; k < n; k++) {
        place_of(pick(&from->random, k, n, n_filled), from->c.ndim, counts, at);
        uint8_t *block = to + (size_t)(k * from->c.block_bytes);
        CLI_TRY(read_block(from, chunk, at, block, &inside));
        CLI_TRY(add_density(from, chunk, at, &bytes, &n_items));
        out->n_sampled += inside;
    }
    out->density = n_items > 0 ? bytes / n_items : 0;
    return CLI_OK;
}

/* Picks and reads chunks. In b->chunks, chunks of zeros come last, the others in order. */
static cli_exit take_chunks(cut_array *from, tune_blocks *b, int64_t n_chunks)
{
    size_t chunk_size = (size_t)(b->per_chunk * from->c.block_bytes);
    int n_empty = 0;
    for (int64_t i = 0; i < n_chunks; i++) {
        int64_t chunk = pick(&from->random, i, n_chunks, from->c.n_chunks);
        uint8_t *to = b->items + (size_t)b->n_chunks * chunk_size;
        tune_chunk taken;
        bool empty = false;
        CLI_TRY(take_chunk(from, chunk, to, &taken));
        if (is_zeros(to, chunk_size)) CLI_TRY(chunk_is_empty(from, chunk, &empty));
        b->chunks[empty ? n_chunks - ++n_empty : b->n_chunks++] = taken;
        if (cli_interrupted()) return CLI_INTERRUPTED;
    }
    b->n_picked = (int)n_chunks;
    return CLI_OK;
}

cli_exit tune_take_blocks(const tune_task *task, caterva_array *array, tune_partition *p)
{
    cut_array from = {task, array, p, cut_up(task->info, p), 1};
    const cut *c = &from.c;
    tune_blocks *b = &p->blocks;
    int64_t wanted = at_least(BLOCKS_BYTES / c->block_bytes, 1);
    int64_t few = at_most(FEW_BYTES / c->block_bytes, MIN_CHUNKS);
    int64_t n_chunks = at_most(c->n_chunks, at_most(at_least(wanted, few), TUNE_MAX_CHUNKS));
    b->per_chunk = at_most(c->n_blocks, ceil_div(wanted, n_chunks));
    if (2 * b->per_chunk > c->n_blocks) b->per_chunk = c->n_blocks; /* reads all blocks */
    b->items = cli_alloc((size_t)(n_chunks * b->per_chunk * c->block_bytes));
    if (!b->items) return CLI_IO;
    CLI_TRY(take_chunks(&from, b, n_chunks));
    b->is_all = n_chunks == c->n_chunks && b->per_chunk == c->n_blocks;
    b->stored_chunks = (double)b->n_chunks / (double)n_chunks * (double)c->n_chunks;
    b->blocks_of_chunk = c->n_blocks;
    return CLI_OK;
}

/* ---- The size ---------------------------------------------------------------- */

static cli_exit sizes_of_chunks(caterva_array *array, double *sizes, double *sum)
{
    caterva_error err;
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    *sum = 0;
    for (int64_t i = 0; i < info_of(array)->n_chunks; i++) {
        if (caterva_chunk_describe(array, i, &chunk, &err) != CATERVA_OK)
            return cli_fail_array("the sample", &err);
        sizes[i] = (double)chunk.stored_bytes;
        *sum += sizes[i];
    }
    return CLI_OK;
}

/* Returns the number of blocks of the whole array that hold items. */
static double n_filled(const tune_task *task, const tune_partition *p)
{
    double n = 1;
    for (int d = 0; d < task->info->ndim; d++) {
        int64_t length = task->info->shape[d], whole = length / p->chunk[d];
        n *= (double)(whole * ceil_div(p->chunk[d], p->block[d]) +
                      ceil_div(length % p->chunk[d], p->block[d]));
    }
    return n;
}

/* Computes the size of the whole array from the array in memory. Compressed blocks grow with the
 * number of items, and checksums grow with the number of blocks. Headers have a fixed size. */
static cli_exit scale(const tune_task *task, const tune_partition *p, caterva_array *array,
                      double *bytes)
{
    const caterva_info *info = info_of(array);
    const tune_blocks *b = &p->blocks;
    double sizes[TUNE_MAX_CHUNKS], chunks;
    CLI_TRY(sizes_of_chunks(array, sizes, &chunks));
    for (int64_t i = 0; i < b->n_chunks; i++) sizes[i] -= (double)CHUNK_HEADER;
    double blocks = b->stored_chunks * (double)b->blocks_of_chunk;
    double filled = n_filled(task, p);
    double fixed = 3 * (double)info->header_bytes; /* the header, its copy, the trailer */
    double rest = (double)info->frame_bytes - chunks;
    double of_blocks = rest > fixed ? rest - fixed : 0;
    *bytes = (rest < fixed ? rest : fixed) + tune_expected(task, b, sizes) +
             b->stored_chunks * (double)CHUNK_HEADER +
             of_blocks / (double)(b->n_chunks * b->per_chunk) *
                 (blocks < filled ? blocks : filled) +
             (double)EMPTY_BLOCK * (blocks > filled ? blocks - filled : 0);
    return CLI_OK;
}

cli_exit tune_estimate(const tune_task *task, tune_trial *trial, bool *tried)
{
    const tune_partition *p = trial->partition;
    const tune_blocks *b = &p->blocks;
    caterva_create_options options = tune_options(task, trial);
    int64_t shape[CATERVA_MAX_DIMS];
    int32_t chunk[CATERVA_MAX_DIMS];
    size_t size = (size_t)task->info->item_size;
    for (int d = 0; d < task->info->ndim; d++) {
        shape[d] = p->block[d];
        chunk[d] = p->block[d];
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): there is an axis */
    chunk[0] *= (int32_t)b->per_chunk;
    shape[0] = chunk[0] * b->n_chunks;
    for (int d = 0; d < task->info->ndim; d++) size *= (size_t)shape[d];
    options.shape = shape;
    options.chunk_shape = chunk;
    caterva_array *array = NULL;
    caterva_error err;
    caterva_status status =
        caterva_create_from_memory("mem:", &options, b->items, size, &array, &err);
    *tried = status != CATERVA_EINVAL && status != CATERVA_EUNSUPPORTED &&
             status != CATERVA_EPIPELINE;
    if (!*tried) return CLI_OK;
    if (status == CATERVA_OK) status = caterva_commit(array, &err);
    cli_exit code = status == CATERVA_OK ? CLI_OK : cli_fail_array("the sample", &err);
    if (code == CLI_OK && b->n_chunks > 0) code = scale(task, p, array, &trial->bytes);
    if (code == CLI_OK && b->n_chunks == 0)
        trial->bytes = (double)info_of(array)->frame_bytes;
    if (p->current && trial->codec->current) trial->bytes = (double)task->info->frame_bytes;
    caterva_discard(array);
    return code;
}
