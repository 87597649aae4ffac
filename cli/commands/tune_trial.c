/* Room: cli/commands. The sample of `tune`, and one trial on it. A candidate is written and read in
 * memory like any array. The time of a read in the whole array is estimated as its time on the
 * sample, multiplied by the ratio of the blocks that it touches in the array and in the sample. */
#include "commands/timing.h"
#include "commands/tune.h"
#include "terminal/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_BYTES ((int64_t)16 << 20)

/* ---- The sample ---------------------------------------------------------- */

/* Doubles the shortest axis while the sample stays within SAMPLE_BYTES. The result is as close to a
 * cube as the array allows. */
static void choose_shape(const caterva_info *info, int64_t *shape)
{
    int64_t size = info->item_size;
    for (int d = 0; d < info->ndim; d++) shape[d] = 1;
    for (;;) {
        int best = -1;
        for (int d = info->ndim - 1; d >= 0; d--)
            if (shape[d] < info->shape[d] && (best < 0 || shape[d] < shape[best])) best = d;
        if (best < 0 || size > SAMPLE_BYTES / 2) return;
        int64_t longer =
            2 * shape[best] < info->shape[best] ? 2 * shape[best] : info->shape[best];
        size = size / shape[best] * longer;
        shape[best] = longer;
    }
}

cli_exit tune_take_sample(tune_task *task, caterva_array *array)
{
    const caterva_info *info = task->info;
    tune_sample *sample = &task->sample;
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
    caterva_error err;
    choose_shape(info, sample->shape);
    sample->size = (size_t)info->item_size;
    for (int d = 0; d < info->ndim; d++) {
        start[d] = (info->shape[d] - sample->shape[d]) / 2;
        stop[d] = start[d] + sample->shape[d];
        sample->size *= (size_t)sample->shape[d];
    }
    sample->items = cli_alloc(sample->size);
    if (!sample->items) return CLI_IO;
    if (caterva_read(array, start, stop, sample->items, sample->size, &err) != CATERVA_OK)
        return cli_fail_array(task->path, &err);
    return CLI_OK;
}

/* ---- One trial ----------------------------------------------------------- */

/* Returns the mean number of blocks that a read touches in an array of `shape`. */
static double blocks_of_read(const tune_task *task, const tune_partition *p,
                             const int64_t *shape, const int64_t *lengths)
{
    double blocks = 1;
    for (int d = 0; d < task->info->ndim; d++) {
        timing_axis axis = {shape[d], p->chunk[d], p->block[d]};
        blocks *= timing_mean_blocks(&axis, lengths[d]);
    }
    return blocks;
}

static double block_bytes(const tune_task *task, const tune_partition *p)
{
    double bytes = task->info->item_size;
    for (int d = 0; d < task->info->ndim; d++) bytes *= p->block[d];
    return bytes;
}

/* Times a read, cut to the size of the sample, and scales its time to the whole array. */
static cli_exit try_read(const tune_task *task, caterva_array *array, double budget, int i,
                         tune_trial *trial)
{
    const int64_t *lengths = task->reads[i].lengths, *shape = task->sample.shape;
    int64_t cut[CATERVA_MAX_DIMS];
    double bytes = task->info->item_size;
    timed_reads timed;
    for (int d = 0; d < task->info->ndim; d++) {
        cut[d] = lengths[d] < shape[d] ? lengths[d] : shape[d];
        bytes *= (double)lengths[d];
    }
    CLI_TRY(timing_run(array, NULL, task->path, cut, budget, &timed));
    double blocks = blocks_of_read(task, trial->partition, task->info->shape, lengths);
    double timed_blocks = blocks_of_read(task, trial->partition, shape, cut);
    trial->seconds[i] = timed.seconds * blocks / timed_blocks;
    trial->amplification[i] = blocks * block_bytes(task, trial->partition) / bytes;
    return CLI_OK;
}

caterva_create_options tune_options(const tune_task *task, const tune_trial *trial)
{
    const tune_codec *codec = trial->codec;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = task->info->ndim;
    o.chunk_shape = trial->partition->chunk;
    o.block_shape = trial->partition->block;
    o.dtype = task->info->dtype;
    o.item_size = task->info->item_size;
    o.codec = codec->codec;
    o.codec_meta = codec->meta;
    o.use_dict = codec->use_dict;
    if (!codec->automatic) {
        o.level = codec->level > 0 ? codec->level : CATERVA_NONE;
        memcpy(o.filters, codec->filters, sizeof o.filters);
        memcpy(o.filters_meta, codec->filters_meta, sizeof o.filters_meta);
    }
    o.threads = task->threads;
    o.progress.report = progress_tell;
    o.cache_bytes = -1; /* the sample would fit in the cache, the array may not */
    return o;
}

/* Computes the score. The mean of the logarithms of the times is used, so that a long read does not
 * outweigh a short one, and halving the size has the same weight as halving all times. */
static void judge(const tune_task *task, tune_trial *trial)
{
    double times = 0;
    for (int i = 0; i < task->n_reads; i++) times += log(trial->seconds[i]) / task->n_reads;
    double size = log(trial->bytes), weight = task->prefer.size_weight;
    trial->ratio = (double)task->info->data_bytes / trial->bytes;
    trial->score = weight * size + (1 - weight) * times;
}

cli_exit tune_try(const tune_task *task, double budget, tune_trial *trial, bool *tried)
{
    caterva_create_options options = tune_options(task, trial);
    options.shape = task->sample.shape;
    caterva_array *array = NULL;
    caterva_error err;
    double started = timing_now();
    *tried = false;
    caterva_status status = caterva_create_from_memory("mem:", &options, task->sample.items,
                                                       task->sample.size, &array, &err);
    if (status == CATERVA_EINVAL || status == CATERVA_EUNSUPPORTED ||
        status == CATERVA_EPIPELINE)
        return CLI_OK;
    if (status == CATERVA_OK) status = caterva_commit(array, &err);
    cli_exit code = status == CATERVA_OK ? CLI_OK : cli_fail_array("the sample", &err);
    trial->write_seconds = timing_now() - started;
    for (int i = 0; i < task->n_reads && code == CLI_OK; i++)
        code = try_read(task, array, budget, i, trial);
    caterva_discard(array);
    if (code == CLI_OK) code = tune_estimate(task, trial, tried);
    if (code == CLI_OK && *tried) judge(task, trial);
    return code;
}
