/* Room: cli/commands. The blocks that `caterva tune` picks may compress better or worse than the
 * rest of the array. The present file shows by how much, because the sizes of all its chunks and
 * blocks are known. A linear regression of the candidate's sizes on the present sizes, over the
 * picked chunks, corrects the candidate's total (the regression estimator of sampling theory:
 * Cochran, Sampling Techniques, 1977, chapter 7). Without a correlation the total stays as it
 * is. */
#include "commands/tune.h"
#include "sources/described.h"
#include <caterva_upkeep.h>

enum { CHUNK_HEADER = 32, BLOCK_START = 4, MIN_PLACES = 8 };
#define MOST 4.0 /* limit of the correction factor and of its inverse */

cli_exit tune_measure_density(tune_task *task, caterva_array *array)
{
    caterva_error err;
    caterva_chunk_iter iter = CATERVA_CHUNK_ITER_INIT;
    double bytes = 0;
    for (;;) {
        if (caterva_chunk_next(array, &iter, &err) != CATERVA_OK)
            return cli_fail_array(task->path, &err);
        if (iter.done) break;
        bytes += (double)iter.chunk.stored_bytes;
        if (cli_interrupted()) return CLI_INTERRUPTED;
    }
    task->density = bytes / (double)task->info->n_items;
    return CLI_OK;
}

cli_exit tune_add_density(const tune_task *task, caterva_array *array, const int64_t *item,
                          double *bytes, double *n_items)
{
    const caterva_info *info = task->info;
    caterva_block_info found = CATERVA_BLOCK_INFO_INIT;
    caterva_error err;
    int64_t chunk = 0, block = 0;
    double items = 1;
    for (int d = 0; d < info->ndim; d++) {
        chunk = chunk * info->chunk_counts[d] + item[d] / info->chunk_shape[d];
        block = block * info->block_counts[d] +
                item[d] % info->chunk_shape[d] / info->block_shape[d];
    }
    if (caterva_block_describe(array, chunk, block, &found, &err) != CATERVA_OK)
        return cli_fail_array(task->path, &err);
    for (int d = 0; d < info->ndim; d++) items *= (double)(found.stop[d] - found.start[d]);
    *n_items += items;
    if (found.stored_bytes > 0)
        *bytes += (double)(found.stored_bytes + BLOCK_START) +
                  (double)CHUNK_HEADER / (double)info->n_blocks;
    return CLI_OK;
}

/* Weights chunks by their numbers of items, because chunks at the edge have fewer items. each[i] is
 * the density of chunk i in the candidate, 0 for a chunk of zeros. */
double tune_expected(const tune_task *task, const tune_blocks *b, const double *bytes)
{
    double all = 0, x = 0, y = 0, xx = 0, xy = 0, each[TUNE_MAX_CHUNKS] = {0};
    for (int i = 0; i < b->n_picked; i++) all += b->chunks[i].n_items;
    for (int i = 0; i < b->n_picked; i++) {
        const tune_chunk *c = &b->chunks[i];
        if (i < b->n_chunks) each[i] = bytes[i] / c->n_sampled;
        x += c->n_items / all * c->density;
        y += c->n_items / all * each[i];
    }
    for (int i = 0; i < b->n_picked; i++) {
        double away = b->chunks[i].density - x, weight = b->chunks[i].n_items / all;
        xx += weight * away * away;
        xy += weight * away * (each[i] - y);
    }
    double mean = y * (double)task->info->n_items;
    if (b->is_all || b->n_picked < MIN_PLACES || xx <= 0 || y <= 0) return mean;
    double factor = 1 + xy / xx * (task->density - x) / y;
    return mean * (factor < 1 / MOST ? 1 / MOST : factor > MOST ? MOST : factor);
}
