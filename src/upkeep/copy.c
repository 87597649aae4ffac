/* Room: upkeep. Copies of arrays and views: creates a new array, fills it, and commits it. Options
 * that are not set are taken from the source. Also whole arrays as bytes: frames in memory, in
 * pieces, and appended to another file. */
#include "array/array.h"
#include "array/attributes.h"
#include "array/create.h"
#include "array/open.h"
#include "array/view.h"
#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/convert.h"
#include "engine/plan/partition.h"
#include "engine/read/read.h"
#include "engine/read/source.h"
#include "engine/write/flush.h"
#include "engine/write/transfer.h"
#include "engine/write/write.h"
#include "frame/commit.h"
#include "store/file.h"
#include "store/open.h"
#include "upkeep/zarr.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <string.h>

/* ---- Copying the items ------------------------------------------------------------- */

typedef struct cv_repack {
    const cv_source *source;
    const int64_t *start; /* the box, in items of the source */
    cv_pending *target;   /* a new array with the shape of the box */
    int64_t memory;       /* limit in bytes, besides the target's own memory */
    cv_watch *watch;      /* counts bytes of the target; or NULL */
} cv_repack;

/* A box in items of the target. */
typedef struct box {
    int64_t start[CV_MAX_DIMS];
    int64_t stop[CV_MAX_DIMS];
} box;

typedef struct copying {
    const cv_repack *repack;
    cv_source source; /* share_memory limits its threads */
    cv_pending *target;
    const cv_grid *from;
    const cv_grid *to;
    int64_t slab_memory; /* bytes */
    uint8_t *slab;       /* grown on demand */
    size_t slab_size;
    cv_watch *watch; /* the repack's */
    uint8_t *unfit;  /* one bit for each source chunk that cannot be moved; NULL: all can */
    cv_mutex lock;   /* guards `unfit` */
} copying;

static bool is_dirty(const copying *c, int64_t chunk)
{
    return c->source.pending && cv_pending_find(c->source.pending, chunk);
}

/* Whether the chunk must be decoded, although others are moved. */
static bool is_copied(const copying *c, int64_t chunk)
{
    return is_dirty(c, chunk) || (c->unfit && c->unfit[chunk / 8] >> chunk % 8 & 1);
}

/* Returns the memory that one thread needs to decode or encode a chunk: some blocks of scratch
 * memory in libblosc2, and a few MiB for the tables of its codecs. */
static int64_t thread_memory(const copying *c)
{
    enum { CODEC_BYTES = 2 << 20, FETCH_BYTES = 512 * 1024, SCRATCH_BLOCKS = 4 };
    const cv_grid *from = c->from, *to = c->to;
    int64_t bytes = CODEC_BYTES + SCRATCH_BLOCKS * (from->block_bytes + to->block_bytes);
    bytes += 2 * to->chunk_bytes; /* decoded and encoded */
    if (cv_codec_blocks_independent(&c->source.workers->spec)) return bytes + FETCH_BYTES;
    return bytes + 2 * from->chunk_bytes;
}

/* Chooses the number of threads: as many as fit the memory, with one chunk of the slab for each. */
static void share_memory(copying *c)
{
    int64_t each = thread_memory(c);
    int64_t fit = c->repack->memory / (each + c->to->chunk_bytes);
    int64_t most = cv_min_i64(c->source.threads, c->target->threads);
    c->source.threads = (int)cv_max_i64(1, cv_min_i64(most, fit));
    c->slab_memory = c->repack->memory - c->source.threads * each;
}

static cv_status reserve_slab(copying *c, int64_t size, cv_error *err)
{
    size_t bytes = cv_size(size);
    if (bytes <= c->slab_size) return CV_OK;
    cv_free(c->slab);
    c->slab_size = 0;
    c->slab = cv_malloc(bytes);
    if (!c->slab) return cv_fail_memory(err, bytes, "a slab of the copy");
    c->slab_size = bytes;
    return CV_OK;
}

/* Returns how many chunks of the plan to look at: one if they all have the same index entry. */
static cv_status count_different(const copying *c, const cv_plan *plan, int64_t *n,
                                 cv_error *err)
{
    const cv_index *index;
    *n = plan->n_chunks;
    if (*n <= 1 || c->source.pending) return CV_OK;
    CV_TRY(cv_snapshot_index(c->source.snapshot, c->source.frame->store, &index, err));
    if (!index->pages) *n = 1;
    return CV_OK;
}

/* Returns whether all chunks of the plan have the value of the target's unwritten chunks. */
static cv_status is_unwritten(const copying *c, const cv_plan *plan, bool *out, cv_error *err)
{
    int64_t n;
    CV_TRY(count_different(c, plan, &n, err));
    *out = !c->target->fill_is_stored;
    for (int64_t k = 0; k < n && *out; k++) {
        cv_chunk_job job;
        cv_chunk_ref ref;
        cv_plan_chunk(plan, k, &job);
        CV_TRY(cv_source_find(&c->source, job.chunk, &ref, err));
        cv_ref_kind kind = ref.kind == CV_REF_UNINIT ? CV_REF_ZEROS : ref.kind;
        *out = kind == c->target->fill_kind && !is_dirty(c, job.chunk);
    }
    return CV_OK;
}

static cv_status copy_slab(copying *c, const box *b, cv_error *err)
{
    box from = *b;
    for (int d = 0; d < c->to->ndim; d++) {
        from.start[d] += c->repack->start[d];
        from.stop[d] += c->repack->start[d];
    }
    cv_plan read, write;
    bool unwritten;
    CV_TRY(cv_plan_box(c->from, from.start, from.stop, &read, err));
    CV_TRY(cv_plan_box(c->to, b->start, b->stop, &write, err));
    CV_TRY(is_unwritten(c, &read, &unwritten, err));
    if (unwritten) return cv_watch_step(c->watch, write.n_chunks * c->to->chunk_bytes, err);

    CV_TRY(reserve_slab(c, read.n_items * c->to->item_size, err));
    CV_TRY(cv_read_box(&c->source, &read, c->slab, err));
    CV_TRY(cv_watch_step(c->watch, 0, err));
    CV_TRY(cv_write_box(c->target, &write, c->slab, err));
    return cv_watch_step(c->watch, write.n_chunks * c->to->chunk_bytes, err);
}

static cv_status copy_part(copying *c, const box *part, cv_error *err)
{
    enum { SLAB_BYTES = 8 << 20, CHUNKS_PER_THREAD = 4 };
    int64_t chunks = (int64_t)c->source.threads * CHUNKS_PER_THREAD;
    cv_slab_request request = {
        .to = c->to,
        .from = c->from,
        .shift = c->repack->start,
        .start = part->start,
        .stop = part->stop,
        .whole_chunks = !cv_codec_blocks_independent(&c->source.workers->spec),
        .memory = c->slab_memory,
        .enough = cv_max_i64(SLAB_BYTES, chunks * c->to->chunk_bytes),
    };
    cv_slabs slabs;
    cv_slabs_choose(&request, &slabs);
    CV_TRY(reserve_slab(c, slabs.n_bytes, err));
    cv_status status = CV_OK;
    for (int64_t k = 0; k < slabs.n_slabs && status == CV_OK; k++) {
        box b = {{0}, {0}};
        cv_slabs_get(&slabs, k, b.start, b.stop);
        status = copy_slab(c, &b, err);
    }
    return status;
}

/* Chunk k of the source's plan becomes chunk k of the target's. */
typedef struct moving {
    copying *copying;
    cv_plan from;
    cv_plan to;
    cv_stage stage;
} moving;

static cv_status list_chunk(void *context, int64_t k, cv_worker *worker, cv_stage_list *list,
                            cv_error *err)
{
    const moving *m = context;
    cv_chunk_job from;
    (void)worker;
    cv_plan_chunk(&m->from, k, &from);
    if (is_dirty(m->copying, from.chunk)) return CV_OK;
    return cv_stage_list_add(list, from.chunk, CV_STAGE_ALL, err);
}

static void note_unfit(copying *c, int64_t chunk)
{
    cv_mutex_lock(&c->lock);
    c->unfit[chunk / 8] |= (uint8_t)(1 << chunk % 8);
    cv_mutex_unlock(&c->lock);
}

static cv_status move_chunk(void *context, int64_t k, cv_worker *worker, cv_error *err)
{
    moving *m = context;
    cv_chunk_job from, to;
    worker->watch = m->copying->source.watch;
    cv_plan_chunk(&m->from, k, &from);
    cv_plan_chunk(&m->to, k, &to);
    if (is_dirty(m->copying, from.chunk)) return CV_OK;
    CV_TRY(cv_stage_enter(&m->stage, k, worker, err));
    bool fits = true;
    cv_status status = CV_OK;
    if (m->copying->unfit)
        status = cv_transfer_fits(&m->copying->source, from.chunk, worker, &fits, err);
    if (status == CV_OK && fits)
        status = cv_move_chunk(&m->copying->source, from.chunk, m->copying->target, to.chunk,
                               worker, err);
    cv_stage_leave(&m->stage, k, worker);
    CV_TRY(status);
    if (!fits) {
        note_unfit(m->copying, from.chunk);
        return CV_OK;
    }
    cv_watch_add(m->copying->watch, m->copying->to->chunk_bytes);
    return cv_watch_step(m->copying->watch, m->copying->to->chunk_bytes, err);
}

/* Copies chunks that have dirty blocks in the source, or cannot be moved. */
static cv_status copy_dirty(const moving *m, cv_error *err)
{
    copying *c = m->copying;
    for (int64_t k = 0; k < m->to.n_chunks && (c->source.pending || c->unfit); k++) {
        cv_chunk_job from, to;
        cv_plan_chunk(&m->from, k, &from);
        if (!is_copied(c, from.chunk)) continue;
        cv_plan_chunk(&m->to, k, &to);
        box b = {{0}, {0}};
        cv_grid_chunk_index(c->to, to.chunk, b.start);
        for (int d = 0; d < c->to->ndim; d++) {
            b.start[d] *= c->to->chunk_shape[d];
            b.stop[d] = b.start[d] + to.hi[d];
        }
        CV_TRY(copy_slab(c, &b, err));
    }
    return CV_OK;
}

/* Returns whether all source chunks have the index entry that the target's chunks have already. */
static cv_status all_are_fill(const copying *c, const cv_plan *plan, bool *out, cv_error *err)
{
    int64_t n;
    cv_chunk_ref ref;
    *out = false;
    CV_TRY(count_different(c, plan, &n, err));
    if (n != 1 || plan->n_chunks == 1 || c->target->fill_is_stored) return CV_OK;
    CV_TRY(cv_source_find(&c->source, 0, &ref, err));
    *out = ref.kind == c->target->fill_kind;
    return CV_OK;
}

static cv_status move_part(copying *c, const int64_t *stop, cv_error *err)
{
    int64_t zeros[CV_MAX_DIMS] = {0}, from_stop[CV_MAX_DIMS] = {0};
    for (int d = 0; d < c->to->ndim; d++) from_stop[d] = c->repack->start[d] + stop[d];
    moving m = {.copying = c};
    CV_TRY(cv_plan_box(c->from, c->repack->start, from_stop, &m.from, err));
    CV_TRY(cv_plan_box(c->to, zeros, stop, &m.to, err));
    bool is_fill;
    CV_TRY(all_are_fill(c, &m.from, &is_fill, err));
    if (is_fill) return cv_watch_step(c->watch, m.to.n_chunks * c->to->chunk_bytes, err);
    int helpers = (int)cv_min_i64(c->source.threads, m.to.n_chunks) - 1;
    cv_watch_expect(c->watch, m.to.n_chunks * c->to->chunk_bytes);
    const cv_stage_plan plan = {.n_units = m.to.n_chunks,
                                .bytes = m.to.n_chunks * c->to->chunk_bytes,
                                .memory = c->repack->memory / 4,
                                .threads = helpers + 1,
                                .list = list_chunk,
                                .context = &m};
    CV_TRY(cv_stage_init(&m.stage, &c->source, &plan, err));
    const cv_crew crew = {c->source.workers, helpers, c->watch};
    cv_status status = cv_workers_run(&crew, m.to.n_chunks, move_chunk, &m, err);
    cv_stage_destroy(&m.stage);
    CV_TRY(status);
    return copy_dirty(&m, err);
}

/* A chunk that the box cuts is not moved, because it has cells outside of the box. So chunks are
 * moved up to the last chunk edge, and on each axis a face may remain, which is copied.
 *
 *      +-------+--+
 *      | moves |  |      Each item of a face is copied once: the face of axis 0 (below) extends
 *      +-------+--+      along all of the later axes, the face of axis 1 (beside) only along the
 *      |          |      moved part of axis 0.
 *      +----------+ */
static cv_status move_and_copy(copying *c, cv_error *err)
{
    box part = {{0}, {0}};
    memcpy(part.stop, c->to->shape, sizeof part.stop);
    int64_t moved[CV_MAX_DIMS] = {0};
    for (int d = 0; d < c->to->ndim; d++) {
        int64_t length = c->to->shape[d];
        bool cut = c->repack->start[d] + length < c->from->shape[d];
        moved[d] = cut ? length - length % c->to->chunk_shape[d] : length;
    }
    CV_TRY(move_part(c, moved, err));
    for (int d = 0; d < c->to->ndim; d++) {
        part.start[d] = moved[d];
        CV_TRY(copy_part(c, &part, err));
        part.start[d] = 0;
        part.stop[d] = moved[d];
    }
    return CV_OK;
}

static bool can_move(const copying *c)
{
    cv_move move = {.source = &c->source, .target = c->target};
    for (int d = 0; d < c->to->ndim; d++) {
        move.axis[d] = d;
        if (c->repack->start[d] % c->from->chunk_shape[d] != 0) return false;
    }
    return cv_can_move(&move);
}

static cv_status expect_unfit(copying *c, cv_error *err)
{
    size_t size = (size_t)c->from->n_chunks / 8 + 1;
    c->unfit = cv_calloc(1, size);
    return c->unfit ? CV_OK : cv_fail_memory(err, size, "a list of chunks");
}

/* Copies the items without committing. The source must not change meanwhile. */
static cv_status repack_run(const cv_repack *repack, cv_error *err)
{
    copying c = {
        .repack = repack,
        .source = *repack->source,
        .watch = repack->watch,
        .target = repack->target,
        .from = &repack->source->snapshot->grid,
        .to = &cv_txn_snapshot(repack->target->txn)->grid,
    };
    c.source.scan = true; /* the limit leaves no memory for a cache */
    int threads = c.target->threads;
    share_memory(&c);
    c.target->threads = c.source.threads;
    box all = {{0}, {0}};
    memcpy(all.stop, c.to->shape, sizeof all.stop);
    cv_mutex_init(&c.lock);
    cv_status status = cv_watch_step(c.watch, 0, err);
    bool moves = can_move(&c);
    if (status == CV_OK && moves && c.target->txn->is_dual) status = expect_unfit(&c, err);
    if (status == CV_OK) status = moves ? move_and_copy(&c, err) : copy_part(&c, &all, err);
    c.target->threads = threads;
    cv_mutex_destroy(&c.lock);
    cv_free(c.unfit);
    cv_free(c.slab);
    return status;
}

/* ---- The options of the new array -------------------------------------------------- */

/* Complete options, with the data that they point to. */
typedef struct cv_copy_order {
    caterva_copy_options options;
    caterva_create_options create;
    int64_t start[CATERVA_MAX_DIMS];
    int64_t shape[CATERVA_MAX_DIMS];
    int32_t chunk_shape[CATERVA_MAX_DIMS];
    int32_t block_shape[CATERVA_MAX_DIMS];
    cv_conversion conversion; /* applied to every item */
    uint8_t fill[16];         /* the source's fill, converted */
} cv_copy_order;

enum { DEFAULT_MEMORY = 256 << 20 };

/* Reads the caller's options (or NULL). Completes `create`, except for shape, partition and the
 * members that copy_set_kind sets. */
static cv_status copy_read_options(const caterva_copy_options *options, cv_copy_order *order,
                                   cv_error *err)
{
    static const caterva_create_options like_source = CATERVA_CREATE_INIT;
    CV_TRY(cv_options_read(&order->options, sizeof order->options, options, "copy options",
                           err));
    CV_TRY(cv_progress_check(&order->options.progress, err));
    const caterva_create_options *create = order->options.create;
    CV_TRY(cv_options_copy(&order->create, sizeof order->create,
                           create ? create : &like_source, "create options", err));
    if (order->options.memory < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "the memory limit is %lld bytes, less than 0",
                       (long long)order->options.memory);
    if (order->options.memory == 0) order->options.memory = DEFAULT_MEMORY;
    if (order->options.convert_to && order->create.dtype)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "convert_to is %.60s: then create->dtype must be NULL",
                       order->options.convert_to);
    order->conversion = (cv_conversion){.needed = false};
    return CV_OK;
}

/* Prepares the requested conversion, and sets the dtype of the new array. */
static cv_status copy_set_conversion(const caterva_array *source, cv_copy_order *order,
                                     cv_error *err)
{
    const caterva_copy_options *o = &order->options;
    if (!o->convert_to) return CV_OK;
    CV_TRY(cv_conversion_init(&order->conversion, source->type.dtype, o->convert_to,
                              o->casting, err));
    if (!order->conversion.needed) return CV_OK;
    order->create.dtype = o->convert_to;
    order->create.item_size = order->conversion.to.size;
    return CV_OK;
}

/* Takes layout, metalayer and fill from `source` unless the options set them. */
static void copy_set_kind(const caterva_array *source, const char *url, cv_copy_order *order)
{
    caterva_create_options *c = &order->create;
    bool is_one_file =
        order->options.zarr || strcmp(url, "mem:") == 0 || cv_array_is_leaf_url(url);
    if (c->layout == CATERVA_LAYOUT_DEFAULT)
        c->layout = is_one_file ? CATERVA_LAYOUT_CONTIGUOUS : source->layout;
    if (c->metalayer == CATERVA_METALAYER_DEFAULT &&
        source->metalayer != CATERVA_METALAYER_NONE)
        c->metalayer = source->metalayer;
    if (c->fill == CATERVA_FILL_DEFAULT && source->fill) {
        c->fill = CATERVA_FILL_VALUE;
        c->fill_value = source->fill;
        if (!order->conversion.needed) return;
        cv_convert(&order->conversion, source->fill, order->fill, 1);
        c->fill_value = order->fill;
    }
}

/* Sets `for_remote` to 0 or 1; if unset, to 1 if the source has a layout area. CATERVA_EINVAL if
 * set for a directory. Call with the source's lock held, after copy_set_kind. */
static cv_status copy_choose_remote(caterva_array *source, cv_copy_order *order,
                                    cv_error *err)
{
    bool is_one_file = order->create.layout == CATERVA_LAYOUT_CONTIGUOUS, has_layouts = false;
    int asked = order->options.for_remote;
    cv_source from = cv_array_source(source);
    if (asked == 0 && is_one_file) CV_TRY(cv_source_has_layouts(&from, &has_layouts, err));
    order->options.for_remote = asked > 0 || has_layouts;
    if (asked <= 0 || is_one_file) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "layouts for remote reading need a single file, and a directory was "
                   "requested");
}

static cv_status set_box(const cv_grid *grid, cv_copy_order *order, cv_error *err)
{
    const int64_t *start = order->options.start, *stop = order->options.stop;
    for (int d = 0; d < grid->ndim; d++) {
        int64_t first = start ? start[d] : 0, end = stop ? stop[d] : grid->shape[d];
        if (first < 0 || end > grid->shape[d] || first > end)
            return cv_fail(err, CATERVA_ERANGE, -1,
                           "box [%lld, %lld) on axis %d does not lie in [0, %lld)",
                           (long long)first, (long long)end, d, (long long)grid->shape[d]);
        order->start[d] = first;
        order->shape[d] = end - first;
    }
    order->create.ndim = grid->ndim;
    order->create.shape = order->shape;
    order->create.item_size = 0;
    return CV_OK;
}

/* Keeps the source's partition, unless the options set a chunk or block shape: then the library
 * chooses the shape that is not set, or both for plain items, which have no partition. */
static void set_partition(const cv_snapshot *source, cv_copy_order *order)
{
    const cv_grid *grid = &source->grid;
    caterva_create_options *c = &order->create;
    if (c->chunk_shape || c->block_shape || source->meta.plain) return;
    for (int d = 0; d < grid->ndim; d++) {
        order->chunk_shape[d] = (int32_t)grid->chunk_shape[d];
        order->block_shape[d] = (int32_t)grid->block_shape[d];
    }
    c->chunk_shape = order->chunk_shape;
    c->block_shape = order->block_shape;
}

/* Fills and commits the new array. One watch counts reads and writes. */
static cv_status fill_new(cv_source *source, const cv_copy_order *order, caterva_array *array,
                          cv_error *err)
{
    const caterva_copy_options *o = &order->options;
    cv_watch watch;
    const cv_grid *grid = &cv_txn_snapshot(array->pending->txn)->grid;
    source->watch = array->pending->watch = cv_watch_open_fixed(
        &watch, &o->progress, grid->n_chunks * grid->chunk_bytes, source->watch);
    cv_repack repack = {
        .source = source,
        .start = order->start,
        .target = array->pending,
        .memory = o->memory,
        .watch = source->watch,
    };
    cv_status status = repack_run(&repack, err);
    if (o->for_remote) cv_txn_add_layouts(array->pending->txn);
    if (status == CV_OK) status = caterva_commit(array, err);
    array->pending->watch = array->watch;
    return cv_watch_close(&watch, status);
}

/* ---- The new array ---------------------------------------------------------------- */

/* Where the new array is created: at `url`, or in the directory of a Zarr array. */
typedef struct target {
    const char *url;
    const cv_copy_order *order;
    cv_zarr_place zarr;
} target;

static cv_status create_zarr(target *t, cv_copy_order *order, const cv_snapshot *like,
                             const char *dtype, caterva_array **out, cv_error *err)
{
    caterva_create_options *create = &order->create;
    CV_TRY(cv_zarr_adapt(create, like, create->dtype ? create->dtype : dtype,
                         order->chunk_shape, order->block_shape, err));
    CV_TRY(cv_zarr_begin(t->url, create->overwrite != 0, create->ndim, &t->zarr, err));
    create->overwrite = 0;
    cv_status status = cv_array_create(t->zarr.path, create, like, out, err);
    if (status == CV_OK) cv_zarr_write_dual(*out);
    if (status != CV_OK) cv_zarr_drop(&t->zarr);
    return status;
}

/* `t` must not move until target_finish. */
static cv_status target_create(target *t, const char *url, cv_copy_order *order,
                               const cv_snapshot *like, const char *dtype,
                               caterva_array **out, cv_error *err)
{
    *t = (target){.url = url, .order = order};
    if (order->options.zarr) return create_zarr(t, order, like, dtype, out, err);
    return cv_array_create(url, &order->create, like, out, err);
}

/* Passes the filled array, or the failure, to the caller. */
static cv_status target_finish(target *t, cv_status status, caterva_array *array,
                               caterva_array **out, cv_error *err)
{
    const cv_copy_order *order = t->order;
    if (!order->options.zarr) {
        if (status != CV_OK || !out) cv_array_free(array);
        if (status == CV_OK && out) *out = array;
        return status;
    }
    cv_array_free(array);
    if (status != CV_OK) {
        cv_zarr_drop(&t->zarr);
        return status;
    }
    caterva_open_options open = CATERVA_OPEN_INIT;
    open.threads = order->create.threads;
    open.cache_bytes = order->create.cache_bytes;
    open.progress = order->create.progress;
    bool durable = order->create.durability != CATERVA_DURABILITY_NONE;
    CV_TRY(cv_zarr_install(&t->zarr, durable, NULL, err));
    return out ? caterva_open(t->url, &open, out, err) : CV_OK;
}

static cv_status copy(caterva_array *source, const char *url, cv_copy_order *order,
                      caterva_array **out, cv_error *err)
{
    const cv_snapshot *state = cv_array_state(source);
    CV_TRY(cv_array_check_whole(source, err));
    CV_TRY(set_box(&state->grid, order, err));
    set_partition(state, order);
    copy_set_kind(source, url, order);
    CV_TRY(copy_choose_remote(source, order, err));
    target t;
    caterva_array *array;
    cv_source from = cv_array_source(source);
    CV_TRY(target_create(&t, url, order, state, source->type.dtype, &array, err));
    return target_finish(&t, fill_new(&from, order, array, err), array, out, err);
}

/* Copies the box through a view, which converts items. */
static cv_status copy_converted(caterva_array *source, const char *url,
                                const cv_copy_order *order, caterva_array **out,
                                cv_error *err)
{
    caterva_copy_options options = order->options;
    caterva_axis axes[CATERVA_MAX_DIMS];
    caterva_view *whole, *part = NULL;
    cv_copy_order checked = *order;
    cv_array_lock_shared(source);
    cv_grid grid = cv_array_state(source)->grid;
    cv_array_unlock(source);
    CV_TRY(set_box(&grid, &checked, err));
    for (int d = 0; d < grid.ndim; d++)
        axes[d] = (caterva_axis){.kind = CATERVA_AXIS_SLICE,
                                 .start = checked.start[d],
                                 .stop = checked.start[d] + checked.shape[d],
                                 .step = 1};
    options.start = options.stop = NULL;
    CV_TRY(caterva_view_of(source, &whole, err));
    cv_status status = caterva_view_select(whole, axes, grid.ndim, &part, err);
    if (status == CV_OK) status = caterva_view_copy(part, url, &options, out, err);
    caterva_view_free(part);
    caterva_view_free(whole);
    return status;
}

caterva_status caterva_copy(caterva_array *source, const char *url,
                            const caterva_copy_options *options, caterva_array **out,
                            caterva_error *err)
{
    CV_TRY(cv_array_check(source, err));
    if (!url) return cv_fail(err, CATERVA_EINVAL, -1, "url is NULL");
    if (out) *out = NULL;
    cv_copy_order order;
    CV_TRY(copy_read_options(options, &order, err));
    if (order.options.convert_to) return copy_converted(source, url, &order, out, err);
    cv_array_lock_shared(source);
    return cv_array_finish(source, copy(source, url, &order, out, err));
}

/* ---- Copies of views --------------------------------------------------------------------
 *
 * Parts whose chunks are valid in the new array are moved as stored. Other parts are copied through
 * memory, slab by slab.
 *
 *     parts     |  moves  |e|      moves      |   The first part ends inside a chunk. From the
 *     new array |  :  :  :  :  :  :  :  :  :  |   edge of this chunk on, items are encoded (e)
 *                                                 up to the next part that begins at an edge */

typedef struct view_copy {
    const caterva_view *view;
    const cv_copy_order *order;
    caterva_array *to;
    const cv_grid *grid; /* of the new array */
    int axis;            /* the axis along which parts are joined */
    uint8_t *slab;       /* grown on demand */
    int64_t slab_size;
    cv_watch *watch; /* counts bytes of the new array; or NULL */
} view_copy;

/* The parts of a view along the axis of its join. A view of one array has one part. */
typedef struct parts {
    int n;
    int axis;
    const caterva_view *const *views;
    const int64_t *starts; /* NULL: 0 */
} parts;

static bool is_whole_base(const caterva_view *view)
{
    if (view->grid.ndim != view->base->grid.ndim) return false;
    for (int d = 0; d < view->grid.ndim; d++)
        if (view->base_axis[d] != d || view->start[d] != 0 || view->step[d] != 1 ||
            view->grid.shape[d] != view->base->grid.shape[d])
            return false;
    return true;
}

static parts parts_of(const caterva_view *const *view)
{
    const cv_base *base = (*view)->base;
    if (base->array || !is_whole_base(*view)) return (parts){.n = 1, .views = view};
    return (parts){base->n_parts, base->axis, (const caterva_view *const *)base->parts,
                   base->starts};
}

/* Returns the first array below the view: the new array's model. *over is the view of it. */
static caterva_array *first_array(const caterva_view *view, const caterva_view **over)
{
    while (!view->base->array) view = view->base->parts[0];
    *over = view;
    return view->base->array;
}

static cv_status copy_view_copy_slab(view_copy *c, const int64_t *start, const int64_t *stop,
                                     cv_error *err)
{
    cv_selection s = {.grid = &c->view->grid, .kind = CATERVA_SELECTION_AXES, .n_items = 1};
    cv_memory memory = {
        .data = c->slab, .item_size = c->grid->item_size, .conversion = c->order->conversion};
    int64_t stride = c->grid->item_size;
    s.ndim = c->grid->ndim;
    for (int d = s.ndim - 1; d >= 0; d--) {
        s.shape[d] = stop[d] - start[d];
        s.axes[d] = (cv_axis){.n = s.shape[d], .start = start[d], .step = 1};
        s.n_items *= s.shape[d];
        memory.strides[d] = stride;
        stride *= s.shape[d];
    }
    cv_plan plan;
    CV_TRY(cv_plan_box(c->grid, start, stop, &plan, err));
    CV_TRY(cv_view_read(c->view, &s, &memory, err));
    CV_TRY(cv_watch_step(c->watch, 0, err));
    CV_TRY(cv_write_box(c->to->pending, &plan, c->slab, err));
    return cv_watch_step(c->watch, plan.n_chunks * c->grid->chunk_bytes, err);
}

static cv_status copy_view_reserve_slab(view_copy *c, int64_t size, cv_error *err)
{
    if (size <= c->slab_size) return CV_OK;
    cv_free(c->slab);
    c->slab_size = 0;
    c->slab = cv_malloc(cv_size(size));
    if (!c->slab) return cv_fail_memory(err, cv_size(size), "a slab of the copy");
    c->slab_size = size;
    return CV_OK;
}

/* Copies items [first, last) of the axis; both are chunk edges. The slab takes half of the memory
 * limit; the other half is for threads that decode and encode. */
static cv_status copy_between(view_copy *c, int64_t first, int64_t last, cv_error *err)
{
    enum { SLAB_BYTES = 8 << 20 };
    int64_t start[CV_MAX_DIMS] = {0}, stop[CV_MAX_DIMS];
    const int64_t shift[CV_MAX_DIMS] = {0};
    memcpy(stop, c->grid->shape, sizeof stop);
    if (c->grid->ndim > 0) {
        start[c->axis] = first;
        stop[c->axis] = last;
    }
    cv_slab_request request = {.to = c->grid, .from = c->grid, .shift = shift};
    request.start = start;
    request.stop = stop;
    request.memory = c->order->options.memory / 2;
    request.enough =
        cv_max_i64(SLAB_BYTES, 4 * c->to->pending->threads * c->grid->chunk_bytes);
    cv_slabs slabs;
    cv_slabs_choose(&request, &slabs);
    CV_TRY(copy_view_reserve_slab(c, slabs.n_bytes, err));
    cv_status status = CV_OK;
    for (int64_t k = 0; k < slabs.n_slabs && status == CV_OK; k++) {
        cv_slabs_get(&slabs, k, start, stop);
        status = copy_view_copy_slab(c, start, stop, err);
    }
    return status;
}

/* ---- Moving chunks ---------------------------------------------------------- */

/* Plans the move along axis `d`, on which the part begins at item `at` of the new array. Returns
 * false if chunk edges do not coincide. A chunk in which the part ends is moved only if both arrays
 * end there too. Otherwise, on the joined axis it is left out; on another axis, returns false. */
static bool draw_axis(const view_copy *c, const caterva_view *part, int d, int64_t at,
                      cv_move *move)
{
    int b = part->base_axis[d];
    int64_t length = part->grid.shape[d], chunk = c->grid->chunk_shape[d];
    int64_t start = b < 0 ? 0 : part->start[b];
    int64_t end = b < 0 ? 1 : move->source->snapshot->grid.shape[b];
    if (b >= 0 && part->step[b] != 1) return false;
    if (start % chunk != 0 || at % chunk != 0) return false;
    bool whole =
        length % chunk == 0 || (at + length == c->grid->shape[d] && start + length == end);
    if (!whole && d != c->axis) return false;
    move->axis[d] = b;
    move->from[d] = start / chunk;
    move->to[d] = at / chunk;
    move->counts[d] = whole ? cv_ceil_div(length, chunk) : length / chunk;
    return move->counts[d] > 0;
}

static bool draw_move(const view_copy *c, const caterva_view *part, int64_t at, cv_move *move)
{
    for (int d = 0; d < c->grid->ndim; d++)
        if (!draw_axis(c, part, d, d == c->axis ? at : 0, move)) return false;
    if (c->to->pending->txn->is_dual) return false; /* its chunks may not fit */
    return c->grid->ndim > 0 && cv_can_move(move) && cv_move_is_clean(move);
}

static cv_status on_chunk(void *context, cv_error *err)
{
    const view_copy *c = context;
    return cv_watch_step(c->watch, c->grid->chunk_bytes, err);
}

/* Moves those chunks of a part that can be moved. The part begins at item `at` of the axis. *moved
 * is the item after the moved ones; `at` if nothing was moved. */
static cv_status copy_view_move_part(view_copy *c, const caterva_view *part, int64_t at,
                                     int64_t *moved, cv_error *err)
{
    caterva_array *array = part->base->array;
    cv_status status = CV_OK;
    *moved = at;
    if (!array || c->order->conversion.needed) return CV_OK;
    cv_array_lock_shared(array);
    cv_source source = cv_array_source(array);
    if (c->watch) source.watch = c->watch;
    cv_move move = {.source = &source, .target = c->to->pending};
    move.memory = c->order->options.memory / 4;
    int64_t packed = cv_max_i64(1, c->order->options.memory / (2 * c->grid->chunk_bytes));
    int threads = (int)cv_min_i64(cv_min_i64(source.threads, c->to->threads), packed);
    status = cv_array_check_whole(array, err);
    if (status == CV_OK) status = cv_view_check(part->base, &source.snapshot->grid, err);
    if (status == CV_OK && draw_move(c, part, at, &move)) {
        status = cv_move_chunks(&move, threads, on_chunk, c, err);
        int64_t end =
            (move.to[c->axis] + move.counts[c->axis]) * c->grid->chunk_shape[c->axis];
        *moved = cv_min_i64(end, c->grid->shape[c->axis]);
    }
    return cv_array_finish(array, status);
}

static cv_status copy_view_fill_new(view_copy *c, cv_error *err)
{
    parts p = parts_of(&c->view);
    int64_t length = c->grid->ndim > 0 ? c->grid->shape[p.axis] : 1;
    int64_t copied = 0; /* items along the axis */
    c->axis = p.axis;
    CV_TRY(cv_watch_step(c->watch, 0, err));
    if (c->order->options.for_remote) cv_txn_add_layouts(c->to->pending->txn);
    if (c->grid->n_items == 0) return caterva_commit(c->to, err);
    for (int i = 0; i < p.n; i++) {
        int64_t at = p.starts ? p.starts[i] : 0, moved;
        CV_TRY(copy_view_move_part(c, p.views[i], at, &moved, err));
        if (moved == at) continue;
        if (copied < at) CV_TRY(copy_between(c, copied, at, err));
        copied = moved;
    }
    if (copied < length) CV_TRY(copy_between(c, copied, length, err));
    return caterva_commit(c->to, err);
}

/* Takes the partition of the first array, axis by axis. New axes have chunks of one item. */
static void copy_view_set_partition(const caterva_view *over, const cv_snapshot *state,
                                    cv_copy_order *order)
{
    const cv_grid *from = &state->grid;
    caterva_create_options *create = &order->create;
    if (create->chunk_shape || create->block_shape || state->meta.plain) return;
    for (int d = 0; d < over->grid.ndim; d++) {
        int b = over->base_axis[d];
        order->chunk_shape[d] = b < 0 ? 1 : (int32_t)from->chunk_shape[b];
        order->block_shape[d] = b < 0 ? 1 : (int32_t)from->block_shape[b];
    }
    create->chunk_shape = order->chunk_shape;
    create->block_shape = order->block_shape;
}

/* Gives each axis of the new array the name of the first array's axis from which it comes. */
static cv_status carry_dims(const caterva_view *view, const cv_snapshot *state,
                            caterva_array *to, cv_error *err)
{
    int axes[CV_MAX_DIMS];
    const caterva_view *at = view;
    for (int d = 0; d < view->grid.ndim; d++) axes[d] = view->base_axis[d];
    while (!at->base->array) {
        at = at->base->parts[0];
        for (int d = 0; d < view->grid.ndim; d++)
            axes[d] = axes[d] < 0 ? -1 : at->base_axis[axes[d]];
    }
    return cv_dims_carry(state, axes, to, err);
}

static cv_status create_like(const caterva_view *view, const char *url, cv_copy_order *order,
                             target *t, caterva_array **out, cv_error *err)
{
    const caterva_view *over;
    caterva_array *first = first_array(view, &over);
    memcpy(order->shape, view->grid.shape, sizeof order->shape);
    order->create.ndim = view->grid.ndim;
    order->create.shape = order->shape;
    order->create.item_size = 0;
    cv_array_lock_shared(first);
    const cv_snapshot *state = cv_array_state(first);
    /* For stacks and selections from joins, the library chooses the partition. */
    if (over->grid.ndim == view->grid.ndim && (view == over || is_whole_base(view)))
        copy_view_set_partition(over, state, order);
    *out = NULL;
    cv_status status = cv_view_check(over->base, &state->grid, err);
    if (status == CV_OK) status = copy_set_conversion(first, order, err);
    if (status == CV_OK) {
        copy_set_kind(first, url, order);
        status = copy_choose_remote(first, order, err);
    }
    if (status == CV_OK) {
        status = target_create(t, url, order, state, first->type.dtype, out, err);
        cv_status carried = status == CV_OK ? carry_dims(view, state, *out, err) : CV_OK;
        if (carried != CV_OK) status = target_finish(t, carried, *out, NULL, err);
    }
    cv_array_unlock(first);
    return status;
}

caterva_status caterva_view_copy(const caterva_view *view, const char *url,
                                 const caterva_copy_options *options, caterva_array **out,
                                 caterva_error *err)
{
    if (out) *out = NULL;
    if (view) CV_TRY(cv_view_check_arrays(view->base, err));
    if (!view || !url) return cv_fail(err, CATERVA_EINVAL, -1, "the view or url is NULL");
    cv_copy_order order;
    caterva_array *array;
    CV_TRY(copy_read_options(options, &order, err));
    if (order.options.start || order.options.stop)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "a copy of a view takes no box: select from the view instead");
    target t;
    CV_TRY(create_like(view, url, &order, &t, &array, err));
    view_copy c = {.view = view, .order = &order, .to = array};
    c.grid = &cv_txn_snapshot(array->pending->txn)->grid;
    cv_watch watch;
    cv_view_begin(view->base);
    c.watch = cv_watch_open_fixed(&watch, &order.options.progress,
                                  c.grid->n_chunks * c.grid->chunk_bytes, NULL);
    if (c.watch) array->pending->watch = c.watch;
    cv_status status = cv_view_finish(view->base, copy_view_fill_new(&c, err));
    array->pending->watch = array->watch;
    cv_watch_close(&watch, status);
    cv_free(c.slab);
    return target_finish(&t, status, array, out, err);
}

/* ---- Whole arrays as bytes -------------------------------------------------------- */

/* First copies a frame of plain items to an array, so that the result is the frame of an array. */
static cv_status plain_to_frame(caterva_array *array, void **frame, size_t *size,
                                cv_error *err)
{
    caterva_array *copy;
    CV_TRY(caterva_copy(array, "mem:", NULL, &copy, err));
    cv_status status = caterva_frame_copy(copy, frame, size, err);
    cv_array_free(copy);
    return status;
}

caterva_status caterva_frame_copy(caterva_array *array, void **frame, size_t *size,
                                  caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!frame || !size) return cv_fail(err, CATERVA_EINVAL, -1, "frame or size is NULL");
    if (array->metalayer == CATERVA_METALAYER_NONE)
        return plain_to_frame(array, frame, size, err);
    cv_array_lock_alone(array); /* dirty blocks are put into the transaction */
    cv_status status = cv_array_check_whole(array, err);
    if (status == CV_OK && array->pending) status = cv_pending_flush(array->pending, err);
    cv_source source = cv_array_source(array);
    if (status == CV_OK) status = cv_transfer_to_memory(&source, frame, size, err);
    return cv_array_finish(array, status);
}

static cv_status plain_to_pieces(caterva_array *array, cv_take_fn take, void *context,
                                 cv_error *err)
{
    caterva_array *copy = NULL;
    CV_TRY(caterva_copy(array, "mem:", NULL, &copy, err));
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is a copy */
    cv_status status = cv_hand_over(copy->frame, copy->snapshot, take, context, err);
    cv_array_free(copy);
    return status;
}

caterva_status caterva_frame_pieces(caterva_array *array,
                                    int (*take)(void *context, const void *piece, size_t size,
                                                uint64_t total),
                                    void *context, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!take) return cv_fail(err, CATERVA_EINVAL, -1, "take is NULL");
    if (array->metalayer == CATERVA_METALAYER_NONE)
        return plain_to_pieces(array, take, context, err);
    cv_array_lock_alone(array);
    cv_status status = cv_array_check_whole(array, err);
    if (status == CV_OK && array->pending) status = cv_pending_flush(array->pending, err);
    cv_source source = cv_array_source(array);
    bool as_it_lies = !source.pending && !array->snapshot->header.sparse;
    if (status == CV_OK)
        status = as_it_lies ? cv_hand_over(array->frame, array->snapshot, take, context, err)
                            : cv_transfer_pieces(&source, take, context, err);
    return cv_array_finish(array, status);
}

static cv_status append(caterva_array *array, cv_append *a, uint64_t *offset, cv_error *err)
{
    void *frame = NULL;
    uint64_t pos = 0;
    CV_TRY(caterva_frame_copy(array, &frame, &a->size, err));
    a->bytes = frame;
    cv_status status = cv_store_file_append(a, &pos, err);
    caterva_free(frame);
    if (status == CV_OK && offset) *offset = pos;
    return status;
}

caterva_status caterva_frame_append(caterva_array *array, const char *path,
                                    caterva_durability durability, uint64_t *offset,
                                    caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!path || !*path) return cv_fail(err, CATERVA_EINVAL, -1, "the path is NULL or empty");
    if (durability < CATERVA_DURABILITY_FULL || durability > CATERVA_DURABILITY_NONE)
        return cv_fail(err, CATERVA_EINVAL, -1, "durability %d is not known",
                       (int)durability);
    cv_append a = {.path = path, .durable = durability != CATERVA_DURABILITY_NONE};
    a.watch = array->watch;
    if (a.watch) cv_watch_begin(a.watch); /* counts both steps as one call */
    cv_status status = append(array, &a, offset, err);
    if (a.watch) cv_watch_end(a.watch, status == CV_OK);
    return status;
}
