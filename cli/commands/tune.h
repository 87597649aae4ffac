/* The candidates of `caterva tune`: partitions that suit the given reads, and codecs. Each is
 * timed on a sample of the user's data in memory; its size is estimated from blocks of the whole
 * array. */
#ifndef CLI_TUNE_H
#define CLI_TUNE_H

#include "cli.h"

#define TUNE_MAX_PARTITIONS 5
#define TUNE_MAX_CODECS 8
#define TUNE_MAX_CHUNKS 64 /* chunks from which blocks are picked */

/* A read to optimise: a box of this size, at any position. */
typedef struct tune_read {
    const char *text; /* the selection, as given */
    int64_t lengths[CATERVA_MAX_DIMS];
} tune_read;

/* A picked chunk of a partition. Padding outside of the array does not count as items. */
typedef struct tune_chunk {
    double n_items;   /* items of the array in the chunk */
    double n_sampled; /* items of the array in the picked blocks of the chunk */
    double density;   /* bytes per item in the present file */
} tune_chunk;

/* Blocks picked from all parts of the array. Each block has the layout that it has in a chunk of
 * the partition, with padding. */
typedef struct tune_blocks {
    uint8_t *items;       /* n_chunks times per_chunk blocks */
    int64_t n_chunks;     /* picked chunks that are not all zeros */
    int64_t per_chunk;    /* picked blocks in each of these chunks */
    double stored_chunks; /* expected number of chunks that are not all zeros */
    int64_t blocks_of_chunk;
    tune_chunk chunks[TUNE_MAX_CHUNKS]; /* first these n_chunks, then chunks of zeros */
    int n_picked;
    bool is_all; /* all blocks were picked */
} tune_blocks;

typedef struct tune_partition {
    int32_t chunk[CATERVA_MAX_DIMS], block[CATERVA_MAX_DIMS];
    bool current, automatic; /* the file's own partition; the library's choice */
    tune_blocks blocks;
} tune_partition;

typedef struct tune_codec {
    int codec, meta, level, use_dict;
    int filters[CATERVA_MAX_FILTERS], filters_meta[CATERVA_MAX_FILTERS];
    bool current;
    bool automatic; /* the library chooses level and filters for each chunk */
} tune_codec;

/* A box from the middle of the array. */
typedef struct tune_sample {
    int64_t shape[CATERVA_MAX_DIMS];
    uint8_t *items;
    size_t size;
} tune_sample;

/* The weight of the logarithm of the size in the score; times have the rest. */
typedef struct tune_preference {
    const char *name;
    double size_weight;
} tune_preference;

/* Returns the i-th word that --prefer accepts, or NULL after the last. */
const char *tune_preference_name(size_t i);

typedef struct tune_task {
    const char *path;
    tune_preference prefer;
    const caterva_info *info;
    int threads;
    tune_read reads[CLI_MAX_READS];
    int n_reads;
    tune_partition partitions[TUNE_MAX_PARTITIONS];
    int n_partitions;
    tune_codec codecs[TUNE_MAX_CODECS]; /* the file's own codec comes first */
    int n_codecs;
    tune_sample sample;
    double density; /* mean bytes per item in the present file */
} tune_task;

/* One combination of partition and codec, and its results. */
typedef struct tune_trial {
    const tune_partition *partition;
    const tune_codec *codec;
    double bytes;                        /* expected, whole file */
    double ratio;                        /* expected, whole file */
    double write_seconds;                /* time to write the sample */
    double seconds[CLI_MAX_READS];       /* expected times of single reads of the array */
    double amplification[CLI_MAX_READS]; /* bytes decoded per byte delivered */
    double score; /* weighted logarithms of times and size: smaller is better */
} tune_trial;

/* Fills task->partitions and task->codecs from task->info and task->reads. */
cli_exit tune_choose_candidates(tune_task *task);

/* Reads the sample. Release task->sample.items with free. */
cli_exit tune_take_sample(tune_task *task, caterva_array *array);

/* Reads the blocks of a partition. Release p->blocks.items with free. */
cli_exit tune_take_blocks(const tune_task *task, caterva_array *array, tune_partition *p);

/* Fills task->density: the bytes of the stored chunks per item of the array. */
cli_exit tune_measure_density(tune_task *task, caterva_array *array);

/* Finds the block of the present file that contains `item`. Adds the block's size to *bytes, and
 * its number of items to *n_items. */
cli_exit tune_add_density(const tune_task *task, caterva_array *array, const int64_t *item,
                          double *bytes, double *n_items);

/* Returns the expected bytes of all blocks of the array in a candidate's partition and codec.
 * `bytes` has the sizes of the n_chunks picked chunks. Corrects the estimate if the present file's
 * density in the picked chunks differs from its mean density. */
double tune_expected(const tune_task *task, const tune_blocks *b, const double *bytes);

/* Fills trial->bytes: the file's size if the candidate is its present partition and codec,
 * otherwise an estimate. *tried is false if the library rejects such an array. */
cli_exit tune_estimate(const tune_task *task, tune_trial *trial, bool *tried);

/* Returns options for an array in memory with the trial's partition and codec, but no shape. */
caterva_create_options tune_options(const tune_task *task, const tune_trial *trial);

/* Writes the sample with this partition and codec, and times every read on it for about `budget`
 * seconds. *tried is false if the library rejects such an array, which is not a failure. */
cli_exit tune_try(const tune_task *task, double budget, tune_trial *trial, bool *tried);

#endif
