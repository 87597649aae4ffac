/* Room: engine/read. Decodes and delivers wanted blocks of one chunk, as its kind requires. */
#include "engine/read/blocks.h"

#include "engine/items/copy.h"
#include "engine/run/thresholds.h"
#include "frame/layout.h"

#include <stdio.h>
#include <string.h>

/* Compressed bytes per fetch. They are still in the processor cache when they are decoded. From a
 * far store, a fetch reads a whole wave. */
enum { FETCH_BUDGET = 512 * 1024 };

typedef struct decode_task {
    cv_frame *frame;
    const cv_grid *grid;
    const cv_layout *layout;
    cv_worker *worker;
    cv_wanted *wanted;
    int64_t n;
    const cv_block_sink *sink;
    bool is_placed;       /* the bytes of all wanted blocks are in memory */
    const uint8_t *chunk; /* all bytes of the chunk, if in memory; else NULL */
} decode_task;

/* Prefixes the codec's message with chunk and block. */
static cv_status name_block(cv_status status, const cv_chunk_ref *ref, int64_t block,
                            cv_error *err)
{
    if (!err || status != CATERVA_ECORRUPT) return status;
    char reason[sizeof err->message];
    snprintf(reason, sizeof reason, "%s", err->message);
    int64_t pos = (int64_t)ref->pos;
    if (block >= 0)
        return cv_fail(err, status, pos,
                       "chunk %lld at byte %lld: block %lld damaged: %.160s",
                       (long long)ref->chunk, (long long)pos, (long long)block, reason);
    return cv_fail(err, status, pos, "chunk %lld at byte %lld damaged: %.180s",
                   (long long)ref->chunk, (long long)pos, reason);
}

static void fill_all(const decode_task *task, const uint8_t *item)
{
    const cv_block_sink *sink = task->sink;
    if (task->worker->watch)
        cv_watch_add(task->worker->watch, task->n * task->grid->block_bytes);
    for (int64_t i = 0; i < task->n; i++)
        sink->fill(sink->context, task->wanted[i].tag, item);
}

static void deliver(const decode_task *task, int64_t tag, const uint8_t *block)
{
    const cv_block_sink *sink = task->sink;
    uint8_t *place = sink->place ? sink->place(sink->context, tag) : NULL;
    if (place)
        memcpy(place, block, (size_t)task->grid->block_bytes);
    else
        sink->take(sink->context, tag, block);
}

typedef struct target {
    uint8_t *bytes;
    bool is_place, is_room;
} target;

static target find_target(const decode_task *task, int64_t tag)
{
    const cv_block_sink *sink = task->sink;
    target t = {.bytes = sink->place ? sink->place(sink->context, tag) : NULL};
    t.is_place = t.bytes != NULL;
    if (!t.is_place && sink->room) t.bytes = sink->room(sink->context, tag);
    t.is_room = !t.is_place && t.bytes;
    if (!t.bytes) t.bytes = task->worker->block.data;
    return t;
}

static void finish(const decode_task *task, int64_t tag, target t, cv_status status)
{
    const cv_block_sink *sink = task->sink;
    if (status == CV_OK && !t.is_place) sink->take(sink->context, tag, t.bytes);
    if (t.is_room) sink->settle(sink->context, status == CV_OK);
}

static void hand_on(const decode_task *task, int64_t tag, const uint8_t *block)
{
    target t = find_target(task, tag);
    if (t.is_place || t.is_room)
        memcpy(t.bytes, block, (size_t)task->grid->block_bytes);
    else
        t.bytes = (uint8_t *)block;
    finish(task, tag, t, CV_OK);
}

/* Decodes a block that the cache does not keep. May leave the shuffle filter to the delivery. */
static cv_status decode_loose(const decode_task *task, const cv_wanted *wanted, cv_error *err)
{
    const cv_block_sink *sink = task->sink;
    uint8_t *scratch = task->worker->block.data;
    cv_block_form form;
    CV_TRY(cv_decode_loose(task->worker->decoder, &wanted->packed, scratch,
                           (int32_t)task->grid->block_bytes, &form, err));
    switch (form) {
    case CV_FORM_ITEMS: sink->take(sink->context, wanted->tag, scratch); break;
    case CV_FORM_SHUFFLED: sink->take_shuffled(sink->context, wanted->tag, scratch); break;
    case CV_FORM_ITEM: sink->fill(sink->context, wanted->tag, scratch); break;
    }
    return CV_OK;
}

static cv_status decode_one(const decode_task *task, const cv_wanted *wanted, cv_error *err)
{
    const cv_block_sink *sink = task->sink;
    target t = find_target(task, wanted->tag);
    if (!t.is_place && !t.is_room && sink->unshuffles &&
        sink->unshuffles(sink->context, wanted->tag))
        return decode_loose(task, wanted, err);
    cv_status status = cv_decode_block(task->worker->decoder, &wanted->packed, t.bytes,
                                       (int32_t)task->grid->block_bytes, err);
    finish(task, wanted->tag, t, status);
    return status;
}

/* Polls the watch between blocks, so that it can stop a long read. */
static cv_status tick(const decode_task *task, cv_error *err)
{
    return cv_watch_tick(task->worker->watch, task->grid->block_bytes, err);
}

static cv_status fetch(const decode_task *task, cv_wanted *wanted, int64_t *n, cv_error *err)
{
    const size_t budget =
        task->frame->store->is_far ? (size_t)CV_WAVE_BYTES : (size_t)FETCH_BUDGET;
    cv_buffer *packed = &task->worker->packed;
    return cv_fetch_blocks(task->frame, task->layout, wanted, n, task->sink->in_order, budget,
                           packed, err);
}

/* Decodes blocks that have separate streams, as in most chunks. */
static cv_status decode_separate(const decode_task *task, const cv_chunk_ref *ref,
                                 cv_error *err)
{
    int64_t fetched = task->is_placed ? task->n : 0;
    for (int64_t i = 0; i < task->n; i++) {
        const cv_wanted *wanted = &task->wanted[i];
        if (i == fetched) {
            int64_t n = task->n - i;
            CV_TRY(fetch(task, task->wanted + i, &n, err));
            fetched += n;
        }
        CV_TRY(cv_layout_check_block(task->layout, ref, wanted->block, wanted->packed.streams,
                                     err));
        cv_status status = decode_one(task, wanted, err);
        if (status != CV_OK) return name_block(status, ref, wanted->block, err);
        CV_TRY(tick(task, err));
    }
    return CV_OK;
}

/* Copies blocks stored without compression, one after the other. */
static cv_status copy_raw(const decode_task *task, const cv_chunk_ref *ref, cv_error *err)
{
    const cv_layout *layout = task->layout;
    size_t size = (size_t)task->grid->block_bytes;
    const uint8_t *chunk = task->is_placed ? NULL : cv_chunk_view(task->frame, layout);
    for (int64_t i = 0; i < task->n; i++) {
        CV_TRY(tick(task, err));
        const cv_wanted *wanted = &task->wanted[i];
        int64_t pos = wanted->block * task->grid->block_bytes;
        if (chunk || task->is_placed) {
            const uint8_t *block =
                task->is_placed ? wanted->packed.streams : chunk + CV_CHUNK_HEADER_SIZE + pos;
            CV_TRY(cv_layout_check_block(layout, ref, wanted->block, block, err));
            if (layout->chunk || task->is_placed) /* the bytes were read for this request */
                hand_on(task, wanted->tag, block);
            else
                deliver(task, wanted->tag, block);
            continue;
        }
        target t = find_target(task, wanted->tag);
        cv_status status = cv_fetch_raw(task->frame, layout, pos, t.bytes, size, err);
        if (status == CV_OK)
            status = cv_layout_check_block(layout, ref, wanted->block, t.bytes, err);
        finish(task, wanted->tag, t, status);
        CV_TRY(status);
    }
    return CV_OK;
}

/* Decodes the whole chunk. Used if its blocks need the dictionary or block 0, or have another shape
 * than the grid's, and for a short last chunk. */
static cv_status decode_together(const decode_task *task, const cv_chunk_ref *ref,
                                 cv_error *err)
{
    cv_worker *worker = task->worker;
    size_t size = (size_t)task->grid->chunk_bytes;
    int32_t chunk_bytes = task->layout->header.nbytes;
    const uint8_t *chunk = task->chunk;
    if (!chunk)
        CV_TRY(cv_fetch_chunk(task->frame, task->layout, &worker->packed, &chunk, err));
    CV_TRY(cv_layout_check_chunk(task->layout, ref, chunk, err));
    CV_TRY(cv_buffer_resize(&worker->chunk, size, err));
    cv_status status = cv_decode_chunk(worker->decoder, chunk, task->layout->header.cbytes,
                                       worker->chunk.data, chunk_bytes, err);
    if (status != CV_OK) return name_block(status, ref, -1, err);
    memset(worker->chunk.data + chunk_bytes, 0, size - (size_t)chunk_bytes);
    for (int64_t i = 0; i < task->n; i++) {
        CV_TRY(tick(task, err));
        const cv_wanted *wanted = &task->wanted[i];
        hand_on(task, wanted->tag,
                worker->chunk.data + wanted->block * task->grid->block_bytes);
    }
    return CV_OK;
}

/* Returns whether the whole chunk repeats one item: *item, or NULL for zeros. */
static bool is_same(const cv_grid *grid, const cv_chunk_ref *ref, const cv_layout *layout,
                    const uint8_t **item)
{
    cv_special special = layout ? layout->header.special : CV_SPECIAL_NONE;
    bool is_nan = ref->kind == CV_REF_NAN || special == CV_SPECIAL_NAN;
    *item = NULL;
    if (is_nan) *item = cv_nan_item(grid->item_size);
    if (ref->kind == CV_REF_ITEM) *item = ref->item;
    if (special == CV_SPECIAL_VALUE) *item = layout->item;
    return ref->kind != CV_REF_STORED || special != CV_SPECIAL_NONE;
}

cv_status cv_blocks_are_same(cv_frame *frame, const cv_snapshot *snapshot,
                             const cv_chunk_ref *ref, cv_worker *worker, bool *same,
                             const uint8_t **item, cv_error *err)
{
    const cv_layout *layout = NULL;
    bool is_asked = ref->kind == CV_REF_STORED && !cv_layout_is_small(&snapshot->grid);
    if (is_asked) layout = cv_staged_layout(worker->staged, ref);
    if (is_asked && !layout)
        CV_TRY(
            cv_layout_borrow(frame->layouts, snapshot, ref, &worker->layouts, &layout, err));
    *same = is_same(&snapshot->grid, ref, layout, item);
    return CV_OK;
}

cv_status cv_blocks_at_once(cv_frame *frame, const cv_snapshot *snapshot,
                            const cv_chunk_ref *ref, cv_worker *worker, int64_t n,
                            int64_t *at_once, cv_error *err)
{
    *at_once = n;
    if (n <= CV_BLOCKS_AT_ONCE) return CV_OK;
    if (ref->kind == CV_REF_STORED) {
        const cv_layout *layout;
        CV_TRY(
            cv_layout_borrow(frame->layouts, snapshot, ref, &worker->layouts, &layout, err));
        if (layout->header.special == CV_SPECIAL_NONE && layout->access == CV_ACCESS_CHUNK)
            return CV_OK;
    }
    *at_once = CV_BLOCKS_AT_ONCE;
    return CV_OK;
}

cv_status cv_decode_blocks(cv_frame *frame, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_worker *worker,
                           const cv_block_list *list, const cv_block_sink *sink,
                           cv_error *err)
{
    decode_task task = {.frame = frame,
                        .grid = &snapshot->grid,
                        .layout = list->layout,
                        .worker = worker,
                        .wanted = list->wanted,
                        .n = list->n,
                        .sink = sink,
                        .is_placed = list->is_placed,
                        .chunk = list->chunk};
    const uint8_t *item;
    if (task.n == 0) return CV_OK;
    bool is_known = task.layout || ref->kind != CV_REF_STORED;
    if (!is_known && worker->staged) {
        cv_staged_found found;
        is_known = cv_staged_find(worker->staged, ref, task.wanted, task.n, &found);
        task.layout = found.layout;
        task.is_placed = found.is_placed;
        task.chunk = found.chunk;
    }
    if (!is_known)
        CV_TRY(cv_layout_borrow(frame->layouts, snapshot, ref, &worker->layouts, &task.layout,
                                err));
    if (is_same(task.grid, ref, task.layout, &item)) {
        fill_all(&task, item);
        return CV_OK;
    }
    CV_TRY(cv_buffer_resize(&worker->block, (size_t)task.grid->block_bytes, err));
    switch (task.layout->access) {
    case CV_ACCESS_RAW: return copy_raw(&task, ref, err);
    case CV_ACCESS_BLOCK: return decode_separate(&task, ref, err);
    default: return decode_together(&task, ref, err);
    }
}
