/* Four processes write one array at once, and one commit makes all of it visible.
 *
 *   usage: many-writers FILE
 *
 * Rows are divided without regard to chunks: some chunks are shared by two workers. Each
 * worker sends its token back through a pipe. An MPI program would gather the tokens, and
 * batch jobs would write them to files. */
#include <caterva.h>
#include <caterva_jobs.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 1001, COLUMNS = 300, WORKERS = 4, MAX_TOKEN = 65536 };

static const int64_t shape[2] = {ROWS, COLUMNS};

static void need(caterva_status status, const caterva_error *err)
{
    if (status == CATERVA_OK) return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

/* The item that the array has at (row, column). */
static float value(int64_t row, int64_t column)
{
    return (float)row + (float)column / COLUMNS;
}

/* Writes rows [first, end) into a part and sends its token. */
static void work(const char *path, const void *job, size_t job_size, int64_t first,
                 int64_t end, int to)
{
    caterva_error err;
    caterva_array *part;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = 1; /* the program already uses one process per worker */
    need(caterva_part_open(path, job, job_size, &options, &part, &err), &err);
    for (int64_t row = first; row < end; row++) {
        const int64_t start[2] = {row, 0}, stop[2] = {row + 1, COLUMNS};
        float items[COLUMNS];
        for (int64_t i = 0; i < COLUMNS; i++) items[i] = value(row, i);
        need(caterva_write(part, start, stop, items, sizeof items, &err), &err);
    }
    void *token;
    size_t size;
    need(caterva_part_finish(part, &token, &size, &err), &err);
    if (write(to, token, size) != (ssize_t)size) exit(1);
    caterva_free(token);
}

/* Starts worker `i`; its token can be read from the descriptor. */
static int start(const char *path, const void *job, size_t job_size, int i)
{
    int ends[2];
    if (pipe(ends) != 0) exit(1);
    fflush(stdout);
    if (fork() == 0) {
        close(ends[0]);
        work(path, job, job_size, (int64_t)ROWS * i / WORKERS,
             (int64_t)ROWS * (i + 1) / WORKERS, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

static size_t receive(int from, char *token)
{
    ssize_t n;
    size_t size = 0;
    while ((n = read(from, token + size, MAX_TOKEN - size)) > 0) size += (size_t)n;
    close(from);
    wait(NULL);
    return size;
}

static void check(caterva_array *array)
{
    caterva_error err;
    static float items[ROWS * COLUMNS];
    const int64_t origin[2] = {0, 0};
    need(caterva_read(array, origin, shape, items, sizeof items, &err), &err);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLUMNS; j++)
            if (items[i * COLUMNS + j] != value(i, j)) {
                fprintf(stderr, "item %lld, %lld is wrong\n", (long long)i, (long long)j);
                exit(1);
            }
}

int main(int argc, char **argv)
{
    static char tokens[WORKERS][MAX_TOKEN];
    const void *list[WORKERS];
    size_t sizes[WORKERS], job_size;
    int from[WORKERS];
    void *job;
    caterva_error err;
    caterva_array *array;
    caterva_merge_result result = CATERVA_MERGE_RESULT_INIT;
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = shape;
    options.chunk_shape = (const int32_t[]){100, 300};
    options.block_shape = (const int32_t[]){10, 300};
    options.dtype = "<f4";
    options.overwrite = 1;
    need(caterva_create(argv[1], &options, &array, &err), &err);
    need(caterva_job_begin(array, NULL, &job, &job_size, &err), &err);

    for (int i = 0; i < WORKERS; i++) from[i] = start(argv[1], job, job_size, i);
    for (int i = 0; i < WORKERS; i++) {
        sizes[i] = receive(from[i], tokens[i]);
        list[i] = tokens[i];
    }
    need(caterva_merge(array, list, sizes, WORKERS, NULL, &result, &err), &err);
    need(caterva_commit(array, &err), &err); /* the path holds no array before this */
    check(array);
    printf("%lld parts, %lld chunks: %lld moved, %lld spliced, %lld blocks decoded\n",
           (long long)result.parts, (long long)result.chunks, (long long)result.moved_chunks,
           (long long)result.spliced_chunks, (long long)result.decoded_blocks);
    caterva_free(job);
    need(caterva_close(array, &err), &err);
    return 0;
}
