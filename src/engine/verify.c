/* Room: engine. Verify: the seal, every chunk's header and block starts, that no
 * two chunks share bytes, that every block has its checksum and decodes, that every
 * attribute does. It goes on after damage; what it finds goes to the caller's
 * function. */
#include "engine/verify.h"

#include "base/arith.h"
#include "engine/blocks.h"
#include "engine/damage.h"
#include "frame/sealed.h"

#include <stdlib.h>

/* Where a stored chunk lies, for the overlap check. */
typedef struct extent {
    uint64_t pos;
    uint64_t size;
    int64_t chunk;
} extent;

typedef struct verify_task {
    cv_frame *frame;
    cv_snapshot *snapshot;
    cv_workers *workers;
    const caterva_verify_options *options;
    cv_watch watch;  /* counts chunks; under its lock damage is told, too */
    cv_watch *heard; /* the same, or NULL: nobody listens */
    const cv_index *index;
    pthread_mutex_t lock; /* guards all below */
    caterva_verify_result *result;
    uint8_t *lost; /* 1 for each damaged chunk, or NULL */
    extent *extents;
    int64_t n_extents;
} verify_task;

static void report(verify_task *task, int64_t chunk, const cv_error *error)
{
    const cv_damage_sink sink = {task->options->on_damage, task->options->context};
    task->result->damages++;
    if (chunk >= 0) task->result->damaged_chunks++;
    if (chunk >= 0 && task->lost) task->lost[chunk] = 1;
    pthread_mutex_lock(&task->watch.lock);
    cv_damage_tell(&sink, &task->snapshot->grid, chunk, error);
    pthread_mutex_unlock(&task->watch.lock);
}

/* ---- One chunk ---------------------------------------------------------- */

/* Decoded blocks are looked at by nobody: decoding is the test. */
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
    int64_t n = task->snapshot->grid.n_blocks;
    CV_TRY(cv_worker_wanted(worker, n, err));
    for (int64_t b = 0; b < n; b++) worker->wanted[b] = (cv_wanted){.block = b, .tag = b};
    return cv_decode_blocks(task->frame, task->snapshot, ref, worker, n, &no_sink, err);
}

static void note_extent(verify_task *task, const cv_chunk_ref *ref, uint64_t size)
{
    pthread_mutex_lock(&task->lock);
    uint64_t pos = ref->object == CV_FRAME_OBJECT ? ref->pos : (uint64_t)ref->object;
    if (ref->object != CV_FRAME_OBJECT) size = 1; /* chunk files: only the number counts */
    task->extents[task->n_extents++] = (extent){pos, size, ref->chunk};
    pthread_mutex_unlock(&task->lock);
}

static void note_unverified(verify_task *task)
{
    pthread_mutex_lock(&task->lock);
    task->result->unverified_chunks++;
    pthread_mutex_unlock(&task->lock);
}

static cv_status check_chunk(verify_task *task, int64_t chunk, cv_worker *worker,
                             cv_error *err)
{
    cv_chunk_ref ref;
    CV_TRY(cv_chunk_ref_find(task->snapshot, task->index, chunk, &ref, err));
    if (ref.kind != CV_REF_STORED) return CV_OK;
    if (ref.name == 0) note_unverified(task);

    cv_layout *layout;
    CV_TRY(cv_layout_get(task->frame, task->snapshot, &ref, &layout, err));
    note_extent(task, &ref, cv_layout_stored_size(layout, &ref));
    cv_layout_release(layout);
    return task->options->quick ? CV_OK : decode_chunk(task, &ref, worker, err);
}

/* Counts a chunk; a failure to check (no memory, too many open files) ends the
 * whole run, damage does not. */
static cv_status finish_chunk(verify_task *task, int64_t chunk, cv_status status,
                              cv_error *error)
{
    bool damaged = cv_is_damage(status, error);
    if (status != CV_OK && !damaged) return status;
    pthread_mutex_lock(&task->lock);
    if (damaged) report(task, chunk, error);
    task->result->checked_chunks++;
    pthread_mutex_unlock(&task->lock);
    return cv_watch_step(&task->watch, 1, error);
}

static cv_status verify_chunk(void *context, int64_t chunk, cv_worker *worker, cv_error *err)
{
    verify_task *task = context;
    cv_error error = {0};
    worker->watch = task->heard;
    cv_status status = check_chunk(task, chunk, worker, &error);
    status = finish_chunk(task, chunk, status, &error);
    if (status != CV_OK && err) *err = error;
    return status;
}

/* ---- The rest ----------------------------------------------------------- */

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

static void check_overlaps(verify_task *task)
{
    qsort(task->extents, (size_t)task->n_extents, sizeof task->extents[0], by_pos);
    const extent *a = task->extents; /* the one that reaches furthest so far */
    for (int64_t i = 1; i < task->n_extents; i++) {
        const extent *b = &task->extents[i];
        bool apart = b->pos >= a->pos + a->size;
        const extent *last = a;
        if (b->pos + b->size > a->pos + a->size) a = b;
        if (apart) continue;
        report_overlap(task, b, last);
        /* Which of the two is right cannot be seen: both are lost. */
        if (task->lost && !task->lost[last->chunk]) report_overlap(task, last, b);
    }
}

static cv_status check_attributes(verify_task *task, cv_error *err)
{
    const cv_trailer *trailer = &task->snapshot->trailer;
    cv_buffer value = {0};
    cv_status status = CV_OK;
    for (int i = 0; i < trailer->n_attributes && status == CV_OK; i++) {
        cv_error error = {0};
        status = cv_frame_attribute(&trailer->attributes[i], &value, &error);
        if (status == CATERVA_ENOMEM) {
            if (err) *err = error;
            break;
        }
        if (status != CV_OK) report(task, -1, &error);
        status = CV_OK;
    }
    cv_buffer_free(&value);
    return status;
}

/* A handle that writes has index and seal in memory: the stored ones are read. */
static cv_status check_index(verify_task *task, cv_error *err)
{
    cv_store *store = task->frame->store;
    cv_error error = {0};
    cv_status status = cv_snapshot_index(task->snapshot, store, &task->index, &error);
    if (status == CV_OK && !task->snapshot->refound)
        status = cv_sealed_verify(task->snapshot, store, &error);
    if (status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED) {
        report(task, -1, &error);
        return CV_OK;
    }
    if (status != CV_OK && err) *err = error;
    return status;
}

static cv_status check_chunks(verify_task *task, int threads, cv_error *err)
{
    int64_t n = task->snapshot->grid.n_chunks;
    if (n == 0) return CV_OK;
    CV_TRY(check_index(task, err));
    if (!atomic_load(&task->snapshot->index_ready))
        return CV_OK; /* without an index there are no chunks to check */
    task->extents = malloc((size_t)n * sizeof task->extents[0]);
    if (!task->extents)
        return cv_fail_memory(err, (size_t)n * sizeof task->extents[0], "a list of chunks");
    cv_status status = cv_workers_run(task->workers, (int)cv_min_i64(threads, n) - 1, n,
                                      verify_chunk, task, err);
    if (status == CV_OK) check_overlaps(task);
    free(task->extents);
    return status;
}

cv_status cv_verify(const cv_source *source, const caterva_verify_options *options,
                    uint8_t *lost, caterva_verify_result *result, cv_error *err)
{
    verify_task task = {.frame = source->frame,
                        .snapshot = source->snapshot,
                        .workers = source->workers,
                        .options = options,
                        .lost = lost,
                        .result = result};
    *result = (caterva_verify_result){0};
    /* What is stored is looked at, not what this handle remembers of it. */
    cv_store_read_anew(source->frame->store);
    cv_layout_cache_clear(source->frame->layouts);
    cv_watch_init_steps(&task.watch, options->on_progress, options->context, source->watch);
    cv_watch_set_steps(&task.watch, source->snapshot->grid.n_chunks);
    cv_watch_expect(source->watch,
                    source->snapshot->grid.n_chunks * source->snapshot->grid.chunk_bytes);
    if (options->on_progress || source->watch) task.heard = &task.watch;
    pthread_mutex_init(&task.lock, NULL);
    cv_status status = check_attributes(&task, err);
    if (status == CV_OK) status = check_chunks(&task, source->threads, err);
    pthread_mutex_destroy(&task.lock);
    cv_watch_destroy(&task.watch);
    return status;
}
