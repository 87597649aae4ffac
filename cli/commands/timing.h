/* Times reads of boxes at random positions and counts the blocks they touch. The positions are the
 * same in every run. */
#ifndef CLI_TIMING_H
#define CLI_TIMING_H

#include "cli.h"

typedef struct timed_reads {
    int64_t n;      /* timed reads */
    double seconds; /* of one read, median */
    double again;   /* of the same read again through the other handle, median */
    int64_t bytes;  /* delivered by one read */
    double blocks;  /* touched by one read, mean; blocks never stored count too */
} timed_reads;

/* Seconds since a fixed point in time. */
double timing_now(void);

/* Reads boxes of `lengths` items (ndim entries, each in [1, shape]) for about `budget` seconds, at
 * least three times, after one read that is not timed. `other`: NULL, or another handle of the same
 * array, which reads each box twice, the second time timed. */
cli_exit timing_run(caterva_array *array, caterva_array *other, const char *path,
                    const int64_t *lengths, double budget, timed_reads *out);

/* The partition along an axis. */
typedef struct timing_axis {
    int64_t shape;
    int64_t chunk, block; /* >= 1 */
} timing_axis;

/* The blocks that [start, start + length) touches along an axis; length >= 1. */
int64_t timing_blocks(const timing_axis *axis, int64_t start, int64_t length);

/* The mean of timing_blocks over all positions, or over a thousand random ones. */
double timing_mean_blocks(const timing_axis *axis, int64_t length);

#endif
