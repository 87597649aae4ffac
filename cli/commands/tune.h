/* What `caterva tune` tries: partitions that suit the stated reads, and codecs. Each
 * is timed on a sample of the user's data in memory, and its size is estimated from
 * blocks of the whole array. */
#ifndef CLI_TUNE_H
#define CLI_TUNE_H

#include "cli.h"

#define TUNE_MAX_PARTITIONS 5
#define TUNE_MAX_CODECS 7
#define TUNE_MAX_CHUNKS 64 /* from which blocks are taken */

/* A read to optimise: a box of this size, anywhere. */
typedef struct tune_read {
    const char *text; /* the selection, as given */
    int64_t lengths[CATERVA_MAX_DIMS];
} tune_read;

/* A chunk of a partition that was picked. Padding, outside of the array, is no item. */
typedef struct tune_chunk {
    double n_items;   /* of the array in the chunk                */
    double n_sampled; /* of those in the blocks that were taken   */
    double density;   /* bytes that the file takes now for one of them */
} tune_chunk;

/* Blocks of a partition from all over the array, as its chunks hold them. */
typedef struct tune_blocks {
    uint8_t *items;       /* n_chunks times per_chunk blocks                    */
    int64_t n_chunks;     /* that were picked and are not all zeros             */
    int64_t per_chunk;    /* blocks of each                                     */
    double stored_chunks; /* how many of all chunks will not be zeros, expected */
    int64_t blocks_of_chunk;
    tune_chunk chunks[TUNE_MAX_CHUNKS]; /* the n_chunks, then those that are zeros */
    int n_picked;
    bool is_all; /* the blocks are all that there are */
} tune_blocks;

typedef struct tune_partition {
    int32_t chunk[CATERVA_MAX_DIMS], block[CATERVA_MAX_DIMS];
    bool current, automatic; /* the file's own; what the library would choose */
    tune_blocks blocks;
} tune_partition;

typedef struct tune_codec {
    int codec, meta, level, use_dict;
    int filters[CATERVA_MAX_FILTERS], filters_meta[CATERVA_MAX_FILTERS];
    bool current;
} tune_codec;

/* A box out of the middle of the array. */
typedef struct tune_sample {
    int64_t shape[CATERVA_MAX_DIMS];
    uint8_t *items;
    size_t size;
} tune_sample;

/* What counts: the logarithm of the size so much, of the times the rest. */
typedef struct tune_preference {
    const char *name;
    double size_weight;
} tune_preference;

/* Of what --prefer takes; NULL behind the last. */
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
    tune_codec codecs[TUNE_MAX_CODECS]; /* the file's own is the first */
    int n_codecs;
    tune_sample sample;
    double density; /* bytes that the file takes now for an item, in the mean of all */
} tune_task;

/* One combination and what it gave. */
typedef struct tune_trial {
    const tune_partition *partition;
    const tune_codec *codec;
    double bytes;                        /* of the whole file, expected */
    double ratio;                        /* of the whole file, expected */
    double write_seconds;                /* of the sample */
    double seconds[CLI_MAX_READS];       /* one read of the whole array, expected */
    double amplification[CLI_MAX_READS]; /* bytes decoded for each one delivered  */
    double score; /* weighted logarithms of the times and the size: less is better */
} tune_trial;

/* Fills task->partitions and task->codecs, from task->info and task->reads. */
cli_exit tune_choose_candidates(tune_task *task);

/* Reads the sample. Release task->sample.items with free. */
cli_exit tune_take_sample(tune_task *task, caterva_array *array);

/* Reads the blocks of a partition. Release p->blocks.items with free. */
cli_exit tune_take_blocks(const tune_task *task, caterva_array *array, tune_partition *p);

/* Fills task->density: the bytes of the stored chunks for each item of the array. */
cli_exit tune_measure_density(tune_task *task, caterva_array *array);

/* Adds to *bytes what the file takes now for the block in which `item` lies, and to
 * *n_items how many items of the array that block holds. */
cli_exit tune_add_density(const tune_task *task, caterva_array *array, const int64_t *item,
                          double *bytes, double *n_items);

/* The bytes that the whole array takes in a candidate's blocks; `bytes` are those of the n_chunks
 * that were taken. Corrected because the file's density there is not that of the whole. */
double tune_expected(const tune_task *task, const tune_blocks *b, const double *bytes);

/* Fills trial->bytes: of the file as it is its size, else an estimate. *tried is false when the
 * library refuses such an array. */
cli_exit tune_estimate(const tune_task *task, tune_trial *trial, bool *tried);

/* For an array of the trial's partition and codec, in memory; the shape is missing. */
caterva_create_options tune_options(const tune_task *task, const tune_trial *trial);

/* Writes the sample in this partition and codec and times every read on it for
 * about `budget` seconds. *tried is false when the library refuses such an array,
 * which is no failure. */
cli_exit tune_try(const tune_task *task, double budget, tune_trial *trial, bool *tried);

#endif
