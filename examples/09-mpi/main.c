/* All processes of an MPI program write one array; one commit publishes it. */
#include <caterva.h>
#include <caterva_jobs.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1000, COLUMNS = 700, MAX_RANKS = 1000 };

static int rank, n_ranks;

static void check(caterva_status status, const caterva_error *err)
{
    if (status == CATERVA_OK) return;
    fprintf(stderr, "rank %d: %s\n", rank, err->message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int32_t item(int64_t row, int64_t column) { return (int32_t)(1000 * row + column); }

/* Returns the first row of a rank, which need not be a multiple of 64, the rows of a chunk. */
static int64_t first_row(int of) { return (int64_t)ROWS * of / n_ranks; }

static caterva_array *begin(const char *path, void **job, size_t *size)
{
    caterva_array *array;
    caterva_error err;
    const int64_t shape[] = {ROWS, COLUMNS};
    const int32_t chunk[] = {64, 256};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = shape;
    options.chunk_shape = chunk;
    options.dtype = "<i4";
    options.overwrite = 1;
    check(caterva_create(path, &options, &array, &err), &err);
    check(caterva_job_begin(array, NULL, job, size, &err), &err);
    return array;
}

/* Sends bytes of rank 0 to all ranks. Release the result with free. */
static void *share(const void *bytes, size_t *size)
{
    unsigned long n = *size;
    MPI_Bcast(&n, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    *size = n;
    char *out = malloc(n);
    for (size_t i = 0; bytes && i < n; i++) out[i] = ((const char *)bytes)[i];
    MPI_Bcast(out, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
    return out;
}

static void write_rows(const char *path, const void *job, size_t job_size, void **token,
                       size_t *token_size)
{
    caterva_array *part;
    caterva_error err;
    const int64_t start[] = {first_row(rank), 0}, stop[] = {first_row(rank + 1), COLUMNS};
    const size_t size = (size_t)(stop[0] - start[0]) * COLUMNS * sizeof(int32_t);
    int32_t *rows = malloc(size);
    for (int64_t r = start[0]; r < stop[0]; r++)
        for (int64_t c = 0; c < COLUMNS; c++) rows[(r - start[0]) * COLUMNS + c] = item(r, c);
    check(caterva_part_open(path, job, job_size, NULL, &part, &err), &err);
    check(caterva_write(part, start, stop, rows, size, &err), &err);
    check(caterva_part_finish(part, token, token_size, &err), &err);
    free(rows);
}

/* Returns, on rank 0, the tokens of all ranks, concatenated. */
static char *gather(const void *token, size_t size, int *sizes)
{
    int mine = (int)size, places[MAX_RANKS] = {0};
    char *all = NULL;
    MPI_Gather(&mine, 1, MPI_INT, sizes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = 1; i < n_ranks; i++) places[i] = places[i - 1] + sizes[i - 1];
        all = malloc((size_t)places[n_ranks - 1] + (size_t)sizes[n_ranks - 1]);
    }
    MPI_Gatherv(token, mine, MPI_BYTE, all, sizes, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    return all;
}

static void merge(caterva_array *array, const char *all, const int *sizes)
{
    const void *tokens[MAX_RANKS];
    size_t token_sizes[MAX_RANKS], at = 0;
    caterva_error err;
    caterva_merge_result result = CATERVA_MERGE_RESULT_INIT;
    for (int i = 0; i < n_ranks; i++) {
        tokens[i] = all + at;
        token_sizes[i] = (size_t)sizes[i];
        at += token_sizes[i];
    }
    check(caterva_merge(array, tokens, token_sizes, (size_t)n_ranks, NULL, &result, &err),
          &err);
    check(caterva_close(array, &err), &err);
    printf("%lld parts, %lld chunks, %lld of them moved as they were stored\n",
           (long long)result.parts, (long long)result.chunks, (long long)result.moved_chunks);
}

static void count_wrong(const char *path)
{
    caterva_array *array;
    caterva_error err;
    const int64_t start[] = {0, 0}, stop[] = {ROWS, COLUMNS};
    int32_t *rows = malloc(sizeof(int32_t) * ROWS * COLUMNS);
    int wrong = 0;
    check(caterva_open(path, NULL, &array, &err), &err);
    check(caterva_read(array, start, stop, rows, sizeof(int32_t) * ROWS * COLUMNS, &err),
          &err);
    check(caterva_close(array, &err), &err);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        wrong += rows[i] != item(i / COLUMNS, i % COLUMNS);
    printf("%d of %d items are wrong\n", wrong, ROWS * COLUMNS);
    free(rows);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "mpi.b2nd";
    caterva_array *array = NULL;
    void *begun = NULL, *token;
    size_t job_size = 0, token_size;
    int sizes[MAX_RANKS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (n_ranks > MAX_RANKS) MPI_Abort(MPI_COMM_WORLD, 2);

    if (rank == 0) array = begin(path, &begun, &job_size);
    void *job = share(begun, &job_size);
    write_rows(path, job, job_size, &token, &token_size);
    char *tokens = gather(token, token_size, sizes);
    if (rank == 0) {
        merge(array, tokens, sizes);
        count_wrong(path);
    }
    caterva_free(token);
    caterva_free(begun);
    free(tokens);
    free(job);
    return MPI_Finalize();
}
