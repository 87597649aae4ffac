/* Room: cli/commands. Times reads like those of a program: boxes of one size at random positions,
 * through one open handle. `bench` and `tune` use it. */
#include "commands/timing.h"
#include "sources/described.h"

#include <stdlib.h>
#include <time.h>

enum { MIN_READS = 3, MAX_READS = 500, MAX_PLACES = 1000 };

double timing_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns a random number in [0, limit). SplitMix64: Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators", 2014. */
static int64_t random_below(uint64_t *state, int64_t limit)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)limit);
}

/* ---- Blocks -------------------------------------------------------------- */

static int64_t block_of(const timing_axis *axis, int64_t item)
{
    int64_t per_chunk = (axis->chunk - 1) / axis->block + 1;
    return item / axis->chunk * per_chunk + item % axis->chunk / axis->block;
}

int64_t timing_blocks(const timing_axis *axis, int64_t start, int64_t length)
{
    return block_of(axis, start + length - 1) - block_of(axis, start) + 1;
}

double timing_mean_blocks(const timing_axis *axis, int64_t length)
{
    uint64_t state = 1;
    int64_t places = axis->shape - length + 1;
    int64_t n = places < MAX_PLACES ? places : MAX_PLACES;
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += timing_blocks(axis, n == places ? i : random_below(&state, places), length);
    return (double)sum / (double)n;
}

/* ---- Time ---------------------------------------------------------------- */

/* A box that moves to random positions. */
typedef struct moving_box {
    const caterva_info *info;
    const int64_t *lengths;
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
    uint64_t random;
    void *dst;
    size_t size;
} moving_box;

static void move_box(moving_box *b)
{
    for (int d = 0; d < b->info->ndim; d++) {
        b->start[d] = random_below(&b->random, b->info->shape[d] - b->lengths[d] + 1);
        b->stop[d] = b->start[d] + b->lengths[d];
    }
}

static int64_t blocks_in(const moving_box *b)
{
    int64_t blocks = 1;
    for (int d = 0; d < b->info->ndim; d++) {
        timing_axis axis = {b->info->shape[d], b->info->chunk_shape[d],
                            b->info->block_shape[d]};
        blocks *= timing_blocks(&axis, b->start[d], b->lengths[d]);
    }
    return blocks;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int64_t n)
{
    qsort(times, (size_t)n, sizeof times[0], by_size);
    return times[n / 2];
}

static cli_exit time_read(caterva_array *array, const char *path, moving_box *b, double *took)
{
    caterva_error err;
    double started = timing_now();
    caterva_status status = caterva_read(array, b->start, b->stop, b->dst, b->size, &err);
    *took = timing_now() - started;
    if (status != CATERVA_OK) return cli_fail_array(path, &err);
    return cli_interrupted() ? CLI_INTERRUPTED : CLI_OK;
}

/* Times a read of the next box through `array`, and the second of two reads through `other`. */
static cli_exit time_place(caterva_array *array, caterva_array *other, const char *path,
                           moving_box *b, double *first, double *again)
{
    move_box(b);
    CLI_TRY(time_read(array, path, b, first));
    *again = *first;
    if (!other) return CLI_OK;
    CLI_TRY(time_read(other, path, b, again));
    return time_read(other, path, b, again);
}

static cli_exit time_all(caterva_array *array, caterva_array *other, const char *path,
                         moving_box *b, double budget, timed_reads *out)
{
    double first[MAX_READS], again[MAX_READS], spent = 0, blocks = 0;
    CLI_TRY(time_place(array, other, path, b, first, again)); /* warm-up, not timed */
    for (int64_t n = 0; n < MAX_READS && (n < MIN_READS || spent < budget); n++) {
        CLI_TRY(time_place(array, other, path, b, &first[n], &again[n]));
        spent += first[n];
        blocks += (double)blocks_in(b);
        out->n = n + 1;
    }
    out->seconds = median(first, out->n);
    out->again = median(again, out->n);
    out->blocks = blocks / (double)out->n;
    return CLI_OK;
}

cli_exit timing_run(caterva_array *array, caterva_array *other, const char *path,
                    const int64_t *lengths, double budget, timed_reads *out)
{
    moving_box b = {.info = info_of(array), .lengths = lengths, .random = 42};
    *out = (timed_reads){.bytes = b.info->item_size};
    for (int d = 0; d < b.info->ndim; d++) out->bytes *= lengths[d];
    b.size = (size_t)out->bytes;
    b.dst = cli_alloc(b.size);
    if (!b.dst) return CLI_IO;
    cli_exit code = time_all(array, other, path, &b, budget, out);
    free(b.dst);
    return code;
}
