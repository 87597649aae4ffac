/* One array written by two workers, one step per run, for test_jobs.py, which kills them.
 *
 *     tool_jobs init LAYOUT FILE     the array, a job, and the first worker's part
 *     tool_jobs work FILE            the second worker
 *     tool_jobs merge FILE           merges both and commits; prints ACK 1
 *     tool_jobs check FILE ACK       exit status 0: the array is in the old state or, required
 *                                    after ACK 1, in the new one; prints which
 *
 * Job and tokens are files next to the array. */
#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_jobs.h"

#include "support/check.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 20, N = SIDE * SIDE };

static const int64_t shape[2] = {SIDE, SIDE}, origin[2] = {0, 0};
static int32_t before[N], after[N];

static const int64_t starts[2][2] = {{1, 0}, {9, 3}}, stops[2][2] = {{9, 17}, {18, 20}};

static const char *beside(const char *path, const char *what)
{
    static char name[4096];
    snprintf(name, sizeof name, "%s.%s", path, what);
    return name;
}

static void make_states(void)
{
    for (int i = 0; i < N; i++) before[i] = after[i] = 1000 + i;
    for (int w = 0; w < 2; w++)
        for (int64_t r = starts[w][0]; r < stops[w][0]; r++)
            for (int64_t c = starts[w][1]; c < stops[w][1]; c++)
                after[r * SIDE + c] = (int32_t)(-1 - w * 7 - r * c);
}

static void *load(const char *path, const char *what, size_t *size)
{
    void *bytes = scratch_load(beside(path, what), size);
    CHECK(bytes, "no %s", what);
    return bytes;
}

static int work(const char *path, int w)
{
    caterva_error err;
    caterva_array *part;
    void *job, *token;
    size_t job_size, size;
    int32_t items[N];
    int n = 0;
    job = load(path, "job", &job_size);
    for (int64_t r = starts[w][0]; r < stops[w][0]; r++)
        for (int64_t c = starts[w][1]; c < stops[w][1]; c++) items[n++] = after[r * SIDE + c];
    if (caterva_part_open(path, job, job_size, NULL, &part, &err) != CATERVA_OK) return 3;
    caterva_status status =
        caterva_write(part, starts[w], stops[w], items, sizeof items, &err);
    if (status != CATERVA_OK) {
        caterva_discard(part);
        return 3;
    }
    if (caterva_part_finish(part, &token, &size, &err) != CATERVA_OK) return 3;
    scratch_save(beside(path, w ? "token1" : "token0"), token, size);
    caterva_free(token);
    free(job);
    return 0;
}

static int init(const char *layout, const char *path)
{
    caterva_error err;
    caterva_array *array;
    void *job;
    size_t size;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = (const int32_t[]){8, 8};
    o.block_shape = (const int32_t[]){4, 8};
    o.dtype = "<i4";
    o.layout =
        strcmp(layout, "directory") ? CATERVA_LAYOUT_CONTIGUOUS : CATERVA_LAYOUT_SPARSE;
    CHECK_OK(caterva_create_from_memory(path, &o, before, sizeof before, &array, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    CHECK_OK(caterva_job_begin(array, NULL, &job, &size, &err), err);
    scratch_save(beside(path, "job"), job, size);
    caterva_free(job);
    CHECK_OK(caterva_close(array, &err), err);
    return work(path, 0);
}

static int merge(const char *path)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    const void *tokens[2];
    size_t sizes[2];
    o.mode = CATERVA_MODE_WRITE;
    tokens[0] = load(path, "token0", &sizes[0]);
    tokens[1] = load(path, "token1", &sizes[1]);
    if (caterva_open(path, &o, &array, &err) != CATERVA_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 3;
    }
    caterva_status status = caterva_merge(array, tokens, sizes, 2, NULL, NULL, &err);
    if (status == CATERVA_OK) status = caterva_commit(array, &err);
    if (status != CATERVA_OK) fprintf(stderr, "%s\n", err.message);
    if (status == CATERVA_OK && write(1, "ACK 1\n", 6) != 6) return 3;
    caterva_discard(array);
    free((void *)tokens[0]);
    free((void *)tokens[1]);
    return status == CATERVA_OK ? 0 : status == CATERVA_ENOTFOUND ? 4 : 3;
}

static int check(const char *path, int ack)
{
    caterva_error err;
    caterva_array *array;
    int32_t got[N];
    caterva_verify_result verified = CATERVA_VERIFY_RESULT_INIT;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, origin, shape, got, sizeof got, &err), err);
    CHECK_OK(caterva_verify(array, NULL, &verified, &err), err);
    CHECK(verified.damages == 0, "%lld damages", (long long)verified.damages);
    CHECK_OK(caterva_close(array, &err), err);
    int is_new = memcmp(got, after, sizeof got) == 0;
    CHECK(is_new || memcmp(got, before, sizeof got) == 0, "neither old nor new");
    CHECK(is_new || ack == 0, "an acknowledged merge is lost");
    puts(is_new ? "new" : "old");
    return 0;
}

int main(int argc, char **argv)
{
    make_states();
    if (argc == 4 && !strcmp(argv[1], "init")) return init(argv[2], argv[3]);
    if (argc == 3 && !strcmp(argv[1], "work")) return work(argv[2], 1);
    if (argc == 3 && !strcmp(argv[1], "merge")) return merge(argv[2]);
    if (argc == 4 && !strcmp(argv[1], "check")) return check(argv[2], atoi(argv[3]));
    return 2;
}
