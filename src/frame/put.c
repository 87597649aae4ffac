/* Room: frame. Where new chunks go, and which index entries they change.
 *
 *   contiguous:  | committed state, free space | new chunks ... end ->
 *   directory:   new chunk files with numbers never used before
 *
 * Nothing is written where the committed state has bytes, so it stays whole
 * whatever happens; nor where an older state has some that a reader still sees. */
#include "frame/put.h"

#include "base/heap.h"
#include "frame/holes.h"
#include "frame/index_read.h"
#include "frame/layout_cache.h"
#include "frame/tables.h"
#include "frame/txn_state.h"

/* ---- The pending index -------------------------------------------------- */

/* The committed index, or what later puts made of it. Called with the lock. */
static cv_status index_of(cv_txn *txn, const cv_index **out, cv_error *err)
{
    *out = &txn->index;
    if (txn->has_index) return CV_OK;
    return cv_snapshot_index(txn->base, txn->frame->store, out, err);
}

/* A chunk put since the commit, behind its chunks. Slack behind it, and chunks
 * that others are about to write, are not stored yet. */
static cv_status find_put(cv_txn *txn, int64_t chunk, int64_t offset, cv_chunk_ref *out,
                          cv_error *err)
{
    uint64_t stored;
    CV_TRY(cv_store_size(txn->frame->store, CV_FRAME_OBJECT, &stored, err));
    *out = (cv_chunk_ref){
        .chunk = chunk,
        .kind = CV_REF_STORED,
        .object = CV_FRAME_OBJECT,
        .pos = txn->base->header.header_size + (uint64_t)offset,
        .name = cv_index_name(&txn->index, chunk),
    };
    out->limit = stored > out->pos ? stored - out->pos : 0;
    return CV_OK;
}

/* Called with the lock. */
static cv_status find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err)
{
    const cv_frame_header *h = &txn->base->header;
    const cv_index *index;
    CV_TRY(index_of(txn, &index, err));
    int64_t offset = cv_index_get(index, chunk);
    if (h->sparse || cv_offset_is_special(offset) || offset < h->cbytes)
        return cv_chunk_ref_find(txn->base, index, chunk, out, err);
    return find_put(txn, chunk, offset, out, err);
}

cv_status cv_txn_find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err)
{
    cv_mutex_lock(&txn->lock);
    cv_status status = find(txn, chunk, out, err);
    cv_mutex_unlock(&txn->lock);
    return status;
}

/* The chunk file, put since the commit, that a second put makes useless; -1:
 * none. Takes it off the list. Called with the lock. */
static cv_object superseded_file(cv_txn *txn, int64_t offset)
{
    if (!txn->base->header.sparse || cv_offset_is_special(offset)) return -1;
    for (size_t i = 0; i < txn->n_new_files; i++) {
        if (txn->new_files[i] != offset) continue;
        txn->new_files[i] = txn->new_files[--txn->n_new_files];
        return offset;
    }
    return -1;
}

static cv_status set_entry(cv_txn *txn, int64_t chunk, int64_t offset, uint32_t name,
                           cv_error *err)
{
    cv_object useless = -1;
    int64_t old = 0;
    cv_mutex_lock(&txn->lock);
    cv_status status = cv_txn_own_index(txn, err);
    if (status == CV_OK) {
        old = cv_index_get(&txn->index, chunk);
        status = cv_index_set(&txn->index, chunk, offset, err);
        if (status == CV_OK) status = cv_index_set_name(&txn->index, chunk, name, err);
    }
    if (status == CV_OK) {
        useless = superseded_file(txn, old);
        if (!txn->base->header.sparse && !cv_offset_is_special(old))
            cv_holes_replaced(txn, txn->base->header.header_size + (uint64_t)old);
        txn->changed = true;
    }
    cv_mutex_unlock(&txn->lock);
    if (useless >= 0) cv_store_remove(txn->frame->store, useless, NULL);
    return status;
}

/* ---- Putting chunks ----------------------------------------------------- */

static cv_status remember_file(cv_txn *txn, int64_t number, cv_error *err)
{
    if (txn->n_new_files == txn->max_new_files) {
        size_t grown = txn->max_new_files ? txn->max_new_files * 2 : 64;
        cv_object *files = cv_realloc(txn->new_files, txn->n_new_files * sizeof files[0],
                                      grown * sizeof files[0]);
        if (!files) return cv_fail_memory(err, grown * sizeof files[0], "chunk files");
        txn->new_files = files;
        txn->max_new_files = grown;
    }
    txn->new_files[txn->n_new_files++] = number;
    return CV_OK;
}

/* Called with the lock. */
static void take_room(cv_txn *txn)
{
    if (txn->expected == 0) return;
    cv_store_take_room(txn->frame->store, txn->end, txn->expected);
    txn->expected = 0;
    txn->has_room = true;
}

void cv_txn_expect(cv_txn *txn, uint64_t size)
{
    cv_mutex_lock(&txn->lock);
    if (!txn->base->header.sparse) txn->expected = size;
    cv_mutex_unlock(&txn->lock);
}

/* Nothing was ever behind `end`, and what is left there is cut off at the latest by the close
 * or the next writer. */
void cv_txn_expect_end(cv_txn *txn)
{
    cv_store *store = txn->frame->store;
    uint64_t stored;
    cv_mutex_lock(&txn->lock);
    if (txn->has_room && cv_store_size(store, CV_FRAME_OBJECT, &stored, NULL) == CV_OK &&
        stored > txn->end)
        (void)cv_store_truncate(store, CV_FRAME_OBJECT, txn->end, NULL);
    txn->expected = 0;
    txn->has_room = false;
    cv_mutex_unlock(&txn->lock);
}

/* A hole that is large enough, or the place behind the end; there with slack for
 * a chunk that replaces another, since more of its kind will follow. Reuse is also
 * speed: bytes a file already has are much cheaper to write than new ones. */
static cv_status reserve_range(cv_txn *txn, size_t size, bool replaces, uint64_t *pos,
                               cv_error *err)
{
    cv_extent at;
    bool found;
    CV_TRY(cv_holes_take(txn, size, &at, &found, err));
    if (found) {
        cv_layout_cache_forget(txn->frame->layouts, CV_FRAME_OBJECT, at.pos);
    } else {
        take_room(txn);
        at = (cv_extent){txn->end, size + (replaces ? size / CV_SPACE_SLACK : 0)};
        txn->end += at.size;
    }
    if (at.pos + at.size > txn->chunks_end) txn->chunks_end = at.pos + at.size;
    cv_space_put(&txn->space, at.pos, at.size);
    *pos = at.pos;
    return CV_OK;
}

cv_status cv_txn_take_range(cv_txn *txn, size_t size, uint64_t *pos, cv_error *err)
{
    return reserve_range(txn, size, false, pos, err);
}

/* A range of the frame, or a new chunk file. Called with the lock. */
static cv_status reserve(cv_txn *txn, size_t size, cv_put *put, cv_error *err)
{
    if (txn->base->header.sparse) {
        if (txn->next_file > UINT32_MAX)
            return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                           "all numbers of chunk files are used up: compact the array");
        put->object = put->offset = txn->next_file;
        CV_TRY(remember_file(txn, txn->next_file, err));
        txn->next_file++;
        return CV_OK;
    }
    const cv_index *index;
    CV_TRY(index_of(txn, &index, err));
    bool replaces = !cv_offset_is_special(cv_index_get(index, put->chunk));
    put->object = CV_FRAME_OBJECT;
    CV_TRY(reserve_range(txn, size, replaces, &put->pos, err));
    put->offset = (int64_t)(put->pos - txn->base->header.header_size);
    return CV_OK;
}

cv_status cv_txn_put_begin(cv_txn *txn, int64_t chunk, size_t size, cv_put *out,
                           cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    *out = (cv_put){.chunk = chunk};
    cv_mutex_lock(&txn->lock);
    cv_status status = reserve(txn, size, out, err);
    cv_mutex_unlock(&txn->lock);
    return status;
}

static void abandon(cv_txn *txn, const cv_put *put)
{
    bool sparse = txn->base->header.sparse;
    cv_mutex_lock(&txn->lock);
    if (sparse)
        (void)superseded_file(txn, put->object);
    else
        cv_holes_replaced(txn, put->pos);
    cv_mutex_unlock(&txn->lock);
    if (sparse) cv_store_remove(txn->frame->store, put->object, NULL);
}

cv_status cv_txn_put_end(cv_txn *txn, const cv_put *put, cv_status written, cv_error *err)
{
    cv_status status = written;
    if (status == CV_OK) status = set_entry(txn, put->chunk, put->offset, put->name, err);
    if (status != CV_OK) abandon(txn, put);
    return status;
}

static cv_status put_bytes(cv_txn *txn, int64_t chunk, const cv_buffer *bytes, uint32_t name,
                           cv_error *err)
{
    cv_put put;
    CV_TRY(cv_txn_put_begin(txn, chunk, bytes->size, &put, err));
    put.name = name;
    cv_status status =
        cv_store_write(txn->frame->store, put.object, put.pos, bytes->data, bytes->size, err);
    return cv_txn_put_end(txn, &put, status, err);
}

/* In two writes, as the bytes are borrowed. */
static cv_status write_stored(cv_store *store, const cv_put *put,
                              const cv_stored_chunk *stored, cv_error *err)
{
    const cv_buffer *table = stored->table;
    CV_TRY(cv_store_write(store, put->object, put->pos, stored->bytes, stored->size, err));
    return cv_store_write(store, put->object, put->pos + stored->size, table->data,
                          table->size, err);
}

cv_status cv_txn_put_stored(cv_txn *txn, int64_t chunk, const cv_stored_chunk *stored,
                            cv_error *err)
{
    cv_store *store = txn->frame->store;
    size_t size = stored->size + stored->table->size;
    cv_put put;
    CV_TRY(cv_txn_put_begin(txn, chunk, size, &put, err));
    put.name = stored->name;
    bool shared =
        stored->from && cv_store_share(store, put.object, stored->from, stored->object, size);
    cv_status status = shared ? CV_OK : write_stored(store, &put, stored, err);
    return cv_txn_put_end(txn, &put, status, err);
}

cv_status cv_txn_put(cv_txn *txn, int64_t chunk, cv_buffer *encoded, cv_error *err)
{
    size_t size = encoded->size;
    uint32_t name;
    CV_TRY(cv_table_make(&txn->state->grid, encoded->data, size, encoded, &name, err));
    cv_status status = put_bytes(txn, chunk, encoded, name, err);
    encoded->size = size;
    return status;
}

cv_status cv_txn_put_special(cv_txn *txn, int64_t chunk, cv_ref_kind kind, cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    return set_entry(txn, chunk, cv_offset_of_kind(kind), 0, err);
}
