/* Room: cli/commands. The partitions and codecs that `tune` tries. There are too many possible
 * partitions to measure all. A model of a read's cost picks a few block shapes of different size,
 * and measurements decide between them. */
#include "commands/timing.h"
#include "commands/tune.h"

#include <math.h>
#include <string.h>

/* The model of a read's cost: a time to find a block and call the decoder, and a decoding rate. */
#define SECONDS_PER_BLOCK 1e-6
#define BYTES_PER_SECOND 1.5e9

static double cost_of_read(const tune_task *task, const tune_read *read, const int64_t *block)
{
    double blocks = 1, bytes = task->info->item_size;
    for (int d = 0; d < task->info->ndim; d++) {
        timing_axis axis = {task->info->shape[d], block[d], block[d]};
        blocks *= timing_mean_blocks(&axis, read->lengths[d]);
        bytes *= (double)block[d];
    }
    return blocks * (SECONDS_PER_BLOCK + bytes / BYTES_PER_SECOND);
}

/* Returns the sum of the logarithms of the costs, so that a long read does not outweigh others. */
static double cost_of_all(const tune_task *task, const int64_t *block)
{
    double cost = 0;
    for (int i = 0; i < task->n_reads; i++)
        cost += log(cost_of_read(task, &task->reads[i], block));
    return cost;
}

/* Starts with a block of one item. While the block stays within `bytes`, doubles it along the axis
 * that makes the reads cheapest. If axes are equally good, takes the last one, because its items
 * are adjacent in memory. */
static void grow_block(const tune_task *task, int64_t bytes, int32_t *out)
{
    int ndim = task->info->ndim;
    int64_t block[CATERVA_MAX_DIMS], size = task->info->item_size;
    for (int d = 0; d < ndim; d++) block[d] = 1;
    while (size <= bytes / 2) {
        int best = -1;
        double least = INFINITY;
        for (int d = ndim - 1; d >= 0; d--) {
            /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): all are set
             * above */
            if (block[d] >= task->info->shape[d]) continue;
            block[d] *= 2;
            double cost = cost_of_all(task, block);
            block[d] /= 2;
            if (cost < least) {
                least = cost;
                best = d;
            }
        }
        if (best < 0) break;
        block[best] *= 2;
        size *= 2;
    }
    for (int d = 0; d < ndim; d++)
        out[d] = (int32_t)(block[d] < task->info->shape[d] ? block[d] : task->info->shape[d]);
}

static bool same_partition(const tune_task *task, const tune_partition *a,
                           const tune_partition *b)
{
    size_t size = (size_t)task->info->ndim * sizeof a->chunk[0];
    return memcmp(a->chunk, b->chunk, size) == 0 && memcmp(a->block, b->block, size) == 0;
}

/* Adds a partition with this block shape, or one that the library chooses if `block` is NULL. */
static cli_exit add_partition(tune_task *task, const int32_t *block, bool automatic)
{
    const caterva_info *info = task->info;
    tune_partition *p = &task->partitions[task->n_partitions];
    caterva_error err;
    *p = (tune_partition){.automatic = automatic};
    if (caterva_partition_choose(info->ndim, info->shape, info->item_size, NULL, block,
                                 p->chunk, p->block, &err) != CATERVA_OK)
        return cli_fail_array(task->path, &err);
    for (int i = 0; i < task->n_partitions; i++) {
        if (!same_partition(task, &task->partitions[i], p)) continue;
        task->partitions[i].automatic |= automatic;
        return CLI_OK;
    }
    task->n_partitions++;
    return CLI_OK;
}

static bool same_codec(const tune_codec *a, const tune_codec *b)
{
    return a->codec == b->codec && a->meta == b->meta && a->level == b->level &&
           a->use_dict == b->use_dict && a->automatic == b->automatic &&
           memcmp(a->filters, b->filters, sizeof a->filters) == 0 &&
           memcmp(a->filters_meta, b->filters_meta, sizeof a->filters_meta) == 0;
}

static void add_codec(tune_task *task, const tune_codec *codec)
{
    for (int i = 0; i < task->n_codecs; i++)
        if (same_codec(&task->codecs[i], codec)) return;
    task->codecs[task->n_codecs++] = *codec;
}

static void choose_codecs(tune_task *task)
{
    static const tune_codec usual[] = {
        {.codec = CATERVA_CODEC_LZ4, .level = 5, .filters = {CATERVA_FILTER_SHUFFLE}},
        {.codec = CATERVA_CODEC_LZ4, .level = 5, .filters = {CATERVA_FILTER_BITSHUFFLE}},
        {.codec = CATERVA_CODEC_ZSTD, .level = 2, .filters = {CATERVA_FILTER_SHUFFLE}},
        {.codec = CATERVA_CODEC_ZSTD, .level = 2, .filters = {CATERVA_FILTER_BITSHUFFLE}},
        {.codec = CATERVA_CODEC_ZSTD, .level = 5, .filters = {CATERVA_FILTER_SHUFFLE}},
        {.codec = CATERVA_CODEC_ZSTD, .level = 5, .filters = {CATERVA_FILTER_BITSHUFFLE}},
        {.codec = CATERVA_CODEC_ZSTD,
         .level = 5,
         .filters = {CATERVA_FILTER_SHUFFLE, CATERVA_FILTER_BYTEDELTA}},
    };
    const caterva_info *info = task->info;
    tune_codec own = {.codec = info->codec,
                      .meta = info->codec_meta,
                      .level = info->level > 0 ? info->level : 0,
                      .use_dict = info->use_dict && info->codec == CATERVA_CODEC_ZSTD,
                      .current = true};
    /* Removes the empty entries of `filters`, so that equal pipelines compare equal. If the first
     * entry has a meta but no filter, the library chose filters for each chunk: see
     * caterva_info. */
    own.automatic = info->filters[0] == CATERVA_FILTER_NONE && info->filters_meta[0] != 0;
    for (int i = 0, n = 0; i < CATERVA_MAX_FILTERS; i++) {
        if (info->filters[i] == CATERVA_FILTER_NONE) continue;
        own.filters[n] = info->filters[i];
        own.filters_meta[n++] = info->filters_meta[i];
    }
    if (own.filters[0] == 0) own.filters[0] = CATERVA_FILTER_NONE;
    add_codec(task, &own);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) add_codec(task, &usual[i]);
}

cli_exit tune_choose_candidates(tune_task *task)
{
    static const int64_t sizes[] = {8 << 10, 32 << 10, 128 << 10};
    tune_partition *own = &task->partitions[task->n_partitions++];
    *own = (tune_partition){.current = true};
    memcpy(own->chunk, task->info->chunk_shape, sizeof own->chunk);
    memcpy(own->block, task->info->block_shape, sizeof own->block);
    CLI_TRY(add_partition(task, NULL, true));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int32_t block[CATERVA_MAX_DIMS];
        grow_block(task, sizes[i], block);
        CLI_TRY(add_partition(task, block, false));
    }
    choose_codecs(task);
    return CLI_OK;
}
