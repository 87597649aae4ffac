/* Room: engine/merge. What is merged, in which order, and whether it may be. */
#include "engine/merge/merge.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/merge/compose.h"
#include "engine/write/transfer.h"
#include "frame/put.h"

#include <stdlib.h>
#include <string.h>

/* ---- What a chunk was -------------------------------------------------- */

/* The name that the block table of a chunk of the fill gets when the first commit stores it. */
static cv_status name_fill(cv_pending *pending, uint32_t *name, cv_error *err)
{
    cv_buffer chunk = {0};
    cv_status status =
        cv_encode_repeated(&pending->workers->spec, pending->fill, &chunk, err);
    if (status == CV_OK)
        status = cv_table_make(&cv_txn_snapshot(pending->txn)->grid, chunk.data, chunk.size,
                               &chunk, name, err);
    cv_buffer_free(&chunk);
    return status;
}

/* The name of a chunk's block table stands for what it holds; a chunk that has none is known
 * by its place. A fill that is due has the state that it has once it is stored, so that the
 * first commit of a new array changes no state. */
cv_status cv_chunk_state(cv_pending *pending, int64_t chunk, uint64_t *out, cv_error *err)
{
    enum { UNNAMED = 15 };
    cv_chunk_ref ref;
    CV_TRY(cv_pending_where(pending, chunk, &ref, err));
    if (ref.kind == CV_REF_ITEM) {
        ref.kind = CV_REF_STORED;
        if (pending->fill_name == 0) CV_TRY(name_fill(pending, &pending->fill_name, err));
        ref.name = pending->fill_name;
    }
    *out = (uint64_t)ref.kind << 32;
    if (ref.kind != CV_REF_STORED) return CV_OK;
    *out |= ref.name;
    if (ref.name == 0)
        *out = (uint64_t)UNNAMED << 60 | ((uint64_t)ref.object + 1 + ref.pos) << 4 >> 4;
    return CV_OK;
}

/* ---- What is to be done ------------------------------------------------ */

/* A chunk of a part. */
typedef struct entry {
    int64_t chunk;
    int32_t part;
    bool in_part;
    bool done; /* of the first entry of a chunk: the array holds it */
} entry;

/* Chunks: entries [first, end) of one chunk are a group. */
typedef struct group {
    int64_t first, end;
} group;

typedef struct merging {
    cv_merge *merge;
    const cv_grid *grid;
    cv_part_files files;
    entry *entries;
    int64_t n_entries;
    group *groups;
    int64_t n_groups;
    int64_t n_side; /* chunks that are worked on side by side */
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

/* ---- The parts of one chunk -------------------------------------------- */

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

/* ---- Checking ---------------------------------------------------------- */

static cv_status check_parts(merging *m, cv_error *err)
{
    for (int64_t i = 0; i < m->merge->n; i++) {
        cv_part_file *file;
        CV_TRY(cv_part_files_take(&m->files, i, &file, err));
        cv_part_files_give(&m->files, file);
        CV_TRY(cv_watch_step(m->merge->watch, 0, err));
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

/* The array has changed there: is it what the merge would make of it? */
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
    cv_watch_set_steps(m->merge->watch, m->n_groups);
    CV_TRY(check_parts(m, err));
    for (int64_t i = 0; i < m->n_groups; i++) {
        CV_TRY(check_apart(m, &m->groups[i], err));
        CV_TRY(cv_watch_step(m->merge->watch, 0, err));
    }
    for (int64_t i = 0; i < m->n_groups; i++) {
        CV_TRY(check_base(m, &m->groups[i], err));
        CV_TRY(cv_watch_step(m->merge->watch, 0, err));
    }
    return CV_OK;
}

/* ---- Putting ----------------------------------------------------------- */

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

static cv_status put_group(void *context, int64_t number, cv_worker *worker, cv_error *err)
{
    merging *m = context;
    const group *g = &m->groups[number];
    const entry *e = &m->entries[g->first];
    together t = {.files = NULL};
    bool moves = g->end - g->first == 1 && !e->in_part;
    if (e->done) return cv_watch_step(m->merge->watch, 1, err);
    CV_TRY(moves ? move_chunk(m, e, worker, err) : compose_chunk(m, g, worker, &t, err));
    count(m, moves, &t.c);
    return cv_watch_step(m->merge->watch, 1, err);
}

/* Those of one part one after another: few parts are open at once then. */
static int by_part(const void *a, const void *b, const entry *entries)
{
    const group *x = a, *y = b;
    int32_t p = entries[x->first].part, q = entries[y->first].part;
    if (p != q) return (p > q) - (p < q);
    return (x->first > y->first) - (x->first < y->first);
}

/* Heap sort, as qsort takes no context. */
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

static uint64_t bytes_of_parts(const merging *m)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < m->merge->n; i++) bytes += m->merge->tokens[i].frame_size;
    return bytes;
}

static cv_status put_all(merging *m, cv_error *err)
{
    cv_pending *target = m->merge->target;
    int64_t most = cv_min_i64(target->threads, m->n_groups) - 1;
    int64_t worth = m->n_groups; /* each is some system calls at least */
    sort_groups(m->groups, m->n_groups, m->entries);
    m->n_side = m->n_groups;
    m->merge->changed = m->n_groups > 0;
    cv_txn_expect(target->txn, bytes_of_parts(m));
    const cv_crew crew = {target->workers, (int)cv_min_i64(most, worth), m->merge->watch};
    cv_status status = cv_workers_run(&crew, m->n_groups, put_group, m, err);
    cv_txn_expect_end(target->txn);
    return status;
}

/* ---- The merge --------------------------------------------------------- */

static void count_result(merging *m)
{
    m->merge->result.parts = m->merge->n;
    m->merge->result.chunks = m->n_groups;
    for (int64_t i = 0; i < m->n_groups; i++)
        m->merge->result.merged_before += m->entries[m->groups[i].first].done;
}

static cv_status run(merging *m, cv_error *err)
{
    CV_TRY(list_entries(m, err));
    CV_TRY(check_all(m, err));
    count_result(m);
    if (m->n_groups == 0) return CV_OK;
    return put_all(m, err);
}

cv_status cv_merge_run(cv_merge *merge, cv_error *err)
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
