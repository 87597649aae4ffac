/* Room: jobs. Merges parts: reads tokens, finds their job beside the array and compares it with the
 * array, checks every chunk of every part, and then puts all chunks into the transaction. Nothing
 * is changed before all checks have passed.
 *
 *     one part wrote all of the chunk     it is moved as stored
 *     otherwise, for each block:
 *         no part wrote it                the array's block, as stored
 *         one part wrote all of it        the part's block, as stored
 *         otherwise                       decoded, and the parts' items copied over it */
#include "array/array.h"
#include "base/arith.h"
#include "base/heap.h"
#include "engine/write/flush.h"
#include "engine/write/resize.h"
#include "engine/write/transfer.h"
#include "frame/snapshot.h"
#include "frame/txn.h"
#include "jobs/base.h"
#include "jobs/compose.h"
#include "jobs/folder.h"
#include "jobs/job.h"

#include <caterva_jobs.h>
#include <stdlib.h>
#include <string.h>

typedef struct cv_merge {
    cv_pending *target;          /* has no dirty blocks */
    const char *path;            /* of the array */
    const cv_part_token *tokens; /* of one job, in the caller's order; unique, not empty */
    int64_t n;
    caterva_overlap overlap;
    bool unchecked;
    bool keep; /* parts are kept after the commit, so they share no files with the array */
    /* Returns the cv_chunk_state that the chunk had when the job began. */
    cv_status (*base_state)(void *context, int64_t chunk, uint64_t *out, cv_error *err);
    void *context;
    const caterva_progress *progress;
    cv_watch *also; /* the array's watch, or NULL */
    caterva_merge_result result;
    bool changed; /* out: chunks may have been put, even if the merge failed */
} cv_merge;

/* ---- Entries: the chunks of all parts ----------------------------------- */

typedef struct entry {
    int64_t chunk;
    int32_t part; /* index of its token */
    bool in_part; /* the part did not write all items */
    bool done;    /* in the first entry of a chunk: the array already has all its items */
} entry;

/* Entries [first, end) of one chunk. */
typedef struct group {
    int64_t first, end;
} group;

typedef struct merging {
    cv_merge *merge;
    const cv_grid *grid;
    cv_watch *watch; /* counts the chunks' bytes; or NULL */
    cv_part_files files;
    entry *entries;
    int64_t n_entries;
    group *groups;
    int64_t n_groups;
    int64_t n_side; /* chunks composed in parallel */
    cv_mutex lock;  /* of merge->result */
} merging;

static int by_chunk(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->chunk != y->chunk) return (x->chunk > y->chunk) - (x->chunk < y->chunk);
    return (x->part > y->part) - (x->part < y->part);
}

static void find_groups(merging *m)
{
    for (int64_t i = 0, end; i < m->n_entries; i = end) {
        end = i + 1;
        while (end < m->n_entries && m->entries[end].chunk == m->entries[i].chunk) end++;
        m->groups[m->n_groups++] = (group){i, end};
    }
}

static cv_status list_entries(merging *m, cv_error *err)
{
    int64_t total = 0;
    for (int64_t i = 0; i < m->merge->n; i++) total += m->merge->tokens[i].n_chunks;
    size_t n = (size_t)(total > 0 ? total : 1);
    m->entries = cv_malloc(n * sizeof m->entries[0]);
    m->groups = cv_malloc(n * sizeof m->groups[0]);
    if (!m->entries || !m->groups)
        return cv_fail_memory(err, n * sizeof m->entries[0], "a list of chunks");
    for (int64_t i = 0; i < m->merge->n; i++) {
        const cv_part_token *token = &m->merge->tokens[i];
        for (int64_t k = 0; k < token->n_chunks; k++)
            m->entries[m->n_entries++] = (entry){.chunk = token->chunks[k].chunk,
                                                 .part = (int32_t)i,
                                                 .in_part = token->chunks[k].in_part};
    }
    qsort(m->entries, (size_t)m->n_entries, sizeof m->entries[0], by_chunk);
    find_groups(m);
    return CV_OK;
}

/* The open parts of a group. */
typedef struct together {
    cv_composition c;
    cv_part_file **files;
} together;

static void close_together(merging *m, together *t)
{
    for (int64_t i = 0; i < t->c.n && t->files; i++)
        cv_part_files_give(&m->files, t->files[i]);
    cv_free(t->files);
}

static cv_status open_together(merging *m, const group *g, together *t, cv_error *err)
{
    size_t n = (size_t)(g->end - g->first);
    *t = (together){.c = {.target = m->merge->target, .chunk = m->entries[g->first].chunk}};
    t->c.n_side = m->n_side;
    t->files = cv_calloc(n, sizeof t->files[0]);
    if (!t->files) return cv_fail_memory(err, n * sizeof t->files[0], "a list of parts");
    t->c.files = t->files;
    cv_status status = CV_OK;
    for (int64_t i = g->first; i < g->end && status == CV_OK; i++) {
        status = cv_part_files_take(&m->files, m->entries[i].part, &t->files[t->c.n], err);
        t->c.n += status == CV_OK;
    }
    if (status != CV_OK) close_together(m, t);
    return status;
}

static cv_status check_parts(merging *m, cv_error *err)
{
    for (int64_t i = 0; i < m->merge->n; i++) {
        cv_part_file *file;
        CV_TRY(cv_part_files_take(&m->files, i, &file, err));
        cv_part_files_give(&m->files, file);
        CV_TRY(cv_watch_step(m->watch, 0, err));
    }
    return CV_OK;
}

static cv_status check_apart(merging *m, const group *g, cv_error *err)
{
    together t;
    int64_t a, b, block;
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): all groups are set */
    if (g->end - g->first < 2 || m->merge->overlap == CATERVA_OVERLAP_LAST) return CV_OK;
    CV_TRY(open_together(m, g, &t, err));
    cv_status status = CV_OK;
    if (cv_compose_meet(&t.c, &a, &b, &block))
        status = cv_fail(err, CATERVA_EEXIST, -1,
                         "parts %s and %s wrote the same items of chunk %lld, block %lld",
                         t.files[a]->token->name, t.files[b]->token->name,
                         (long long)t.c.chunk, (long long)block);
    close_together(m, &t);
    return status;
}

/* Called if the array's chunk has changed: checks whether it already has the merge's items. */
static cv_status check_done(merging *m, const group *g, cv_error *err)
{
    together t;
    cv_worker *worker;
    cv_pending *target = m->merge->target;
    CV_TRY(open_together(m, g, &t, err));
    cv_status status = cv_worker_take(target->workers, &worker, err);
    if (status == CV_OK) {
        status = cv_compose_is_done(&t.c, worker, &m->entries[g->first].done, err);
        cv_worker_give(target->workers, worker);
    }
    if (status == CV_OK && !m->entries[g->first].done)
        status = cv_fail(err, CATERVA_ESTALE, -1,
                         "chunk %lld of the array has changed since the job began, and part "
                         "%s wrote to it",
                         (long long)t.c.chunk, t.files[0]->token->name);
    close_together(m, &t);
    return status;
}

static cv_status check_base(merging *m, const group *g, cv_error *err)
{
    int64_t chunk = m->entries[g->first].chunk;
    uint64_t was, is;
    CV_TRY(m->merge->base_state(m->merge->context, chunk, &was, err));
    CV_TRY(cv_chunk_state(m->merge->target, chunk, &is, err));
    return was == is ? CV_OK : check_done(m, g, err);
}

static cv_status check_all(merging *m, cv_error *err)
{
    CV_TRY(check_parts(m, err));
    for (int64_t i = 0; i < m->n_groups; i++) {
        CV_TRY(check_apart(m, &m->groups[i], err));
        CV_TRY(cv_watch_step(m->watch, 0, err));
    }
    for (int64_t i = 0; i < m->n_groups; i++) {
        CV_TRY(check_base(m, &m->groups[i], err));
        CV_TRY(cv_watch_step(m->watch, 0, err));
    }
    return CV_OK;
}

/* ---- Putting chunks ----------------------------------------------------- */

static cv_status move_chunk(merging *m, const entry *e, cv_worker *worker, cv_error *err)
{
    cv_part_file *file;
    CV_TRY(cv_part_files_take(&m->files, e->part, &file, err));
    cv_status status =
        cv_move_chunk(&file->source, cv_part_file_chunk(file, m->grid, e->chunk),
                      m->merge->target, e->chunk, worker, err);
    status = cv_fail_in_part(file->token, status, err);
    cv_part_files_give(&m->files, file);
    return status;
}

static cv_status compose_chunk(merging *m, const group *g, cv_worker *worker, together *t,
                               cv_error *err)
{
    CV_TRY(open_together(m, g, t, err));
    cv_status status = cv_compose_chunk(&t->c, worker, err);
    close_together(m, t);
    return status;
}

static void count(merging *m, bool moved, const cv_composition *c)
{
    cv_mutex_lock(&m->lock);
    m->merge->result.moved_chunks += moved;
    m->merge->result.spliced_chunks += c->spliced;
    m->merge->result.decoded_blocks += c->n_decoded;
    cv_mutex_unlock(&m->lock);
}

/* Counts a chunk. The handle's watch also counts the blocks that are encoded for the chunk, so on
 * this watch `done` may reach `total` early. */
static cv_status count_chunk(const merging *m, cv_error *err)
{
    cv_watch_add(m->watch, m->grid->chunk_bytes);
    return cv_watch_step(m->watch, m->grid->chunk_bytes, err);
}

static cv_status put_group(void *context, int64_t number, cv_worker *worker, cv_error *err)
{
    merging *m = context;
    const group *g = &m->groups[number];
    const entry *e = &m->entries[g->first];
    together t = {.files = NULL};
    bool moves = g->end - g->first == 1 && !e->in_part;
    if (e->done) return count_chunk(m, err);
    CV_TRY(moves ? move_chunk(m, e, worker, err) : compose_chunk(m, g, worker, &t, err));
    count(m, moves, &t.c);
    return count_chunk(m, err);
}

/* Orders groups by part, so that few parts are open at once. */
static int by_part(const void *a, const void *b, const entry *entries)
{
    const group *x = a, *y = b;
    int32_t p = entries[x->first].part, q = entries[y->first].part;
    if (p != q) return (p > q) - (p < q);
    return (x->first > y->first) - (x->first < y->first);
}

/* Heap sort, because qsort takes no context. */
static void sort_groups(group *groups, int64_t n, const entry *entries)
{
    for (int64_t start = n / 2, end = n; end > 1;) {
        if (start > 0) {
            start--;
        } else {
            group last = groups[--end];
            groups[end] = groups[0];
            groups[0] = last;
        }
        for (int64_t at = start, child; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && by_part(&groups[child], &groups[child + 1], entries) < 0)
                child++;
            if (by_part(&groups[at], &groups[child], entries) >= 0) break;
            group swap = groups[at];
            groups[at] = groups[child];
            groups[child] = swap;
        }
    }
}

static uint64_t bytes_of(const cv_part_token *tokens, int64_t n)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < n; i++) bytes += tokens[i].frame_size;
    return bytes;
}

static cv_status put_all(merging *m, cv_error *err)
{
    cv_pending *target = m->merge->target;
    int64_t most = cv_min_i64(target->threads, m->n_groups) - 1;
    int64_t worth = m->n_groups; /* a group takes several system calls: worth a thread */
    sort_groups(m->groups, m->n_groups, m->entries);
    m->n_side = m->n_groups;
    m->merge->changed = m->n_groups > 0;
    cv_txn_expect(target->txn, bytes_of(m->merge->tokens, m->merge->n));
    const cv_crew crew = {target->workers, (int)cv_min_i64(most, worth), m->watch};
    cv_status status = cv_workers_run(&crew, m->n_groups, put_group, m, err);
    cv_txn_expect_end(target->txn);
    return status;
}

static void count_result(merging *m)
{
    m->merge->result.parts = m->merge->n;
    m->merge->result.chunks = m->n_groups;
    for (int64_t i = 0; i < m->n_groups; i++)
        m->merge->result.merged_before += m->entries[m->groups[i].first].done;
}

static cv_status run(merging *m, cv_error *err)
{
    cv_watch watch;
    CV_TRY(list_entries(m, err));
    m->watch = cv_watch_open_fixed(&watch, m->merge->progress,
                                   m->n_groups * m->grid->chunk_bytes, m->merge->also);
    cv_watch_expect(m->watch, m->n_groups * m->grid->chunk_bytes);
    cv_status status = check_all(m, err);
    if (status == CV_OK) count_result(m);
    if (status == CV_OK && m->n_groups > 0) status = put_all(m, err);
    return cv_watch_close(&watch, status);
}

static cv_status cv_merge_run(cv_merge *merge, cv_error *err)
{
    merging m = {.merge = merge, .grid = &cv_txn_snapshot(merge->target->txn)->grid};
    cv_part_files what = {.path = merge->path, .grid = m.grid, .tokens = merge->tokens};
    what.n = merge->n;
    what.checks = !merge->unchecked;
    what.gives = !merge->keep;
    what.is_durable = merge->target->frame->durability != CATERVA_DURABILITY_NONE;
    cv_mutex_init(&m.lock);
    cv_status status = cv_part_files_init(&m.files, &what, err);
    if (status == CV_OK) status = run(&m, err);
    cv_part_files_destroy(&m.files);
    cv_mutex_destroy(&m.lock);
    cv_free(m.entries);
    cv_free(m.groups);
    return status;
}

/* ---- Tokens ------------------------------------------------------------------------ */

typedef struct token_list {
    cv_part_token *tokens;
    int64_t n;
    uint8_t job[CV_JOB_ID];
    bool any;
} token_list;

static cv_status fail_in_token(size_t number, cv_status status, cv_error *err)
{
    char text[sizeof err->message];
    if (status == CV_OK || !err) return status;
    memcpy(text, err->message, sizeof text);
    return cv_fail(err, status, err->position, "tokens[%zu]: %.200s", number, text);
}

/* Adds a token to the list. A token without chunks only identifies the job and is not kept. */
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
                           "the token belongs to another job than the first one")
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

/* Keeps the last of equal tokens of a part. CATERVA_ECORRUPT if two tokens of a part differ. */
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

/* ---- The job ----------------------------------------------------------------------- */

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

/* Checks that chunks and dtype of the array are still those of the job. Codecs may differ. */
static cv_status check_kind(const cv_snapshot *state, const cv_snapshot *job, cv_error *err)
{
    const cv_array_meta *is = &state->meta, *was = &job->meta;
    if (!same_partition(state, job))
        return cv_fail(err, CATERVA_ESHAPE, -1,
                       "the array's chunks, blocks or items differ from those of its job");
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

typedef struct merge_merging {
    caterva_array *array;
    const caterva_merge_options *options;
    const token_list *list;
    char id[CV_JOB_NAME];
    cv_merge merge;
} merge_merging;

/* Checks that the array is the job's, not another one that was created at its path. */
static cv_status check_array(const merge_merging *m, const cv_held_job *held,
                             const cv_snapshot *job, cv_error *err)
{
    const caterva_array *array = m->array;
    CV_TRY(check_kind(cv_array_state(array), job, err));
    if (array->frame->store->published || held->begun)
        return cv_job_folder_check(array->path, m->id, err);
    return cv_fail(err, CATERVA_ESTALE, -1, "job %s was begun before this array was created",
                   m->id);
}

/* Grows the array to the job's shape, unless it has this shape. */
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

static cv_status merge_run(merge_merging *m, cv_error *err)
{
    caterva_array *array = m->array;
    cv_job_base base;
    char *path;
    CV_TRY(cv_job_path(array->path, m->id, CV_JOB_BASE, &path, err));
    cv_status status =
        cv_job_base_open(path, cv_array_state(array)->grid.n_chunks, &base, err);
    cv_free(path);
    if (status != CV_OK) return status;
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
        .progress = &m->options->progress,
        .also = array->watch,
    };
    status = cv_merge_run(&m->merge, err);
    if (status != CV_OK && m->merge.changed) array->pending->broken = true;
    cv_job_base_close(&base);
    return status;
}

static cv_status merge_job(merge_merging *m, const cv_job_record *record,
                           const cv_snapshot *job, cv_error *err)
{
    cv_held_job *held;
    CV_TRY(cv_held_job_get(m->array, m->id, &held, err));
    CV_TRY(check_array(m, held, job, err));
    CV_TRY(fit_shape(m->array, record, job, err));
    CV_TRY(merge_run(m, err));
    held->merged = held->merged || !m->options->keep;
    held->merged_bytes += bytes_of(m->list->tokens, m->list->n);
    return CV_OK;
}

static cv_status merge(merge_merging *m, cv_error *err)
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

static cv_status check_arguments(caterva_array *array, const void *const *tokens,
                                 const size_t *sizes, size_t n, cv_error *err)
{
    CV_TRY(cv_array_check_encodes(array, err));
    CV_TRY(cv_array_refuse(array, "a merge", err));
    if (n > 0 && (!tokens || !sizes))
        return cv_fail(err, CATERVA_EINVAL, -1, "tokens or token_sizes is NULL");
    if (array->path) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "the array has no path: parts are in a directory beside it");
}

static cv_status read_options(const caterva_merge_options *options,
                              caterva_merge_options *out, cv_error *err)
{
    CV_TRY(cv_options_read(out, sizeof *out, options, "merge options", err));
    CV_TRY(cv_progress_check(&out->progress, err));
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
    merge_merging m = {.array = array, .options = &o, .list = &list};
    cv_status status = read_tokens(tokens, token_sizes, n, &list, err);
    if (status == CV_OK && list.any) {
        cv_array_lock_alone(array);
        status = cv_array_finish(array, merge(&m, err));
    }
    if (status == CV_OK && result)
        cv_output_fill(result, &m.merge.result, sizeof m.merge.result);
    for (int64_t i = 0; i < list.n; i++) cv_part_token_free(&list.tokens[i]);
    cv_free(list.tokens);
    return status;
}
