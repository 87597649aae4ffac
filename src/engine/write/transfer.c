/* Room: engine/write. Moves chunks as stored: compact copies of frames, moves between arrays,
 * and the bytes of a frame for the caller. */
#include "engine/write/transfer.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/read/source.h"
#include "format/dual.h"
#include "frame/commit.h"
#include "frame/layout.h"
#include "frame/lookup.h"
#include "frame/txn.h"
#include "store/memory.h"

#include <string.h>

/* ---- Bytes of a frame ----------------------------------------------------------
 *
 * The store lends the bytes if it can. The header comes from the snapshot, because a later commit
 * may have replaced the stored header. No other byte of this state is ever replaced. */

enum { PIECE = 1 << 20 };

typedef struct giving {
    cv_store *store;
    uint64_t total;
    cv_take_fn take;
    void *context;
    cv_buffer scratch; /* for bytes that are not lent */
} giving;

static cv_status give(giving *g, const void *piece, size_t size, cv_error *err)
{
    if (size == 0 || g->take(g->context, piece, size, g->total) == 0) return CV_OK;
    return cv_fail(err, CATERVA_ESTOPPED, -1, "stopped");
}

static cv_status give_stored(giving *g, uint64_t pos, size_t size, cv_error *err)
{
    const uint8_t *lent = cv_store_view(g->store, CV_FRAME_OBJECT, pos, size);
    if (lent) return give(g, lent, size, err);
    CV_TRY(cv_buffer_reserve(&g->scratch, size, err));
    CV_TRY(cv_store_read(g->store, CV_FRAME_OBJECT, pos, g->scratch.data, size, err));
    return give(g, g->scratch.data, size, err);
}

cv_status cv_hand_over(cv_frame *frame, const cv_snapshot *snapshot, cv_take_fn take,
                       void *context, cv_error *err)
{
    giving g = {frame->store, snapshot->header.frame_size, take, context, {0}};
    uint64_t pos = snapshot->header_bytes.size;
    cv_status status = give(&g, snapshot->header_bytes.data, (size_t)pos, err);
    while (status == CV_OK && pos < g.total) {
        size_t size = g.total - pos < PIECE ? (size_t)(g.total - pos) : PIECE;
        status = give_stored(&g, pos, size, err);
        pos += size;
    }
    cv_buffer_free(&g.scratch);
    return status;
}

/* ---- Compact copies of frames ------------------------------------------------ */

/* Recognises a stored special chunk that an index entry can express. */
static bool is_special(const cv_layout *layout, cv_ref_kind *kind)
{
    switch (layout->header.special) {
    case CV_SPECIAL_ZEROS: *kind = CV_REF_ZEROS; return true;
    case CV_SPECIAL_NAN: *kind = CV_REF_NAN; return true;
    case CV_SPECIAL_UNINIT: *kind = CV_REF_UNINIT; return true;
    default: return false;
    }
}

/* Copies existing checksums, so that damage stays detectable; computes missing ones. */
static cv_status make_table(const cv_source *source, const cv_layout *layout,
                            const uint8_t *chunk, cv_buffer *out, uint32_t *name,
                            cv_error *err)
{
    const cv_grid *grid = &source->snapshot->grid;
    cv_block_table table = {.head = layout->head_sum, .blocks = layout->sums};
    table.n = cv_block_table_blocks(&layout->header, grid->n_blocks);
    if (layout->sums) return cv_table_append(&table, out, name, err);
    return cv_table_make(grid, chunk, (size_t)layout->header.cbytes, out, name, err);
}

/* Returns whether the chunk has a file that may be shared: its block table must end the file. */
static bool may_share(const cv_source *source, const cv_layout *layout,
                      const cv_chunk_ref *ref)
{
    cv_object object;
    uint64_t pos;
    if (!source->gives || !layout->sums || ref->object == CV_FRAME_OBJECT) return false;
    cv_layout_find_table(layout, ref, &object, &pos);
    return object == ref->object && pos == (uint64_t)layout->header.cbytes;
}

static cv_status put_stored(const cv_source *source, const cv_layout *layout,
                            const cv_chunk_ref *ref, const uint8_t *bytes, cv_txn *to,
                            int64_t number, cv_worker *worker, cv_error *err)
{
    cv_buffer table = {0};
    cv_stored_chunk stored = {.bytes = bytes,
                              .size = (size_t)layout->header.cbytes,
                              .table = &table,
                              .scratch = &worker->encoded};
    bool is_framed = ref->object == CV_FRAME_OBJECT;
    if (is_framed ? source->is_durable : may_share(source, layout, ref)) {
        stored.from = source->frame->store;
        stored.object = ref->object;
        stored.pos = ref->pos;
    }
    cv_status status = make_table(source, layout, bytes, &table, &stored.name, err);
    if (status == CV_OK) status = cv_txn_put_stored(to, number, &stored, err);
    cv_buffer_free(&table);
    return status;
}

static cv_status copy_stored(const cv_source *source, const cv_chunk_ref *ref, cv_txn *to,
                             int64_t number, cv_worker *worker, cv_error *err)
{
    cv_layout *layout;
    CV_TRY(cv_staged_get_layout(worker->staged, source->frame, source->snapshot, ref, &layout,
                                err));
    cv_ref_kind kind;
    cv_status status = CV_OK;
    if (is_special(layout, &kind)) {
        status = cv_txn_put_special(to, number, kind, err);
    } else {
        const uint8_t *bytes = cv_staged_chunk(worker->staged, ref);
        if (!bytes)
            status = cv_fetch_chunk(source->frame, layout, &worker->packed, &bytes, err);
        if (status == CV_OK && (source->checks || cv_txn_is_dual(to))) /* gets new checksums */
            status = cv_layout_check_chunk(layout, ref, bytes, err);
        if (status == CV_OK)
            status = put_stored(source, layout, ref, bytes, to, number, worker, err);
    }
    cv_layout_release(layout);
    return status;
}

cv_status cv_transfer_chunk(const cv_source *source, int64_t chunk, cv_txn *to,
                            int64_t number, cv_worker *worker, cv_error *err)
{
    cv_chunk_ref ref;
    CV_TRY(cv_source_find(source, chunk, &ref, err));
    if (ref.kind == CV_REF_ITEM) {
        CV_TRY(cv_encode_repeated(&source->workers->spec, ref.item, &worker->packed, err));
        return cv_txn_put(to, number, &worker->packed, err);
    }
    if (ref.kind != CV_REF_STORED) return cv_txn_put_special(to, number, ref.kind, err);
    return copy_stored(source, &ref, to, number, worker, err);
}

cv_status cv_transfer_fits(const cv_source *source, int64_t chunk, cv_worker *worker,
                           bool *fits, cv_error *err)
{
    cv_chunk_ref ref;
    cv_layout *layout;
    *fits = true;
    CV_TRY(cv_source_find(source, chunk, &ref, err));
    if (ref.kind != CV_REF_STORED) return CV_OK;
    CV_TRY(cv_staged_get_layout(worker->staged, source->frame, source->snapshot, &ref,
                                &layout, err));
    *fits = cv_dual_fits(&layout->header);
    cv_layout_release(layout);
    return CV_OK;
}

typedef struct copying {
    const cv_source *source;
    cv_txn *txn;
    cv_stage stage; /* its units are chunks */
} copying;

static cv_status list_chunk(void *context, int64_t chunk, cv_worker *worker,
                            cv_stage_list *list, cv_error *err)
{
    (void)context;
    (void)worker;
    return cv_stage_list_add(list, chunk, CV_STAGE_ALL, err);
}

static cv_status init_stage(copying *c, cv_error *err)
{
    const cv_grid *grid = &c->source->snapshot->grid;
    const cv_stage_plan plan = {.n_units = grid->n_chunks,
                                .bytes = grid->n_chunks * grid->chunk_bytes,
                                .threads = 1,
                                .list = list_chunk};
    return cv_stage_init(&c->stage, c->source, &plan, err);
}

static cv_status copy_chunk(copying *c, int64_t chunk, cv_worker *worker, cv_error *err)
{
    CV_TRY(cv_stage_enter(&c->stage, chunk, worker, err));
    cv_status status = cv_transfer_chunk(c->source, chunk, c->txn, chunk, worker, err);
    cv_stage_leave(&c->stage, chunk, worker);
    return status;
}

/* `index` is the source's, or NULL. `initial` is the entry of target chunks that are not put. */
static cv_status copy_chunks(const cv_source *source, const cv_index *index, int64_t initial,
                             cv_frame *target, cv_error *err)
{
    const cv_grid *grid = &source->snapshot->grid;
    copying c = {.source = source};
    cv_worker *worker = NULL;
    bool has_layouts;
    CV_TRY(cv_source_has_layouts(source, &has_layouts, err));
    CV_TRY(cv_txn_begin(target, &c.txn, err));
    if (has_layouts) cv_txn_add_layouts(c.txn); /* no effect in a directory */
    cv_status status = cv_worker_take(source->workers, &worker, err);
    if (status == CV_OK) status = init_stage(&c, err);
    cv_watch_expect(source->watch, grid->n_chunks * grid->chunk_bytes);
    for (int64_t i = 0; i < grid->n_chunks && status == CV_OK; i++) {
        int64_t next = index ? cv_index_next(index, i, initial) : i;
        status = cv_watch_tick(source->watch, (next - i + (i > 0)) * grid->chunk_bytes, err);
        i = next;
        if (status == CV_OK && i < grid->n_chunks) status = copy_chunk(&c, i, worker, err);
    }
    cv_txn_set_watch(c.txn, source->watch);
    if (status == CV_OK) status = cv_txn_commit(c.txn, err);
    cv_stage_destroy(&c.stage);
    cv_worker_give(source->workers, worker);
    cv_txn_free(c.txn);
    return status;
}

static cv_status read_frame(cv_frame *frame, void **bytes, size_t *size, cv_error *err)
{
    cv_snapshot *snapshot = cv_frame_snapshot(frame);
    size_t total = cv_size((int64_t)snapshot->header.frame_size);
    cv_snapshot_release(snapshot);
    void *copy = cv_malloc(total);
    if (!copy) return cv_fail_memory(err, total, "the frame");
    cv_status status = cv_store_read(frame->store, CV_FRAME_OBJECT, 0, copy, total, err);
    if (status != CV_OK) {
        cv_free(copy);
        return status;
    }
    *bytes = copy;
    *size = total;
    return CV_OK;
}

/* Gets the source's index. If chunk 0 is special, all entries of the target's index begin as this
 * chunk's entry: arrays often have many equal special chunks, which then need not be put. */
static cv_status find_index(const cv_source *source, const cv_index **out,
                            cv_frame_seed *seed, cv_error *err)
{
    cv_snapshot *s = source->snapshot;
    cv_store *store = source->frame->store;
    cv_chunk_ref ref;
    if (s->grid.n_chunks == 0) return CV_OK;
    CV_TRY(cv_snapshot_index(s, store, out, err));
    CV_TRY(cv_snapshot_check_room(s, store, cv_index_count_stored(*out), err));
    int64_t first = cv_index_get(*out, 0);
    if (!cv_offset_is_special(first)) return CV_OK;
    CV_TRY(cv_chunk_ref_make(s, 0, first, &ref, err));
    if (cv_offset_of_kind(ref.kind) == first) seed->initial_offset = first;
    return CV_OK;
}

cv_status cv_transfer(const cv_source *source, cv_store *store, bool sparse,
                      caterva_durability durability, cv_frame **out, cv_error *err)
{
    const cv_snapshot *s = source->snapshot;
    cv_frame_seed seed = {
        .header = s->header,
        .attributes = s->trailer.attributes,
        .n_attributes = s->trailer.n_attributes,
        .initial_offset = cv_offset_of_kind(CV_REF_ZEROS),
    };
    seed.header.sparse = sparse;

    const cv_index *index = NULL;
    cv_frame *frame;
    cv_status status = source->pending ? CV_OK : find_index(source, &index, &seed, err);
    if (status != CV_OK) {
        cv_store_close(store);
        return status;
    }
    CV_TRY(cv_frame_create(store, &seed, durability, &frame, err));
    status = copy_chunks(source, index, seed.initial_offset, frame, err);
    if (status != CV_OK) {
        cv_frame_close(frame);
        return status;
    }
    *out = frame;
    return CV_OK;
}

cv_status cv_transfer_to_memory(const cv_source *source, void **bytes, size_t *size,
                                cv_error *err)
{
    cv_store *store;
    cv_frame *frame;
    CV_TRY(cv_store_memory_create(&store, err));
    CV_TRY(cv_transfer(source, store, false, CATERVA_DURABILITY_NONE, &frame, err));
    cv_status status = read_frame(frame, bytes, size, err);
    cv_frame_close(frame);
    return status;
}

cv_status cv_transfer_pieces(const cv_source *source, cv_take_fn take, void *context,
                             cv_error *err)
{
    cv_store *store;
    cv_frame *frame;
    CV_TRY(cv_store_memory_create(&store, err));
    CV_TRY(cv_transfer(source, store, false, CATERVA_DURABILITY_NONE, &frame, err));
    cv_snapshot *snapshot = cv_frame_snapshot(frame);
    cv_status status = cv_hand_over(frame, snapshot, take, context, err);
    cv_snapshot_release(snapshot);
    cv_frame_close(frame);
    return status;
}

/* ---- Moves between arrays with equivalent chunks ---------------------------------- */

static const cv_grid *target_grid(const cv_move *move)
{
    return &cv_txn_snapshot(move->target->txn)->grid;
}

/* ---- Checks --------------------------------------------------------------- */

static bool same_pipeline(const cv_codec_spec *a, const cv_codec_spec *b)
{
    return a->codec == b->codec && a->codec_meta == b->codec_meta && a->level == b->level &&
           a->use_dict == b->use_dict && a->automatic == b->automatic &&
           memcmp(a->filters, b->filters, sizeof a->filters) == 0 &&
           memcmp(a->filters_meta, b->filters_meta, sizeof a->filters_meta) == 0;
}

bool cv_can_move(const cv_move *move)
{
    const cv_grid *from = &move->source->snapshot->grid, *to = target_grid(move);
    const cv_codec_spec *spec = &move->source->workers->spec;
    int next = 0;                                         /* axis of the source */
    if (move->source->snapshot->meta.plain) return false; /* blocks of plain items differ */
    if (!same_pipeline(spec, &move->target->workers->spec)) return false;
    if (from->item_size != to->item_size) return false;
    if (from->ndim != to->ndim && cv_codec_needs_geometry(spec)) return false;
    for (int d = 0; d < to->ndim; d++) {
        int b = move->axis[d];
        int64_t chunk = b < 0 ? 1 : from->chunk_shape[b];
        int64_t block = b < 0 ? 1 : from->block_shape[b];
        if (b >= 0 && b != next++) return false;
        if (to->chunk_shape[d] != chunk || to->block_shape[d] != block) return false;
    }
    return next == from->ndim;
}

/* ---- Numbers of the chunks ------------------------------------------------- */

static int64_t count(const cv_move *move)
{
    int64_t n = 1;
    for (int d = 0; d < target_grid(move)->ndim; d++) n *= move->counts[d];
    return n;
}

static void number(const cv_move *move, int64_t k, int64_t *from, int64_t *to)
{
    const cv_grid *source = &move->source->snapshot->grid, *target = target_grid(move);
    *from = *to = 0;
    for (int d = target->ndim - 1; d >= 0; d--) {
        int64_t index = k % move->counts[d];
        k /= move->counts[d];
        *to += (move->to[d] + index) * target->chunk_strides[d];
        if (move->axis[d] >= 0)
            *from += (move->from[d] + index) * source->chunk_strides[move->axis[d]];
    }
}

bool cv_move_is_clean(const cv_move *move)
{
    cv_pending *pending = move->source->pending;
    if (!pending) return true;
    for (int64_t k = 0, n = count(move); k < n; k++) {
        int64_t from, to;
        number(move, k, &from, &to);
        if (cv_pending_find(pending, from)) return false;
    }
    return true;
}

/* ---- Moving ---------------------------------------------------------------- */

/* Gives a moved chunk of zeros a ZEROS entry if the fill is due: UNINIT then means "unwritten". */
static cv_status keep_zeros(cv_pending *target, int64_t chunk, cv_error *err)
{
    cv_chunk_ref ref;
    if (!target->fill_is_due) return CV_OK;
    CV_TRY(cv_txn_find(target->txn, chunk, &ref, err));
    if (ref.kind != CV_REF_UNINIT) return CV_OK;
    return cv_txn_put_special(target->txn, chunk, CV_REF_ZEROS, err);
}

cv_status cv_move_chunk(const cv_source *source, int64_t from, cv_pending *target, int64_t to,
                        cv_worker *worker, cv_error *err)
{
    CV_TRY(cv_transfer_chunk(source, from, target->txn, to, worker, err));
    return keep_zeros(target, to, err);
}

typedef struct moving {
    const cv_move *move;
    cv_stage stage;
    cv_status (*on_chunk)(void *context, cv_error *err);
    void *context;
} moving;

static cv_status list_one(void *context, int64_t k, cv_worker *worker, cv_stage_list *list,
                          cv_error *err)
{
    int64_t from, to;
    (void)worker;
    number(((const moving *)context)->move, k, &from, &to);
    return cv_stage_list_add(list, from, CV_STAGE_ALL, err);
}

static cv_status move_one(void *context, int64_t k, cv_worker *worker, cv_error *err)
{
    moving *m = context;
    int64_t from, to;
    number(m->move, k, &from, &to);
    worker->watch = m->move->source->watch;
    CV_TRY(cv_stage_enter(&m->stage, k, worker, err));
    cv_status status = cv_move_chunk(m->move->source, from, m->move->target, to, worker, err);
    cv_stage_leave(&m->stage, k, worker);
    CV_TRY(status);
    return m->on_chunk ? m->on_chunk(m->context, err) : CV_OK;
}

cv_status cv_move_chunks(const cv_move *move, int threads,
                         cv_status (*on_chunk)(void *context, cv_error *err), void *context,
                         cv_error *err)
{
    moving m = {.move = move, .on_chunk = on_chunk, .context = context};
    int64_t n = count(move);
    int helpers = (int)cv_min_i64(threads, n) - 1;
    const cv_stage_plan plan = {.n_units = n,
                                .bytes = n * target_grid(move)->chunk_bytes,
                                .memory = move->memory,
                                .threads = helpers + 1,
                                .list = list_one,
                                .context = &m};
    CV_TRY(cv_stage_init(&m.stage, move->source, &plan, err));
    const cv_crew crew = {move->source->workers, helpers, move->source->watch};
    cv_status status = cv_workers_run(&crew, n, move_one, &m, err);
    cv_stage_destroy(&m.stage);
    return status;
}
