/* Room: array. Merging parts: tokens read, their job found beside the array and compared with
 * it, the lock taken, the engine called. */
#include "array/array.h"
#include "array/describe.h"
#include "array/job_base.h"
#include "base/arith.h"
#include "base/heap.h"
#include "engine/merge/merge.h"
#include "engine/write/flush.h"
#include "engine/write/resize.h"
#include "frame/snapshot.h"
#include "store/job_folder.h"

#include <stdlib.h>
#include <string.h>

/* ---- Tokens ---------------------------------------------------------------------------- */

typedef struct token_list {
    cv_part_token *tokens;
    int64_t n;
    uint8_t job[CV_JOB_ID];
    bool any;
} token_list;

static void free_tokens(token_list *list)
{
    for (int64_t i = 0; i < list->n; i++) cv_part_token_free(&list->tokens[i]);
    cv_free(list->tokens);
}

static cv_status fail_in_token(size_t number, cv_status status, cv_error *err)
{
    char text[sizeof err->message];
    if (status == CV_OK || !err) return status;
    memcpy(text, err->message, sizeof text);
    return cv_fail(err, status, err->position, "tokens[%zu]: %.200s", number, text);
}

/* One that holds nothing says only whose it is. */
static cv_status add_token(token_list *list, const void *bytes, size_t size, cv_error *err)
{
    cv_part_token *token = &list->tokens[list->n];
    if (!bytes) return cv_fail(err, CATERVA_EINVAL, -1, "the token is NULL");
    CV_TRY(cv_part_token_parse(bytes, size, token, err));
    bool other = list->any && memcmp(list->job, token->job, CV_JOB_ID) != 0;
    memcpy(list->job, token->job, CV_JOB_ID);
    list->any = true;
    if (token->n_chunks > 0 && !other)
        list->n++;
    else
        cv_part_token_free(token);
    return other ? cv_fail(err, CATERVA_EINVAL, -1,
                           "the token is of another job than the first")
                 : CV_OK;
}

static int by_name(const void *a, const void *b)
{
    const cv_part_token *x = *(cv_part_token *const *)a, *y = *(cv_part_token *const *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x > y) - (x < y);
}

static bool is_same(const cv_part_token *a, const cv_part_token *b)
{
    return a->frame_size == b->frame_size && a->n_chunks == b->n_chunks &&
           memcmp(a->root, b->root, CV_PART_ROOT) == 0;
}

/* Of a part that comes twice the last one stays. */
static cv_status drop_twins(token_list *list, cv_error *err)
{
    size_t n = (size_t)list->n, size = (n + 1) * sizeof(cv_part_token *);
    cv_part_token **sorted = cv_malloc(size);
    if (!sorted) return cv_fail_memory(err, size, "a list of tokens");
    for (size_t i = 0; i < n; i++) sorted[i] = &list->tokens[i];
    qsort(sorted, n, sizeof sorted[0], by_name);
    cv_status status = CV_OK;
    for (size_t i = 0; i + 1 < n && status == CV_OK; i++) {
        if (strcmp(sorted[i]->name, sorted[i + 1]->name) != 0) continue;
        if (!is_same(sorted[i], sorted[i + 1]))
            status = cv_fail(err, CATERVA_ECORRUPT, -1, "two tokens of part %s differ",
                             sorted[i]->name);
        cv_part_token_free(sorted[i]);
    }
    cv_free(sorted);
    int64_t kept = 0;
    for (int64_t i = 0; i < list->n; i++)
        if (list->tokens[i].n_chunks > 0) list->tokens[kept++] = list->tokens[i];
    list->n = kept;
    return status;
}

static cv_status read_tokens(const void *const *tokens, const size_t *sizes, size_t n,
                             token_list *out, cv_error *err)
{
    size_t size = (n + 1) * sizeof out->tokens[0];
    *out = (token_list){.tokens = cv_malloc(size)};
    if (!out->tokens || n >= INT32_MAX) return cv_fail_memory(err, size, "a list of tokens");
    for (size_t i = 0; i < n; i++)
        CV_TRY(fail_in_token(i, add_token(out, tokens[i], sizes[i], err), err));
    return drop_twins(out, err);
}

/* ---- The job ------------------------------------------------------------------------------ */

static bool same_partition(const cv_snapshot *a, const cv_snapshot *b)
{
    bool same = a->grid.ndim == b->grid.ndim && a->grid.item_size == b->grid.item_size &&
                a->header.sparse == b->header.sparse;
    for (int d = 0; d < a->grid.ndim && same; d++)
        same = a->grid.chunk_shape[d] == b->grid.chunk_shape[d] &&
               a->grid.block_shape[d] == b->grid.block_shape[d];
    return same;
}

static bool same_dtype(const cv_array_meta *a, const cv_array_meta *b)
{
    return a->dtype_format == b->dtype_format && a->dtype_size == b->dtype_size &&
           (a->dtype_size == 0 || memcmp(a->dtype, b->dtype, a->dtype_size) == 0);
}

/* Another array may have been made at the path since. The codec is each chunk's own. */
static cv_status check_kind(const cv_snapshot *state, const cv_snapshot *job, cv_error *err)
{
    const cv_array_meta *is = &state->meta, *was = &job->meta;
    if (!same_partition(state, job))
        return cv_fail(err, CATERVA_ESHAPE, -1,
                       "the array has other chunks, blocks or items than its job");
    if (same_dtype(is, was)) return CV_OK;
    return cv_fail(err, CATERVA_ESHAPE, -1,
                   "the array's dtype is %.*s, and was %.*s when the job began",
                   (int)cv_min_i64(is->dtype_size, 80), is->dtype ? is->dtype : "",
                   (int)cv_min_i64(was->dtype_size, 80), was->dtype ? was->dtype : "");
}

static bool same_shape(const cv_grid *grid, const int64_t *shape)
{
    return memcmp(grid->shape, shape, (size_t)grid->ndim * sizeof shape[0]) == 0;
}

typedef struct merging {
    caterva_array *array;
    const caterva_merge_options *options;
    const token_list *list;
    char id[CV_JOB_NAME];
    cv_merge merge;
} merging;

/* The array that the job was begun for, not one that was made at its path since. */
static cv_status check_array(const merging *m, const cv_held_job *held,
                             const cv_snapshot *job, cv_error *err)
{
    const caterva_array *array = m->array;
    CV_TRY(check_kind(cv_array_state(array), job, err));
    if (array->frame->store->published || held->begun)
        return cv_job_folder_check(array->path, m->id, err);
    return cv_fail(err, CATERVA_ESTALE, -1, "job %s was begun before this array was there",
                   m->id);
}

/* The array as the job has it: one that was not grown yet is grown now. */
static cv_status fit_shape(caterva_array *array, const cv_job_record *record,
                           const cv_snapshot *job, cv_error *err)
{
    const cv_snapshot *state = cv_array_state(array);
    if (same_shape(&state->grid, job->grid.shape)) return CV_OK;
    if (record->ndim != state->grid.ndim || !same_shape(&state->grid, record->shape))
        return cv_fail(err, CATERVA_ESHAPE, -1,
                       "the array's shape has changed since its job began");
    cv_status status = cv_resize(array->pending, job->grid.shape, err);
    if (status == CV_OK) status = cv_pending_flush(array->pending, err);
    if (status != CV_OK) array->pending->broken = true;
    cv_array_changed(array);
    return status;
}

static cv_status run(merging *m, cv_error *err)
{
    caterva_array *array = m->array;
    cv_job_base base;
    cv_watch watch;
    char *path;
    CV_TRY(cv_job_path(array->path, m->id, CV_JOB_BASE, &path, err));
    cv_status status =
        cv_job_base_open(path, cv_array_state(array)->grid.n_chunks, &base, err);
    cv_free(path);
    if (status != CV_OK) return status;
    cv_watch_init_steps(&watch, m->options->on_progress, m->options->context, array->watch);
    m->merge = (cv_merge){
        .target = array->pending,
        .path = array->path,
        .tokens = m->list->tokens,
        .n = m->list->n,
        .overlap = m->options->overlap,
        .unchecked = m->options->unchecked != 0,
        .keep = m->options->keep != 0,
        .base_state = cv_job_base_state,
        .context = &base,
        .watch = m->options->on_progress || array->watch ? &watch : NULL,
    };
    status = cv_merge_run(&m->merge, err);
    if (status != CV_OK && m->merge.changed) array->pending->broken = true;
    cv_watch_destroy(&watch);
    cv_job_base_close(&base);
    return status;
}

static uint64_t bytes_of(const token_list *list)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < list->n; i++) bytes += list->tokens[i].frame_size;
    return bytes;
}

static cv_status merge_job(merging *m, const cv_job_record *record, const cv_snapshot *job,
                           cv_error *err)
{
    cv_held_job *held;
    CV_TRY(cv_held_jobs_get(&m->array->jobs, m->id, &held, err));
    CV_TRY(check_array(m, held, job, err));
    CV_TRY(fit_shape(m->array, record, job, err));
    CV_TRY(run(m, err));
    held->merged = held->merged || !m->options->keep;
    held->merged_bytes += bytes_of(m->list);
    return CV_OK;
}

static cv_status merge(merging *m, cv_error *err)
{
    cv_buffer bytes = {0};
    cv_job_record record;
    cv_snapshot *job = NULL;
    CV_TRY(cv_pending_check(m->array->pending, err));
    CV_TRY(cv_pending_flush(m->array->pending, err));
    cv_job_name(m->list->job, m->id);
    cv_status status = cv_job_folder_read(m->array->path, m->id, &bytes, err);
    if (status == CV_OK) status = cv_job_record_parse(bytes.data, bytes.size, &record, err);
    if (status == CV_OK)
        status = cv_snapshot_from_header(record.header, record.header_size, &job, err);
    if (status == CV_OK) status = merge_job(m, &record, job, err);
    cv_snapshot_release(job);
    cv_buffer_free(&bytes);
    if (status == CV_OK) cv_array_changed(m->array);
    return status;
}

/* ---- The call ------------------------------------------------------------------------------ */

static cv_status check_arguments(caterva_array *array, const void *const *tokens,
                                 const size_t *sizes, size_t n, cv_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    CV_TRY(cv_part_refuse(array->part, "a merge", err));
    if (n > 0 && (!tokens || !sizes))
        return cv_fail(err, CATERVA_EINVAL, -1, "tokens or token_sizes is NULL");
    if (array->path) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "the array has no path: parts are in a place beside it");
}

static cv_status read_options(const caterva_merge_options *options,
                              caterva_merge_options *out, cv_error *err)
{
    static const caterva_merge_options defaults = CATERVA_MERGE_INIT;
    CV_TRY(cv_options_copy(out, sizeof *out, options ? options : &defaults, "merge options",
                           err));
    if (out->overlap == CATERVA_OVERLAP_ERROR || out->overlap == CATERVA_OVERLAP_LAST)
        return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "overlap %d is not known", (int)out->overlap);
}

caterva_status caterva_merge(caterva_array *array, const void *const *tokens,
                             const size_t *token_sizes, size_t n,
                             const caterva_merge_options *options,
                             caterva_merge_result *result, caterva_error *err)
{
    caterva_merge_options o;
    token_list list = {.tokens = NULL};
    CV_TRY(check_arguments(array, tokens, token_sizes, n, err));
    CV_TRY(read_options(options, &o, err));
    if (result) CV_TRY(cv_output_check(result, sizeof *result, "merge result", err));
    merging m = {.array = array, .options = &o, .list = &list};
    cv_status status = read_tokens(tokens, token_sizes, n, &list, err);
    if (status == CV_OK && list.any) {
        cv_array_lock_alone(array);
        status = cv_array_finish(array, merge(&m, err));
    }
    if (status == CV_OK && result)
        cv_output_fill(result, &m.merge.result, sizeof m.merge.result);
    free_tokens(&list);
    return status;
}
