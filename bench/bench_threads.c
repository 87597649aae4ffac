/* Random points read through one handle by two threads at once, compared with one thread: shows the
 * cost of a lock in the read path. The rival is caterva itself, because b2nd allows only one thread
 * on a handle. Each request runs on its caller's thread. */
#include "bench_readers.h"
#include "bench_rows.h"

#include <pthread.h>

enum { N_POINTS = 20000 };

static bench_table table = {.budget = 0.5, .min_turns = 5, .max_turns = 50};

typedef struct reader {
    caterva_array *array;
    int64_t side;
    uint64_t random;       /* state of the generator of points */
    uint64_t begun;        /* its state before the last points */
    float items[N_POINTS]; /* the last points */
} reader;

typedef struct crowd {
    reader readers[2];
    const float *data; /* the expected items; side^3 */
} crowd;

static void next_point(uint64_t *random, int64_t side, int64_t start[BENCH_NDIM])
{
    for (int d = 0; d < BENCH_NDIM; d++) start[d] = bench_below(random, side);
}

static void *read_points(void *context)
{
    reader *r = context;
    r->begun = r->random;
    for (int i = 0; i < N_POINTS; i++) {
        caterva_error err;
        int64_t start[BENCH_NDIM], stop[BENCH_NDIM];
        next_point(&r->random, r->side, start);
        for (int d = 0; d < BENCH_NDIM; d++) stop[d] = start[d] + 1;
        bench_need_ok(caterva_read(r->array, start, stop, &r->items[i], sizeof(float), &err),
                      &err, "read");
    }
    return NULL;
}

/* Compares the items. Not timed, because this costs as much as reading the file. */
static void check_points(void *context)
{
    const crowd *c = context;
    for (int k = 0; k < 2; k++) {
        const reader *r = &c->readers[k];
        uint64_t random = r->begun;
        for (int i = 0; i < N_POINTS; i++) {
            int64_t start[BENCH_NDIM];
            next_point(&random, r->side, start);
            int64_t at = (start[0] * r->side + start[1]) * r->side + start[2];
            bench_need(memcmp(&r->items[i], &c->data[at], sizeof(float)) == 0, "point",
                       "is wrong");
        }
    }
}

static double by_two(void *context)
{
    crowd *c = context;
    pthread_t other;
    double started = bench_now();
    bench_need(pthread_create(&other, NULL, read_points, &c->readers[1]) == 0, "thread",
               "cannot be started");
    read_points(&c->readers[0]);
    pthread_join(other, NULL);
    return (bench_now() - started) / (2 * N_POINTS);
}

static double by_one(void *context)
{
    crowd *c = context;
    double started = bench_now();
    read_points(&c->readers[0]);
    return (bench_now() - started) / N_POINTS;
}

static void run_row(const bench_readers *r, const float *data, const char *what,
                    int64_t cache_bytes)
{
    bench_row row = {.rival = "1 thread", .bar = 1.8};
    static crowd c;
    bench_duel duel = {&c, NULL, by_two, by_one, check_points};
    snprintf(row.name, sizeof(row.name), "%s, %s, points by 2 threads on one handle", what,
             cache_bytes == BENCH_CACHE_OFF ? "no cache" : "64 MiB cache");
    if (!bench_wanted(&table, row.name)) return;
    caterva_array *array = bench_open_reader(r->path, 1, cache_bytes);
    c.data = data;
    for (int i = 0; i < 2; i++) {
        c.readers[i].array = array;
        c.readers[i].side = r->spec.shape[0];
        c.readers[i].random = (uint64_t)i + 1;
    }
    bench_fight_row(&table, &row, &duel);
    caterva_discard(array);
}

int main(int argc, char **argv)
{
    int quick;
    uint64_t random = 42;
    bench_readers r = {.ours = NULL};
    bench_parse(&table, argc, argv, &quick);
    if (quick) table.budget = 0.1;
    int64_t side = quick ? 128 : 384;
    bench_scratch_path(r.path, "threads");
    blosc2_init();
    bench_print_title("threads; 384^3 float32 in 128^3 chunks, 16 KiB blocks, LZ4 5");
    for (int noisy = 1; noisy >= 0; noisy--) {
        float *data = bench_field(noisy, side, &random);
        r.spec = bench_cube(side, 16);
        bench_make_file(&r, data, side * side * side * (int64_t)sizeof(float), 1);
        const char *what = noisy ? "noisy" : "compressible";
        run_row(&r, data, what, BENCH_CACHE_OFF);
        run_row(&r, data, what, BENCH_CACHE_64_MIB);
        unlink(r.path);
        free(data);
    }
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    return 0;
}
