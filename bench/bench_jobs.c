/* Many writers of one array: processes that write parts, compared with one process that
 * writes the whole array; the cost of merging the parts, if they are aligned and if they
 * share blocks; and the memory that a merge of very many parts takes.
 *
 * Every process has one thread. Nothing is synced: the rows measure work, not the medium. */
#include "bench_readers.h"
#include "bench_rows.h"

#include <caterva_jobs.h>
#include <caterva_upkeep.h>
#include <sys/resource.h>

enum { MAX_WRITERS = 2, NOISE_BITS = 16, MOST_TOKEN = 1 << 20 };

static bench_table table = {.min_turns = 2, .max_turns = 3};
static uint64_t random_state = 42;
static int64_t shape[2] = {8192, 8192};
static int32_t chunks[2] = {256, 256}, blocks[2] = {64, 64};
static caterva_layout layout = CATERVA_LAYOUT_CONTIGUOUS;
static char path[512];
static float *data;

static caterva_create_options options(void)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunks;
    o.block_shape = blocks;
    o.dtype = "<f4";
    o.layout = layout;
    o.overwrite = 1;
    o.threads = 1;
    o.durability = CATERVA_DURABILITY_NONE;
    return o;
}

static double write_rows(caterva_array *array, int64_t first, int64_t end)
{
    caterva_error err;
    const int64_t start[2] = {first, 0}, stop[2] = {end, shape[1]};
    size_t size = (size_t)((end - first) * shape[1]) * sizeof data[0];
    double before = bench_now();
    bench_need_ok(caterva_write(array, start, stop, data + first * shape[1], size, &err),
                  &err, "write");
    return bench_now() - before;
}

static caterva_array *create(int threads)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = options();
    o.threads = threads;
    (void)caterva_delete(path, NULL, NULL); /* not timed, unlike a commit that does it */
    bench_need_ok(caterva_create(path, &o, &array, &err), &err, "create");
    return array;
}

static int64_t close_array(caterva_array *array)
{
    caterva_error err;
    bench_need_ok(caterva_close(array, &err), &err, "close");
    bench_need_ok(caterva_open(path, NULL, &array, &err), &err, "open");
    int64_t bytes = bench_info(array).frame_bytes;
    caterva_discard(array);
    return bytes;
}

/* ---- Writers ------------------------------------------------------------------------------ */

typedef struct run {
    double encode, merge; /* seconds */
    int64_t bytes;        /* of the file */
} run;

static run write_alone(void)
{
    caterva_error err;
    run r = {0};
    caterva_array *array = create(1);
    double before = bench_now();
    write_rows(array, 0, shape[0]);
    bench_need_ok(caterva_commit(array, &err), &err, "commit");
    r.encode = bench_now() - before;
    r.bytes = close_array(array);
    return r;
}

typedef struct job {
    void *bytes;
    size_t size;
} job;

static job write_part(const job *j, int64_t first, int64_t end)
{
    caterva_error err;
    caterva_array *part;
    caterva_open_options o = CATERVA_OPEN_INIT;
    job token;
    o.threads = 1;
    o.durability = CATERVA_DURABILITY_NONE;
    bench_need_ok(caterva_part_open(path, j->bytes, j->size, &o, &part, &err), &err, "part");
    write_rows(part, first, end);
    bench_need_ok(caterva_part_finish(part, &token.bytes, &token.size, &err), &err, "finish");
    return token;
}

/* Encodes rows into memory: no file, and nothing to merge. No writer can be faster. */
static void encode_into_memory(int64_t first, int64_t end)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = options();
    bench_need_ok(caterva_create("mem:", &o, &array, &err), &err, "create");
    write_rows(array, first, end);
    caterva_discard(array);
}

/* Processes that exist before the clock starts, like those of a pool. The parent uses so much
 * memory that creating a process takes 10 ms, and ending it another 10 ms. */
typedef struct writers {
    int n;
    int start[2];            /* the writers start when this pipe is closed */
    int tokens[MAX_WRITERS]; /* one pipe from each of them */
} writers;

/* Runs in a writer's process: writes its rows and sends the token; without a job, writes to
 * memory. */
static void be_writer(const job *j, int64_t first, int64_t end, const int start[2], int to)
{
    char sign;
    close(start[1]);
    bench_need(read(start[0], &sign, 1) == 0, "start", "not the end of the pipe");
    if (j) {
        job token = write_part(j, first, end);
        bench_need(write(to, token.bytes, token.size) == (ssize_t)token.size, "token", "cut");
    } else {
        encode_into_memory(first, end);
    }
    close(to);
    _exit(0);
}

static writers make_writers(const job *j, int n, int64_t split)
{
    writers w = {.n = n};
    bench_need(pipe(w.start) == 0, "pipe", "none");
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        int pipes[2];
        bench_need(pipe(pipes) == 0, "pipe", "none");
        if (fork() == 0)
            be_writer(j, i == 0 ? 0 : split, i + 1 == n ? shape[0] : split, w.start,
                      pipes[1]);
        close(pipes[1]);
        w.tokens[i] = pipes[0];
    }
    close(w.start[0]);
    usleep(20000); /* until all writers wait for the start */
    return w;
}

static job take_token(int from)
{
    job token = {bench_alloc(MOST_TOKEN), 0};
    ssize_t n;
    while ((n = read(from, (char *)token.bytes + token.size, MOST_TOKEN - token.size)) > 0)
        token.size += (size_t)n;
    close(from);
    return token;
}

/* Starts the writers. Returns the seconds until all tokens have arrived. */
static double let_write(writers *w, job *tokens)
{
    double before = bench_now();
    close(w->start[1]);
    for (int i = 0; i < w->n; i++) tokens[i] = take_token(w->tokens[i]);
    double seconds = bench_now() - before;
    while (wait(NULL) > 0) continue;
    return seconds;
}

static void merge(caterva_array *array, const job *tokens, int n)
{
    caterva_error err;
    const void **bytes = bench_alloc((size_t)n * sizeof bytes[0]);
    size_t *sizes = bench_alloc((size_t)n * sizeof sizes[0]);
    for (int i = 0; i < n; i++) {
        bytes[i] = tokens[i].bytes;
        sizes[i] = tokens[i].size;
    }
    bench_need_ok(caterva_merge(array, bytes, sizes, (size_t)n, NULL, NULL, &err), &err,
                  "merge");
    bench_need_ok(caterva_commit(array, &err), &err, "commit");
    free(bytes);
    free(sizes);
}

static run write_into_memory(int n, int64_t split)
{
    run r = {0};
    job nothing[MAX_WRITERS];
    writers w = make_writers(NULL, n, split);
    r.encode = let_write(&w, nothing);
    for (int i = 0; i < n; i++) free(nothing[i].bytes);
    return r;
}

/* Writes the rows with `n` writers and merges them. The second writer begins at row `split`. */
static run write_together(int n, int64_t split)
{
    caterva_error err;
    run r = {0};
    job j, tokens[MAX_WRITERS];
    caterva_array *array = create(2);
    bench_need_ok(caterva_job_begin(array, NULL, &j.bytes, &j.size, &err), &err, "begin");
    writers w = make_writers(&j, n, split);
    r.encode = let_write(&w, tokens);
    double encoded = bench_now();
    merge(array, tokens, n);
    r.merge = bench_now() - encoded;
    r.bytes = close_array(array);
    for (int i = 0; i < n; i++) free(tokens[i].bytes);
    caterva_free(j.bytes);
    return r;
}

/* Ways to write the rows. */
typedef enum way {
    ALONE,
    ONE,
    TWO,
    RAGGED,
    IN_DIRECTORY,
    IN_MEMORY,
    TWO_IN_MEMORY,
    WAYS
} way;

static run write_so(way how)
{
    int64_t half = shape[0] / 2 / chunks[0] * chunks[0];
    layout = how == IN_DIRECTORY ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    switch (how) {
    case ALONE: return write_alone();
    case ONE: return write_together(1, shape[0]);
    case TWO:
    case IN_DIRECTORY: return write_together(2, half);
    case RAGGED: return write_together(2, half + chunks[0] / 2 + 3);
    case IN_MEMORY: return write_into_memory(1, shape[0]);
    default: return write_into_memory(2, half);
    }
}

/* Runs all ways in several turns, and keeps the shortest time of each step separately: the steps
 * are independent, and their times depend much on the free memory of the machine. */
static void write_all(run best[WAYS])
{
    for (int i = 0; i < table.max_turns; i++)
        for (way how = ALONE; how < WAYS; how++) {
            run r = write_so(how);
            if (i > 0 && best[how].encode < r.encode) r.encode = best[how].encode;
            if (i > 0 && best[how].merge < r.merge) r.merge = best[how].merge;
            best[how] = r;
        }
}

/* ---- Rows --------------------------------------------------------------------------------- */

static void add(const char *name, const char *rival, double ours, double theirs, double bar,
                const char *unit)
{
    bench_row row = {
        .rival = rival, .unit = unit, .ours = ours, .theirs = theirs, .bar = bar};
    snprintf(row.name, sizeof row.name, "%s", name);
    if (bench_wanted(&table, name)) bench_add_row(&table, &row);
}

static void bench_writers(void)
{
    run best[WAYS];
    write_all(best);
    double us = 1e6, one = best[ONE].encode, alone = (double)best[ALONE].bytes;
    add("encode into memory, 2 processes", "1 process", us * best[TWO_IN_MEMORY].encode,
        us * best[IN_MEMORY].encode, 0, NULL);
    add("encode all, 2 processes", "1 process", us * best[TWO].encode, us * one, 1.8, NULL);
    add("write all, 2 processes, merged and committed", "1 writer",
        us * (best[TWO].encode + best[TWO].merge), us * best[ALONE].encode, 1.6, NULL);
    add("merge and commit, aligned", "a 10th of encoding", us * best[TWO].merge,
        us * one / 10, 1, NULL);
    add("merge and commit, unaligned", "15 % of encoding", us * best[RAGGED].merge,
        us * one * 0.15, 1, NULL);
    add("merge and commit, aligned, a directory", "a 10th of encoding",
        us * best[IN_DIRECTORY].merge, us * one / 10, 1, NULL);
    add("bytes of the file, aligned", "1 writer, 5 % more", (double)best[TWO].bytes,
        1.05 * alone, 1, "bytes");
    add("bytes of the file, unaligned", "1 writer, 5 % more", (double)best[RAGGED].bytes,
        1.05 * alone, 1, "bytes");
}

/* A merge of very many parts of a few rows each. */
typedef struct many {
    int n;
    int rows;
    double seconds;
} many;

static double merge_many(void *context)
{
    caterva_error err;
    many *m = context;
    job j, *tokens = bench_alloc((size_t)m->n * sizeof tokens[0]);
    caterva_array *array = create(2);
    bench_need_ok(caterva_job_begin(array, NULL, &j.bytes, &j.size, &err), &err, "begin");
    for (int i = 0; i < m->n; i++)
        tokens[i] = write_part(&j, (int64_t)i * m->rows, (int64_t)(i + 1) * m->rows);
    double before = bench_now();
    merge(array, tokens, m->n);
    m->seconds = bench_now() - before;
    printf("    %d parts of %d rows: written, then merged in %.2f s\n", m->n, m->rows,
           m->seconds);
    fflush(stdout);
    close_array(array);
    return 0;
}

static void bench_many(int n, int rows)
{
    char name[80];
    many m = {.n = n, .rows = rows};
    shape[0] = (int64_t)n * rows;
    shape[1] = 64;
    chunks[0] = 16;
    chunks[1] = blocks[1] = 64;
    blocks[0] = 4;
    snprintf(name, sizeof name, "KiB of memory, %d parts of %d rows of chunks of 16", n,
             rows);
    if (bench_wanted(&table, name))
        add(name, "200 MiB", bench_memory_of(merge_many, &m), 200 * 1024, 1, "KiB");
}

int main(int argc, char **argv)
{
    int quick;
    bench_parse(&table, argc, argv, &quick);
    if (quick) shape[0] = shape[1] = 2048;
    if (quick) table.max_turns = 1;
    int64_t n = shape[0] * shape[1];
    data = bench_alloc((size_t)n * sizeof data[0]);
    bench_noise(data, n, NOISE_BITS, &random_state);
    bench_scratch_path(path, "jobs");
    bench_print_title("many writers of one array, zstd, noise; 1 thread each");
    if (bench_wanted(&table, "encode, write, merge and commit, bytes")) bench_writers();
    bench_many(quick ? 1000 : 10000, 16);
    bench_many(quick ? 1000 : 10000, 1);
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    (void)caterva_delete(path, NULL, NULL);
    free(data);
    return 0;
}
