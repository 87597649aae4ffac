/* Reads of a file that is not in the page cache. Two numbers count: the bytes that the medium
 * delivers, compared with the size of the blocks that the box touches; and the time, compared
 * with fio reading the same ranges with 32 requests in flight. The block cache is off.
 *
 *   usage: bench_cold [--quick] [--rows REGEX] [--json FILE] [--clock wall|cpu] */
#include "bench_rows.h"

#include <caterva_upkeep.h>
#include <fcntl.h>

enum { SIDE = 384, CHUNK = 128, PAGE = 4096, FIO_LOOPS = 10 };

typedef struct cold_file {
    char path[256];
    int64_t side;
    int block, threads;
} cold_file;

typedef struct cold_box {
    const char *name;
    int64_t start[3], stop[3];
    double most; /* KiB that may be delivered; 0: 1.15 times the size of the blocks */
} cold_box;

/* Bytes [first, last) of the file; arrays of them are sorted. */
typedef struct cold_range {
    int64_t first, last;
} cold_range;

/* Returns the bytes that the medium has delivered to this process; -1 if they are not counted. */
static int64_t delivered(void)
{
    char key[64];
    long long value, found = -1;
    FILE *file = fopen("/proc/self/io", "r");
    if (file == NULL) return -1;
    while (fscanf(file, "%63s %lld", key, &value) == 2)
        if (strcmp(key, "read_bytes:") == 0) found = value;
    fclose(file);
    return found;
}

static void make(const cold_file *file)
{
    caterva_error err;
    caterva_array *array;
    int64_t origin[3] = {0, 0, 0}, shape[3] = {file->side, file->side, file->side};
    int32_t chunks[3] = {CHUNK, CHUNK, CHUNK},
            blocks[3] = {file->block, file->block, file->block};
    size_t n = (size_t)(file->side * file->side * file->side);
    float *items = bench_alloc(n * sizeof items[0]);
    uint64_t random = 1;
    for (size_t i = 0; i < n; i++)
        items[i] = (float)(i % 977) + (float)(bench_random(&random) & 4095) / 4096;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 3;
    o.shape = shape;
    o.chunk_shape = chunks;
    o.block_shape = blocks;
    o.dtype = "<f4";
    o.item_size = sizeof items[0];
    bench_need_ok(caterva_create(file->path, &o, &array, &err), &err, file->path);
    bench_need_ok(caterva_write(array, origin, shape, items, n * sizeof items[0], &err), &err,
                  file->path);
    bench_need_ok(caterva_close(array, &err), &err, file->path);
    free(items);
}

/* Removes the file's bytes from the system's page cache, after a sync. */
static void cool(const cold_file *file)
{
    int fd = open(file->path, O_RDONLY);
    bench_need(fd >= 0 && fsync(fd) == 0, file->path, "cannot be synced");
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static caterva_array *open_file(const cold_file *file)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.threads = file->threads;
    o.cache_bytes = -1;
    bench_need_ok(caterva_open(file->path, &o, &array, &err), &err, file->path);
    return array;
}

/* ---- What a box needs --------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
    const cold_range *x = a;
    const cold_range *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Returns the bytes of the file that contain block `block` of a chunk. */
static cold_range find_block(caterva_array *array, const cold_file *file, int64_t chunk,
                             int64_t block)
{
    caterva_error err;
    caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
    caterva_block_info stored = CATERVA_BLOCK_INFO_INIT;
    int32_t start = 0;
    int fd = open(file->path, O_RDONLY);
    bench_need_ok(caterva_chunk_describe(array, chunk, &info, &err), &err, file->path);
    bench_need_ok(caterva_block_describe(array, chunk, block, &stored, &err), &err,
                  file->path);
    off_t at = (off_t)(info.position + 32 + 4 * block); /* block starts, little-endian */
    bench_need(fd >= 0 && pread(fd, &start, sizeof start, at) == sizeof start, file->path,
               "cannot be read");
    close(fd);
    return (cold_range){info.position + start, info.position + start + stored.stored_bytes};
}

/* Returns the bytes of all blocks of the box, in the order of the file. Release with free. */
static cold_range *find_blocks(const cold_file *file, const cold_box *box, int64_t *n)
{
    caterva_array *array = open_file(file);
    int64_t edge = file->block, per_chunk = CHUNK / edge, n_chunks = file->side / CHUNK, i[3];
    int64_t most = 1;
    for (int d = 0; d < 3; d++) most *= (box->stop[d] - 1) / edge - box->start[d] / edge + 1;
    cold_range *ranges = bench_alloc((size_t)most * sizeof ranges[0]);
    *n = 0;
    for (i[0] = box->start[0] / edge; i[0] * edge < box->stop[0]; i[0]++)
        for (i[1] = box->start[1] / edge; i[1] * edge < box->stop[1]; i[1]++)
            for (i[2] = box->start[2] / edge; i[2] * edge < box->stop[2]; i[2]++) {
                int64_t chunk = 0, block = 0;
                for (int d = 0; d < 3; d++) {
                    chunk = chunk * n_chunks + i[d] / per_chunk;
                    block = block * per_chunk + i[d] % per_chunk;
                }
                ranges[(*n)++] = find_block(array, file, chunk, block);
            }
    caterva_close(array, NULL);
    qsort(ranges, (size_t)*n, sizeof ranges[0], by_first);
    return ranges;
}

static double kib_of(const cold_range *ranges, int64_t n)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) total += ranges[i].last - ranges[i].first;
    return (double)total / 1024;
}

/* Rounds ranges to whole pages and joins adjacent ones: a page cache cannot read less. */
static int64_t round_to_pages(cold_range *ranges, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        cold_range r = {ranges[i].first / PAGE * PAGE,
                        (ranges[i].last + PAGE - 1) / PAGE * PAGE};
        if (kept > 0 && r.first <= ranges[kept - 1].last)
            ranges[kept - 1].last =
                r.last > ranges[kept - 1].last ? r.last : ranges[kept - 1].last;
        else
            ranges[kept++] = r;
    }
    return kept;
}

/* ---- fio ------------------------------------------------------------------------------ */

/* Writes the reads for fio: the ranges in pieces of the size of a disk request, FIO_LOOPS times,
 * because fio measures in whole milliseconds. */
static void write_log(const cold_file *file, const char *log, const cold_range *ranges,
                      int64_t n)
{
    enum { PIECE = 256 * 1024 };
    FILE *out = fopen(log, "w");
    bench_need(out != NULL, log, "cannot be written");
    fprintf(out, "fio version 2 iolog\n%s add\n%s open\n", file->path, file->path);
    for (int64_t i = 0; i < n * FIO_LOOPS; i++) {
        cold_range r = ranges[i % n];
        for (; r.first < r.last; r.first += PIECE)
            fprintf(out, "%s read %lld %lld\n", file->path, (long long)r.first,
                    (long long)(r.last - r.first < PIECE ? r.last - r.first : PIECE));
    }
    fprintf(out, "%s close\n", file->path);
    fclose(out);
}

/* Returns fio's seconds for the ranges, without the page cache; INFINITY if fio cannot be run. */
static double time_fio(const cold_file *file, const cold_range *ranges, int64_t n)
{
    char log[300], command[700], line[512];
    double seconds = INFINITY;
    snprintf(log, sizeof log, "%s.fio", file->path);
    write_log(file, log, ranges, n);
    snprintf(command, sizeof command,
             "fio --name=cold --read_iolog='%s' --replay_no_stall=1 --ioengine=libaio "
             "--iodepth=32 --direct=1 2>/dev/null",
             log);
    FILE *out = popen(command, "r");
    while (out != NULL && fgets(line, sizeof line, out) != NULL) {
        const char *run = strstr(line, "run=");
        if (run != NULL) seconds = 1e-3 * atof(run + 4) / FIO_LOOPS;
    }
    if (out == NULL || pclose(out) != 0) seconds = INFINITY;
    remove(log);
    return seconds;
}

/* ---- Rows ----------------------------------------------------------------------------- */

static double read_once(caterva_array *array, const cold_box *box, void *items, size_t size)
{
    caterva_error err;
    double begun = bench_now();
    bench_need_ok(caterva_read(array, box->start, box->stop, items, size, &err), &err,
                  box->name);
    return bench_now() - begun;
}

/* Reads the box twice: first without and then with the file in the page cache. Returns the seconds
 * of the first read; *warm keeps the shortest time of the second. */
static double read_cold(const cold_file *file, const cold_box *box, void *items, size_t size,
                        double *kib, double *warm)
{
    caterva_error err;
    cool(file);
    caterva_array *array = open_file(file); /* what opening reads is not counted */
    int64_t before = delivered();
    double seconds = read_once(array, box, items, size);
    *kib = (double)(delivered() - before) / 1024;
    *warm = fmin(*warm, read_once(array, box, items, size));
    bench_need_ok(caterva_close(array, &err), &err, file->path);
    return seconds;
}

static void name_row(bench_row *row, const cold_file *file, const cold_box *box,
                     const char *what)
{
    int kib = file->block * file->block * file->block / 256;
    snprintf(row->name, sizeof row->name, "cold, %d KiB, %d T, %s, %s", kib, file->threads,
             box->name, what);
}

static void add_bytes(bench_table *table, const cold_file *file, const cold_box *box,
                      double kib, const char *rival, double theirs, double bar)
{
    bench_row row = {.unit = "KiB from the medium", .rival = rival, .bar = bar};
    row.ours = kib;
    row.theirs = theirs;
    name_row(&row, file, box, rival);
    bench_add_row(table, &row);
}

static void run(bench_table *table, const cold_file *file, const cold_box *box)
{
    bench_row row = {.rival = "fio", .bar = 1 / 1.25};
    name_row(&row, file, box, "time");
    if (!bench_wanted(table, row.name)) return;
    size_t size = sizeof(float);
    for (int d = 0; d < 3; d++) size *= (size_t)(box->stop[d] - box->start[d]);
    void *items = bench_alloc(size);
    int64_t n;
    cold_range *ranges = find_blocks(file, box, &n);
    double blocks = kib_of(ranges, n), kib = 0;
    n = round_to_pages(ranges, n);
    double pages = kib_of(ranges, n);
    double ours = INFINITY, theirs = INFINITY, warm = INFINITY;
    for (int turn = 0; turn < table->max_turns; turn++) {
        ours = fmin(ours, read_cold(file, box, items, size, &kib, &warm));
        theirs = fmin(theirs, time_fio(file, ranges, n));
    }
    free(items);
    free(ranges);
    if (kib <= 0) {
        printf("%s: skipped, the system keeps the file in memory\n", row.name);
        return;
    }
    if (box->most > 0)
        add_bytes(table, file, box, kib, "the bar", box->most, 1);
    else if (pages > 1.1 * blocks) /* scattered small blocks: a page cache cannot read less */
        add_bytes(table, file, box, kib, "pages of its blocks", pages, 1 / 1.15);
    else
        add_bytes(table, file, box, kib, "its blocks", blocks, 1 / 1.15);
    row.ours = 1e6 * ours;
    row.theirs = 1e6 * theirs;
    snprintf(row.note, sizeof row.note, "warm %.0f us", 1e6 * warm);
    if (box->most > 0) return; /* two reads in sequence: there is no queue to compare */
    if (isinf(theirs))
        printf("%s: skipped, fio cannot be run\n", row.name);
    else
        bench_add_row(table, &row);
}

int main(int argc, char **argv)
{
    bench_table table = {.min_turns = 3, .max_turns = 5};
    cold_file file = {.side = SIDE};
    int quick = 0;
    bench_parse(&table, argc, argv, &quick);
    if (quick) file.side = 2 * CHUNK;
    table.max_turns = quick ? 3 : 5;
    if (delivered() < 0) {
        printf("skipped: the system does not count what the medium delivers\n");
        return 0;
    }
    const char *directory = getenv("TMPDIR");
    snprintf(file.path, sizeof file.path, "%s/bench_cold-%ld.b2nd",
             directory != NULL ? directory : "/tmp", (long)getpid());
    int64_t n = file.side, at = file.side / 2 + 8;
    const cold_box boxes[] = {
        {"plane 0", {at, 0, 0}, {at + 1, n, n}, 0},
        {"plane 1", {0, at, 0}, {n, at + 1, n}, 0},
        {"plane 2", {0, 0, at}, {n, n, at + 1}, 0},
        {"point", {at, at + 1, at + 2}, {at + 1, at + 2, at + 3}, 64},
        {"first point", {0, 0, 0}, {1, 1, 1}, 64},
    };
    printf("caterva %s; a file that is not in the page cache\n", caterva_version());
    for (file.block = 16; file.block <= 32; file.block += 16) {
        file.threads = 1;
        make(&file);
        for (file.threads = 1; file.threads <= 2; file.threads++)
            for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
                cold_box box = boxes[i];
                if (box.most > 0 && file.block > 16)
                    box.most = 96; /* the block, 63 KiB, the chunk's header and its table */
                run(&table, &file, &box);
            }
        remove(file.path);
    }
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    return 0;
}
