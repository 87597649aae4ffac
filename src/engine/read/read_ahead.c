/* Room: engine/read. Which reads are a scan, and where it goes; decoding is prefetch.c's. */
#include "engine/read/read_ahead.h"

#include "base/arith.h"
#include "base/os.h"
#include "engine/run/thresholds.h"

#include <string.h>

enum {
    SMALLEST_READ = 4096,     /* bytes: points and the like are not worth a look */
    STEPS_OF_A_SCAN = 2,      /* equal ones: three boxes */
    FRESH_NS = 1000000,       /* times are kept so exactly */
    SILENT_NS = 20 * FRESH_NS /* who has not read for so long has stopped */
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

/* The one axis along which the box is the last one shifted, or -1. */
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

/* The layer of blocks that holds item `i` of an axis: [*first, *last). */
static void layer_of(const cv_grid *grid, int axis, int64_t i, int64_t *first, int64_t *last)
{
    int64_t chunk = i / grid->chunk_shape[axis] * grid->chunk_shape[axis];
    int64_t block = (i - chunk) / grid->block_shape[axis] * grid->block_shape[axis];
    *first = chunk + block;
    *last = chunk + cv_min_i64(block + grid->block_shape[axis], grid->chunk_shape[axis]);
}

/* Boxes at start + k * step. Forwards the first whose end is behind the layer of the
 * last item of this one; backwards the first whose begin is before the layer of its
 * first item. */
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

/* ---- Who scans --------------------------------------------------------------- */

/* True for the thread that scans; another one takes its place when it has been
 * silent for long enough. */
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

/* A scan and the one that reads ahead of it take two cores. */
static bool has_cores(cv_read_ahead *ahead, const cv_prefetch *prefetch, uint64_t now)
{
    uint64_t crowded = atomic_load_explicit(&ahead->crowded, memory_order_relaxed);
    if (crowded > 0 && now - crowded < SILENT_NS) return false;
    int others =
        cv_pool_n_jobs() - atomic_load_explicit(&prefetch->job.posted, memory_order_relaxed);
    return 2 * (others + 1) <= cv_os_cores();
}

/* ---- Reading ahead ------------------------------------------------------------- */

/* A scan whose blocks are wanted whole decodes each once and straight to where it is
 * wanted: by way of the cache that would cost more. The next layer is worth it when it
 * is neither so little that waking a thread costs more, nor so much that it and this
 * one do not fit into what a request may have of the cache. */
static bool is_worth(const cv_source *source, const cv_plan *plan, const cv_plan *next)
{
    int64_t n_whole, unused;
    int64_t n_blocks = cv_plan_count_blocks(plan, &n_whole);
    if (n_whole >= n_blocks - n_whole) return false;
    int64_t bytes = cv_plan_count_blocks(next, &unused) * next->grid->block_bytes;
    int64_t share = cv_cache_limit(source->workers->cache) / 8 * 3;
    return bytes >= CV_DECODE_PER_HELPER && bytes <= share &&
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
