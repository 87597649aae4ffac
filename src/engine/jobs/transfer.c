/* Room: engine/jobs. A compact copy of a frame: chunk after chunk as they are
 * stored, through a transaction of the new frame like any other write. */
#include "engine/jobs/transfer.h"

#include "base/heap.h"
#include "engine/read/source.h"
#include "frame/commit.h"
#include "frame/layout.h"
#include "frame/lookup.h"
#include "frame/put.h"
#include "store/memory.h"

/* A special chunk that some writer stored: the index can say it. */
static bool is_special(const cv_layout *layout, cv_ref_kind *kind)
{
    switch (layout->header.special) {
    case CV_SPECIAL_ZEROS: *kind = CV_REF_ZEROS; return true;
    case CV_SPECIAL_NAN: *kind = CV_REF_NAN; return true;
    case CV_SPECIAL_UNINIT: *kind = CV_REF_UNINIT; return true;
    default: return false;
    }
}

/* The checksums travel along, unless there are none yet: a damaged chunk stays
 * noticeable. */
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

/* The chunk has a file of its own, and its table is behind it there. */
static bool may_share(const cv_source *source, const cv_layout *layout,
                      const cv_chunk_ref *ref)
{
    cv_object object;
    uint64_t pos;
    if (!source->gives || !layout->sums || ref->object == CV_FRAME_OBJECT) return false;
    cv_layout_find_table(layout, ref, &object, &pos);
    return object == ref->object && pos == (uint64_t)layout->header.cbytes;
}

/* A stored chunk on its way: `bytes` are all of it. */
static cv_status put_stored(const cv_source *source, const cv_layout *layout,
                            const cv_chunk_ref *ref, const uint8_t *bytes, cv_txn *to,
                            int64_t number, cv_error *err)
{
    cv_buffer table = {0};
    cv_stored_chunk stored = {
        .bytes = bytes, .size = (size_t)layout->header.cbytes, .table = &table};
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
        if (status == CV_OK && source->checks)
            status = cv_layout_check_chunk(layout, ref, bytes, err);
        if (status == CV_OK) status = put_stored(source, layout, ref, bytes, to, number, err);
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

typedef struct copying {
    const cv_source *source;
    cv_txn *txn;
    cv_stage stage; /* whose units are chunks */
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

/* `index`, where it is not NULL, is the source's; the chunks of the target are `initial`,
 * one of its special entries, before they are put. */
static cv_status copy_chunks(const cv_source *source, const cv_index *index, int64_t initial,
                             cv_frame *target, cv_error *err)
{
    const cv_grid *grid = &source->snapshot->grid;
    copying c = {.source = source};
    cv_worker *worker = NULL;
    bool has_layouts;
    CV_TRY(cv_source_has_layouts(source, &has_layouts, err));
    CV_TRY(cv_txn_begin(target, &c.txn, err));
    if (has_layouts) cv_txn_add_layouts(c.txn); /* a directory takes none */
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
    size_t total = (size_t)snapshot->header.frame_size;
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

/* Most arrays of many chunks have many special ones of one kind: these need not be put. */
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
