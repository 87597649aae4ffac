/* Helper of the reduction test: each line on stdin is a request.
 *
 *   op=create  url, file (the bytes of the whole array, or of [box]), and the words of
 *              parse_options
 *   op=stats, histogram, reduce
 *              url, [start] [stop] [step]: lists; [threads]; [box, file: written
 *              first and not committed]
 *     histogram: lo hi (hexadecimal floats), bins
 *     reduce:    what (a number of caterva_reduction), [axes: a list, "." for an
 *                empty one], [skip_nan], size
 * Responses are as those of tool_session: one line of JSON and, with `size`, bytes. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/info.h"
#include "support/job.h"
#include "support/scratch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reply {
    FILE *json;
    void *bytes;
    size_t size;
} reply;

typedef struct lists {
    int64_t start[CATERVA_MAX_DIMS];
    int64_t stop[CATERVA_MAX_DIMS];
    caterva_axis slices[CATERVA_MAX_DIMS];
    caterva_selection selection;
    int axes[CATERVA_MAX_DIMS];
} lists;

static caterva_status write_file(caterva_array *a, const job *j, caterva_error *err)
{
    const char *box = find_word(j, "box");
    const caterva_info *info = info_of(a);
    bounds b = whole_array(info);
    size_t size = 0;
    if (!find_word(j, "file")) return CATERVA_OK;
    if (box) CHECK(next_box(&box, info, &b), "no box");
    uint8_t *bytes = scratch_load(need_word(j, "file"), &size);
    CHECK(bytes != NULL && size == b.size, "%s has %zu bytes", need_word(j, "file"), size);
    caterva_status status = caterva_write(a, b.start, b.stop, bytes, size, err);
    free(bytes);
    return status;
}

static caterva_status run_create(const job *j, caterva_error *err)
{
    static spec s; /* large */
    caterva_create_options options = parse_options(j, &s);
    caterva_array *a = NULL;
    caterva_status status = caterva_create(need_word(j, "url"), &options, &a, err);
    if (status == CATERVA_OK) status = write_file(a, j, err);
    if (status == CATERVA_OK) return caterva_close(a, err);
    caterva_discard(a);
    return status;
}

/* A box or, with steps, a slice for each axis. */
static void select_part(const job *j, const caterva_info *info, lists *l)
{
    const char *start = find_word(j, "start"), *stop = find_word(j, "stop");
    const char *step = find_word(j, "step");
    int64_t steps[CATERVA_MAX_DIMS];
    memset(l->start, 0, sizeof l->start);
    memcpy(l->stop, info->shape, sizeof l->stop);
    if (start) parse_list(start, l->start);
    if (stop) parse_list(stop, l->stop);
    l->selection = (caterva_selection)CATERVA_SELECTION_INIT;
    l->selection.start = l->start;
    l->selection.stop = l->stop;
    if (!step) return;
    parse_list(step, steps);
    for (int d = 0; d < info->ndim; d++)
        l->slices[d] = (caterva_axis){.kind = CATERVA_AXIS_SLICE,
                                      .start = l->start[d],
                                      .stop = l->stop[d],
                                      .step = steps[d]};
    l->selection.kind = CATERVA_SELECTION_AXES;
    l->selection.axes = l->slices;
    l->selection.n_axes = info->ndim;
}

static caterva_reduce_options options_of(const job *j, caterva_array *a, lists *l)
{
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    int64_t axes[CATERVA_MAX_DIMS];
    const char *named = find_word(j, "axes");
    select_part(j, info_of(a), l);
    o.selection = &l->selection;
    o.skip_nan = (int)find_number(j, "skip_nan");
    if (!named) return o;
    o.axes = l->axes;
    o.n_axes = strcmp(named, ".") == 0 ? 0 : parse_list(named, axes);
    for (int i = 0; i < o.n_axes; i++) l->axes[i] = (int)axes[i];
    return o;
}

static void put_number(FILE *to, const char *key, const caterva_number *n)
{
    fprintf(to, ",\"%s\":", key);
    switch (n->kind) {
    case 'i': fprintf(to, "[\"i\",\"%lld\",\"%a\"]", (long long)n->i, n->f); break;
    case 'u': fprintf(to, "[\"u\",\"%llu\",\"%a\"]", (unsigned long long)n->u, n->f); break;
    case 'f': fprintf(to, "[\"f\",\"%a\",\"%a\"]", n->f, n->f); break;
    default: fprintf(to, "null"); break;
    }
}

static caterva_status run_stats(const job *j, caterva_array *a, reply *r, caterva_error *err)
{
    lists l;
    caterva_reduce_options o = options_of(j, a, &l);
    caterva_stats s = CATERVA_STATS_INIT;
    caterva_status status = caterva_statistics(a, &o, &s, err);
    if (status != CATERVA_OK) return status;
    fprintf(r->json, ",\"n_items\":%lld,\"n_nan\":%lld,\"mean\":\"%a\",\"std\":\"%a\"",
            (long long)s.n_items, (long long)s.n_nan, s.mean, s.std);
    put_number(r->json, "min", &s.min);
    put_number(r->json, "max", &s.max);
    put_number(r->json, "sum", &s.sum);
    return CATERVA_OK;
}

static caterva_status run_histogram(const job *j, caterva_array *a, reply *r,
                                    caterva_error *err)
{
    lists l;
    caterva_reduce_options o = options_of(j, a, &l);
    double range[2] = {strtod(need_word(j, "lo"), NULL), strtod(need_word(j, "hi"), NULL)};
    int64_t n = find_number(j, "bins");
    r->size = (size_t)n * sizeof(int64_t);
    r->bytes = check_alloc(r->size);
    return caterva_histogram(a, range, n, &o, r->bytes, err);
}

static caterva_status run_reduce(const job *j, caterva_array *a, reply *r, caterva_error *err)
{
    lists l;
    caterva_reduce_options o = options_of(j, a, &l);
    r->size = (size_t)find_number(j, "bytes");
    r->bytes = check_alloc(r->size);
    memset(r->bytes, 0xEE, r->size);
    return caterva_reduce(a, (caterva_reduction)find_number(j, "what"), &o, r->bytes, r->size,
                          err);
}

static caterva_status run_on_array(const job *j, reply *r, caterva_error *err)
{
    const char *op = need_word(j, "op");
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *a = NULL;
    options.threads = (int)find_number(j, "threads");
    options.mode = find_word(j, "file") ? CATERVA_MODE_WRITE : CATERVA_MODE_READ;
    caterva_status status = caterva_open(need_word(j, "url"), &options, &a, err);
    if (status == CATERVA_OK) status = write_file(a, j, err);
    if (status == CATERVA_OK) {
        if (strcmp(op, "stats") == 0)
            status = run_stats(j, a, r, err);
        else if (strcmp(op, "histogram") == 0)
            status = run_histogram(j, a, r, err);
        else
            status = run_reduce(j, a, r, err);
    }
    caterva_discard(a);
    return status;
}

static void run_job(const job *j)
{
    char *text = NULL;
    size_t size = 0;
    caterva_error err = {.message = ""};
    reply r = {.json = open_memstream(&text, &size)};
    CHECK(r.json != NULL, "no memory stream");
    bool create = strcmp(need_word(j, "op"), "create") == 0;
    caterva_status status = create ? run_create(j, &err) : run_on_array(j, &r, &err);
    fclose(r.json);
    printf("{\"status\":\"%s\",\"message\":\"%s\"", caterva_status_name(status),
           status == CATERVA_OK ? "" : err.message);
    if (status == CATERVA_OK) printf("%s", text);
    if (status == CATERVA_OK && r.bytes) printf(",\"size\":%zu", r.size);
    printf("}\n");
    if (status == CATERVA_OK && r.bytes) fwrite(r.bytes, 1, r.size, stdout);
    fflush(stdout);
    free(r.bytes);
    free(text);
}

int main(void)
{
    serve_jobs(run_job);
    return 0;
}
