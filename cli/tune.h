/* What `caterva tune` tries: partitions that suit the stated reads, and codecs,
 * each measured on a sample of the user's data in memory. */
#ifndef CLI_TUNE_H
#define CLI_TUNE_H

#include "cli.h"

#define TUNE_MAX_PARTITIONS 5
#define TUNE_MAX_CODECS 5

/* A read that shall be fast: a box of this size, anywhere. */
typedef struct tune_read {
    const char *text; /* the selection, as given */
    int64_t lengths[CATERVA_MAX_DIMS];
} tune_read;

typedef struct tune_partition {
    int32_t chunk[CATERVA_MAX_DIMS], block[CATERVA_MAX_DIMS];
    bool current, automatic; /* the file's own; what the library would choose */
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

typedef struct tune_task {
    const char *path;
    const caterva_info *info;
    int threads;
    tune_read reads[CLI_MAX_READS];
    int n_reads;
    tune_partition partitions[TUNE_MAX_PARTITIONS];
    int n_partitions;
    tune_codec codecs[TUNE_MAX_CODECS]; /* the file's own is the first */
    int n_codecs;
    tune_sample sample;
} tune_task;

/* One combination and what it gave. */
typedef struct tune_trial {
    const tune_partition *partition;
    const tune_codec *codec;
    double ratio;
    double write_seconds;                /* of the sample */
    double seconds[CLI_MAX_READS];       /* one read of the whole array, expected */
    double amplification[CLI_MAX_READS]; /* bytes decoded for each one delivered  */
    double score; /* sum of the logarithms of the times: less is better */
} tune_trial;

/* Fills task->partitions and task->codecs, from task->info and task->reads. */
cli_exit tune_choose_candidates(tune_task *task);

/* Reads the sample. Release task->sample.items with free. */
cli_exit tune_take_sample(tune_task *task, caterva_array *array);

/* Writes the sample in this partition and codec and times every read on it for
 * about `budget` seconds. *tried is false when the library refuses such an array,
 * which is no failure. */
cli_exit tune_try(const tune_task *task, double budget, tune_trial *trial, bool *tried);

#endif
