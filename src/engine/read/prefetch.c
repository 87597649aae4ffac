/* Room: engine/read. Decodes shares of boxes into the cache on pool threads; recognises scans. */
#include "engine/read/prefetch.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/os.h"
#include "engine/read/walk.h"
#include "engine/run/thresholds.h"

#include <string.h>

enum { ENTRY_OVERHEAD = 256 };

/* Touched blocks [first, last) of one chunk of the box. */
typedef struct share {
    const cv_source *source;
    cv_plan plan;
    int64_t number; /* position among the touched chunks */
    int64_t first, last;
    bool special; /* the chunk is not stored, so its blocks are never cached */
    bool full;    /* the cache has no room */
} share;

static int64_t cost_of_block(const cv_grid *grid)
{
    return grid->block_bytes + ENTRY_OVERHEAD;
}

static int64_t most_room(const cv_source *source)
{
    return cv_cache_limit(source->workers->cache) / 2;
}

/* ---- The queue ------------------------------------------------------------ */

/* Cuts the next share off the box. Returns false if no share is left inside the array. Blocks that
 * are decoded with their whole chunk are one share. */
static bool cut_share(cv_prefetch_box *box, int64_t room, share *out)
{
    const cv_grid *grid = &out->source->snapshot->grid;
    for (int d = 0; d < grid->ndim; d++) {
        box->stop[d] = cv_min_i64(box->stop[d], grid->shape[d]);
        if (box->start[d] >= box->stop[d]) return false;
    }
    if (cv_plan_box(grid, box->start, box->stop, &out->plan, NULL) != CV_OK) return false;
    if (box->chunk >= out->plan.n_chunks) return false;
    cv_chunk_job chunk;
    cv_plan_chunk(&out->plan, box->chunk, &chunk);
    out->number = box->chunk;

    int64_t n = cv_max_i64(CV_DECODE_PER_HELPER / grid->block_bytes, 1);
    if (!cv_codec_blocks_independent(&out->source->workers->spec)) n = chunk.n_blocks;
    if (out->source->frame->store->is_far) n = chunk.n_blocks;
    n = cv_min_i64(n, room / cost_of_block(grid));
    out->first = box->block;
    out->last = cv_min_i64(box->block + n, chunk.n_blocks);
    box->block = out->last;
    if (box->block >= chunk.n_blocks) {
        box->chunk++;
        box->block = 0;
    }
    return out->first < out->last;
}

static void remove_box(cv_prefetch *p, int i)
{
    p->n_boxes--;
    memmove(&p->boxes[i], &p->boxes[i + 1], (size_t)(p->n_boxes - i) * sizeof p->boxes[0]);
}

static int64_t cost_of_share(const share *s)
{
    return (s->last - s->first) * cost_of_block(s->plan.grid);
}

/* Takes up to `most` shares at once, so that one thread fetches them together. Returns their
 * number. */
static int64_t take_shares(cv_prefetch *p, const cv_source *source, share *out, int64_t most)
{
    int64_t n = 0;
    cv_mutex_lock(&p->lock);
    while (p->n_boxes > 0 && n < most) {
        out[n] = (share){.source = source};
        if (cut_share(&p->boxes[0], p->room, &out[n]))
            p->room -= cost_of_share(&out[n++]);
        else
            remove_box(p, 0);
    }
    cv_mutex_unlock(&p->lock);
    return n;
}

/* Gives back the room that a share of special chunks took. Shares that were cached before keep
 * theirs, so that a repeated prefetch of a box ends at the same block. */
static void return_share(cv_prefetch *p, const share *s)
{
    cv_mutex_lock(&p->lock);
    if (s->special) p->room = cv_min_i64(p->room + cost_of_share(s), most_room(s->source));
    if (s->full) p->room = 0;
    cv_mutex_unlock(&p->lock);
}

/* ---- Decoding into the cache ----------------------------------------------- */

/* The walk keeps all decoded blocks. */
static const cv_delivery keep = {.only_missing = true};

/* Decodes a share. Sets s->special if the chunk is not stored, and so never in the cache. */
static cv_status decode_share(share *s, cv_worker *worker, cv_error *err)
{
    cv_walk walk;
    cv_walk_chunk chunk;
    cv_walk_init(&walk, s->source, (cv_request){.box = &s->plan}, &keep, NULL);
    CV_TRY(cv_walk_enter(&chunk, &walk, s->number, worker, err));
    s->special = chunk.ref.kind != CV_REF_STORED;
    if (s->special) return CV_OK;
    cv_status status = cv_walk_blocks(&chunk, s->first, s->last, err);
    s->full = chunk.is_full;
    return status;
}

/* Ignores errors: the read that needs the blocks will report them. */
static bool do_share(cv_prefetch *p, const cv_source *source)
{
    share s;
    if (take_shares(p, source, &s, 1) == 0) return false;
    cv_worker *worker;
    cv_error ignored;
    if (cv_worker_take(source->workers, &worker, &ignored) == CV_OK) {
        (void)decode_share(&s, worker, &ignored);
        cv_worker_give(source->workers, worker);
    }
    return_share(p, &s);
    return true;
}

/* ---- Far stores -------------------------------------------------------------- */

/* Shares whose bytes are fetched together, before the first is decoded. */
typedef struct far_shares {
    int64_t n;
    share shares[CV_PREFETCH_SHARES];
} far_shares;

static cv_status list_share(void *context, int64_t i, cv_worker *worker, cv_stage_list *list,
                            cv_error *err)
{
    share *s = &((far_shares *)context)->shares[i];
    cv_walk walk;
    cv_walk_init(&walk, s->source, (cv_request){.box = &s->plan}, &keep, NULL);
    return cv_walk_list_missing(&walk, s->number, worker, list, err);
}

/* Decodes the shares. cv_prefetch_suspend and cv_prefetch_cancel stop it by the source's watch. */
static void decode_far(far_shares *f, const cv_source *source, cv_worker *worker)
{
    const cv_stage_plan plan = {.n_units = f->n,
                                .bytes = f->n * source->snapshot->grid.chunk_bytes,
                                .threads = 1,
                                .list = list_share,
                                .context = f};
    cv_stage stage;
    cv_error ignored;
    cv_status status = cv_stage_init(&stage, source, &plan, &ignored);
    for (int64_t i = 0; i < f->n && status == CV_OK; i++) {
        status = cv_stage_enter(&stage, i, worker, &ignored);
        if (status != CV_OK) break;
        worker->watch = source->watch;
        (void)decode_share(&f->shares[i], worker, &ignored);
        cv_stage_leave(&stage, i, worker);
        status = cv_watch_tick(source->watch, 0, &ignored);
    }
    cv_stage_destroy(&stage);
}

static bool do_far_shares(cv_prefetch *p, cv_source *source)
{
    cv_worker *worker;
    cv_error ignored;
    far_shares *f = cv_calloc(1, sizeof *f);
    if (!f) return false;
    f->n = take_shares(p, source, f->shares, CV_PREFETCH_SHARES);
    bool any = f->n > 0;
    source->watch = &p->watch;
    if (any && cv_worker_take(source->workers, &worker, &ignored) == CV_OK) {
        decode_far(f, source, worker);
        cv_worker_give(source->workers, worker);
    }
    for (int64_t i = 0; i < f->n; i++) return_share(p, &f->shares[i]);
    cv_free(f);
    return any;
}

/* One step of the job. */
static bool do_step(void *context, cv_pool_after *after)
{
    (void)after;
    cv_prefetch *p = context;
    cv_source source = p->source(p->owner);
    source.watch = NULL; /* no caller waits */
    if (source.frame->store->is_far) return do_far_shares(p, &source);
    return do_share(p, &source);
}

/* ---- Calls of the handle ----------------------------------------------------- */

void cv_prefetch_init(cv_prefetch *p, cv_source (*source)(void *owner), void *owner,
                      int threads)
{
    *p = (cv_prefetch){.source = source, .owner = owner};
    p->job = (cv_pool_job){.step = do_step, .context = p, .most = threads - 1};
    cv_mutex_init(&p->lock);
    cv_watch_init(&p->watch, NULL);
}

void cv_prefetch_destroy(cv_prefetch *p)
{
    cv_prefetch_cancel(p);
    cv_mutex_destroy(&p->lock);
    cv_watch_destroy(&p->watch);
}

static bool cv_prefetch_is_possible(const cv_prefetch *p, const cv_source *source)
{
    return p->job.most > 0 && source->workers->cache && most_room(source) > 0;
}

static bool cv_prefetch_has_begun(const cv_source *source, const cv_plan *plan)
{
    cv_chunk_job chunk;
    cv_block_job block;
    cv_chunk_ref ref;
    cv_plan_chunk(plan, 0, &chunk);
    cv_plan_block(plan, &chunk, 0, &block);
    if (cv_source_find(source, chunk.chunk, &ref, NULL) != CV_OK) return false;
    if (ref.kind != CV_REF_STORED) return false;
    cv_cache_key key;
    cv_block_key(source->frame, &ref, &key);
    key.block = (int32_t)block.block;
    return cv_cache_holds(source->workers->cache, &key);
}

void cv_prefetch_add(cv_prefetch *p, const cv_source *source, const cv_plan *plan,
                     bool of_scan)
{
    if (!cv_prefetch_is_possible(p, source) || plan->n_items == 0) return;
    cv_mutex_lock(&p->lock);
    for (int i = p->n_boxes - 1; of_scan && i >= 0; i--)
        if (p->boxes[i].of_scan) remove_box(p, i);
    if (p->n_boxes == 0) p->room = most_room(source);
    bool has_place = p->n_boxes < CV_PREFETCH_BOXES;
    if (has_place) {
        cv_prefetch_box *box = &p->boxes[p->n_boxes++];
        *box = (cv_prefetch_box){.of_scan = of_scan};
        size_t size = (size_t)plan->grid->ndim * sizeof box->start[0];
        memcpy(box->start, plan->start, size);
        memcpy(box->stop, plan->stop, size);
    }
    cv_mutex_unlock(&p->lock);
    if (has_place) cv_pool_post(&p->job);
}

/* Stops a wave under way and waits for steps. The bytes of this wave are not fetched again. */
static void withdraw(cv_prefetch *p)
{
    cv_watch_stop(&p->watch);
    cv_pool_withdraw(&p->job);
    cv_watch_begin(&p->watch);
    cv_watch_end(&p->watch, false);
}

void cv_prefetch_suspend(cv_prefetch *p)
{
    if (!atomic_load_explicit(&p->job.posted, memory_order_acquire)) return;
    withdraw(p);
    p->suspended = true;
}

void cv_prefetch_resume(cv_prefetch *p)
{
    if (!p->suspended) return;
    p->suspended = false;
    if (p->n_boxes > 0) cv_pool_post(&p->job);
}

void cv_prefetch_cancel(cv_prefetch *p)
{
    withdraw(p);
    p->n_boxes = 0;
    p->suspended = false;
}

/* ---- Read-ahead ------------------------------------------------------------------ */

enum {
    SMALLEST_READ = 4096,     /* bytes: smaller reads, such as points, are not tracked */
    STEPS_OF_A_SCAN = 2,      /* three boxes */
    FRESH_NS = 1000000,       /* accuracy of the times that are stored */
    SILENT_NS = 20 * FRESH_NS /* a thread silent for this long has stopped */
};

void cv_read_ahead_init(cv_read_ahead *ahead, bool off)
{
    memset(ahead, 0, sizeof *ahead);
    ahead->off = off;
    atomic_init(&ahead->thread, 0);
    atomic_init(&ahead->seen, 0);
    atomic_init(&ahead->crowded, 0);
    atomic_flag_clear(&ahead->busy);
    ahead->scan.axis = -1;
}

/* ---- Recognising a scan ------------------------------------------------------ */

static int moved_axis(const cv_scan *scan, const cv_plan *plan)
{
    int axis = -1;
    for (int d = 0; d < plan->grid->ndim; d++) {
        int64_t step = plan->start[d] - scan->start[d];
        if (plan->stop[d] - scan->stop[d] != step) return -1;
        if (step == 0) continue;
        if (axis >= 0) return -1;
        axis = d;
    }
    return axis;
}

bool cv_scan_add(cv_scan *scan, const cv_plan *plan)
{
    int axis = moved_axis(scan, plan);
    int64_t step = axis >= 0 ? plan->start[axis] - scan->start[axis] : 0;
    if (axis < 0 || axis != scan->axis || step != scan->step) {
        scan->n_steps = 0;
        scan->next = -1;
    }
    scan->axis = axis;
    scan->step = step;
    if (axis >= 0 && scan->n_steps < STEPS_OF_A_SCAN) scan->n_steps++;
    size_t size = (size_t)plan->grid->ndim * sizeof scan->start[0];
    memcpy(scan->start, plan->start, size);
    memcpy(scan->stop, plan->stop, size);
    return scan->n_steps >= STEPS_OF_A_SCAN;
}

static void layer_of(const cv_grid *grid, int axis, int64_t i, int64_t *first, int64_t *last)
{
    int64_t chunk = i / grid->chunk_shape[axis] * grid->chunk_shape[axis];
    int64_t block = (i - chunk) / grid->block_shape[axis] * grid->block_shape[axis];
    *first = chunk + block;
    *last = chunk + cv_min_i64(block + grid->block_shape[axis], grid->chunk_shape[axis]);
}

/* The scan's boxes begin at start + k * step. If step > 0, finds the first box that ends behind the
 * layer of this box's last item; else the first one that begins before the layer of its first
 * item. */
bool cv_scan_next(const cv_scan *scan, const cv_grid *grid, int64_t *first, int64_t *last)
{
    int axis = scan->axis;
    int64_t start = scan->start[axis], stop = scan->stop[axis], step = scan->step;
    int64_t layer_first, layer_last;
    if (step == 0) return false;
    if (step > 0) {
        layer_of(grid, axis, stop - 1, &layer_first, &layer_last);
        int64_t move = cv_ceil_div(layer_last + 1 - stop, step) * step;
        *first = cv_max_i64(layer_last, start + move);
        *last = cv_min_i64(stop + move, grid->shape[axis]);
    } else {
        layer_of(grid, axis, start, &layer_first, &layer_last);
        int64_t move = cv_ceil_div(start - layer_first + 1, -step) * step;
        *first = cv_max_i64(start + move, 0);
        *last = cv_min_i64(stop + move, layer_first);
    }
    return *first < *last;
}

/* ---- The scanning thread ------------------------------------------------------ */

/* Returns whether this is the scanning thread. It takes over from one silent for SILENT_NS. */
static bool is_scanning(cv_read_ahead *ahead, uint64_t now)
{
    uintptr_t self = cv_thread_number();
    uintptr_t thread = atomic_load_explicit(&ahead->thread, memory_order_relaxed);
    uint64_t seen = atomic_load_explicit(&ahead->seen, memory_order_relaxed);
    if (thread == self) {
        if (now - seen > FRESH_NS)
            atomic_store_explicit(&ahead->seen, now, memory_order_relaxed);
        return true;
    }
    if (thread == 0 || now - seen > SILENT_NS) {
        atomic_store_explicit(&ahead->seen, now, memory_order_relaxed);
        atomic_store_explicit(&ahead->thread, self, memory_order_relaxed);
        return true;
    }
    if (now - atomic_load_explicit(&ahead->crowded, memory_order_relaxed) > FRESH_NS)
        atomic_store_explicit(&ahead->crowded, now, memory_order_relaxed);
    return false;
}

/* Returns whether cores are free. A scan takes two cores: for its thread and for its prefetch. */
static bool has_cores(cv_read_ahead *ahead, const cv_prefetch *prefetch, uint64_t now)
{
    uint64_t crowded = atomic_load_explicit(&ahead->crowded, memory_order_relaxed);
    if (crowded > 0 && now - crowded < SILENT_NS) return false;
    int others =
        cv_pool_n_jobs() - atomic_load_explicit(&prefetch->job.posted, memory_order_relaxed);
    return 2 * (others + 1) <= cv_os_cores();
}

/* ---- Reading ahead ------------------------------------------------------------- */

/* Returns whether to prefetch. Scans of whole blocks are decoded to the destination, which costs
 * less than the cache. Otherwise the next layer must be worth waking a thread, and must fit a
 * request's share of the cache together with the present layer. */
static bool is_worth(const cv_source *source, const cv_plan *plan, const cv_plan *next)
{
    int64_t n_whole, unused;
    int64_t n_blocks = cv_plan_count_blocks(plan, &n_whole);
    if (n_whole >= n_blocks - n_whole) return false;
    int64_t bytes = cv_plan_count_blocks(next, &unused) * next->grid->block_bytes;
    int64_t most = cv_cache_limit(source->workers->cache) / 8 * 3;
    return bytes >= CV_DECODE_PER_HELPER && bytes <= most &&
           !cv_prefetch_has_begun(source, next);
}

static void go_ahead(cv_read_ahead *ahead, cv_prefetch *prefetch, const cv_source *source,
                     const cv_plan *plan, uint64_t now)
{
    cv_scan *scan = &ahead->scan;
    int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS], first, last;
    if (!cv_scan_next(scan, plan->grid, &first, &last) || first == scan->next) return;
    scan->next = first;
    size_t size = (size_t)plan->grid->ndim * sizeof start[0];
    memcpy(start, plan->start, size);
    memcpy(stop, plan->stop, size);
    start[scan->axis] = first;
    stop[scan->axis] = last;
    cv_plan next;
    if (cv_plan_box(plan->grid, start, stop, &next, NULL) != CV_OK) return;
    if (is_worth(source, plan, &next) && has_cores(ahead, prefetch, now))
        cv_prefetch_add(prefetch, source, &next, true);
}

void cv_read_ahead_note(cv_read_ahead *ahead, cv_prefetch *prefetch, const cv_source *source,
                        const cv_plan *plan)
{
    if (ahead->off || !cv_prefetch_is_possible(prefetch, source)) return;
    if (plan->n_items * plan->grid->item_size < SMALLEST_READ) return;
    uint64_t now = cv_os_clock_ns();
    if (!is_scanning(ahead, now)) return;
    if (atomic_flag_test_and_set_explicit(&ahead->busy, memory_order_acquire)) return;
    if (cv_scan_add(&ahead->scan, plan)) go_ahead(ahead, prefetch, source, plan, now);
    atomic_flag_clear_explicit(&ahead->busy, memory_order_release);
}
