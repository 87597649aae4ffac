/* The speed of each kind of cv_crc32c that this processor supports, from each level of memory, in
 * pieces of the size of compressed blocks. The best of the turns counts. In the rows of a cache the
 * pieces are contiguous and together fit into the cache, and each piece is read again only after
 * all others. */
#include "bench_rows.h"

#include "base/cpu.h"
#include "base/crc.h"

#include <string.h>

static bench_table table;

typedef struct place {
    const char *name;
    size_t size; /* bytes that are read in turn */
    size_t piece;
} place;

enum { KIB = 1024, MIB = 1024 * KIB };

static const place places[] = {
    {"first cache, 512 B", 16 * KIB, 512},     {"first cache, 5000 B", 20000, 5000},
    {"first cache, 16 KiB", 16 * KIB, 16384},  {"second cache, 2000 B", 400 * KIB, 2000},
    {"second cache, 5000 B", 400 * KIB, 5000}, {"second cache, 78000 B", 390000, 78000},
    {"third cache, 78000 B", 8 * MIB, 78000},  {"memory, 78000 B", 192 * MIB, 78000},
};
enum { N_PLACES = sizeof(places) / sizeof(places[0]), MOST_KINDS = 16 };

/* Returns the bytes per second of one kind. */
static double pace(const cv_crc32c_kind *kind, const uint8_t *bytes, const place *at)
{
    enum { LEAST = 4 * MIB }; /* enough for the clock's resolution */
    static volatile uint32_t sum;
    size_t n = at->size / at->piece, turns = 1 + LEAST / at->size;
    double started = bench_now();
    for (size_t turn = 0; turn < turns; turn++)
        for (size_t i = 0; i < n; i++) sum = kind->run(sum, bytes + i * at->piece, at->piece);
    return (double)(turns * n * at->piece) / (bench_now() - started);
}

/* The kinds take turns, so that other load on the machine affects all of them. */
static void run_place(const cv_crc32c_kind *kinds, int n, const uint8_t *bytes,
                      const place *at, int turns)
{
    double best[MOST_KINDS] = {0};
    for (int turn = 0; turn < turns; turn++)
        for (int i = 0; i < n; i++) {
            if (!cv_cpu_can(kinds[i].needs)) continue;
            double found = pace(&kinds[i], bytes, at);
            if (found > best[i]) best[i] = found;
        }
    double base = n > 1 ? best[n - 2] : best[0];
    for (int i = 0; i < n; i++) {
        if (best[i] == 0) continue;
        bench_row row = {.rival = "crc instruction",
                         .unit = "ns",
                         .ours = 1e9 * (double)at->piece / best[i],
                         .theirs = 1e9 * (double)at->piece / base};
        snprintf(row.name, sizeof(row.name), "%s, %s", at->name, kinds[i].name);
        snprintf(row.note, sizeof(row.note), "%.1f GB/s", best[i] / 1e9);
        if (bench_wanted(&table, row.name)) bench_add_row(&table, &row);
    }
}

int main(int argc, char **argv)
{
    int n, quick;
    bench_parse(&table, argc, argv, &quick);
    const cv_crc32c_kind *kinds = cv_crc32c_kinds(&n);
    bench_need(n <= MOST_KINDS, "kinds", "too many");
    size_t size = places[N_PLACES - 1].size;
    uint8_t *bytes = bench_alloc(size);
    uint64_t random = 42;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word = bench_random(&random);
        memcpy(bytes + i, &word, sizeof(word));
    }
    bench_print_title("CRC32C, ns for a piece; beside the crc instruction alone");
    for (int i = 0; i < N_PLACES; i++)
        run_place(kinds, n, bytes, &places[i], quick ? 3 : places[i].size > MIB ? 15 : 200);
    bench_write_json(&table, table.json);
    free(bytes);
    return 0;
}
