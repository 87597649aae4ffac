/* Room: upkeep. Verify checks the seal, the copy of the header and every attribute. It checks that
 * the header and block starts of every chunk are valid, that no two chunks share bytes, and that
 * every block matches its checksum and decodes. It continues after damage and reports all of it. */
#include "upkeep/verify.h"

#include "array/array.h"
#include "base/arith.h"
#include "base/heap.h"
#include "engine/read/blocks.h"
#include "engine/read/source.h"
#include "engine/read/walk.h"
#include "frame/attributes.h"
#include "frame/layout.h"
#include "frame/lookup.h"
#include "frame/txn.h"
#include "store/reading.h"
#include "upkeep/zarr.h"

#include <caterva_upkeep.h>
#include <stdlib.h>

/* Each pass checks a range of positions with at most this many chunks, to bound the lists. */
enum { PASS_CHUNKS = 1 << 20 };

typedef struct extent {
    uint64_t pos;
    uint64_t size; /* 0: no extent */
    int64_t chunk;
} extent;

typedef struct verify_task {
    const cv_source *source;
    cv_frame *frame;
    cv_snapshot *snapshot;
    const caterva_verify_options *options;
    cv_watch watch;     /* its lock also serialises damage reports */
    cv_watch *progress; /* `watch`, or the handle's, or NULL */
    const cv_index *index;
    int64_t *chunks; /* chunks of the pass */
    int64_t n_chunks, max_chunks;
    cv_stage stage; /* unit i is chunks[i] */
    cv_mutex lock;  /* protects all members below */
    caterva_verify_result *result;
    uint8_t *lost;   /* one bit per chunk, or NULL */
    extent *extents; /* of the chunks of the pass, at most one for each chunk */
    int64_t n_extents;
    extent reach; /* the extent of earlier passes that ends last */
} verify_task;

static void lose(verify_task *task, int64_t chunk)
{
    if (task->lost) task->lost[chunk / 8] |= (uint8_t)(1 << chunk % 8);
}

static void report(verify_task *task, int64_t chunk, const cv_error *error)
{
    const cv_damage_sink sink = {task->options->on_damage, task->options->context};
    task->result->damages++;
    if (chunk >= 0) task->result->damaged_chunks++;
    if (chunk >= 0) lose(task, chunk);
    cv_mutex_lock(&task->watch.lock);
    cv_damage_report(&sink, &task->snapshot->grid, chunk, error);
    cv_mutex_unlock(&task->watch.lock);
}

/* Decoded blocks are not delivered: decoding them is the check. */
static uint8_t *place_nowhere(void *context, int64_t tag)
{
    (void)context;
    (void)tag;
    return NULL;
}

static void take_nothing(void *context, int64_t tag, const uint8_t *block)
{
    (void)context;
    (void)tag;
    (void)block;
}

static const cv_block_sink no_sink = {
    .place = place_nowhere, .take = take_nothing, .fill = take_nothing};

static cv_status decode_chunk(verify_task *task, const cv_chunk_ref *ref, cv_worker *worker,
                              cv_error *err)
{
    int64_t n = task->snapshot->grid.n_blocks, step;
    CV_TRY(cv_blocks_at_once(task->frame, task->snapshot, ref, worker, n, &step, err));
    CV_TRY(cv_worker_wanted(worker, step, err));
    for (int64_t first = 0; first < n; first += step) {
        int64_t some = cv_min_i64(step, n - first);
        for (int64_t i = 0; i < some; i++)
            worker->wanted[i] = (cv_wanted){.block = first + i, .tag = first + i};
        const cv_block_list list = {.wanted = worker->wanted, .n = some};
        CV_TRY(
            cv_decode_blocks(task->frame, task->snapshot, ref, worker, &list, &no_sink, err));
    }
    return CV_OK;
}

static void note_extent(verify_task *task, const cv_chunk_ref *ref, uint64_t size)
{
    cv_mutex_lock(&task->lock);
    uint64_t pos = ref->object == CV_FRAME_OBJECT ? ref->pos : (uint64_t)ref->object;
    if (ref->object != CV_FRAME_OBJECT) size = 1; /* chunk files: compares numbers */
    task->extents[task->n_extents++] = (extent){pos, size, ref->chunk};
    cv_mutex_unlock(&task->lock);
}

static void note_unverified(verify_task *task)
{
    cv_mutex_lock(&task->lock);
    task->result->unverified_chunks++;
    cv_mutex_unlock(&task->lock);
}

typedef struct one_chunk {
    verify_task *task;
    int64_t number;
    int64_t chunk;
    cv_worker *worker;
    bool is_staged, is_counted, is_noted;
} one_chunk;

static cv_status check_stored(one_chunk *o, cv_error *err)
{
    verify_task *task = o->task;
    cv_worker *worker = o->worker;
    cv_chunk_ref ref;
    cv_layout *layout;
    CV_TRY(cv_chunk_ref_find(task->snapshot, task->index, o->chunk, &ref, err));
    if (ref.name == 0 && !o->is_counted) note_unverified(task);
    o->is_counted = true;
    CV_TRY(cv_staged_get_layout(worker->staged, task->frame, task->snapshot, &ref, &layout,
                                err));
    if (!o->is_noted) note_extent(task, &ref, cv_layout_stored_size(layout, &ref));
    o->is_noted = true;
    bool has_blocks = layout->header.special == CV_SPECIAL_NONE;
    cv_layout_release(layout);
    if (has_blocks && !task->options->quick) return decode_chunk(task, &ref, worker, err);
    cv_watch_add(task->progress, task->snapshot->grid.chunk_bytes);
    return CV_OK;
}

/* Checks a chunk. A second attempt reads without the stage. */
static cv_status check_chunk(void *context, cv_error *err)
{
    one_chunk *o = context;
    cv_stage *stage = o->is_staged ? &o->task->stage : NULL;
    o->is_staged = false;
    CV_TRY(cv_stage_enter(stage, o->number, o->worker, err));
    cv_status status = check_stored(o, err);
    cv_stage_leave(stage, o->number, o->worker);
    return status;
}

/* Counts a checked chunk. Returns failures other than damage, which end the verification. */
static cv_status finish_chunk(verify_task *task, int64_t chunk, cv_status status,
                              cv_error *error)
{
    bool damaged = cv_is_damage(status);
    if (status != CV_OK && !damaged) return status;
    cv_mutex_lock(&task->lock);
    if (damaged) report(task, chunk, error);
    task->result->checked_chunks++;
    cv_mutex_unlock(&task->lock);
    return cv_watch_tick(task->progress, 0, error);
}

static cv_status verify_chunk(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    verify_task *task = context;
    one_chunk one = {.task = task,
                     .number = job,
                     .chunk = task->chunks[job],
                     .worker = worker,
                     .is_staged = true};
    const cv_doubted twice = {
        .store = task->frame->store, .read = check_chunk, .context = &one};
    cv_error error = {0};
    worker->watch = task->progress;
    cv_status status = cv_store_doubting(&twice, &error);
    status = finish_chunk(task, one.chunk, status, &error);
    if (status != CV_OK && err) *err = error;
    return status;
}

static cv_status list_chunk(void *context, int64_t job, cv_worker *worker,
                            cv_stage_list *list, cv_error *err)
{
    const verify_task *task = context;
    (void)worker;
    return cv_stage_list_add(list, task->chunks[job],
                             task->options->quick ? CV_STAGE_LAYOUT : CV_STAGE_ALL, err);
}

static int by_pos(const void *a, const void *b)
{
    const extent *x = a, *y = b;
    return (x->pos > y->pos) - (x->pos < y->pos);
}

static void report_overlap(verify_task *task, const extent *of, const extent *with)
{
    cv_error error;
    (void)cv_fail(&error, CATERVA_ECORRUPT, (int64_t)of->pos,
                  "chunk %lld at byte %llu shares bytes with chunk %lld",
                  (long long)of->chunk, (unsigned long long)of->pos, (long long)with->chunk);
    report(task, of->chunk, &error);
}

/* Finds overlaps among the extents of this pass, and with those of earlier passes. */
static void check_overlaps(verify_task *task)
{
    qsort(task->extents, (size_t)task->n_extents, sizeof task->extents[0], by_pos);
    extent a = task->reach; /* of those so far, the one that ends last */
    for (int64_t i = 0; i < task->n_extents; i++) {
        const extent b = task->extents[i], last = a;
        bool apart = a.size == 0 || b.pos >= a.pos + a.size;
        if (b.pos + b.size > a.pos + a.size) a = b;
        if (apart) continue;
        report_overlap(task, &b, &last);
        /* It is unknown which of the two chunks is right, so both are lost. */
        if (task->lost && !cv_is_lost(task->lost, last.chunk))
            report_overlap(task, &last, &b);
    }
    task->reach = a;
    task->n_extents = 0;
}

/* The stored chunks of the index. */
typedef struct survey {
    int64_t n_stored;
    int64_t low, high; /* lowest and highest entry of a stored chunk */
} survey;

static void look_at_special(verify_task *task, int64_t chunk, int64_t *good)
{
    cv_chunk_ref ref;
    cv_error error = {0};
    int64_t entry = cv_index_get(task->index, chunk);
    if (cv_chunk_ref_make(task->snapshot, chunk, entry, &ref, &error) == CV_OK)
        *good = entry;
    else
        report(task, chunk, &error);
}

/* Surveys all entries, or the one that stands for all. Reports special entries of unknown kinds. */
static void look_over(verify_task *task, survey *s)
{
    int64_t n = task->snapshot->grid.n_chunks, good = 0; /* special entries are never 0 */
    *s = (survey){.low = INT64_MAX};
    for (int64_t i = 0; i < n; i++) {
        int64_t entry = cv_index_get(task->index, i);
        if (cv_offset_is_special(entry)) {
            if (entry != good) look_at_special(task, i, &good);
            if (!task->index->pages && entry == good) return;
            continue;
        }
        s->n_stored += task->index->pages ? 1 : n;
        s->low = cv_min_i64(s->low, entry);
        s->high = cv_max_i64(s->high, entry);
        if (!task->index->pages) return;
    }
}

static int64_t count_in(const verify_task *task, int64_t low, int64_t high)
{
    int64_t n = 0;
    for (int64_t i = 0; i < task->index->n; i++) {
        int64_t entry = cv_index_get(task->index, i);
        n += entry >= low && entry <= high;
    }
    return n;
}

/* Returns the end of a range from `low` on that has at most PASS_CHUNKS chunks. An index with more
 * chunks at one position was rejected before. */
static int64_t end_of_pass(const verify_task *task, const survey *s, int64_t low)
{
    if (s->n_stored <= PASS_CHUNKS) return s->high;
    int64_t most = s->high - low, each = (s->high - s->low) / s->n_stored;
    int64_t width = each < most / PASS_CHUNKS ? (each + 1) * PASS_CHUNKS : most;
    while (width > 0 && count_in(task, low, low + width) > PASS_CHUNKS) width /= 2;
    return low + width;
}

static cv_status check_pass(verify_task *task, int64_t low, int64_t high, cv_error *err)
{
    task->n_chunks = 0;
    for (int64_t i = 0; i < task->index->n && task->n_chunks < task->max_chunks; i++) {
        int64_t entry = cv_index_get(task->index, i);
        if (entry >= low && entry <= high) task->chunks[task->n_chunks++] = i;
    }
    int64_t n = task->n_chunks;
    int helpers = (int)cv_min_i64(task->source->threads, n) - 1;
    const cv_stage_plan plan = {
        .n_units = n,
        .bytes = task->options->quick ? 0 : n * task->snapshot->grid.chunk_bytes,
        .threads = helpers + 1,
        .watch = task->progress,
        .list = list_chunk,
        .context = task};
    CV_TRY(cv_stage_init(&task->stage, task->source, &plan, err));
    const cv_crew crew = {task->source->workers, helpers, task->progress};
    cv_status status = cv_workers_run(&crew, n, verify_chunk, task, err);
    cv_stage_destroy(&task->stage);
    if (status == CV_OK) check_overlaps(task);
    return status;
}

static cv_status check_room(verify_task *task, const survey *s, bool *fits, cv_error *err)
{
    cv_error error = {0};
    cv_status status =
        cv_snapshot_check_room(task->snapshot, task->frame->store, s->n_stored, &error);
    *fits = status == CV_OK;
    if (status == CATERVA_ECORRUPT) {
        report(task, -1, &error);
        return CV_OK;
    }
    if (status != CV_OK && err) *err = error;
    return status;
}

/* Marks all stored chunks as lost: the file has no room for all, so any of them may be false. */
static void lose_stored(verify_task *task, const survey *s)
{
    for (int64_t i = 0; task->lost && i < task->index->n; i++)
        if (!cv_offset_is_special(cv_index_get(task->index, i))) lose(task, i);
    task->result->damaged_chunks += s->n_stored;
}

static cv_status check_passes(verify_task *task, const survey *s, cv_error *err)
{
    task->max_chunks = cv_min_i64(s->n_stored, PASS_CHUNKS);
    size_t n = (size_t)task->max_chunks;
    task->extents = cv_malloc(n * sizeof task->extents[0]);
    task->chunks = cv_malloc(n * sizeof task->chunks[0]);
    cv_status status = CV_OK;
    if (!task->extents || !task->chunks)
        status = cv_fail_memory(err, n * sizeof task->extents[0], "a list of chunks");
    /* Without `more`, high + 1 could overflow for the highest entry of a damaged index. */
    bool more = s->low <= s->high;
    for (int64_t low = s->low, high; more && status == CV_OK; low = high + more) {
        high = end_of_pass(task, s, low);
        status = check_pass(task, low, high, err);
        more = high < s->high;
    }
    cv_free(task->extents);
    cv_free(task->chunks);
    return status;
}

static cv_status check_attributes(verify_task *task, cv_error *err)
{
    const cv_trailer *trailer = &task->snapshot->trailer;
    cv_status status = CV_OK;
    for (int i = 0; i < trailer->n_attributes && status == CV_OK; i++) {
        cv_error error = {0};
        status = cv_frame_attribute_check(&trailer->attributes[i], &error);
        if (status == CATERVA_ENOMEM) {
            if (err) *err = error;
            break;
        }
        if (status != CV_OK) report(task, -1, &error);
        status = CV_OK;
    }
    return status;
}

/* Runs a check of the frame, again if reading again may help, and reports damage. */
static cv_status check_twice(verify_task *task, cv_status (*check)(void *, cv_error *),
                             cv_error *err)
{
    cv_error error = {0};
    const cv_doubted twice = {.store = task->frame->store, .read = check, .context = task};
    cv_status status = cv_store_doubting(&twice, &error);
    if (cv_is_damage(status)) {
        report(task, -1, &error);
        return CV_OK;
    }
    if (status != CV_OK && err) *err = error;
    return status;
}

/* Checks index and seal. If the handle has them in memory already, checks the stored ones. */
static cv_status check_index(void *context, cv_error *err)
{
    verify_task *task = context;
    cv_snapshot *s = task->snapshot;
    cv_store *store = task->frame->store;
    bool is_checked =
        !s->unchecked && !atomic_load(&s->index_ready) && !atomic_load(&s->head_ready);
    CV_TRY(cv_snapshot_index(s, store, &task->index, err));
    return is_checked || s->refound ? CV_OK : cv_sealed_verify(s, store, err);
}

/* Checks the copy of the header: damage must be found before a torn header makes it necessary. */
static cv_status check_header_copy(void *context, cv_error *err)
{
    const verify_task *task = context;
    return cv_tail_check_copy(task->snapshot, task->frame->store, err);
}

/* Counts `n` chunks, which need no check of their own, as checked. */
static cv_status pass_over(verify_task *task, int64_t n, cv_error *err)
{
    if (n == 0) return CV_OK;
    task->result->checked_chunks += n;
    return cv_watch_tick(task->progress, n * task->snapshot->grid.chunk_bytes, err);
}

static cv_status check_chunks(verify_task *task, cv_error *err)
{
    survey s;
    bool fits;
    int64_t n = task->snapshot->grid.n_chunks;
    if (n == 0) return CV_OK;
    CV_TRY(check_twice(task, check_index, err));
    if (!atomic_load(&task->snapshot->index_ready))
        return CV_OK; /* without an index no chunk can be checked */
    look_over(task, &s);
    CV_TRY(check_room(task, &s, &fits, err));
    if (!fits) lose_stored(task, &s);
    CV_TRY(pass_over(task, fits ? n - s.n_stored : n, err));
    return fits && s.n_stored > 0 ? check_passes(task, &s, err) : CV_OK;
}

cv_status cv_verify(const cv_source *source, const caterva_verify_options *options,
                    uint8_t *lost, caterva_verify_result *result, cv_error *err)
{
    verify_task task = {.source = source,
                        .frame = source->frame,
                        .snapshot = source->snapshot,
                        .options = options,
                        .lost = lost,
                        .result = result};
    *result = (caterva_verify_result){0};
    /* Makes reads use the stored bytes, not those that this handle has cached. */
    cv_store_read_anew(source->frame->store);
    cv_layout_cache_clear(source->frame->layouts);
    task.progress = cv_watch_open(&task.watch, &options->progress, source->watch);
    cv_watch_expect(task.progress,
                    source->snapshot->grid.n_chunks * source->snapshot->grid.chunk_bytes);
    cv_mutex_init(&task.lock);
    cv_status status = check_attributes(&task, err);
    if (status == CV_OK) status = check_twice(&task, check_header_copy, err);
    if (status == CV_OK) status = check_chunks(&task, err);
    cv_mutex_destroy(&task.lock);
    return cv_watch_close(&task.watch, status);
}

/* ---- The public call --------------------------------------------------------------------
 *
 * No lock is held while callbacks run, so they may use the array. The gate keeps commits out, so
 * that the committed state does not change meanwhile. */

/* A call of caterva_verify: passes reports to the callbacks, and notes them in the gate. */
typedef struct verification {
    caterva_verify_options options; /* the caller's */
    cv_gate *gate;
    cv_passing self;
} verification;

static void on_damage(void *context, const caterva_damage *damage)
{
    verification *v = context;
    cv_gate_note_call(v->gate, &v->self, true);
    v->options.on_damage(v->options.context, damage);
    cv_gate_note_call(v->gate, &v->self, false);
}

static int on_progress(void *context, int64_t done, int64_t total)
{
    verification *v = context;
    const caterva_progress *progress = &v->options.progress;
    cv_gate_note_call(v->gate, &v->self, true);
    int stop = progress->report(progress->context, done, total);
    cv_gate_note_call(v->gate, &v->self, false);
    return stop;
}

/* Counts and reports what is wrong with index and metadata of a Zarr array. */
typedef struct zarr_sink {
    const caterva_verify_options *options;
    const cv_snapshot *snapshot;
    caterva_verify_result *result;
} zarr_sink;

static void report_zarr(void *context, const cv_error *error)
{
    const zarr_sink *z = context;
    const cv_damage_sink sink = {z->options->on_damage, z->options->context};
    z->result->damages++;
    cv_damage_report(&sink, &z->snapshot->grid, -1, error);
}

/* Verifies the committed state. A writer may be active: it writes other bytes. */
static cv_status verify(caterva_array *array, const caterva_verify_options *options,
                        caterva_verify_result *result, cv_error *err)
{
    cv_array_lock_shared(array);
    cv_source source = cv_array_source(array);
    source.snapshot = array->snapshot;
    source.pending = NULL; /* pending changes may have fewer chunks */
    cv_snapshot_retain(source.snapshot);
    cv_array_unlock(array);
    if (array->watch) cv_watch_begin(array->watch);
    cv_status status = cv_verify(&source, options, NULL, result, err);
    zarr_sink sink = {options, source.snapshot, result};
    if (status == CV_OK) /* damaged chunks have no index */
        status = cv_zarr_verify(array, source.snapshot,
                                options->quick || result->damaged_chunks > 0, report_zarr,
                                &sink, err);
    if (array->watch) cv_watch_end(array->watch, status == CV_OK);
    cv_snapshot_release(source.snapshot);
    return status;
}

caterva_status caterva_verify(caterva_array *array, const caterva_verify_options *options,
                              caterva_verify_result *result, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    caterva_verify_result full = {.checked_chunks = 0};
    CV_TRY(cv_output_check(result, sizeof *result, "verify result", err));
    verification v = {.gate = &array->gate};
    CV_TRY(cv_options_read(&v.options, sizeof v.options, options, "verify options", err));
    CV_TRY(cv_progress_check(&v.options.progress, err));
    caterva_verify_options calling = v.options;
    if (v.options.on_damage) calling.on_damage = on_damage;
    if (v.options.progress.report) calling.progress.report = on_progress;
    calling.context = calling.progress.context = &v;
    cv_gate_enter(v.gate, &v.self);
    cv_status status = verify(array, &calling, &full, err);
    cv_gate_leave(v.gate, &v.self);
    cv_output_fill(result, &full, sizeof full);
    return status;
}
