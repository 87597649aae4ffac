/* Times reads of boxes at random positions, the same in every run, and counts touched blocks. */
#ifndef CLI_TIMING_H
#define CLI_TIMING_H

#include "cli.h"

typedef struct timed_reads {
    int64_t n;      /* number of timed reads */
    double seconds; /* median time of one read */
    double again;   /* median time of a repeated read through `other` */
    int64_t bytes;  /* bytes delivered by one read */
    double blocks;  /* mean number of blocks that a read touches, stored or not */
} timed_reads;

/* Returns the seconds since a fixed point in time. */
double timing_now(void);

/* Reads boxes of `lengths` items (ndim entries, each in [1, shape]) for about `budget` seconds, at
 * least three times, after one read that is not timed. `other` is NULL, or a second handle of the
 * same array. If it is not, each box is read twice through `other`, and `again` is of the second
 * reads. */
cli_exit timing_run(caterva_array *array, caterva_array *other, const char *path,
                    const int64_t *lengths, double budget, timed_reads *out);

/* The partition along an axis. */
typedef struct timing_axis {
    int64_t shape;
    int64_t chunk, block; /* >= 1 */
} timing_axis;

/* Returns the number of blocks that [start, start + length) touches along an axis. length >= 1. */
int64_t timing_blocks(const timing_axis *axis, int64_t start, int64_t length);

/* Returns the mean of timing_blocks over all positions, or over a thousand random positions. */
double timing_mean_blocks(const timing_axis *axis, int64_t length);

#endif
