/* Room: frame. Where new chunks go, and which index entries they change.
 *
 *   contiguous:  | committed state, free space | new chunks ... end ->
 *   directory:   new chunk files with numbers never used before
 *
 * Nothing is written where the committed state has bytes, so it stays whole
 * whatever happens; nor where an older state has some that a reader still sees. */
#include "frame/put.h"

#include "base/heap.h"
#include "base/os_file.h"
#include "frame/holes.h"
#include "frame/layout_cache.h"
#include "frame/tables.h"
#include "frame/txn_state.h"

/* ---- The pending index -------------------------------------------------- */

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

/* What is to be put, and where it would be well placed. */
typedef struct room {
    size_t size;
    bool replaces; /* another chunk */
    bool is_like;  /* behind the end it gets a place of the same remainder as */
    uint64_t like; /* this one, by CV_CLONE_UNIT */
} room;

/* A hole that is large enough, or the place behind the end; there with slack for
 * a chunk that replaces another, since more of its kind will follow. Reuse is also
 * speed: bytes a file already has are much cheaper to write than new ones. */
static cv_status reserve_range(cv_txn *txn, const room *r, uint64_t *pos, cv_error *err)
{
    cv_extent at;
    bool found;
    CV_TRY(cv_holes_take(txn, r->size, &at, &found, err));
    if (found) {
        cv_layout_cache_forget(txn->frame->layouts, CV_FRAME_OBJECT, at.pos);
    } else {
        take_room(txn);
        if (r->is_like) txn->end += (r->like - txn->end) % CV_CLONE_UNIT;
        at = (cv_extent){txn->end, r->size + (r->replaces ? r->size / CV_SPACE_SLACK : 0)};
        txn->end += at.size;
    }
    if (at.pos + at.size > txn->chunks_end) txn->chunks_end = at.pos + at.size;
    cv_space_put(&txn->space, at.pos, at.size);
    *pos = at.pos;
    return CV_OK;
}

cv_status cv_txn_take_range(cv_txn *txn, size_t size, uint64_t *pos, cv_error *err)
{
    const room r = {.size = size};
    return reserve_range(txn, &r, pos, err);
}

/* A range of the frame, or a new chunk file. Called with the lock. */
static cv_status reserve(cv_txn *txn, room *r, cv_put *put, cv_error *err)
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
    CV_TRY(cv_txn_index(txn, &index, err));
    r->replaces = !cv_offset_is_special(cv_index_get(index, put->chunk));
    put->object = CV_FRAME_OBJECT;
    CV_TRY(reserve_range(txn, r, &put->pos, err));
    put->offset = (int64_t)(put->pos - txn->base->header.header_size);
    return CV_OK;
}

static cv_status begin(cv_txn *txn, int64_t chunk, room *r, cv_put *out, cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    *out = (cv_put){.chunk = chunk};
    cv_mutex_lock(&txn->lock);
    cv_status status = reserve(txn, r, out, err);
    cv_mutex_unlock(&txn->lock);
    return status;
}

cv_status cv_txn_put_begin(cv_txn *txn, int64_t chunk, size_t size, cv_put *out,
                           cv_error *err)
{
    room r = {.size = size};
    return begin(txn, chunk, &r, out, err);
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

/* ---- Chunks that are stored somewhere else --------------------------------- */

/* Whether it is worth a gap of less than CV_CLONE_UNIT before the chunk. */
static bool may_clone(cv_txn *txn, const cv_stored_chunk *stored)
{
    enum { LEAST = 64 * CV_CLONE_UNIT };
    if (!stored->from || stored->object != CV_FRAME_OBJECT || stored->size < LEAST)
        return false;
    cv_mutex_lock(&txn->lock);
    if (!txn->knows_clones)
        txn->clones =
            !txn->base->header.sparse && cv_store_may_clone(txn->frame->store, stored->from);
    txn->knows_clones = true;
    bool may = txn->clones;
    cv_mutex_unlock(&txn->lock);
    return may;
}

static void clone_no_more(cv_txn *txn)
{
    cv_mutex_lock(&txn->lock);
    txn->clones = false;
    cv_mutex_unlock(&txn->lock);
}

/* Of the chunk the bytes [*start, *end), whole units of both files; none: to be written. What
 * lies in a hole that was found has another place within its unit, mostly. */
static void clone_middle(cv_txn *txn, const cv_put *put, const cv_stored_chunk *stored,
                         size_t *start, size_t *end)
{
    uint64_t before = (0 - stored->pos) % CV_CLONE_UNIT;
    uint64_t size = (stored->size - before) / CV_CLONE_UNIT * CV_CLONE_UNIT;
    *start = *end = 0;
    if ((put->pos - stored->pos) % CV_CLONE_UNIT != 0 || !may_clone(txn, stored)) return;
    if (!cv_store_clone(txn->frame->store, put->pos + before, stored->from,
                        stored->pos + before, size)) {
        clone_no_more(txn);
        return;
    }
    *start = (size_t)before;
    *end = (size_t)(before + size);
}

/* In several writes, as the bytes are borrowed. */
static cv_status write_stored(cv_txn *txn, const cv_put *put, const cv_stored_chunk *stored,
                              cv_error *err)
{
    cv_store *store = txn->frame->store;
    const cv_buffer *table = stored->table;
    size_t start, end;
    clone_middle(txn, put, stored, &start, &end);
    if (start > 0)
        CV_TRY(cv_store_write(store, put->object, put->pos, stored->bytes, start, err));
    if (end < stored->size)
        CV_TRY(cv_store_write(store, put->object, put->pos + end, stored->bytes + end,
                              stored->size - end, err));
    return cv_store_write(store, put->object, put->pos + stored->size, table->data,
                          table->size, err);
}

static bool share(cv_txn *txn, const cv_put *put, const cv_stored_chunk *stored, size_t size)
{
    return stored->from && stored->object != CV_FRAME_OBJECT &&
           cv_store_share(txn->frame->store, put->object, stored->from, stored->object, size);
}

cv_status cv_txn_put_stored(cv_txn *txn, int64_t chunk, const cv_stored_chunk *stored,
                            cv_error *err)
{
    room r = {.size = stored->size + stored->table->size, .like = stored->pos};
    r.is_like = may_clone(txn, stored);
    cv_put put;
    CV_TRY(begin(txn, chunk, &r, &put, err));
    put.name = stored->name;
    bool shared = share(txn, &put, stored, r.size);
    cv_status status = shared ? CV_OK : write_stored(txn, &put, stored, err);
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
