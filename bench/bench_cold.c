/* Reads of a file that is not in the page cache: how much the medium delivers, beside what
 * the blocks that are wanted take, and how long it takes. One thread, no cache of ours.
 *
 * usage: bench_cold [--quick] [--rows REGEX] [--json FILE] [--clock wall|cpu] */
#include "bench_rows.h"

#include <fcntl.h>

enum { SIDE = 384, CHUNK = 128, BLOCK = 16, PER_CHUNK = CHUNK / BLOCK };

typedef struct cold_file {
    char path[256];
    int64_t side;
} cold_file;

typedef struct cold_box {
    const char *name;
    int64_t start[3], stop[3];
    double most; /* KiB that may be delivered; 0: 1.15 times what the blocks take */
} cold_box;

/* Bytes that this process had the medium deliver; -1: the system does not say. */
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
    int32_t chunks[3] = {CHUNK, CHUNK, CHUNK}, blocks[3] = {BLOCK, BLOCK, BLOCK};
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

/* Has the system forget the file's bytes, which are on the medium. */
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
    o.threads = 1;
    o.cache_bytes = -1;
    bench_need_ok(caterva_open(file->path, &o, &array, &err), &err, file->path);
    return array;
}

/* KiB that the blocks of the box take as they are stored. */
static double stored(caterva_array *array, const cold_file *file, const cold_box *box)
{
    caterva_error err;
    int64_t n_chunks = file->side / CHUNK, total = 0, i[3];
    for (i[0] = box->start[0] / BLOCK; i[0] * BLOCK < box->stop[0]; i[0]++)
        for (i[1] = box->start[1] / BLOCK; i[1] * BLOCK < box->stop[1]; i[1]++)
            for (i[2] = box->start[2] / BLOCK; i[2] * BLOCK < box->stop[2]; i[2]++) {
                int64_t chunk = 0, block = 0;
                for (int d = 0; d < 3; d++) {
                    chunk = chunk * n_chunks + i[d] / PER_CHUNK;
                    block = block * PER_CHUNK + i[d] % PER_CHUNK;
                }
                caterva_block_info info = CATERVA_BLOCK_INFO_INIT;
                bench_need_ok(caterva_block_describe(array, chunk, block, &info, &err), &err,
                              file->path);
                total += info.stored_bytes;
            }
    return (double)total / 1024;
}

static void run(bench_table *table, const cold_file *file, const cold_box *box)
{
    caterva_error err;
    bench_row row = {.rival = "its blocks", .unit = "KiB from the medium", .bar = 1 / 1.15};
    snprintf(row.name, sizeof row.name, "cold, 16 KiB, 1 T, %s", box->name);
    if (!bench_wanted(table, row.name)) return;
    size_t size = sizeof(float);
    for (int d = 0; d < 3; d++) size *= (size_t)(box->stop[d] - box->start[d]);
    void *items = bench_alloc(size);
    double seconds = INFINITY;
    for (int turn = 0; turn < table->max_turns; turn++) {
        cool(file);
        caterva_array *array = open_file(file); /* its own reads do not count */
        int64_t before = delivered();
        double begun = bench_now();
        bench_need_ok(caterva_read(array, box->start, box->stop, items, size, &err), &err,
                      file->path);
        seconds = fmin(seconds, bench_now() - begun);
        row.ours = (double)(delivered() - before) / 1024;
        row.theirs = box->most > 0 ? box->most : stored(array, file, box);
        bench_need_ok(caterva_close(array, &err), &err, file->path);
    }
    if (box->most > 0) row.bar = 1;
    free(items);
    if (row.ours <= 0) {
        printf("%s: skipped, the system keeps the file in memory or does not count\n",
               row.name);
        return;
    }
    snprintf(row.note, sizeof row.note, "%.2f ms", 1e3 * seconds);
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
    };
    printf("caterva %s; a file that is not in the page cache\n", caterva_version());
    make(&file);
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) run(&table, &file, &boxes[i]);
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    remove(file.path);
    return 0;
}
