/* Room: engine/read. Sources of reads, damage reports, and the stage. */
#include "engine/read/source.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/run/thresholds.h"
#include "format/frame_header.h"
#include "frame/fetch.h"
#include "frame/lookup.h"

#include <stdlib.h>

cv_source cv_source_of_pending(cv_pending *pending)
{
    return (cv_source){.frame = pending->frame,
                       .snapshot = cv_txn_snapshot(pending->txn),
                       .pending = pending,
                       .workers = pending->workers,
                       .threads = pending->threads,
                       .scan = true,
                       .watch = pending->watch};
}

/* Pending changes have no layout area, so this checks the committed state below them. */
cv_status cv_source_has_layouts(const cv_source *source, bool *out, cv_error *err)
{
    cv_layout_area area = {.size = 0};
    cv_error error = {0};
    cv_frame *frame = source->frame;
    cv_snapshot *base = source->pending ? cv_frame_snapshot(frame) : NULL;
    cv_status status =
        cv_layout_area_find(base ? base : source->snapshot, frame->store, &area, &error);
    cv_snapshot_release(base);
    *out = status == CV_OK && area.size > 0;
    if (status == CATERVA_ECORRUPT) return CV_OK;
    if (status != CV_OK && err) *err = error;
    return status;
}

/* Looks at few neighbours, because concurrent threads write chunks nearly in their order. */
uint64_t cv_source_guess_end(const cv_source *s, const cv_chunk_ref *ref)
{
    enum { NEAR = 8, MANY = 2048 };
    int64_t n_chunks = s->snapshot->grid.n_chunks;
    int64_t near = s->frame->store->is_far && n_chunks <= MANY ? n_chunks : NEAR;
    uint64_t copy =
        cv_header_copy_size(s->snapshot->header.header_size); /* after the last chunk */
    uint64_t end = ref->pos + (ref->limit > copy ? ref->limit - copy : 0);
    if (ref->object != CV_FRAME_OBJECT) return 0;
    for (int64_t i = cv_max_i64(ref->chunk - near, 0);
         i < cv_min_i64(ref->chunk + near + 1, n_chunks); i++) {
        cv_chunk_ref other;
        if (cv_source_find(s, i, &other, NULL) != CV_OK) return 0;
        if (other.kind == CV_REF_STORED && other.pos > ref->pos && other.pos < end)
            end = other.pos;
    }
    const cv_grid *grid = &s->snapshot->grid;
    uint64_t most = CV_CHUNK_HEADER_SIZE + (uint64_t)grid->chunk_bytes +
                    8 * (uint64_t)grid->n_blocks + 64;
    return end - ref->pos <= most ? end : 0;
}

/* ---- Damage ---------------------------------------------------------------------- */

bool cv_is_damage(cv_status status)
{
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED;
}

void cv_damage_report(const cv_damage_sink *sink, const cv_grid *grid, int64_t chunk,
                      const cv_error *error)
{
    caterva_damage damage = {.chunk = chunk,
                             .position = error->position,
                             .code = error->code,
                             .message = error->message};
    if (!sink->report) return;
    if (chunk >= 0) cv_grid_chunk_index(grid, chunk, damage.index);
    sink->report(sink->context, &damage);
}

/* ---- Stage ------------------------------------------------------------------------- */

typedef struct need {
    int64_t chunk, block;
} need;

struct cv_stage_window {
    int64_t number; /* -1: unused */
    cv_staged *staged;
    int n_users;
    bool is_read;  /* false while the window is being read */
    uint64_t used; /* clock of the last use */
};

/* ---- Needed bytes ------------------------------------------------------------- */

cv_status cv_stage_list_add(cv_stage_list *list, int64_t chunk, int64_t block, cv_error *err)
{
    const need n = {chunk, block};
    CV_TRY(cv_buffer_append(&list->needs, &n, sizeof n, err));
    list->n++;
    return CV_OK;
}

static int by_place(const void *a, const void *b)
{
    const need *x = a, *y = b;
    if (x->chunk != y->chunk) return x->chunk < y->chunk ? -1 : 1;
    return (x->block > y->block) - (x->block < y->block);
}

static need *needs_of(const cv_stage_list *list) { return (need *)(void *)list->needs.data; }

/* Adds the needs of one chunk, needs[0..n), sorted: CV_STAGE_LAYOUT and CV_STAGE_ALL come first. */
static cv_status add_chunk(cv_staged *staged, const cv_source *s, const need *needs, size_t n,
                           cv_error *err)
{
    cv_chunk_ref ref;
    cv_error ignored;
    if (cv_source_find(s, needs[0].chunk, &ref, &ignored) != CV_OK) return CV_OK;
    if (ref.kind != CV_REF_STORED) return CV_OK;
    CV_TRY(cv_staged_add(staged, &ref, cv_source_guess_end(s, &ref), err));
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && needs[i].block == needs[i - 1].block) continue;
        if (needs[i].block == CV_STAGE_ALL) cv_staged_add_all(staged);
        if (needs[i].block >= 0) CV_TRY(cv_staged_add_block(staged, needs[i].block, err));
    }
    return CV_OK;
}

/* Adds chunks in the order of their numbers, up to the limit of a wave. */
static cv_status add_chunks(cv_staged *staged, const cv_source *s, cv_stage_list *list,
                            cv_error *err)
{
    need *needs = needs_of(list);
    size_t most = CV_WAVE_HEADS / cv_layout_wave_bytes(&s->snapshot->grid) + 1, n_chunks = 0;
    if (list->n > 0) qsort(needs, list->n, sizeof needs[0], by_place);
    for (size_t i = 0, end; i < list->n && n_chunks < most; i = end, n_chunks++) {
        for (end = i + 1; end < list->n && needs[end].chunk == needs[i].chunk;) end++;
        CV_TRY(add_chunk(staged, s, needs + i, end - i, err));
    }
    return CV_OK;
}

/* ---- One window ----------------------------------------------------------------- */

static cv_status list_window(const cv_stage *stage, int64_t number, cv_worker *worker,
                             cv_stage_list *list, cv_error *err)
{
    enum { MOST_NEEDS = 4 * CV_WAVE_BLOCKS };
    int64_t first = number * stage->per_window;
    int64_t last = cv_min_i64(first + stage->per_window, stage->n_units);
    for (int64_t i = first; i < last && list->n < MOST_NEEDS; i++)
        CV_TRY(stage->list(stage->context, i, worker, list, err));
    return CV_OK;
}

static cv_status read_window(const cv_stage *stage, int64_t number, cv_worker *worker,
                             cv_staged **out, cv_error *err)
{
    const cv_source *s = stage->source;
    cv_stage_list list = {.n = 0};
    CV_TRY(cv_staged_new(s->frame, s->snapshot, out, err));
    cv_status status = list_window(stage, number, worker, &list, err);
    if (status == CV_OK) status = add_chunks(*out, s, &list, err);
    cv_buffer_free(&list.needs);
    if (status == CV_OK) status = cv_staged_fetch(*out, stage->most, stage->watch, err);
    if (status == CV_OK) return CV_OK;
    cv_staged_free(*out);
    *out = NULL;
    return status;
}

static cv_stage_window *find_window(const cv_stage *stage, int64_t number)
{
    for (int i = 0; i < stage->n_windows; i++)
        if (stage->windows[i].number == number) return &stage->windows[i];
    return NULL;
}

/* Returns the free window that was used longest ago. A free window exists, because there are more
 * windows than threads, and each thread holds at most one window. */
static cv_stage_window *free_window(const cv_stage *stage)
{
    cv_stage_window *found = NULL;
    for (int i = 0; i < stage->n_windows; i++) {
        cv_stage_window *w = &stage->windows[i];
        if (w->n_users == 0 && (!found || w->used < found->used)) found = w;
    }
    return found;
}

/* Called with the lock, which is released during the read. */
static cv_status fill_window(cv_stage *stage, cv_stage_window *w, int64_t number,
                             cv_worker *worker, cv_error *err)
{
    cv_staged *old = w->staged;
    *w = (cv_stage_window){.number = number, .n_users = 1};
    cv_mutex_unlock(&stage->lock);
    cv_staged_free(old);
    cv_staged *staged = NULL;
    cv_status status = read_window(stage, number, worker, &staged, err);
    cv_mutex_lock(&stage->lock);
    w->staged = staged;
    w->is_read = status == CV_OK;
    if (status != CV_OK) *w = (cv_stage_window){.number = -1};
    cv_cond_wake_all(&stage->changed);
    return status;
}

static bool is_used(const cv_stage *stage) { return stage && stage->windows; }

cv_status cv_stage_enter(cv_stage *stage, int64_t unit, cv_worker *worker, cv_error *err)
{
    if (!is_used(stage)) return CV_OK;
    int64_t number = unit / stage->per_window;
    cv_status status = CV_OK;
    cv_mutex_lock(&stage->lock);
    cv_stage_window *w = find_window(stage, number);
    while (w && !w->is_read && status == CV_OK) {
        status = cv_watch_wait(stage->watch, &stage->changed, &stage->lock, err);
        w = find_window(stage, number);
    }
    if (status != CV_OK) {
        cv_mutex_unlock(&stage->lock);
        return status;
    }
    if (w) {
        w->n_users++;
    } else {
        w = free_window(stage);
        status = fill_window(stage, w, number, worker, err);
    }
    if (status == CV_OK) {
        w->used = ++stage->clock;
        worker->staged = w->staged;
    }
    cv_mutex_unlock(&stage->lock);
    return status;
}

void cv_stage_leave(cv_stage *stage, int64_t unit, cv_worker *worker)
{
    if (!is_used(stage)) return;
    worker->staged = NULL;
    cv_mutex_lock(&stage->lock);
    find_window(stage, unit / stage->per_window)->n_users--;
    cv_mutex_unlock(&stage->lock);
}

/* ---- All windows ----------------------------------------------------------------- */

/* Estimates the stored bytes of `decoded` bytes. */
static double stored_bytes(const cv_snapshot *snapshot, int64_t decoded)
{
    double all = (double)snapshot->grid.n_items * (double)snapshot->grid.item_size;
    double share = all > 0 ? (double)snapshot->header.frame_size / all : 1;
    return (double)decoded * (share < 1 ? share : 1);
}

cv_status cv_stage_init(cv_stage *stage, const cv_source *source, const cv_stage_plan *plan,
                        cv_error *err)
{
    *stage = (cv_stage){.source = source,
                        .list = plan->list,
                        .context = plan->context,
                        .watch = plan->watch ? plan->watch : source->watch,
                        .n_units = plan->n_units};
    if (!source->frame->store->is_far || plan->n_units == 0) return CV_OK;
    int64_t memory = plan->memory > 0 ? plan->memory : CV_STAGE_BYTES;
    stage->n_windows = (int)cv_min_i64(plan->threads, plan->n_units) + 1;
    size_t size = (size_t)stage->n_windows * sizeof stage->windows[0];
    stage->most = cv_size(2 * memory / stage->n_windows);
    double each = stored_bytes(source->snapshot, plan->bytes) / (double)plan->n_units;
    double fits = (double)memory / stage->n_windows / (each > 1 ? each : 1);
    const double most = CV_WAVE_CHUNKS;
    stage->per_window = (int64_t)(fits < 1 ? 1 : fits < most ? fits : most);
    stage->windows = cv_calloc((size_t)stage->n_windows, sizeof stage->windows[0]);
    if (!stage->windows) return cv_fail_memory(err, size, "a list of windows");
    for (int i = 0; i < stage->n_windows; i++) stage->windows[i].number = -1;
    cv_mutex_init(&stage->lock);
    cv_cond_init(&stage->changed);
    return CV_OK;
}

void cv_stage_destroy(cv_stage *stage)
{
    if (!is_used(stage)) return;
    for (int i = 0; i < stage->n_windows; i++) cv_staged_free(stage->windows[i].staged);
    cv_free(stage->windows);
    cv_mutex_destroy(&stage->lock);
    cv_cond_destroy(&stage->changed);
}
