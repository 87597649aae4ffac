/* The speed of each kind of cv_unshuffle_for that this processor supports, compared with the
 * portable kind: runs of blocks of 128 KiB, in lengths that occur in reads, and whole blocks. The
 * best of the turns counts. */
#include "bench_rows.h"

#include "base/cpu.h"
#include "engine/items/unshuffle.h"

static bench_table table;

enum { BLOCK = 128 * 1024, MOST_KINDS = 8 };

/* Items of each run; the runs of a block are processed in order. */
static const int64_t lengths[] = {8, 16, 32, 50, 64, 500, BLOCK};

static cv_unshuffle_function *function_of(const cv_unshuffle_kind *kind, int64_t item_size)
{
    return item_size == 2 ? kind->of_2 : item_size == 4 ? kind->of_4 : kind->of_8;
}

static double pace(cv_unshuffle_function *run, int64_t item_size, int64_t length,
                   const uint8_t *src, uint8_t *dst)
{
    int64_t plane = BLOCK / item_size, moved = 0;
    double started = bench_now();
    for (int turn = 0; turn < 8; turn++)
        for (int64_t i = 0; i + length <= plane; i += length, moved += length)
            run(src + i, plane, length, dst + i * item_size);
    return (double)(moved * item_size) / (bench_now() - started);
}

static void run_length(int64_t item_size, int64_t length, const uint8_t *src, uint8_t *dst,
                       int turns)
{
    int n;
    const cv_unshuffle_kind *kinds = cv_unshuffle_kinds(&n);
    double best[MOST_KINDS] = {0};
    bench_need(n <= MOST_KINDS, "kinds", "too many");
    if (length == BLOCK) length = BLOCK / item_size;
    for (int turn = 0; turn < turns; turn++)
        for (int i = 0; i < n; i++) {
            if (!cv_cpu_can(kinds[i].needs)) continue;
            double found =
                pace(function_of(&kinds[i], item_size), item_size, length, src, dst);
            if (found > best[i]) best[i] = found;
        }
    for (int i = 0; i < n; i++) {
        if (best[i] == 0) continue;
        double bytes = (double)(length * item_size);
        bench_row row = {.rival = "portable",
                         .unit = "ns",
                         .ours = 1e9 * bytes / best[i],
                         .theirs = 1e9 * bytes / best[n - 1]};
        snprintf(row.name, sizeof(row.name), "%d bytes, runs of %d, %s", (int)item_size,
                 (int)length, kinds[i].name);
        snprintf(row.note, sizeof(row.note), "%.1f GB/s", best[i] / 1e9);
        if (bench_wanted(&table, row.name)) bench_add_row(&table, &row);
    }
}

int main(int argc, char **argv)
{
    int quick;
    bench_parse(&table, argc, argv, &quick);
    uint8_t *src = bench_alloc(BLOCK), *dst = bench_alloc(BLOCK);
    memset(src, 1, BLOCK);
    memset(dst, 1, BLOCK);
    bench_print_title("unshuffling, ns for a run; beside the portable kernel");
    for (int64_t item_size = 2; item_size <= 8; item_size *= 2)
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
            run_length(item_size, lengths[i], src, dst, quick ? 5 : 200);
    bench_write_json(&table, table.json);
    free(src);
    free(dst);
    return 0;
}
