/* Room: frame. The commit: the one way committed state changes.
 *
 *   1. new chunks already lie in space the committed state does not use; chunks
 *      of other writers get checksums, some at each commit
 *   2. new tail behind all chunks: header copy, index, seal, trailer, contiguous
 *   3. sync; and the file still has its name
 *   4. one write of the header, from its frame_size field to its end
 *   5. sync, after which it has its name still: acknowledged
 *
 * A crash before 4 leaves the old state, one after 4 the new one, and 4 is a
 * single write inside one sector for headers up to 512 bytes. A new frame has
 * no old state: it is written whole under a temporary name and renamed after
 * 5. A directory's chunks.b2frame is replaced by rename instead of 4; replaced
 * chunk files go after that, when nobody reads an older state.
 *
 * A sync or header write that fails leaves unknown what reached the disk: the
 * frame is poisoned and takes no further change.
 *
 * A commit of several frames prepares each, up to 3, makes all new headers known together
 * (which is what commits them), and completes each, from 4 on. */
#include "frame/commit.h"

#include "base/arith.h"
#include "base/heap.h"
#include "format/chunk_header.h"
#include "frame/adopt.h"
#include "frame/files.h"
#include "frame/holes.h"
#include "frame/index_read.h"
#include "frame/put_layouts.h"
#include "frame/second_trailer.h"
#include "frame/tail.h"
#include "frame/txn_state.h"

#include <assert.h>
#include <string.h>

/* Byte of the header where a commit's write begins: magic and header length,
 * before it, never change. */
enum { HEADER_WRITE_START = 16 };

/* The next state, while it is being built. */
typedef struct cv_commit {
    cv_txn *txn;
    cv_snapshot *next;
    cv_tail tail;
    int64_t cbytes;
    uint64_t tail_pos;  /* contiguous: where the tail goes */
    int64_t *old_files; /* directory: those the next state does not name */
    size_t n_old_files;
    bool fresh;          /* not published yet */
    bool syncs, settles; /* what it writes; and the header, too */
} commit;

/* ---- Building the next state -------------------------------------------- */

/* Adds the bytes of these files to *sum. One that is gone has none, and *complete says
 * so. */
static cv_status add_files(const cv_txn *txn, const int64_t *files, size_t n, int64_t *sum,
                           bool *complete, cv_error *err)
{
    cv_error error = {0};
    for (size_t i = 0; i < n; i++) {
        uint64_t size = 0;
        cv_status status = cv_store_size(txn->frame->store, files[i], &size, &error);
        if (status == CATERVA_ENOTFOUND) *complete = false;
        if (status != CV_OK && status != CATERVA_ENOTFOUND) {
            if (err) *err = error;
            return status;
        }
        *sum += (int64_t)size;
    }
    return CV_OK;
}

/* The bytes of all chunk files that the new state names: from what the old one says and
 * what has changed, unless a file that goes is gone already: what it had nobody knows. */
static cv_status count_files(const commit *c, int64_t *cbytes, cv_error *err)
{
    const cv_txn *txn = c->txn;
    int64_t fresh = 0, old = 0;
    bool complete = true;
    CV_TRY(add_files(txn, txn->new_files, txn->n_new_files, &fresh, &complete, err));
    CV_TRY(add_files(txn, c->old_files, c->n_old_files, &old, &complete, err));
    *cbytes = txn->base->header.cbytes + fresh - old;
    if (complete) return CV_OK;

    int64_t *named;
    size_t n_named;
    CV_TRY(cv_files_named(&txn->index, txn->state->grid.n_chunks, &named, &n_named, err));
    *cbytes = 0;
    cv_status status = add_files(txn, named, n_named, cbytes, &complete, err);
    cv_free(named);
    return status;
}

/* Contiguous: the tail goes right behind the chunks where nothing needed lies
 * there (as a rule it and the committed one take turns), else behind that, else
 * behind everything. */
static uint64_t place_tail(cv_txn *txn, uint64_t size)
{
    const cv_snapshot *base = txn->base;
    uint64_t end = cv_second_trailer_keep_off(txn, txn->end, size);
    if (!txn->frame->store->published || !cv_txn_may_reuse(txn)) return end;
    uint64_t old_end = base->header.frame_size;
    uint64_t low = cv_second_trailer_keep_off(txn, txn->chunks_end, size);
    uint64_t high = low > old_end ? low : old_end;
    if ((low + size <= txn->base_tail_pos || low >= old_end) &&
        cv_space_is_clear(&txn->space, low, size))
        return low;
    bool is_taken = txn->has_follower && old_end == txn->found_end;
    return !is_taken && cv_space_is_clear(&txn->space, high, size) ? high : end;
}

/* cbytes as the format counts it: up to the index with dead space, or all
 * chunk files together. */
static cv_status count_cbytes(commit *c, cv_error *err)
{
    cv_txn *txn = c->txn;
    if (!txn->base->header.sparse) {
        c->cbytes =
            (int64_t)(c->tail_pos + c->tail.copy_size - txn->base->header.header_size);
        return CV_OK;
    }
    CV_TRY(cv_files_unnamed(c->txn, &c->old_files, &c->n_old_files, err));
    CV_TRY(count_files(c, &c->cbytes, err));
    /* C-Blosc2 holds file numbers to the bound of offsets, cbytes - 32, and
     * does not open a small directory with large numbers: say more then. */
    for (int64_t i = 0; i < txn->index.n; i++)
        c->cbytes =
            cv_max_i64(c->cbytes, cv_index_get(&txn->index, i) + CV_CHUNK_HEADER_SIZE);
    return CV_OK;
}

static cv_status build_header(commit *c, uint64_t frame_size, cv_error *err)
{
    const cv_snapshot *old = c->txn->state;
    cv_frame_header header = old->header;
    header.frame_size = frame_size;
    header.cbytes = c->cbytes;
    header.encode_threads = 0; /* "as the reader likes": our mark, see RELIABILITY notes */
    header.decode_threads = 0;
    CV_TRY(cv_frame_header_write(&header, &c->next->header_bytes, err));
    assert(header.header_size == old->header.header_size); /* there is one encoding only */
    return cv_snapshot_parse(c->next, err);
}

/* What the tail says of the next state; it is complete. */
static cv_status take_tail(commit *c, cv_error *err)
{
    cv_snapshot *next = c->next;
    const cv_buffer *bytes = &c->tail.bytes;
    size_t size = c->txn->state->trailer_bytes.size;
    int64_t pos = (int64_t)(next->header.frame_size - size);
    next->index_pos = next->grid.n_chunks > 0 ? c->tail_pos + c->tail.copy_size : 0;
    next->index_size = c->tail.index_size;
    next->footer = c->tail.footer;
    next->seal = CV_SEAL_WHOLE;
    next->unchecked = c->txn->base->unchecked;
    CV_TRY(
        cv_buffer_append(&next->trailer_bytes, bytes->data + bytes->size - size, size, err));
    return cv_trailer_parse(next->trailer_bytes.data, size, pos, &next->trailer, err);
}

static cv_status build(commit *c, cv_error *err)
{
    const cv_frame_header *old = &c->txn->state->header;
    CV_TRY(cv_tail_build(c->txn, &c->tail, err));
    if (!old->sparse) CV_TRY(cv_holes_before_tail(c->txn, c->tail.bytes.size, err));
    c->tail_pos = old->sparse ? old->header_size : place_tail(c->txn, c->tail.bytes.size);
    CV_TRY(count_cbytes(c, err));
    CV_TRY(build_header(c, c->tail_pos + c->tail.bytes.size, err));
    cv_tail_seal(c->txn, &c->next->header_bytes, &c->tail);
    return take_tail(c, err);
}

/* ---- Writing it --------------------------------------------------------- */

static cv_status sync_object(commit *c, cv_object object, cv_error *err)
{
    cv_status status = cv_store_sync(c->txn->frame->store, object, err);
    if (status != CV_OK) c->txn->frame->poisoned = true;
    return status;
}

cv_status cv_commit_put_header(cv_store *store, const uint8_t *header, size_t size,
                               cv_error *err)
{
    return cv_store_write(store, CV_FRAME_OBJECT, HEADER_WRITE_START,
                          header + HEADER_WRITE_START, size - HEADER_WRITE_START, err);
}

/* The step that makes the new state the committed one. */
static cv_status write_header(commit *c, cv_error *err)
{
    const cv_buffer *header = &c->next->header_bytes;
    cv_status status =
        cv_commit_put_header(c->txn->frame->store, header->data, header->size, err);
    if (status != CV_OK) c->txn->frame->poisoned = true;
    return status;
}

/* A new frame gets its name. When that failed but the name is there, it is not
 * known whether it will be after a power cut. */
static cv_status publish_store(commit *c, bool durable, cv_error *err)
{
    cv_frame *frame = c->txn->frame;
    bool was_published = frame->store->published;
    cv_status status = cv_store_publish(frame->store, durable, err);
    if (status != CV_OK && frame->store->published && !was_published) frame->poisoned = true;
    return status;
}

/* Of a contiguous frame: all that nobody sees yet. */
static cv_status write_unseen(commit *c, cv_error *err)
{
    cv_frame *frame = c->txn->frame;
    const cv_buffer *header = &c->next->header_bytes;
    CV_TRY(cv_store_write(frame->store, CV_FRAME_OBJECT, c->tail_pos, c->tail.bytes.data,
                          c->tail.bytes.size, err));
    if (c->fresh) { /* nobody can see it yet: the header may go with the rest */
        CV_TRY(cv_store_write(frame->store, CV_FRAME_OBJECT, 0, header->data, header->size,
                              err));
        cv_second_trailer_write(c->txn, c->next);
    }
    if (c->syncs) CV_TRY(sync_object(c, CV_FRAME_OBJECT, err));
    return c->fresh ? CV_OK : cv_store_check_name(frame->store, err);
}

/* After that: what makes it seen. */
static cv_status write_seen(commit *c, cv_error *err)
{
    if (c->fresh) return publish_store(c, c->settles, err);
    CV_TRY(write_header(c, err));
    if (c->settles) CV_TRY(sync_object(c, CV_FRAME_OBJECT, err));
    cv_second_trailer_write(c->txn, c->next);
    return CV_OK;
}

/* The header copy of a directory, behind its frame. */
static cv_status append_copy(const commit *c, cv_buffer *frame, cv_error *err)
{
    const cv_buffer *header = &c->next->header_bytes;
    size_t at = frame->size, size = (size_t)cv_header_copy_size((uint32_t)header->size);
    CV_TRY(cv_buffer_resize(frame, at + size, err));
    if (size > 0)
        cv_header_copy_write(c->txn->n_commits, header->data, (uint32_t)header->size,
                             frame->data + at);
    return CV_OK;
}

static cv_status write_directory(commit *c, cv_error *err)
{
    cv_txn *txn = c->txn;
    cv_store *store = txn->frame->store;
    bool durable = txn->frame->durability != CATERVA_DURABILITY_NONE;
    for (size_t i = 0; i < txn->n_new_files && durable; i++) {
        CV_TRY(cv_watch_tick(txn->syncing, 0, err));
        CV_TRY(sync_object(c, txn->new_files[i], err));
    }
    if (durable && txn->n_new_files > 0) CV_TRY(sync_object(c, CV_FRAME_OBJECT, err));

    cv_buffer frame = {0};
    cv_status status =
        cv_buffer_append(&frame, c->next->header_bytes.data, c->next->header_bytes.size, err);
    if (status == CV_OK)
        status = cv_buffer_append(&frame, c->tail.bytes.data, c->tail.bytes.size, err);
    if (status == CV_OK) status = append_copy(c, &frame, err);
    if (status == CV_OK)
        status = cv_store_replace(store, frame.data, frame.size, durable, err);
    cv_buffer_free(&frame);
    if (status == CV_OK && durable) status = sync_object(c, CV_FRAME_OBJECT, err);
    if (status == CV_OK && c->fresh) status = publish_store(c, durable, err);
    return status;
}

/* ---- Publishing --------------------------------------------------------- */

/* The books of a contiguous frame: where the new tail is, and that the old one,
 * like all that was replaced, is dead. Without a second sync the new header may
 * not be on the disk yet, and the old one be needed; without any, nothing is
 * promised for a power cut. */
static void account(commit *c, bool fresh)
{
    cv_txn *txn = c->txn;
    const cv_snapshot *base = txn->base;
    if (base->header.sparse) return;
    uint64_t old_end = base->header.frame_size;
    uint64_t old_pos = txn->base_tail_pos;
    uint64_t tail_end = c->tail_pos + c->tail.bytes.size;
    cv_space_occupy(&txn->space, c->tail_pos, c->tail.bytes.size);
    if (!fresh)
        cv_extents_add(&txn->space.dead, (cv_extent){old_pos, old_end - old_pos}, true);
    cv_space_committed(&txn->space, txn->frame->durability != CATERVA_DURABILITY_ORDERED);
    cv_second_trailer_account(txn, c->next);
    txn->base_end = txn->end > tail_end ? txn->end : tail_end;
    txn->base_chunks_end = txn->chunks_end;
    txn->base_tail_pos = c->tail_pos;
    if (txn->frame->durability != CATERVA_DURABILITY_NONE) txn->unsettled = false;
}

/* The next snapshot takes over the transaction's index, and readers see it. */
static void publish(commit *c)
{
    cv_txn *txn = c->txn;
    c->next->index = txn->index; /* empty only when there are no chunks */
    txn->index = (cv_index){0};
    txn->has_index = false;
    atomic_store_explicit(&c->next->index_ready, true, memory_order_release);

    cv_mutex_lock(&txn->frame->lock);
    cv_snapshot *old = txn->frame->current;
    txn->frame->current = c->next;
    cv_mutex_unlock(&txn->frame->lock);
    cv_snapshot_release(old);
    c->next = NULL;
}

/* What was committed to a file that others took the name of, meanwhile, is lost. The look
 * before what makes the new state seen is enough where that is one write and nothing is
 * waited for: whoever takes the name then, takes it as if just after the commit. A sync
 * may wait for long. */
static cv_status check_name_again(const commit *c, cv_error *err)
{
    cv_txn *txn = c->txn;
    if (!c->settles && !txn->base->header.sparse) return CV_OK;
    cv_status status = cv_store_check_name(txn->frame->store, err);
    if (status != CV_OK) txn->frame->poisoned = true;
    return status;
}

/* ---- The steps ---------------------------------------------------------- */

/* Something is pending. */
static cv_status begin(cv_txn *txn, commit *c, cv_error *err)
{
    caterva_durability durability = txn->frame->durability;
    *c = (commit){.txn = txn,
                  .fresh = !txn->frame->store->published,
                  .syncs = durability != CATERVA_DURABILITY_NONE,
                  .settles = durability == CATERVA_DURABILITY_FULL};
    if (!c->fresh && txn->base->header.sparse)
        CV_TRY(cv_store_check_name(txn->frame->store, err)); /* it removes files */
    CV_TRY(cv_adopt_some(txn, false, NULL, err));
    cv_files_remove_old(txn, txn->base); /* their last readers have come on here */
    if (c->fresh && txn->adds_layouts) CV_TRY(cv_txn_put_layouts(txn, err));
    c->next = cv_snapshot_new();
    if (!c->next) return cv_fail_memory(err, sizeof *c->next, "a commit");
    c->tail.bytes = txn->tail;
    txn->tail = (cv_buffer){0};
    return build(c, err);
}

static cv_status complete(commit *c, cv_error *err)
{
    CV_TRY(check_name_again(c, err));
    cv_files_replaced(c->txn, c->old_files, c->n_old_files);
    cv_files_remove_old(c->txn, c->next);
    account(c, c->fresh);
    publish(c);
    cv_txn_reset(c->txn);
    return CV_OK;
}

static void end(commit *c)
{
    cv_snapshot_release(c->next);
    if (c->tail.bytes.data) { /* the next one uses it again */
        cv_buffer_free(&c->txn->tail);
        c->txn->tail = c->tail.bytes;
        c->txn->tail.size = 0;
    }
    cv_free(c->old_files);
}

static cv_status write_all(commit *c, cv_error *err)
{
    if (c->txn->base->header.sparse) return write_directory(c, err);
    CV_TRY(write_unseen(c, err));
    return write_seen(c, err);
}

void cv_txn_set_watch(cv_txn *txn, cv_watch *watch) { txn->syncing = watch; }

cv_status cv_txn_commit(cv_txn *txn, cv_error *err)
{
    commit c;
    CV_TRY(cv_txn_check(txn, err));
    if (!cv_txn_pending(txn)) return CV_OK;
    cv_status status = begin(txn, &c, err);
    if (status == CV_OK) status = write_all(&c, err);
    if (status == CV_OK) status = complete(&c, err);
    end(&c);
    return status;
}

/* ---- The same, of several frames ---------------------------------------- */

cv_status cv_commit_prepare(cv_txn *txn, bool durable, cv_commit **out, cv_error *err)
{
    *out = NULL;
    CV_TRY(cv_txn_check(txn, err));
    if (!cv_txn_pending(txn)) return CV_OK;
    commit *c = cv_malloc(sizeof *c);
    if (!c) return cv_fail_memory(err, sizeof *c, "a commit");
    cv_status status = begin(txn, c, err);
    c->syncs = c->settles = durable;
    assert(!txn->base->header.sparse);
    if (status == CV_OK) status = write_unseen(c, err);
    if (status != CV_OK) {
        cv_commit_drop(c);
        return status;
    }
    *out = c;
    return CV_OK;
}

bool cv_commit_is_first(const cv_commit *c) { return c->fresh; }

const cv_snapshot *cv_commit_state(const cv_commit *c) { return c->next; }

const cv_snapshot *cv_commit_base(const cv_commit *c) { return c->txn->base; }

cv_status cv_commit_complete(cv_commit *c, cv_error *err)
{
    cv_status status = write_seen(c, err);
    if (status == CV_OK) status = complete(c, err);
    cv_commit_drop(c);
    return status;
}

void cv_commit_doubt(cv_commit *c) { c->txn->frame->poisoned = true; }

void cv_commit_drop(cv_commit *c)
{
    if (!c) return;
    end(c);
    cv_free(c);
}

/* Before long lists are made of chunks that cannot all be there. Where some share a place
 * they are sealed all the same. */
static cv_status check_room(cv_txn *txn, cv_error *err)
{
    enum { FEW_CHUNKS = 1 << 20 };
    if (txn->state->grid.n_chunks == 0) return CV_OK;
    CV_TRY(cv_txn_own_index(txn, err));
    int64_t n = cv_index_count_stored(&txn->index);
    if (n <= FEW_CHUNKS) return CV_OK;
    return cv_snapshot_check_room(txn->base, txn->frame->store, n, err);
}

/* Nothing is pending. */
cv_status cv_txn_seal(cv_txn *txn, cv_watch *watch, cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    CV_TRY(check_room(txn, err));
    txn->changed = txn->changed || txn->base->seal != CV_SEAL_WHOLE;
    txn->adopt_next = 0;
    txn->adopted = false;
    cv_watch_expect(watch, txn->state->grid.n_chunks * txn->state->grid.chunk_bytes);
    while (!txn->adopted && txn->state->grid.n_chunks > 0)
        CV_TRY(cv_adopt_some(txn, true, watch, err));
    txn->syncing = watch;
    cv_status status = cv_txn_commit(txn, err);
    txn->syncing = NULL;
    return status;
}
