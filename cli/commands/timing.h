/* Reads of boxes at random places: how long one takes, and how many blocks it
 * touches. Places are the same in every run. */
#ifndef CLI_TIMING_H
#define CLI_TIMING_H

#include "cli.h"

typedef struct timed_reads {
    int64_t n;      /* reads that were timed                                      */
    double seconds; /* one read, median                                           */
    double again;   /* the same read once more through the other handle, median   */
    int64_t bytes;  /* delivered by one read                                      */
    double blocks;  /* touched by one read, mean; those never stored count too    */
} timed_reads;

/* Seconds since some fixed moment. */
double timing_now(void);

/* Reads boxes of `lengths` items (ndim entries, each in [1, shape]) for about
 * `budget` seconds: three times at least, and once before the clock runs. `other`
 * is NULL, or another handle of the same array, which reads each box twice, the
 * second time by the clock. */
cli_exit timing_run(caterva_array *array, caterva_array *other, const char *path,
                    const int64_t *lengths, double budget, timed_reads *out);

/* How an axis is cut. */
typedef struct timing_axis {
    int64_t shape;
    int64_t chunk, block; /* >= 1 */
} timing_axis;

/* Blocks that [start, start + length) touches along an axis; length >= 1. */
int64_t timing_blocks(const timing_axis *axis, int64_t start, int64_t length);

/* Its mean over all places, or a thousand of them where there are more. */
double timing_mean_blocks(const timing_axis *axis, int64_t length);

#endif
